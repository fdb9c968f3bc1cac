"""Where adjacency comes from: memory, the version before, files beside the graph, the edges themselves.

Few nodes of a large edge table that is not in memory are looked up instead, in the files or in the table itself, until
that has cost more than reading everything would have.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from omnigraph import limits
from omnigraph.errors import FormatError, GraphError, LimitError
from omnigraph.execution.adjacency import Adjacency, extend, make
from omnigraph.execution.adjacency_files import AdjacencyFiles, Chunk, Head
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns, Versions
from omnigraph.execution.csr import Csr
from omnigraph.execution.neighbours import InMemory, LookedUp, Neighbours
from omnigraph.execution.stored_neighbours import StoredNeighbours
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, SRC

# Rough costs, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_NODE_LOOKED_UP, _SECONDS_PER_EDGE_MADE = 2e-3, 1e-4, 5e-7
# Neighbour and record, both ways.
_BYTES_PER_EDGE = 16
# The columns that tell the ends from which edges are followed.
ENDS = {Direction.OUT: (SRC,), Direction.IN: (DST,), Direction.BOTH: (SRC, DST)}


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
        loaded: how often it was read from files.
        written: how often it was written to files.
        chunks: how many single files were read for few nodes.
        looked_up: how often edges were looked up in the table instead.
    """

    made: int = 0
    extended: int = 0
    loaded: int = 0
    written: int = 0
    chunks: int = 0
    looked_up: int = 0


class _KeptHead:
    """A head in the cache; None stays None."""

    __slots__ = ("head",)

    def __init__(self, head: Head | None) -> None:
        self.head = head

    @property
    def nbytes(self) -> int:
        """How many bytes it takes, roughly."""
        return 1_000 if self.head is None else 1_000 + 200 * len(self.head.outgoing + self.head.incoming)


class _KeptRows:
    """The rows of one file in the cache; None stays None."""

    __slots__ = ("rows",)

    def __init__(self, rows: Csr | None) -> None:
        self.rows = rows

    @property
    def nbytes(self) -> int:
        """How many bytes they take."""
        return 100 if self.rows is None else self.rows.nbytes


class Adjacencies:
    """The adjacency of every edge type that queries have asked for. Safe to use from several threads."""

    def __init__(
        self,
        cache: ByteCache,
        versions: Versions,
        files: AdjacencyFiles | None = None,
        *,
        form: ExpandForm = ExpandForm.BY_COST,
    ) -> None:
        self._cache = cache
        self._versions = versions
        self._files = files
        self._form = form
        self._lock = threading.Lock()
        self._last: dict[str, tuple[object, ...]] = {}
        self._spent_s: dict[str, float] = {}
        self._counts = dict.fromkeys(("made", "extended", "loaded", "written", "chunks", "looked_up"), 0)

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
        if self._form is ExpandForm.LOOKED_UP:
            return LookedUp(edges, sources, targets, direction)
        key = _key(edges, sources, targets)
        if self._form is ExpandForm.BY_COST and _are_few(edges, nodes) and self._cache.peek(key) is None:
            head = self._head(edges, sources, targets)
            if head is not None and self._may_still_look_up(edges, nodes, whole_s=1e-9 * 40 * head.count):
                return StoredNeighbours(
                    head,
                    self._chunk,
                    direction,
                    lambda: InMemory(self.rows(edges, sources, targets, direction)),
                )
            if head is None and all(edges.table.is_indexed(end) for end in ENDS[direction]):
                made_s = edges.numbering.size * _SECONDS_PER_EDGE_MADE
                if self._may_still_look_up(edges, nodes, whole_s=made_s):
                    self._count("looked_up")
                    return LookedUp(edges, sources, targets, direction)
        return InMemory(self.rows(edges, sources, targets, direction))

    def rows(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> Csr:
        """The rows for one way of following edges, in memory."""
        match direction:
            case Direction.OUT:
                return self.whole(edges, sources, targets).outgoing
            case Direction.IN:
                return self.whole(edges, sources, targets).incoming
            case Direction.BOTH:
                key = _undirected_key(edges, sources, targets)
                return self._cache.get(key, lambda: self.whole(edges, sources, targets).undirected())

    def rows_in_memory(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> Csr | None:
        """The same, if they are there already."""
        if direction is Direction.BOTH:
            return cast(Csr | None, self._cache.found(_undirected_key(edges, sources, targets)))
        whole = cast(Adjacency | None, self._cache.found(_key(edges, sources, targets)))
        if whole is None:
            return None
        return whole.outgoing if direction is Direction.OUT else whole.incoming

    def whole(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        """The adjacency of a version, in memory."""
        key = _key(edges, sources, targets)
        return self._cache.get(key, lambda: self._found(key, edges, sources, targets))

    def stats(self) -> AdjacencyStats:
        """Where adjacency came from."""
        with self._lock:
            return AdjacencyStats(**self._counts)

    # --- few nodes ------------------------------------------------------------------------------------------------

    def _may_still_look_up(self, edges: Columns, nodes: int, *, whole_s: float) -> bool:
        table = edges.pin.table
        with self._lock:
            spent = self._spent_s.get(table, 0.0) + _SECONDS_PER_LOOKUP + nodes * _SECONDS_PER_NODE_LOOKED_UP
            self._spent_s[table] = spent
        return spent <= whole_s

    def _head(self, edges: Columns, sources: Columns, targets: Columns) -> Head | None:
        """The head of files that were made for exactly these versions, numbered as they are here."""
        files = self._files
        if files is None or edges.numbering.size < limits.ADJACENCY_FILE_EDGES_MIN:
            return None
        key = ("head", *_key(edges, sources, targets))
        found = self._cache.get(key, lambda: _KeptHead(_usable(files.head(edges), edges, sources, targets)))
        return found.head

    def _chunk(self, head: Head, chunk: Chunk) -> Csr | None:
        files = self._files
        assert files is not None

        def read() -> _KeptRows:
            self._count("chunks")
            return _KeptRows(files.rows(head, chunk))

        return self._cache.get(("chunk", head.folder, chunk), read).rows

    # --- all nodes ------------------------------------------------------------------------------------------------

    def _found(self, key: tuple[object, ...], edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        if edges.numbering.count * _BYTES_PER_EDGE > self._cache.bytes_max:
            raise LimitError(
                f"the {edges.numbering.count:,} edges of {edges.pin.table} do not fit into the memory for adjacency; "
                "open the graph with more",
                code="adjacency_too_large",
            )
        with self._lock:
            last = self._last.get(edges.pin.table)
        before = None if last is None else self._cache.peek(last)
        made = _extended(before, edges, sources, targets) if isinstance(before, Adjacency) else None
        if made is not None:
            self._count("extended")
        else:
            made = self._loaded(edges, sources, targets)
        if made is None:
            self._count("made")
            made = make(edges, sources, targets)
        if self._files is not None and self._files.keep(made):
            self._count("written")
        with self._lock:
            self._last[edges.pin.table] = key
            self._spent_s.pop(edges.pin.table, None)
        return made

    def _loaded(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
        if self._files is None or edges.numbering.size < limits.ADJACENCY_FILE_EDGES_MIN:
            return None
        for head in self._heads(self._files, edges):
            try:
                then = [
                    self._versions.at(Pin(made.table, made.version))
                    for made in (head.edges, head.sources, head.targets)
                ]
            except GraphError:
                # A version of then is gone: what the files say of it cannot be told apart any more.
                continue
            now = (edges, sources, targets)
            if [each.pin.table for each in then] != [each.pin.table for each in now]:
                continue
            stored = self._files.whole(head, *then)
            if stored is None:
                continue
            same = all(one.pin.version == other.pin.version for one, other in zip(then, now, strict=True))
            found = stored if same else _extended(stored, edges, sources, targets)
            if found is not None:
                self._files.loaded(head)
                self._count("loaded")
                return found
        return None

    def _heads(self, files: AdjacencyFiles, edges: Columns) -> Iterator[Head]:
        exact = files.head(edges)
        if exact is not None:
            yield exact
        else:
            yield from files.heads_nearby(edges)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1


def _are_few(edges: Columns, nodes: int) -> bool:
    """Whether so many nodes of so large a table are few."""
    return edges.numbering.size > limits.READ_WHOLE_ROWS_MAX and nodes <= limits.LOOKUP_NODES_MAX


def _usable(head: Head | None, edges: Columns, sources: Columns, targets: Columns) -> Head | None:
    if head is None:
        return None
    pairs = ((head.edges, edges), (head.sources, sources), (head.targets, targets))
    fits = all(
        made.table == now.pin.table and made.version == now.pin.version and made.fits(now.numbering)
        for made, now in pairs
    )
    return head if fits else None


def _key(edges: Columns, sources: Columns, targets: Columns) -> tuple[object, ...]:
    return ("adjacency", edges.key, sources.key, targets.key)


def _undirected_key(edges: Columns, sources: Columns, targets: Columns) -> tuple[object, ...]:
    return ("undirected", edges.key, sources.key, targets.key)


def _extended(before: Adjacency, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
    """Adjacency grown from that of an earlier version; None where that version was swept before its ids were read."""
    try:
        return extend(before, edges, sources, targets)
    except FormatError:
        return None  # if it is these versions that are damaged, making it anew tells
