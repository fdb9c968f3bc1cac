"""Vector distances: exact, and approximate ones first to select candidates among many vectors.

A distance is computed in double precision from one row alone, so it does not depend on which other rows are compared,
or how they were found.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask, Values, pc, to_numpy
from omnigraph.execution.column import SharedColumn
from omnigraph.execution.growing import GrowingNumbers
from omnigraph.execution.numbering import Numbering

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]
Distances = npt.NDArray[np.float64]
Places = npt.NDArray[Any]

_ROWS_AT_ONCE = 4_096
# Unit roundoff of 32-bit floats.
_ROUNDING = float(np.finfo(np.float32).eps) / 2


def to_matrix(vectors: Values) -> Matrix:
    """Convert vectors to the rows of a matrix without a copy; undefined where a vector is null."""
    width: int = vectors.type.list_size
    whole: Any = vectors
    flat = to_numpy(whole.values.slice(whole.offset * width, len(whole) * width).fill_null(np.nan))
    return flat.astype(np.float32, copy=False).reshape(len(whole), width)


def distances(rows: Matrix, query: Vector) -> Distances:
    """Return the Euclidean distance of each row; NaN where a row has none."""
    found = np.empty(len(rows))
    wanted = query.astype(np.float64)
    for start in range(0, len(rows), _ROWS_AT_ONCE):
        apart = rows[start : start + _ROWS_AT_ONCE].astype(np.float64)
        apart -= wanted
        found[start : start + _ROWS_AT_ONCE] = np.sqrt(np.square(apart, out=apart).sum(axis=1))
    found[~np.isfinite(found)] = np.nan
    return found


@dataclass(frozen=True, slots=True)
class Vectors:
    """All vectors of a column of one version.

    Attributes:
        matrix: a row for each ordinal.
        squared_norms: squared norms; NaN where there is no vector.
        numbering: the ordinals in use.
    """

    matrix: Matrix
    squared_norms: Vector
    numbering: Numbering

    def nearest_candidates(self, ordinals: Places, query: Vector, count: int) -> Places:
        """Return a superset of the nearest ordinals, by approximate distances.

        Args:
            ordinals: the vectors to compare, distinct.
            query: the vector to be near to.
            count: number of nearest ones.

        Returns:
            Those of these ordinals that have a vector and may be among the nearest.
        """
        squared_norms = self.squared_norms[ordinals]
        if len(ordinals) * 4 > len(self.matrix):
            # Reading all rows in order is faster than gathering many of them.
            products = (self.matrix @ query)[ordinals]
        else:
            products = self.matrix[ordinals] @ query
        rough = squared_norms - 2 * products
        there = np.flatnonzero(np.isfinite(rough))
        if len(there) <= count:
            return ordinals[there]
        rough = rough[there]
        bound = float(np.partition(rough, count - 1)[count - 1])
        likely = rough <= bound + 2 * self._error_bound(float(squared_norms[there].max()), query)
        return ordinals[there[likely]]

    def _error_bound(self, square_max: float, query: Vector) -> float:
        """Bound the error of an approximate squared distance."""
        length, longest = float(np.linalg.norm(query.astype(np.float64))), math.sqrt(square_max)
        per_product = _ROUNDING * (len(query) + 2)
        return 2 * per_product * length * longest + 4 * _ROUNDING * (square_max + 2 * length * longest)


class SharedVectors:
    """Vectors of a column as shared by versions; only grows, under the lock of its line.

    Attributes:
        matrix: a row for each ordinal.
        lineage: generation of the column.
    """

    def __init__(self, matrix: Matrix, squared_norms: Vector, generation: int) -> None:
        self.matrix = matrix
        self._squared_norms = GrowingNumbers(squared_norms)
        self.lineage = generation

    @property
    def nbytes(self) -> int:
        """Size in bytes without the column itself."""
        return self._squared_norms.nbytes

    def restricted_to(self, numbering: Numbering) -> Vectors:
        """Restrict to one version."""
        squared_norms = self._squared_norms.values
        assert len(squared_norms) >= numbering.size
        return Vectors(self.matrix[: numbering.size], squared_norms[: numbering.size], numbering)

    def grow(self, column: SharedColumn) -> None:
        """Take in the vectors that the column has more."""
        known = self._squared_norms.used
        matrix = to_matrix(column.array)
        if known < len(matrix):
            self._squared_norms.append(_squared_norms(matrix[known:], column.array.slice(known)))
            self.matrix = matrix


def build_vectors(column: SharedColumn, before: SharedVectors | None) -> SharedVectors:
    """Build the vectors of a column, continuing those of another version if possible."""
    if before is None or before.lineage != column.generation:
        matrix = to_matrix(column.array)
        return SharedVectors(matrix, _squared_norms(matrix, column.array), column.generation)
    before.grow(column)
    return before


def _squared_norms(matrix: Matrix, vectors: Values) -> Vector:
    squared_norms = np.empty(len(matrix), dtype=np.float32)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        rows = matrix[start : start + _ROWS_AT_ONCE].astype(np.float64)
        squared_norms[start : start + _ROWS_AT_ONCE] = np.square(rows, out=rows).sum(axis=1)
    if vectors.null_count:
        nowhere: Mask = to_numpy(pc.is_null(vectors))
        squared_norms[nowhere] = np.nan
    return squared_norms
