"""Intents: the note a large write leaves before its first effect."""

from dataclasses import dataclass, field

from omnigraph.model.change import Changes
from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.footprint import Footprint


@dataclass(frozen=True, slots=True)
class Writer:
    """Which process wrote an intent, so that another one of the same boot can tell whether it still lives.

    Attributes:
        host: its name, for people; many hosts may have the same.
        pid: its number.
        started: when it started, in its kernel's own count.
        boot: which boot of which kernel it runs in; empty where the system does not say.
        namespace: in which namespace its number is valid; likewise.
        token: what no other process has.
    """

    host: str
    pid: int
    started: str
    boot: str = ""
    namespace: str = ""
    token: str = ""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a write is about to do: put before the first effect.

    Attributes:
        id: its ULID.
        kind: the kind of commit it will become.
        branch: where.
        base_number: the log entry it started from.
        base_commit: that entry's own id.
        actor: who.
        writer: which process.
        tables: every table it will touch, at the version it starts from.
        created_at_us: when.
        adopts: commits of other lines whose versions it will name (merge, revert).
        asks_s: for how many seconds its writer, overtaken too often, asks others not to touch those tables.
        since_us: since when its files may have been written, by the store's clock; 0 where not before the intent.
    """

    id: str
    kind: CommitKind
    branch: str
    base_number: int
    base_commit: str
    actor: str | None
    writer: Writer
    tables: dict[str, Pin]
    created_at_us: int
    adopts: tuple[str, ...] = ()
    asks_s: float = 0.0
    since_us: int = 0

    @property
    def title(self) -> str:
        """Which write it is, for people."""
        by = f" by {self.actor}" if self.actor else ""
        process = f"process {self.writer.pid} of {self.writer.host}"
        return f"{self.kind.value} {self.id}{by} on branch '{self.branch}', {process}"


@dataclass(frozen=True, slots=True)
class Completed:
    """The second document: everything is staged, and this is all that is needed to publish it.

    Attributes:
        intent: whose.
        schema: digest of the schema after the write.
        tables: the staged pin of every touched table.
        removed: type keys the write drops from the map.
        footprint: what was read and written.
        changes: what changed.
        merged_parent: the other side of a merge.
        message: the writer's words.
        idempotency_key: the caller's name for the request.
        notes: further facts of the kind.
        if_commit: the caller's precondition on the head commit; it binds whoever publishes.
        expected_table_versions: the caller's precondition on table versions, likewise.
        prune_previous: mark every earlier commit in the same entry, whoever publishes.
    """

    intent: str
    schema: str
    tables: dict[str, Pin]
    removed: tuple[str, ...]
    footprint: Footprint
    changes: Changes
    merged_parent: str | None
    message: str | None
    idempotency_key: str | None
    notes: dict[str, object]
    if_commit: str | None = None
    expected_table_versions: dict[str, int] = field(default_factory=dict)
    prune_previous: bool = False
