"""Near vectors of types too large to hold in memory: found through the index of a table, or read piece by piece.

An index sorts vectors into cells, and a search looks into the cells nearest to what is looked for: into all, where
there are few. How many is its effort; a vector in another cell is not found, though it may be near. Rows that the index
does not cover yet are compared one by one, so they are found as well. What is found is compared again in double
precision by whoever asks, so its order is exact.
"""

import math
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, once
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.vectors import Vector, distances, matrix_of
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.indexes import cells_for
from omnigraph.storage.tables.table import ADDRESS, DISTANCE, BuiltIndex

# The index computes in single precision: what is this much farther than the last one wanted is farther for sure.
_MARGIN = 1e-4


@dataclass(frozen=True, slots=True)
class Effort:
    """How thoroughly an index is searched.

    Attributes:
        cells: how many cells the index has, as far as its size tells.
        looked_into: how many of them a search looks into.
    """

    cells: int
    looked_into: int

    @property
    def is_exhaustive(self) -> bool:
        """Whether no cell is left out."""
        return self.looked_into >= self.cells


def effort_for(index: BuiltIndex) -> Effort:
    """How thoroughly an index over vectors is searched."""
    cells = cells_for(index.rows)
    looked_into = max(limits.VECTOR_CELLS_LOOKED_INTO, math.ceil(cells * limits.VECTOR_CELLS_SHARE))
    return Effort(cells, min(looked_into, cells))


def stored_nearest(columns: Columns, index: BuiltIndex, query: Vector, count: int) -> Ordinals:
    """The nodes with the nearest vectors of those an index finds, and those that may be as near as the last of them.

    Args:
        columns (Columns): the type.
        index (BuiltIndex): over a column of vectors.
        query (Vector): what to be near to.
        count (int): how many.

    Returns:
        Ordinals: ascending.
    """
    asked = count + limits.VECTOR_REFINE_FACTOR
    while True:
        found = columns.table.nearest(
            index.columns[0],
            query.tolist(),
            count=asked,
            columns=[],
            cells=max(effort_for(index).looked_into, limits.VECTOR_CELLS_LOOKED_INTO),
            refine=False,
            with_addresses=True,
        )
        squares: np.ndarray[tuple[int], np.dtype[np.float32]] = found.column(DISTANCE).to_numpy()
        if len(found) < asked or squares[-1] > squares[count - 1] * (1 + _MARGIN):
            return once(columns.numbering.at(as_addresses(found.column(ADDRESS))))
        # Many are equally near, as copies of one text are: the last one wanted may be any of them.
        asked *= 4


def nearest_in_pieces(columns: Columns, name: str, ordinals: Ordinals, query: Vector, count: int) -> Ordinals:
    """The nodes with the nearest vectors, read piece by piece: no more of them are in memory than are compared at once.

    Args:
        columns (Columns): the type.
        name (str): the column of vectors.
        ordinals (Ordinals): which nodes, ascending, each once.
        query (Vector): what to be near to.
        count (int): how many.

    Returns:
        Ordinals: ascending; all that are as near as the last of them too.
    """
    best, how_far = ordinals[:0], np.empty(0)
    for part, vectors in columns.pieces(name, ordinals):
        found = distances(matrix_of(vectors), query)
        found[vectors.is_null().to_numpy(zero_copy_only=False)] = np.nan
        best, how_far = np.concatenate([best, part]), np.concatenate([how_far, found])
        there = np.flatnonzero(~np.isnan(how_far))
        if len(there) > count:
            bound = np.partition(how_far[there], count - 1)[count - 1]
            there = there[how_far[there] <= bound]
        best, how_far = best[there], how_far[there]
    return np.sort(best)
