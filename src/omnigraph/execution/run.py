"""One query while it runs: the snapshot it reads, its parameters, its budget, and what it has looked up so far."""

from collections.abc import Mapping

from omnigraph.execution.adjacencies import Adjacencies
from omnigraph.execution.arrays import Ordinals, Values
from omnigraph.execution.budget import Budget
from omnigraph.execution.columns import Columns, Versions
from omnigraph.execution.neighbours import Neighbours
from omnigraph.execution.search.asked import Embedder, TextQuery
from omnigraph.execution.search.matching import TextMatches
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
        "kept",
        "now_ms",
        "params",
    )

    def __init__(
        self,
        snapshot: Snapshot,
        params: Mapping[str, Value],
        *,
        versions: Versions,
        adjacencies: Adjacencies,
        budget: Budget,
        batch_rows: int,
        now_ms: int,
        embedder: Embedder,
    ) -> None:
        self.budget = budget
        self.embedder = embedder
        self.batch_rows = batch_rows
        self.now_ms = now_ms
        # What operators computed once for all their batches, by the operator.
        self.kept: dict[object, object] = {}
        self._snapshot = snapshot
        self.params = params
        self._versions = versions
        self._adjacencies = adjacencies
        self._columns: dict[str, Columns] = {}
        self._in_memory: dict[tuple[str, Direction], Neighbours] = {}
        self._text_matches: TextMatches | None = None

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        return self.params[name]

    def text_matches(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Whether rows of a table match a text query."""
        if self._text_matches is None:
            self._text_matches = TextMatches()
        return self._text_matches.of(columns, ordinals, name, query)

    def nodes(self, type_name: str) -> Columns:
        """The nodes of a type."""
        return self._at(f"node:{type_name}")

    def edges(self, type_name: str) -> Columns:
        """The edges of a type."""
        return self._at(f"edge:{type_name}")

    def neighbours(self, edge: str, from_type: str, to_type: str, direction: Direction, nodes: int) -> Neighbours:
        """The cheapest way to the neighbours of so many nodes at once."""
        found = self._in_memory.get((edge, direction))
        if found is None:
            found = self._adjacencies.neighbours(
                self.edges(edge), self.nodes(from_type), self.nodes(to_type), direction, nodes
            )
            if found.rows is not None:
                self._in_memory[edge, direction] = found
        return found

    def _at(self, type_key: str) -> Columns:
        found = self._columns.get(type_key)
        if found is None:
            pin = self._snapshot.record.tables.get(type_key)
            found = self._versions.at(pin if pin is not None else self._snapshot.table(type_key).pin)
            self._columns[type_key] = found
        return found
