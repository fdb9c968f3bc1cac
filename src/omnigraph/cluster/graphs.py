"""Create, change, observe and delete the graphs of a cluster."""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.api.graph import Graph
from omnigraph.api.open import init
from omnigraph.api.open import open as open_graph
from omnigraph.clock import Clock
from omnigraph.cluster import digests, layout
from omnigraph.errors import AlreadyExistsError, GraphError
from omnigraph.ids import IdSource
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.storage.object_store import ObjectStore
from omnigraph.transaction.leases import leases

# Opens the store of an address.
Stores = Callable[[str], ObjectStore]


@dataclass(frozen=True, slots=True)
class GraphObservation:
    """Observed condition of a graph."""

    exists: bool  # whether there is a complete graph
    schema_digest: str = ""  # digest of its schema text
    number: int = 0  # number of its newest commit on main
    fault: str | None = None  # why it could not be opened; None if it could


class ClusterGraphs:
    """Graphs below the storage root of one cluster."""

    def __init__(self, root: str, stores: Stores, *, clock: Clock, ids: IdSource) -> None:
        self._root = root
        self._stores = stores
        self._clock = clock
        self._ids = ids

    def uri(self, graph: str) -> str:
        """Return the address of a graph."""
        return layout.graph_uri(self._root, graph)

    def observe(self, graph: str) -> GraphObservation:
        """Observe a graph without changing it."""
        try:
            with self._open(graph, read_only=True) as opened:
                text = opened.schema_text()
                number = opened.snapshot().record.number
        except GraphError as fault:
            # A crash during creation leaves an incomplete graph; creating it again completes it.
            absent = fault.code in ("graph_not_found", "init_unfinished")
            return GraphObservation(exists=not absent, fault=None if absent else str(fault))
        return GraphObservation(exists=True, schema_digest=digests.of_bytes(text.encode()), number=number)

    def create(self, graph: str, schema: str, *, actor: str | None) -> bool:
        """Create a graph; False if it exists with the same schema."""
        try:
            init(self._stores(self.uri(graph)), schema, actor=actor, clock=self._clock, ids=self._ids).close()
        except AlreadyExistsError:
            if self.observe(graph).schema_digest != digests.of_bytes(schema.encode()):
                raise
            return False
        return True

    def preview(self, graph: str, schema: str) -> SchemaPlan:
        """Return the migration plan of a schema change."""
        with self._open(graph, read_only=True) as opened:
            return opened.schema_plan(schema)

    def apply_schema(self, graph: str, schema: str, *, actor: str | None) -> GraphObservation:
        """Apply a schema to a graph; what it drops stays readable in older commits."""
        with self._open(graph, read_only=False) as opened:
            opened.schema_apply(schema, actor=actor)
        return self.observe(graph)

    def delete(self, graph: str) -> bool:
        """Delete a graph and everything in it; True if no file is left."""
        self._stores(self.uri(graph)).delete_prefix("")
        return not self.has_files(graph)

    def has_files(self, graph: str) -> bool:
        """True if a graph has any file, complete or not."""
        return next(iter(self._stores(self.uri(graph)).list("", limit=1)), None) is not None

    def readers(self, graph: str) -> list[str]:
        """Return the commits of a graph under a read lease; empty if the graph is too damaged to open."""
        try:
            with self._open(graph, read_only=False) as opened:
                return _held_commits(opened)
        except GraphError:
            return []

    def _open(self, graph: str, *, read_only: bool) -> Graph:
        return open_graph(self._stores(self.uri(graph)), read_only=read_only, clock=self._clock, ids=self._ids)


def _held_commits(graph: Graph) -> list[str]:
    """List the commits that leases protect, by the clock of the store; expired leases do not count."""
    parts = graph._open()
    parts.refuse_read_only()
    found = leases(parts)
    if not found:
        return []
    now_us = parts.log.store_clock.ask()
    return sorted({held.lease.commit for held in found if held.is_good(now_us)})
