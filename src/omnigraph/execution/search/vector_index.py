"""Nearest vectors of types too large for memory: through the index of a table, or read in pieces.

An IVF index partitions vectors into cells, and a search probes the cells nearest to the query: all, where there are
few. A vector in a cell that is not probed is not found, though it may be near. Rows that the index does not cover yet
are compared one by one. Callers compare the candidates again in double precision, so the final order is exact.
"""

import math
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, sorted_unique
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.vectors import Vector, distances, to_matrix
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.indexes import cells_for
from omnigraph.storage.tables.table import ADDRESS, DISTANCE, BuiltIndex

# The index computes in single precision: anything farther by this factor is certainly farther.
_MARGIN = 1e-4


@dataclass(frozen=True, slots=True)
class Effort:
    """How thoroughly an index is searched.

    Attributes:
        cells: estimated number of cells of the index.
        probed: number of cells searched.
    """

    cells: int
    probed: int

    @property
    def is_exhaustive(self) -> bool:
        """Whether all cells are probed."""
        return self.probed >= self.cells


def search_effort(index: BuiltIndex) -> Effort:
    """Return how thoroughly a vector index is searched."""
    cells = cells_for(index.rows)
    probed = max(limits.VECTOR_CELLS_LOOKED_INTO, math.ceil(cells * limits.VECTOR_CELLS_SHARE))
    return Effort(cells, min(probed, cells))


def nearest_by_index(columns: Columns, index: BuiltIndex, query: Vector, count: int) -> Ordinals:
    """Return the nearest nodes that an index finds, with possible ties, ascending."""
    requested = count + limits.VECTOR_REFINE_FACTOR
    while True:
        found = columns.table.nearest(
            index.columns[0],
            query.tolist(),
            count=requested,
            columns=[],
            cells=max(search_effort(index).probed, limits.VECTOR_CELLS_LOOKED_INTO),
            refine=False,
            with_addresses=True,
        )
        squares: np.ndarray[tuple[int], np.dtype[np.float32]] = found.column(DISTANCE).to_numpy()
        if len(found) < requested or squares[-1] > squares[count - 1] * (1 + _MARGIN):
            return sorted_unique(columns.numbering.ordinals_at(as_addresses(found.column(ADDRESS))))
        # Too many ties: the last one needed may be any of them.
        requested *= 4


def nearest_in_pieces(columns: Columns, name: str, ordinals: Ordinals, query: Vector, count: int) -> Ordinals:
    """Return the nearest of some ascending distinct nodes, with ties; reads vectors in pieces that fit into memory."""
    best, how_far = ordinals[:0], np.empty(0)
    for part, vectors in columns.pieces(name, ordinals):
        found = distances(to_matrix(vectors), query)
        found[vectors.is_null().to_numpy(zero_copy_only=False)] = np.nan
        best, how_far = np.concatenate([best, part]), np.concatenate([how_far, found])
        there = np.flatnonzero(~np.isnan(how_far))
        if len(there) > count:
            bound = np.partition(how_far[there], count - 1)[count - 1]
            there = there[how_far[there] <= bound]
        best, how_far = best[there], how_far[there]
    return np.sort(best)
