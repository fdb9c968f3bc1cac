"""Distances of vectors: exact, and of many vectors first roughly, so that only those that may be near are compared.

A distance is computed in double precision from one row alone, so it is the same whichever rows are compared with it,
and however they were found.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask, Values, numpy, pc
from omnigraph.execution.column import Firsts, SharedColumn
from omnigraph.execution.numbering import Numbering

Vector = npt.NDArray[np.float32]
Matrix = npt.NDArray[np.float32]
Distances = npt.NDArray[np.float64]
Places = npt.NDArray[Any]

_ROWS_AT_ONCE = 4_096
# Half the gap between 1 and the next number.
_ROUNDING = float(np.finfo(np.float32).eps) / 2


def matrix_of(vectors: Values) -> Matrix:
    """Vectors as rows, without a copy; anything where one is null."""
    width: int = vectors.type.list_size
    whole: Any = vectors
    flat = numpy(whole.values.slice(whole.offset * width, len(whole) * width).fill_null(np.nan))
    return flat.astype(np.float32, copy=False).reshape(len(whole), width)


def distances(rows: Matrix, query: Vector) -> Distances:
    """How far each row is from the query; not a number where a row has no distance."""
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
        squares: the squares of their lengths; not a number where there is no vector.
        numbering: whose ordinals these are.
    """

    matrix: Matrix
    squares: Vector
    numbering: Numbering

    def maybe_nearest(self, ordinals: Places, query: Vector, count: int) -> Places:
        """Those that may be among the nearest: all that are, and a few more.

        Args:
            ordinals (Places): which vectors to look at, each once.
            query (Vector): what to be near to.
            count (int): how many nearest ones.

        Returns:
            Places: of these ordinals; only such as have a vector.
        """
        squares = self.squares[ordinals]
        if len(ordinals) * 4 > len(self.matrix):
            # Every row in order is read faster than a good part of them out of order.
            products = (self.matrix @ query)[ordinals]
        else:
            products = self.matrix[ordinals] @ query
        rough = squares - 2 * products
        there = np.flatnonzero(np.isfinite(rough))
        if len(there) <= count:
            return ordinals[there]
        rough = rough[there]
        bound = float(np.partition(rough, count - 1)[count - 1])
        likely = rough <= bound + 2 * self._error(float(squares[there].max()), query)
        return ordinals[there[likely]]

    def _error(self, square_max: float, query: Vector) -> float:
        """How far a rough square of a distance can be from the true one."""
        length, longest = float(np.linalg.norm(query.astype(np.float64))), math.sqrt(square_max)
        per_product = _ROUNDING * (len(query) + 2)
        return 2 * per_product * length * longest + 4 * _ROUNDING * (square_max + 2 * length * longest)


@dataclass(frozen=True, slots=True)
class SharedVectors:
    """The vectors of a column as versions share it.

    Attributes:
        matrix: a row for each ordinal.
        squares: the squares of their lengths; not a number where there is no vector.
        firsts: what the column was read from.
    """

    matrix: Matrix
    squares: Vector
    firsts: Firsts

    @property
    def nbytes(self) -> int:
        """How many bytes it takes beside the column itself."""
        return self.squares.nbytes

    def of(self, numbering: Numbering) -> Vectors:
        """The vectors of one version."""
        assert len(self.squares) >= numbering.size
        return Vectors(self.matrix[: numbering.size], self.squares[: numbering.size], numbering)


def vectors_of(column: SharedColumn, before: SharedVectors | None) -> SharedVectors:
    """The vectors of a column.

    Args:
        column (SharedColumn): its values.
        before (SharedVectors | None): those of another version.

    Returns:
        SharedVectors: `before` itself, if nothing was added.
    """
    matrix = matrix_of(column.array)
    if before is None or not column.continues(before.firsts, len(before.squares)):
        return SharedVectors(matrix, _squares(matrix, column.array), column.firsts)
    known = len(before.squares)
    if known == len(matrix):
        return before
    added = _squares(matrix[known:], column.array.slice(known))
    return SharedVectors(matrix, np.concatenate([before.squares, added]), column.firsts)


def _squares(matrix: Matrix, vectors: Values) -> Vector:
    squares = np.empty(len(matrix), dtype=np.float32)
    for start in range(0, len(matrix), _ROWS_AT_ONCE):
        rows = matrix[start : start + _ROWS_AT_ONCE].astype(np.float64)
        squares[start : start + _ROWS_AT_ONCE] = np.square(rows, out=rows).sum(axis=1)
    if vectors.null_count:
        nowhere: Mask = numpy(pc.is_null(vectors))
        squares[nowhere] = np.nan
    return squares
