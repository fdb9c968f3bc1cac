"""Near vectors found through the index of a table: for types too large to hold in memory.

Rows that the index does not cover yet are compared one by one, so they are found as well. What is found is compared
again in double precision by whoever asks.
"""

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, once
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.vectors import Vector
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.table import ADDRESS, DISTANCE

# The index computes in single precision: what is this much farther than the last one wanted is farther for sure.
_MARGIN = 1e-4


def stored_nearest(columns: Columns, name: str, query: Vector, count: int) -> Ordinals:
    """The nodes with the nearest vectors, and those that may be as near as the last of them.

    Args:
        columns (Columns): the type.
        name (str): the column of vectors.
        query (Vector): what to be near to.
        count (int): how many.

    Returns:
        Ordinals: ascending.
    """
    asked = count + limits.VECTOR_REFINE_FACTOR
    while True:
        found = columns.table.nearest(
            name,
            query.tolist(),
            count=asked,
            columns=[],
            cells=limits.VECTOR_CELLS_LOOKED_INTO,
            with_addresses=True,
        )
        squares: np.ndarray[tuple[int], np.dtype[np.float32]] = found.column(DISTANCE).to_numpy()
        if len(found) < asked or squares[-1] > squares[count - 1] * (1 + _MARGIN):
            return once(columns.numbering.at(as_addresses(found.column(ADDRESS))))
        # Many are equally near, as copies of one text are: the last one wanted may be any of them.
        asked *= 4
