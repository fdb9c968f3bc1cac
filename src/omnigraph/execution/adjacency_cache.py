"""Cache of adjacency per edge type: in memory, extended from another version, read from files, or built from the edges.

For a few nodes of a large edge table that is not in memory, edges are looked up in the files or in the table's indexes
instead, until that has cost more than reading everything would have.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import cast

from omnigraph import limits
from omnigraph.errors import FormatError, GraphError, LimitError
from omnigraph.execution.adjacency import Adjacency, build_adjacency, extend_adjacency
from omnigraph.execution.adjacency_files import AdjacencyFiles, Chunk, Manifest
from omnigraph.execution.cache import ByteCache
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr
from omnigraph.execution.neighbours import CsrNeighbours, FileNeighbours, Neighbours, TableNeighbours
from omnigraph.execution.versions import Versions
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, SRC

# Rough costs, measured on local disk.
_SECONDS_PER_LOOKUP, _SECONDS_PER_NODE_LOOKED_UP, _SECONDS_PER_EDGE_MADE = 2e-3, 1e-4, 5e-7
# Neighbour and record, in both directions.
_BYTES_PER_EDGE = 16
# Versions that differ in at most this many rows are not compared further.
_NEAR_ENOUGH = 16
# Serials of the numberings of edges, sources and targets.
_Serials = tuple[int, int, int]
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


class _AdjacencyLine:
    """Adjacency of the versions of one edge type that were used last; they share most of it."""

    __slots__ = ("_versions", "lock")

    def __init__(self) -> None:
        self._versions: OrderedDict[_Serials, Adjacency] = OrderedDict()
        self.lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size in bytes; what versions share counts once."""
        csrs = [csr for adjacency in list(self._versions.values()) for csr in adjacency.csrs]
        return sum({id(csr.base): csr.nbytes for csr in csrs}.values()) + 1_000 * len(csrs)

    def find(self, serials: "_Serials") -> Adjacency | None:
        """Return the adjacency of these versions."""
        return self._versions.get(serials)

    def nearest(self, edges: Columns, sources: Columns, targets: Columns) -> tuple[Adjacency | None, int]:
        """Return the adjacency of the versions that differ in the fewest rows, and how many these are."""
        best: Adjacency | None = None
        least = 0
        for known in list(self._versions.values())[::-1]:
            pairs = ((known.edges, edges), (known.sources, sources), (known.targets, targets))
            distance = sum(one.numbering.distance_to(other.numbering) for one, other in pairs)
            if best is None or distance < least:
                best, least = known, distance
            if least <= _NEAR_ENOUGH:
                break
        return best, least

    def put(self, adjacency: Adjacency) -> None:
        """Add the adjacency of other versions; the one added first goes."""
        self._versions[_serials(adjacency.edges, adjacency.sources, adjacency.targets)] = adjacency
        if len(self._versions) > limits.ADJACENCY_VERSIONS_MAX:
            self._versions.popitem(last=False)


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
        self._spent_s: dict[str, float] = {}
        self._counts = dict.fromkeys(("made", "extended", "loaded", "written", "chunks", "looked_up"), 0)

    def choose_neighbours(
        self, edges: Columns, sources: Columns, targets: Columns, direction: Direction, nodes: int
    ) -> Neighbours:
        """Choose the cheapest access path to the neighbours of `nodes` nodes; every path gives the same neighbours."""
        if self._strategy is ExpandStrategy.LOOKED_UP:
            return TableNeighbours(edges, sources, targets, direction)
        if (
            self._strategy is ExpandStrategy.BY_COST
            and _is_small_lookup(edges, nodes)
            and not self._is_near(edges, sources, targets)
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
                whole = self.adjacency(edges, sources, targets)
                if whole.known_undirected is None:
                    whole.undirected()
                    self._cache.recharge(_key(edges, sources, targets))
                return whole.undirected()

    def cached_csr(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> Csr | None:
        """Return the CSR for one direction if it is cached, or differs little from one that is."""
        if not self._is_near(edges, sources, targets):
            return None
        whole = self.adjacency(edges, sources, targets)
        match direction:
            case Direction.OUT:
                return whole.outgoing
            case Direction.IN:
                return whole.incoming
            case Direction.BOTH:
                return whole.known_undirected

    def adjacency(self, edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        """Return the adjacency of a version, building it if needed."""
        key, serials = _key(edges, sources, targets), _serials(edges, sources, targets)
        line = self._cache.get(key, _AdjacencyLine)
        found = line.find(serials)
        if found is None:
            with line.lock:
                found = line.find(serials)
                if found is None:
                    found = self._load_or_build(line, edges, sources, targets)
                    line.put(found)
            self._cache.recharge(key)
        return found

    def _is_near(self, edges: Columns, sources: Columns, targets: Columns) -> bool:
        """Return whether the adjacency of these versions is cached, or follows from a cached one by a few rows."""
        line = cast("_AdjacencyLine | None", self._cache.find(_key(edges, sources, targets)))
        if line is None:
            return False
        if line.find(_serials(edges, sources, targets)) is not None:
            return True
        known, distance = line.nearest(edges, sources, targets)
        return known is not None and distance <= limits.NEAR_ROWS_MAX

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
        key = ("head", *_serials(edges, sources, targets))
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

    def _load_or_build(self, line: _AdjacencyLine, edges: Columns, sources: Columns, targets: Columns) -> Adjacency:
        if edges.numbering.count * _BYTES_PER_EDGE > self._cache.bytes_max:
            raise LimitError(
                f"the {edges.numbering.count:,} edges of {edges.pin.table} do not fit into the adjacency cache; "
                "open the graph with a larger cache",
                code="adjacency_too_large",
            )
        before, _ = line.nearest(edges, sources, targets)
        made = None if before is None else _try_extend(before, edges, sources, targets)
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
    spaces = (table.numbering.space.serial for table in (edges, sources, targets))
    return ("adjacency", *spaces)


def _serials(edges: Columns, sources: Columns, targets: Columns) -> _Serials:
    return edges.numbering.serial, sources.numbering.serial, targets.numbering.serial


def _try_extend(before: Adjacency, edges: Columns, sources: Columns, targets: Columns) -> Adjacency | None:
    """Extend the adjacency of another version; return None if that version was swept before its ids were read."""
    try:
        return extend_adjacency(before, edges, sources, targets)
    except FormatError:
        return None  # building from scratch reports the damage, if it is in these versions
