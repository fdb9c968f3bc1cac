"""Records: the entries of a branch's log, each naming the version of every table."""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from omnigraph.model.change import NO_CHANGES, Changes
from omnigraph.model.footprint import Footprint
from omnigraph.model.retention import NOTHING_PRUNED, Pruned
from omnigraph.model.times import Times


class CommitKind(StrEnum):
    """Why an entry was written."""

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


# Commits that change how rows lie, and none of them.
_LAYOUTS = frozenset({CommitKind.INDEX, CommitKind.COMPACT})
# Entries that mark a place in the log but make no new state of the graph.
_NOT_COMMITS = frozenset({CommitKind.PRUNE, CommitKind.BARRIER, CommitKind.FORK, CommitKind.DELETE, CommitKind.CLOCK})
COMMIT_KINDS = tuple(each for each in CommitKind if each not in _NOT_COMMITS)
"""Why there is a commit; what a list of commits can be asked for."""
# Entries with which a life of a branch begins.
_BEGINNINGS = frozenset({CommitKind.INIT, CommitKind.FORK})

RECOVERY_ACTOR = "omnigraph:recovery"
UPKEEP_ACTOR = "omnigraph:upkeep"
MAIN = "main"
LOST_COMMIT = "lost_commit"
"""Under which note the entry in the place of a lost one names it."""
UNKNOWN = -1
"""Instead of a size that an old record did not write down."""


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
    """What recovery did to one table of an interrupted write."""

    type_key: str
    from_version: int
    to_version: int


class RecoveryKind(StrEnum):
    """How an interrupted write ended."""

    FINISHED = "RolledForward"
    UNDONE = "RolledBack"


@dataclass(frozen=True, slots=True)
class Recovery:
    """The audit of one interrupted write, carried by the entry that ended it."""

    kind: RecoveryKind
    intent: str
    operation: CommitKind
    for_actor: str | None
    tables: tuple[TableOutcome, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """Names an entry of a log by what it holds, for the entry that was built on it.

    Attributes:
        number: its place.
        commit: its id.
        checksum: of its bytes.
    """

    number: int
    commit: str = field(compare=False)
    checksum: str


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a branch's log.

    Attributes:
        commit: this entry's own ULID; no two entries share one.
        branch: whose log it is in.
        number: its place there; rises by one, never reused.
        kind: why it was written.
        parent: the commit before it, None for the first of all.
        schema: digest of the schema accepted at this commit.
        tables: for every type key, the pinned table version. Always whole.
        created_at_us: when, microseconds since the epoch.
        merged_parent: the other side of a merge.
        actor: who.
        message: why, in the writer's words.
        intent: the intent this entry completes.
        idempotency_key: the caller's name for the request.
        changes: what happened to entities.
        footprint: what the write read and wrote.
        aborted: intents this entry declares dead.
        recovery: the audit, on recover entries.
        fork_of: on fork entries, the branch it was made from.
        fork_number: on fork entries, the source's entry number at the fork.
        notes: further facts of the kind, as plain JSON values (merge resolutions).
        born: number of the entry with which this life of its branch began; None in records that do not tell.
        pruned: what has been pruned of the branch, up to and with this entry.
        digests: checksums of the table files that the commit has added, by path under the root.
        graph: id of the graph whose log it is in; empty before on-disk version 2.
        previous: the entry of the same log it was built on; None on the first, and before on-disk version 2.
        checksum: of its bytes on the store, by which its successor names it.
        times: corrected times of entries of the same log (`repair --clock`). The log sets these four.
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
    graph: str = field(default="", compare=False)
    previous: Link | None = field(default=None, compare=False)
    checksum: str = field(default="", compare=False)
    times: Times = ()

    @property
    def link(self) -> Link:
        """This entry as its successor names it."""
        return Link(self.number, self.commit, self.checksum)

    @property
    def number_before(self) -> int:
        """The place of the entry before it in the log; strays between the two are stepped over."""
        return self.number - 1 if self.previous is None else self.previous.number

    def follows(self, earlier: "Record") -> bool:
        """True if this entry was built on `earlier`; entries before on-disk version 2 are known by their places."""
        if self.previous is None:
            return not self.graph and not earlier.graph and self.number == earlier.number + 1
        return self.previous == earlier.link

    @property
    def is_commit(self) -> bool:
        """Whether this entry is a commit of the graph, or only a mark in the log."""
        return self.kind not in _NOT_COMMITS

    @property
    def head_commit(self) -> str:
        """The commit whose state this entry shows: its own, or for a mark the one before."""
        return self.commit if self.is_commit or self.parent is None else self.parent

    @property
    def is_layout(self) -> bool:
        """Whether this commit changes how rows lie, and none of them."""
        return self.kind in _LAYOUTS

    def has_content_of(self, commit: str) -> bool:
        """Whether a reader of this entry sees what a reader of `commit` sees, as far as this entry alone tells.

        Whoever has read a commit shall not be told that it changed because its tables were compacted since.
        """
        return commit == self.head_commit or (self.is_layout and commit == self.parent)

    def stands_for(self, commit: str) -> bool:
        """True for the entry of a commit, and for the one that a quarantine put in the place of a commit it lost."""
        return commit in (self.commit, self.notes.get(LOST_COMMIT))

    @property
    def is_live(self) -> bool:
        """Whether the branch exists after this entry."""
        return self.kind is not CommitKind.DELETE

    @property
    def life(self) -> int | None:
        """Number of the entry with which this life of its branch began, as far as this record tells."""
        return self.number if self.kind in _BEGINNINGS else self.born

    def at(self, number: int) -> "Record":
        """The same entry at another place of the log."""
        return replace(self, number=number)
