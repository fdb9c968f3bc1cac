"""What a transaction works with: the opened parts of one graph."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.errors import PermissionDeniedError
from omnigraph.ids import IdSource
from omnigraph.model.commit import Record
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, ExternalBlobPolicy
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.intent import Intents
from omnigraph.transaction.log import Log
from omnigraph.transaction.snapshot import Snapshot
from omnigraph.transaction.write_set.committed import RowIndex


@dataclass(frozen=True, slots=True)
class Settings:
    """What may be chosen when a graph is opened."""

    # "power": an acknowledged write survives losing power; "process": it survives the process only
    durability: str = "power"
    intent_rows_min: int = limits.INTENT_ROWS_MIN  # writes with at least this many rows leave an intent
    intent_bytes_min: int = limits.INTENT_BYTES_MIN  # likewise by bytes
    heartbeat_s: float = limits.INTENT_HEARTBEAT_S  # how often a writer with an intent shows that it lives
    stale_s: float = limits.INTENT_STALE_S  # after how long without that it is taken for dead
    # for how long a superseded commit keeps its data after a prune has marked it
    protection_s: float = limits.PROTECTION_WINDOW_S
    # how long a log entry must have been there before a sweep cuts it away: a courtesy to readers. None takes what the
    # graph's stamp says
    log_cut_s: float | None = None
    auto_compact: bool = True  # compact the newest fragments of a table, beside the writers, once there are many
    tail_fragments_max: int = limits.TAIL_FRAGMENTS_MAX  # how many small fragments of a table are not yet many
    # address of the external store that decides races (`sqlite://…`, `postgresql://…`), for object stores without
    # conditional put; every writer of a graph must name the same one
    external: str | None = None
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS  # which places blobs may lie at that are not the graph's own
    # variables that choose what makes vectors of texts; None for those of the process
    embeddings: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class GraphContext:
    """The opened parts of one graph, shared by every transaction on it."""

    store: ObjectStore  # the graph's root
    table_files: ObjectStore  # where the files of the tables lie: the root as well, but for a graph in memory
    tables: Tables  # opens and stages table versions
    log: Log  # the logs of all branches
    intents: Intents  # the notes of running writes
    clock: Clock
    ids: IdSource
    settings: Settings  # what was chosen when the graph was opened
    read_only: bool  # whether writes are refused
    graph: str = ""
    # called with every commit that a write of this process has made
    published: Callable[[Record], None] | None = None
    finder: RowIndex | None = None  # who keeps track of where rows are; None where nobody does
    ends_announced: bool = False  # whether every branch of this graph that ended has a mark that says so, or may say so

    @property
    def log_cut_s(self) -> float:
        """How long a log entry must have been there before a sweep cuts it away."""
        return limits.LOG_CUT_S if self.settings.log_cut_s is None else self.settings.log_cut_s

    def refuse_read_only(self) -> None:
        """Stop a write on a graph that was opened for reading."""
        if self.read_only:
            raise PermissionDeniedError(f"the graph at {self.store.uri} was opened read-only", code="read_only")

    def snapshot(self, record: Record) -> Snapshot:
        """The state an entry shows, pinned."""
        return Snapshot(record, self.tables)
