"""State of one query execution: its snapshot, parameters, budget, and values computed so far."""

from collections.abc import Mapping

from omnigraph.execution.adjacency_cache import AdjacencyCache
from omnigraph.execution.arrays import Ordinals, Values
from omnigraph.execution.columns import Columns
from omnigraph.execution.neighbours import Neighbours
from omnigraph.execution.query_limits import Budget
from omnigraph.execution.search.matching import TextMatches
from omnigraph.execution.search.query_text import Embedder, TextQuery
from omnigraph.execution.versions import Versions
from omnigraph.language.plan.expressions import Value
from omnigraph.language.plan.pattern import Direction
from omnigraph.transaction.snapshot import Snapshot


class Run:
    """One execution of one plan. Used by one thread."""

    __slots__ = (
        "_adjacencies",
        "_columns",
        "_in_memory",
        "_snapshot",
        "_text_matches",
        "_versions",
        "batch_rows",
        "budget",
        "embedder",
        "memo",
        "now_ms",
        "params",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        params: Mapping[str, Value],
        *,
        versions: Versions,
        adjacencies: AdjacencyCache,
        budget: Budget,
        batch_rows: int,
        now_ms: int,
        embedder: Embedder,
    ) -> None:
        self.budget = budget
        self.embedder = embedder
        self.batch_rows = batch_rows
        self.now_ms = now_ms
        # Results that operators compute once for all their batches, by operator.
        self.memo: dict[object, object] = {}
        self._snapshot = snapshot
        self.params = params
        self._versions = versions
        self._adjacencies = adjacencies
        self._columns: dict[str, Columns] = {}
        self._in_memory: dict[tuple[str, Direction], Neighbours] = {}
        self._text_matches: TextMatches | None = None

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        return self.params[name]

    def text_matches(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Return whether rows of a table match a text query."""
        if self._text_matches is None:
            self._text_matches = TextMatches()
        return self._text_matches.evaluate(columns, ordinals, name, query)

    def nodes(self, type_name: str) -> Columns:
        """Return the nodes of a type."""
        return self._at(f"node:{type_name}")

    def edges(self, type_name: str) -> Columns:
        """Return the edges of a type."""
        return self._at(f"edge:{type_name}")

    def neighbours(self, edge: str, from_type: str, to_type: str, direction: Direction, nodes: int) -> Neighbours:
        """Return the cheapest access path to the neighbours of `nodes` nodes."""
        found = self._in_memory.get((edge, direction))
        if found is None:
            found = self._adjacencies.choose_neighbours(
                self.edges(edge), self.nodes(from_type), self.nodes(to_type), direction, nodes
            )
            if found.csr is not None:
                self._in_memory[edge, direction] = found
        return found

    def _at(self, type_key: str) -> Columns:
        found = self._columns.get(type_key)
        if found is None:
            pin = self._snapshot.record.tables.get(type_key)
            found = self._versions.at(pin if pin is not None else self._snapshot.table(type_key).pin)
            self._columns[type_key] = found
        return found
