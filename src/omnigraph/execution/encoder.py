"""Small numbers for values, given as they come: equal values get equal numbers, whichever batch they are in.

Null is a value too and always has the number 0. Both zeros are one value.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.execution.arrays import NONE, Positions, Values, chosen, joined, one_zero, places_in, take

_HALF = 32


class Encoder:
    """Numbers values of one type."""

    __slots__ = ("_known", "_nested", "_type")

    def __init__(self) -> None:
        self._known: Values | None = None
        self._nested: dict[tuple[object, ...], int] = {}
        self._type: Any = pa.null()

    @property
    def size(self) -> int:
        """One more than the greatest number given."""
        return 1 + len(self._nested) + (0 if self._known is None else len(self._known))

    @property
    def nbytes(self) -> int:
        """How many bytes it takes, roughly."""
        return (0 if self._known is None else self._known.nbytes) + 100 * len(self._nested)

    def codes(self, values: Values) -> Positions:
        """The numbers of these values; values not seen before get the next ones."""
        if pa.types.is_null(values.type):
            return np.zeros(len(values), dtype=np.int64)
        if pa.types.is_nested(values.type):
            return self._one_by_one(values)
        encoded: Any = one_zero(values).dictionary_encode()
        uniques: Values = encoded.dictionary
        if self._known is None:
            self._known = uniques
            places = np.arange(len(uniques), dtype=np.int64)
        else:
            places = places_in(uniques, self._known).astype(np.int64)
            fresh = places == NONE
            if fresh.any():
                places[fresh] = np.arange(int(fresh.sum())) + len(self._known)
                self._known = joined([self._known, chosen(uniques, fresh)])
        indices: Any = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
        # The last place is what null, at -1, finds.
        translation = np.append(places + 1, 0)
        result: Positions = translation[indices]
        return result

    def values(self, codes: Positions) -> Values:
        """The values of these numbers."""
        known = self._known
        if known is None:
            known = pa.array([list(each) for each in self._nested], self._type) if self._nested else pa.nulls(0)
        return take(known, codes - 1, absent=True)

    def _one_by_one(self, values: Values) -> Positions:
        self._type = values.type
        texts: list[Any] = values.to_pylist()
        numbers = (0 if each is None else self._nested.setdefault(tuple(each), len(self._nested) + 1) for each in texts)
        return np.fromiter(numbers, dtype=np.int64, count=len(texts))


class RowEncoder:
    """Numbers rows of several columns: equal rows get equal numbers."""

    __slots__ = ("_columns", "_pairs")

    def __init__(self, columns: int) -> None:
        self._columns = [Encoder() for _ in range(columns)]
        self._pairs = [Encoder() for _ in range(columns - 1)]

    @property
    def size(self) -> int:
        """One more than the greatest number given."""
        if self._pairs:
            return self._pairs[-1].size
        return self._columns[0].size if self._columns else 1

    @property
    def nbytes(self) -> int:
        """How many bytes it takes, roughly."""
        return sum(each.nbytes for each in (*self._columns, *self._pairs))

    def codes(self, columns: list[Values], size: int) -> Positions:
        """The numbers of these rows."""
        if not columns:
            return np.zeros(size, dtype=np.int64)
        result = self._columns[0].codes(columns[0])
        for column, encoder, pairs in zip(columns[1:], self._columns[1:], self._pairs, strict=True):
            result = pairs.codes(pa.array(result << _HALF | encoder.codes(column)))
        return result
