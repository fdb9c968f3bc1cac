"""Access paths to the neighbours of nodes: CSR in memory, adjacency files, or the edge table's indexes."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.adjacency_files import Chunk, Manifest
from omnigraph.execution.arrays import NO_ORDINALS, NONE, Mask, Ordinals, Positions, Values, positions_in
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr
from omnigraph.execution.edge_list import Expansion, expand_ranges
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.table import ADDRESS, Table, quoted


class Neighbours(ABC):
    """Edges of one type, followed in one direction."""

    @abstractmethod
    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes to their neighbours.

        Args:
            nodes: in any order, repeated or not; none is `NONE`.
            each_record: count parallel edges separately.

        Returns:
            In the order of `nodes`, the neighbours of each ascending.
        """

    @property
    @abstractmethod
    def csr(self) -> Csr | None:
        """The CSR, where this access path is in memory."""

    def degrees(self, nodes: Ordinals, *, each_record: bool) -> Positions:
        """Return the number of neighbours, or edges, of each node."""
        csr = self.csr
        if csr is not None:
            chosen = csr if each_record else csr.simple
            # All degrees are kept with the CSR, and worth computing for many nodes only.
            return chosen.degrees[nodes] if len(nodes) * 16 > csr.nodes else chosen.ranges(nodes)[1]
        return np.bincount(self.expand(nodes, each_record=each_record).rows, minlength=len(nodes))

    def has_edges(self, nodes: Ordinals, targets: Ordinals) -> Mask:
        """Return whether each node has an edge to its target."""
        csr = self.csr
        if csr is not None:
            return csr.has_edges(nodes, targets)
        found = np.zeros(len(nodes), dtype=np.bool_)
        expansion = self.expand(nodes, each_record=False)
        found[expansion.rows[expansion.targets == targets[expansion.rows]]] = True
        return found

    def edges_between(self, nodes: Ordinals, targets: Ordinals) -> tuple[Positions, Ordinals]:
        """Return the edges from each node to its target: positions in `nodes`, and records."""
        csr = self.csr
        if csr is not None:
            first, stop = csr.edge_ranges(nodes, targets)
            positions, places = expand_ranges(first, stop - first)
            return positions, csr.records[places]
        expansion = self.expand(nodes, each_record=True)
        assert expansion.records is not None
        hits = expansion.targets == targets[expansion.rows]
        return expansion.rows[hits], expansion.records[hits]


class CsrNeighbours(Neighbours):
    """Neighbours from a CSR in memory."""

    __slots__ = ("_csr",)

    def __init__(self, csr: Csr) -> None:
        self._csr = csr

    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes to their neighbours."""
        return self._csr.expand(nodes, each_record=each_record)

    @property
    def csr(self) -> Csr:
        """The CSR in memory."""
        return self._csr


class DirectedNeighbours(Neighbours):
    """Neighbours from a source that knows edges by one of their ends."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    @property
    def csr(self) -> None:
        """None: nothing is in memory."""
        return

    @abstractmethod
    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """Return the edges that leave, or enter, some nodes.

        Args:
            nodes: ascending and distinct.
            leaving: whether they are the source of the edges.

        Returns:
            Positions in `nodes`, the nodes at the other end, and records.
        """

    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes to their neighbours."""
        wanted, back = np.unique(nodes, return_inverse=True)
        found = []
        if self._direction is not Direction.IN:
            found.append(self.edges_at(wanted, leaving=True))
        if self._direction is not Direction.OUT:
            found.append(self.edges_at(wanted, leaving=False))
        places = np.concatenate([edges[0] for edges in found])
        targets = np.concatenate([edges[1] for edges in found])
        records = np.concatenate([edges[2] for edges in found])
        # In both directions a self-loop is found twice; and parallel edges may have to count once.
        last = records if each_record else np.zeros(len(records), dtype=np.int32)
        _, kept = np.unique(np.stack([places, targets, last]), axis=1, return_index=True)
        places, targets, records = places[kept], targets[kept], records[kept]
        starts = np.searchsorted(places, np.arange(len(wanted) + 1))
        rows, at = expand_ranges(starts[back], np.diff(starts)[back])
        return Expansion(rows, targets[at], records[at] if each_record else None)


class TableNeighbours(DirectedNeighbours):
    """Neighbours from the edge table and its indexes: reads only the edges of the given nodes."""

    def __init__(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> None:
        super().__init__(direction)
        self._edges = edges
        self._sources = sources
        self._targets = targets

    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """Return the edges that leave, or enter, some nodes."""
        if not len(nodes):
            return np.empty(0, dtype=np.int64), NO_ORDINALS, NO_ORDINALS
        near, far = (self._sources, self._targets) if leaving else (self._targets, self._sources)
        near_end, far_end = (SRC, DST) if leaving else (DST, SRC)
        ids = near.take(ID, nodes)
        found = _scan_edges(self._edges.table, near_end, ids, far_end)
        targets = far.locate(found.column(far_end))
        addresses: Any = found.column(ADDRESS).to_numpy()
        records = self._edges.numbering.ordinals_at(addresses.astype(np.uint64, copy=False))
        known = targets != NONE
        places = positions_in(found.column(near_end), ids).astype(np.int64)
        return places[known], targets[known], records[known]


def _scan_edges(table: Table, end: str, ids: Values, other: str) -> pa.Table:
    """Read both ends and the addresses of the edges with one of these ids at one end."""
    step = limits.ID_FILTER_IDS_MAX
    texts: list[Any] = ids.to_pylist()
    return pa.concat_tables(
        table.scan(
            columns=list(dict.fromkeys((end, other))),
            filter=f"{end} IN ({','.join(quoted(text) for text in texts[start : start + step])})",
            with_addresses=True,
        )
        for start in range(0, len(texts), step)
    )


# Reads the CSR of a chunk; None if the file is missing or damaged.
ReadChunk = Callable[[Manifest, Chunk], Csr | None]


class _MissingError(Exception):
    """A chunk named by the manifest is gone or damaged; never leaves this module."""


class FileNeighbours(DirectedNeighbours):
    """Neighbours from adjacency files of exactly these versions; falls back if a file is gone."""

    def __init__(
        self, manifest: Manifest, read: ReadChunk, direction: Direction, fallback: Callable[[], Neighbours]
    ) -> None:
        super().__init__(direction)
        self._manifest = manifest
        self._read = read
        self._fallback = fallback

    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes to their neighbours."""
        try:
            return super().expand(nodes, each_record=each_record)
        except _MissingError:
            return self._fallback().expand(nodes, each_record=each_record)

    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """Return the edges that leave, or enter, some nodes."""
        chunks = self._manifest.outgoing if leaving else self._manifest.incoming
        rows, targets, records = [np.empty(0, dtype=np.int64)], [NO_ORDINALS], [NO_ORDINALS]
        for chunk, some in _group_by_chunk(chunks, nodes):
            csr = self._read(self._manifest, chunk)
            if csr is None:
                raise _MissingError
            expansion = csr.expand(nodes[some] - np.int32(chunk.first), each_record=True)
            assert expansion.records is not None
            rows.append(expansion.rows + some.start)
            targets.append(expansion.targets)
            records.append(expansion.records)
        return np.concatenate(rows), np.concatenate(targets), np.concatenate(records)


def _group_by_chunk(chunks: Sequence[Chunk], nodes: Ordinals) -> list[tuple[Chunk, slice]]:
    """Return the chunks that have rows of these ascending nodes, and the range of nodes in each."""
    found = []
    for chunk in chunks:
        first, last = np.searchsorted(nodes, (chunk.first, chunk.first + chunk.nodes)).tolist()
        if first < last:
            found.append((chunk, slice(first, last)))
    return found
