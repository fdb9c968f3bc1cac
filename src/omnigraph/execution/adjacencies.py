"""Where adjacency comes from: memory, the version before, files beside the graph, the edges themselves.

Few nodes of a large edge table that nobody has read yet are looked up instead, until that has cost more than reading it
would have.
"""

import threading
from dataclasses import dataclass
from enum import StrEnum

from omnigraph import limits
from omnigraph.execution.adjacency import Adjacency, extend, make
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns
from omnigraph.execution.neighbours import InMemory, LookedUp, Neighbours
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.schema import DST, SRC

_SECONDS_PER_LOOKUP, _SECONDS_PER_NODE_LOOKED_UP, _SECONDS_PER_EDGE_MADE = 2e-3, 1e-4, 5e-7

_ENDS = {Direction.OUT: (SRC,), Direction.IN: (DST,), Direction.BOTH: (SRC, DST)}


class ExpandForm(StrEnum):
    """How edges are followed."""

    BY_COST = "by cost"
    LOOKED_UP = "looked up"  # in the edge table, through its indexes
    IN_MEMORY = "in memory"  # through rows of neighbours


@dataclass(frozen=True, slots=True)
class AdjacencyStats:
    """Where adjacency came from.

    Attributes:
        made: how often it was made from all edges.
        extended: how often from that of another version.
        looked_up: how often edges were looked up instead.
    """

    made: int
    extended: int
    looked_up: int


class Adjacencies:
    """The adjacency of every edge type that queries have asked for. Safe to use from several threads."""

    def __init__(self, cache: ByteCache, *, form: ExpandForm = ExpandForm.BY_COST) -> None:
        self._cache = cache
        self._form = form
        self._lock = threading.Lock()
        self._last: dict[str, tuple[object, ...]] = {}
        self._spent_s: dict[str, float] = {}
        self._made = self._extended = self._looked_up = 0

    def neighbours(
        self, edges: Columns, sources: Columns, targets: Columns, direction: Direction, nodes: int
    ) -> Neighbours:
        """The cheapest way to the neighbours of so many nodes at once.

        Args:
            edges (Columns): the edge table.
            sources (Columns): the nodes edges leave.
            targets (Columns): the nodes they reach.
            direction (Direction): which way.
            nodes (int): how many nodes.

        Returns:
            Neighbours: the same ones, whichever way it is.
        """
        if self._looks_up(edges, sources, targets, direction, nodes):
            self._looked_up += 1
            return LookedUp(edges, sources, targets, direction)
        return InMemory(self.whole(edges, sources, targets), direction)

    def whole(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        """The adjacency of a version, in memory."""
        key = _key(edges, sources, targets)
        return self._cache.get(key, lambda: self._make(key, edges, sources, targets))

    def stats(self) -> AdjacencyStats:
        """Where adjacency came from."""
        return AdjacencyStats(self._made, self._extended, self._looked_up)

    def _looks_up(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction, nodes: int) -> bool:
        if self._form is not ExpandForm.BY_COST:
            return self._form is ExpandForm.LOOKED_UP
        if edges.numbering.size <= limits.READ_WHOLE_ROWS_MAX or nodes > limits.LOOKUP_NODES_MAX:
            return False
        if self._cache.peek(_key(edges, sources, targets)) is not None:
            return False
        if not all(edges.table.is_indexed(end) for end in _ENDS[direction]):
            return False
        table = edges.pin.table
        with self._lock:
            spent = self._spent_s.get(table, 0.0) + _SECONDS_PER_LOOKUP + nodes * _SECONDS_PER_NODE_LOOKED_UP
            self._spent_s[table] = spent
        return spent <= edges.numbering.size * _SECONDS_PER_EDGE_MADE

    def _make(self, key: tuple[object, ...], edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        with self._lock:
            last = self._last.get(edges.pin.table)
        before = None if last is None else self._cache.peek(last)
        made = extend(before, edges, sources, targets) if isinstance(before, Adjacency) else None
        if made is None:
            self._made += 1
            made = make(edges, sources, targets)
        else:
            self._extended += 1
        with self._lock:
            self._last[edges.pin.table] = key
        return made


def _key(edges: Columns, sources: Columns, targets: Columns) -> tuple[object, ...]:
    pins = (each.pin for each in (edges, sources, targets))
    return ("adjacency", *((pin.table, pin.version) for pin in pins))
