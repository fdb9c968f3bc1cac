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
from omnigraph.execution.column import FragmentStarts, SharedColumn
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


@dataclass(frozen=True, slots=True)
class SharedVectors:
    """Vectors of a column as shared by versions.

    Attributes:
        matrix: a row for each ordinal.
        squared_norms: squared norms; NaN where there is no vector.
        fragment_starts: the fragments read.
    """

    matrix: Matrix
    squared_norms: Vector
    fragment_starts: FragmentStarts

    @property
    def nbytes(self) -> int:
        """Size in bytes without the column itself."""
        return self.squared_norms.nbytes

    def restricted_to(self, numbering: Numbering) -> Vectors:
        """Restrict to one version."""
        assert len(self.squared_norms) >= numbering.size
        return Vectors(self.matrix[: numbering.size], self.squared_norms[: numbering.size], numbering)


def build_vectors(column: SharedColumn, before: SharedVectors | None) -> SharedVectors:
    """Build the vectors of a column, continuing those of another version if possible."""
    matrix = to_matrix(column.array)
    if before is None or not column.extends(before.fragment_starts, len(before.squared_norms)):
        return SharedVectors(matrix, _squared_norms(matrix, column.array), column.fragment_starts)
    known = len(before.squared_norms)
    if known == len(matrix):
        return before
    added = _squared_norms(matrix[known:], column.array.slice(known))
    return SharedVectors(matrix, np.concatenate([before.squared_norms, added]), column.fragment_starts)


def _squared_norms(matrix: Matrix, vectors: Values) -> Vector:
    squared_norms = np.empty(len(matrix), dtype=np.float32)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        rows = matrix[start : start + _ROWS_AT_ONCE].astype(np.float64)
        squared_norms[start : start + _ROWS_AT_ONCE] = np.square(rows, out=rows).sum(axis=1)
    if vectors.null_count:
        nowhere: Mask = to_numpy(pc.is_null(vectors))
        squared_norms[nowhere] = np.nan
    return squared_norms
