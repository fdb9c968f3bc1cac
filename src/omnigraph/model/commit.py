"""Log records: the entries of a branch's log, each naming a version of every table."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from omnigraph.model.change import NO_CHANGES, Changes
from omnigraph.model.footprint import Footprint
from omnigraph.model.retention import NOTHING_PRUNED, Pruned
from omnigraph.model.times import Times


class CommitKind(StrEnum):
    """Operation that wrote a log entry."""

    INIT = "init"
    MUTATION = "mutation"
    LOAD = "load"
    MERGE = "merge"
    SCHEMA = "schema"
    INDEX = "index"
    COMPACT = "compact"
    REVERT = "revert"
    RECOVER = "recover"
    PRUNE = "prune"
    BARRIER = "barrier"
    FORK = "fork"
    DELETE = "delete"
    CLOCK = "clock"


# Commits that change only the physical layout.
_LAYOUTS = frozenset({CommitKind.INDEX, CommitKind.COMPACT})
# Entries that mark a position in the log without a new state of the graph.
_NOT_COMMITS = frozenset({CommitKind.PRUNE, CommitKind.BARRIER, CommitKind.FORK, CommitKind.DELETE, CommitKind.CLOCK})
COMMIT_KINDS = tuple(kind for kind in CommitKind if kind not in _NOT_COMMITS)
"""Kinds of commits; filters of a list of commits."""
# Entries that begin a life of a branch.
_BEGINNINGS = frozenset({CommitKind.INIT, CommitKind.FORK})

RECOVERY_ACTOR = "omnigraph:recovery"
UPKEEP_ACTOR = "omnigraph:upkeep"
MAIN = "main"
LOST_COMMIT = "lost_commit"
"""Key of the note by which a replacement entry names the lost commit."""
UNKNOWN = -1
"""Size in old records that do not store it."""


@dataclass(frozen=True, slots=True)
class Pin:
    """One table at one version.

    Attributes:
        table: the table's folder under the root, like `nodes/01J…`.
        version: Lance's number of the version; exceeds signed 64 bits, hence a string on disk.
        rows: how many rows it holds, or `UNKNOWN`.
        bytes: how large its data files are, or `UNKNOWN`.
    """

    table: str
    version: int
    rows: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class TableOutcome:
    """Effect of a recovery on one table of an interrupted write."""

    type_key: str
    from_version: int
    to_version: int


class RecoveryKind(StrEnum):
    """Outcome of an interrupted write."""

    FINISHED = "RolledForward"
    UNDONE = "RolledBack"


@dataclass(frozen=True, slots=True)
class Recovery:
    """Audit of one interrupted write, carried by the entry that ended it."""

    kind: RecoveryKind
    intent: str
    operation: CommitKind
    for_actor: str | None
    tables: tuple[TableOutcome, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Reference from a log entry to its predecessor, by content.

    Attributes:
        number: log number of the predecessor.
        commit: commit id of the predecessor.
        checksum: checksum of the predecessor's bytes.
    """

    number: int
    commit: str = field(compare=False)
    checksum: str


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a branch's log.

    Attributes:
        commit: ULID of this entry, globally unique.
        branch: name of the log's branch.
        number: log number; increases by one, never reused.
        kind: operation that wrote the entry.
        parent: previous commit, None for the very first.
        schema: digest of the schema at this commit.
        tables: pinned table version of every type key; always complete.
        created_at_us: microseconds since the epoch.
        merged_parent: merged-in commit of a merge.
        actor: user or program that writes, if known.
        message: commit message.
        intent: id of the intent this entry completes.
        idempotency_key: client-chosen key that makes retries safe.
        changes: changed entities by type.
        footprint: read set and write set.
        aborted: intents this entry declares dead.
        recovery: audit of a recover entry.
        fork_of: source branch of a fork entry.
        fork_number: log number of the source at the fork.
        notes: further JSON values that depend on the kind (merge resolutions).
        born: number of the entry that began this life of the branch; None in old records.
        pruned: prune marks up to and including this entry.
        digests: checksums of added table files, by path under the root.
        erased: a sweep removed ids, message and footprint: the commit was pruned by name.
        graph: id of the graph; empty before on-disk version 2.
        previous: link to the previous entry of the log; None on the first, and before on-disk version 2.
        checksum: checksum of the stored bytes, by which the successor links here.
        times: corrected times of entries of the same log (`repair --clock`). The log sets the last four.
    """

    commit: str
    branch: str
    number: int
    kind: CommitKind
    parent: str | None
    schema: str
    tables: dict[str, Pin]
    created_at_us: int
    merged_parent: str | None = None
    actor: str | None = None
    message: str | None = None
    intent: str | None = None
    idempotency_key: str | None = None
    changes: Changes = NO_CHANGES
    footprint: Footprint = field(default_factory=Footprint)
    aborted: tuple[str, ...] = ()
    recovery: Recovery | None = None
    fork_of: str | None = None
    fork_number: int | None = None
    notes: dict[str, object] = field(default_factory=dict)
    born: int | None = None
    pruned: Pruned = NOTHING_PRUNED
    digests: dict[str, str] = field(default_factory=dict)
    erased: bool = False
    graph: str = field(default="", compare=False)
    previous: Link | None = field(default=None, compare=False)
    checksum: str = field(default="", compare=False)
    times: Times = ()

    @property
    def link(self) -> Link:
        """Reference by which its successor names this entry."""
        return Link(self.number, self.commit, self.checksum)

    @property
    def number_before(self) -> int:
        """Log number of the previous entry; stray entries between the two are skipped."""
        return self.number - 1 if self.previous is None else self.previous.number

    def follows(self, earlier: "Record") -> bool:
        """True if this entry was built on `earlier`; before on-disk version 2, entries are compared by number."""
        if self.previous is None:
            return not self.graph and not earlier.graph and self.number == earlier.number + 1
        return self.previous == earlier.link

    @property
    def is_commit(self) -> bool:
        """True if this entry is a commit of the graph, not only a mark in the log."""
        return self.kind not in _NOT_COMMITS

    @property
    def head_commit(self) -> str:
        """Commit whose state this entry shows: its own, or for a mark the previous one."""
        return self.commit if self.is_commit or self.parent is None else self.parent

    @property
    def is_layout(self) -> bool:
        """True if this commit changes only the physical layout of rows."""
        return self.kind in _LAYOUTS

    def has_content_of(self, commit: str) -> bool:
        """True if this entry shows the same content as `commit`, judged from this entry alone.

        Compaction does not change content: a reader of a commit must not be notified of a change after it.
        """
        return commit == self.head_commit or (self.is_layout and commit == self.parent)

    def stands_for(self, commit: str) -> bool:
        """True for the entry of a commit, and for the entry by which a quarantine replaced a lost commit."""
        return commit in (self.commit, self.notes.get(LOST_COMMIT))

    @property
    def is_live(self) -> bool:
        """True if the branch exists after this entry."""
        return self.kind is not CommitKind.DELETE

    @property
    def life(self) -> int | None:
        """Number of the entry that began this life of the branch; None in records that do not store it."""
        return self.number if self.kind in _BEGINNINGS else self.born

    def at(self, number: int) -> "Record":
        """Return a copy of the entry at another log number."""
        return replace(self, number=number)
