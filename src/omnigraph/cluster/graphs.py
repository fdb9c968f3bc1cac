"""The graphs of a cluster themselves: looking at them, making, changing and deleting them."""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.api.graph import Graph
from omnigraph.api.leases import held_commits
from omnigraph.api.open import init
from omnigraph.api.open import open as open_graph
from omnigraph.clock import Clock
from omnigraph.cluster import digests, layout
from omnigraph.errors import AlreadyExistsError, GraphError
from omnigraph.ids import IdSource
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.storage.object_store import ObjectStore

# From an address to a store.
Stores = Callable[[str], ObjectStore]


@dataclass(frozen=True, slots=True)
class GraphObservation:
    """What was seen of a graph.

    Attributes:
        is_there: whether there is one.
        schema_digest: of the text of its schema.
        number: of its newest commit on main.
        fault: why it could not be looked at; None where it could.
    """

    exists: bool
    schema_digest: str = ""
    number: int = 0
    fault: str | None = None


class ClusterGraphs:
    """The graphs below one root."""

    def __init__(self, root: str, stores: Stores, *, clock: Clock, ids: IdSource) -> None:
        self._root = root
        self._stores = stores
        self._clock = clock
        self._ids = ids

    def uri(self, graph: str) -> str:
        """Where a graph lies."""
        return layout.graph_uri(self._root, graph)

    def observe(self, graph: str) -> GraphObservation:
        """Look at a graph; nothing of it changes."""
        try:
            with self._open(graph, read_only=True) as opened:
                text = opened.schema_text()
                number = opened.snapshot().record.number
        except GraphError as fault:
            # Whoever was making one and died leaves half of it; making it again finishes it.
            absent = fault.code in ("graph_not_found", "init_unfinished")
            return GraphObservation(exists=not absent, fault=None if absent else str(fault))
        return GraphObservation(exists=True, schema_digest=digests.of_bytes(text.encode()), number=number)

    def create(self, graph: str, schema: str, *, actor: str | None) -> bool:
        """Make a graph; one that is there already with that very schema will do, and gives False.

        Raises:
            GraphError: it cannot be made, or there is one with another schema.
        """
        try:
            init(self._stores(self.uri(graph)), schema, actor=actor, clock=self._clock, ids=self._ids).close()
        except AlreadyExistsError:
            if self.observe(graph).schema_digest != digests.of_bytes(schema.encode()):
                raise
            return False
        return True

    def preview(self, graph: str, schema: str) -> SchemaPlan:
        """What giving a graph a schema would do.

        Raises:
            GraphError: it cannot be told.
        """
        with self._open(graph, read_only=True) as opened:
            return opened.schema_plan(schema)

    def apply_schema(self, graph: str, schema: str, *, actor: str | None) -> GraphObservation:
        """Give a graph a schema; what is dropped stays readable in older commits.

        Raises:
            GraphError: it cannot be done.
        """
        with self._open(graph, read_only=False) as opened:
            opened.schema_apply(schema, actor=actor)
        return self.observe(graph)

    def delete(self, graph: str) -> bool:
        """Delete a graph and everything in it; True where nothing is left."""
        self._stores(self.uri(graph)).delete_prefix("")
        return not self.has_files(graph)

    def has_files(self, graph: str) -> bool:
        """Whether there is a file where a graph lies, be it whole or not."""
        return next(iter(self._stores(self.uri(graph)).list("", limit=1)), None) is not None

    def readers(self, graph: str) -> list[str]:
        """The commits of a graph that somebody holds for reading; none of one that is too damaged to tell."""
        try:
            with self._open(graph, read_only=False) as opened:
                return held_commits(opened)
        except GraphError:
            return []

    def _open(self, graph: str, *, read_only: bool) -> Graph:
        return open_graph(self._stores(self.uri(graph)), read_only=read_only, clock=self._clock, ids=self._ids)
