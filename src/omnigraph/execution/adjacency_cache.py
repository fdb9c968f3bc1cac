"""Cache of adjacency per edge type: in memory, extended from another version, read from files, or built from the edges.

For a few nodes of a large edge table that is not in memory, edges are looked up in the files or in the table's indexes
instead, until that has cost more than reading everything would have.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from omnigraph import limits
from omnigraph.errors import FormatError, GraphError, LimitError
from omnigraph.execution.adjacency import Adjacency, build_adjacency, extend_adjacency
from omnigraph.execution.adjacency_files import AdjacencyFiles, Chunk, Manifest
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns, Versions
from omnigraph.execution.csr import Csr
from omnigraph.execution.neighbours import CsrNeighbours, FileNeighbours, Neighbours, TableNeighbours
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, SRC

# Rough costs, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_NODE_LOOKED_UP, _SECONDS_PER_EDGE_MADE = 2e-3, 1e-4, 5e-7
# Neighbour and record, in both directions.
_BYTES_PER_EDGE = 16
# The endpoint columns by which edges are looked up, for each direction.
ENDS = {Direction.OUT: (SRC,), Direction.IN: (DST,), Direction.BOTH: (SRC, DST)}


class ExpandStrategy(StrEnum):
    """Strategy for following edges."""

    BY_COST = "by cost"
    LOOKED_UP = "looked up"  # in the edge table, through its indexes
    IN_MEMORY = "in memory"  # through a CSR


@dataclass(frozen=True, slots=True)
class AdjacencyStats:
    """Counters of where adjacency came from.

    Attributes:
        made: builds from all edges.
        extended: extensions of another version's adjacency.
        loaded: reads from files.
        written: writes to files.
        chunks: single files read for few nodes.
        looked_up: lookups of edges in the table instead.
    """

    made: int = 0
    extended: int = 0
    loaded: int = 0
    written: int = 0
    chunks: int = 0
    looked_up: int = 0


class _CachedManifest:
    """Cache entry of a manifest; None records that there is no usable one."""

    __slots__ = ("manifest",)

    def __init__(self, manifest: Manifest | None) -> None:
        self.manifest = manifest

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return 1_000 if self.manifest is None else 1_000 + 200 * len(self.manifest.outgoing + self.manifest.incoming)


class _CachedChunk:
    """Cache entry of one chunk; None records that the file is missing or damaged."""

    __slots__ = ("rows",)

    def __init__(self, rows: Csr | None) -> None:
        self.rows = rows

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return 100 if self.rows is None else self.rows.nbytes


class AdjacencyCache:
    """Thread-safe cache of the adjacency of every edge type that queries use."""

    def __init__(
        self,
        cache: ByteCache,
        versions: Versions,
        files: AdjacencyFiles | None = None,
        *,
        strategy: ExpandStrategy = ExpandStrategy.BY_COST,
    ) -> None:
        self._cache = cache
        self._versions = versions
        self._files = files
        self._strategy = strategy
        self._lock = threading.Lock()
        self._last: dict[str, tuple[object, ...]] = {}
        self._spent_s: dict[str, float] = {}
        self._counts = dict.fromkeys(("made", "extended", "loaded", "written", "chunks", "looked_up"), 0)

    def choose_neighbours(
        self, edges: Columns, sources: Columns, targets: Columns, direction: Direction, nodes: int
    ) -> Neighbours:
        """Choose the cheapest access path to the neighbours of `nodes` nodes; every path gives the same neighbours."""
        if self._strategy is ExpandStrategy.LOOKED_UP:
            return TableNeighbours(edges, sources, targets, direction)
        key = _key(edges, sources, targets)
        if (
            self._strategy is ExpandStrategy.BY_COST
            and _is_small_lookup(edges, nodes)
            and self._cache.peek(key) is None
        ):
            manifest = self._manifest(edges, sources, targets)
            if manifest is not None and self._can_afford_lookup(edges, nodes, whole_s=1e-9 * 40 * manifest.count):
                return FileNeighbours(
                    manifest,
                    self._chunk,
                    direction,
                    lambda: CsrNeighbours(self.csr(edges, sources, targets, direction)),
                )
            if manifest is None and all(edges.table.is_indexed(end) for end in ENDS[direction]):
                made_s = edges.numbering.size * _SECONDS_PER_EDGE_MADE
                if self._can_afford_lookup(edges, nodes, whole_s=made_s):
                    self._count("looked_up")
                    return TableNeighbours(edges, sources, targets, direction)
        return CsrNeighbours(self.csr(edges, sources, targets, direction))

    def csr(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> Csr:
        """Return the CSR for one direction, building it if needed."""
        match direction:
            case Direction.OUT:
                return self.adjacency(edges, sources, targets).outgoing
            case Direction.IN:
                return self.adjacency(edges, sources, targets).incoming
            case Direction.BOTH:
                key = _undirected_key(edges, sources, targets)
                return self._cache.get(key, lambda: self.adjacency(edges, sources, targets).undirected())

    def cached_csr(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> Csr | None:
        """Return the CSR for one direction if it is cached."""
        if direction is Direction.BOTH:
            return cast(Csr | None, self._cache.find(_undirected_key(edges, sources, targets)))
        whole = cast(Adjacency | None, self._cache.find(_key(edges, sources, targets)))
        if whole is None:
            return None
        return whole.outgoing if direction is Direction.OUT else whole.incoming

    def adjacency(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        """Return the adjacency of a version, building it if needed."""
        key = _key(edges, sources, targets)
        return self._cache.get(key, lambda: self._load_or_build(key, edges, sources, targets))

    def stats(self) -> AdjacencyStats:
        """Return the counters so far."""
        with self._lock:
            return AdjacencyStats(**self._counts)

    # --- few nodes ------------------------------------------------------------------------------------------------

    def _can_afford_lookup(self, edges: Columns, nodes: int, *, whole_s: float) -> bool:
        table = edges.pin.table
        with self._lock:
            spent = self._spent_s.get(table, 0.0) + _SECONDS_PER_LOOKUP + nodes * _SECONDS_PER_NODE_LOOKED_UP
            self._spent_s[table] = spent
        return spent <= whole_s

    def _manifest(self, edges: Columns, sources: Columns, targets: Columns) -> Manifest | None:
        """Return the manifest of files made for exactly these versions with the ordinals in use here."""
        files = self._files
        if files is None or edges.numbering.size < limits.ADJACENCY_FILE_EDGES_MIN:
            return None
        key = ("head", *_key(edges, sources, targets))
        found = self._cache.get(
            key, lambda: _CachedManifest(_if_usable(files.read_manifest(edges), edges, sources, targets))
        )
        return found.manifest

    def _chunk(self, manifest: Manifest, chunk: Chunk) -> Csr | None:
        files = self._files
        assert files is not None

        def read() -> _CachedChunk:
            self._count("chunks")
            return _CachedChunk(files.read_chunk(manifest, chunk))

        return self._cache.get(("chunk", manifest.folder, chunk), read).rows

    # --- all nodes ------------------------------------------------------------------------------------------------

    def _load_or_build(self, key: tuple[object, ...], edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        if edges.numbering.count * _BYTES_PER_EDGE > self._cache.bytes_max:
            raise LimitError(
                f"the {edges.numbering.count:,} edges of {edges.pin.table} do not fit into the adjacency cache; "
                "open the graph with a larger cache",
                code="adjacency_too_large",
            )
        with self._lock:
            last = self._last.get(edges.pin.table)
        before = None if last is None else self._cache.peek(last)
        made = _try_extend(before, edges, sources, targets) if isinstance(before, Adjacency) else None
        if made is not None:
            self._count("extended")
        else:
            made = self._load(edges, sources, targets)
        if made is None:
            self._count("made")
            made = build_adjacency(edges, sources, targets)
        if self._files is not None and self._files.write_if_due(made):
            self._count("written")
        with self._lock:
            self._last[edges.pin.table] = key
            self._spent_s.pop(edges.pin.table, None)
        return made

    def _load(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
        if self._files is None or edges.numbering.size < limits.ADJACENCY_FILE_EDGES_MIN:
            return None
        for manifest in self._manifests(self._files, edges):
            try:
                then = [
                    self._versions.at(Pin(made.table, made.version))
                    for made in (manifest.edges, manifest.sources, manifest.targets)
                ]
            except GraphError:
                # A version the files were made for is gone, so their ordinals cannot be mapped.
                continue
            now = (edges, sources, targets)
            if [table.pin.table for table in then] != [table.pin.table for table in now]:
                continue
            stored = self._files.read_all(manifest, *then)
            if stored is None:
                continue
            same = all(one.pin.version == other.pin.version for one, other in zip(then, now, strict=True))
            found = stored if same else _try_extend(stored, edges, sources, targets)
            if found is not None:
                self._files.mark_written(manifest)
                self._count("loaded")
                return found
        return None

    def _manifests(self, files: AdjacencyFiles, edges: Columns) -> Iterator[Manifest]:
        exact = files.read_manifest(edges)
        if exact is not None:
            yield exact
        else:
            yield from files.nearby_manifests(edges)

    def _count(self, what: str) -> None:
        with self._lock:
            self._counts[what] += 1


def _is_small_lookup(edges: Columns, nodes: int) -> bool:
    """Return whether looking up this many nodes may beat reading the whole table."""
    return edges.numbering.size > limits.READ_WHOLE_ROWS_MAX and nodes <= limits.LOOKUP_NODES_MAX


def _if_usable(manifest: Manifest | None, edges: Columns, sources: Columns, targets: Columns) -> Manifest | None:
    if manifest is None:
        return None
    pairs = ((manifest.edges, edges), (manifest.sources, sources), (manifest.targets, targets))
    matches = all(
        made.table == now.pin.table and made.version == now.pin.version and made.matches(now.numbering)
        for made, now in pairs
    )
    return manifest if matches else None


def _key(edges: Columns, sources: Columns, targets: Columns) -> tuple[object, ...]:
    return ("adjacency", edges.key, sources.key, targets.key)


def _undirected_key(edges: Columns, sources: Columns, targets: Columns) -> tuple[object, ...]:
    return ("undirected", edges.key, sources.key, targets.key)


def _try_extend(before: Adjacency, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
    """Extend the adjacency of another version; return None if that version was swept before its ids were read."""
    try:
        return extend_adjacency(before, edges, sources, targets)
    except FormatError:
        return None  # building from scratch reports the damage, if it is in these versions
