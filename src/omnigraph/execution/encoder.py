"""Incremental dictionary encoding: equal values get equal codes across batches.

Null is a value too, always with code 0. Both zeros are one value.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.execution.arrays import NONE, Positions, Values, concat, normalize_zeros, positions_in, select, take

_HALF = 32


class Encoder:
    """Dictionary encoder for values of one type."""

    __slots__ = ("_known", "_nested", "_type")

    def __init__(self) -> None:
        self._known: Values | None = None
        self._nested: dict[tuple[object, ...], int] = {}
        self._type: Any = pa.null()

    @property
    def size(self) -> int:
        """One more than the greatest code."""
        return 1 + len(self._nested) + (0 if self._known is None else len(self._known))

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return (0 if self._known is None else self._known.nbytes) + 100 * len(self._nested)

    def encode(self, values: Values) -> Positions:
        """Return the codes of values; new values get the next codes."""
        if pa.types.is_null(values.type):
            return np.zeros(len(values), dtype=np.int64)
        if pa.types.is_nested(values.type):
            return self._encode_nested(values)
        encoded: Any = normalize_zeros(values).dictionary_encode()
        uniques: Values = encoded.dictionary
        if self._known is None:
            self._known = uniques
            places = np.arange(len(uniques), dtype=np.int64)
        else:
            places = positions_in(uniques, self._known).astype(np.int64)
            fresh = places == NONE
            if fresh.any():
                places[fresh] = np.arange(int(fresh.sum())) + len(self._known)
                self._known = concat([self._known, select(uniques, fresh)])
        indices: Any = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False)
        # Null, at index -1, finds the last element.
        translation = np.append(places + 1, 0)
        result: Positions = translation[indices]
        return result

    def decode(self, codes: Positions) -> Values:
        """Return the values of codes."""
        known = self._known
        if known is None:
            known = pa.array([list(value) for value in self._nested], self._type) if self._nested else pa.nulls(0)
        return take(known, codes - 1, absent=True)

    def _encode_nested(self, values: Values) -> Positions:
        self._type = values.type
        texts: list[Any] = values.to_pylist()
        numbers = (
            0 if value is None else self._nested.setdefault(tuple(value), len(self._nested) + 1) for value in texts
        )
        return np.fromiter(numbers, dtype=np.int64, count=len(texts))


class RowEncoder:
    """Dictionary encoder for rows of several columns."""

    __slots__ = ("_columns", "_pairs")

    def __init__(self, columns: int) -> None:
        self._columns = [Encoder() for _ in range(columns)]
        self._pairs = [Encoder() for _ in range(columns - 1)]

    @property
    def size(self) -> int:
        """One more than the greatest code."""
        if self._pairs:
            return self._pairs[-1].size
        return self._columns[0].size if self._columns else 1

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes."""
        return sum(encoder.nbytes for encoder in (*self._columns, *self._pairs))

    def encode(self, columns: list[Values], size: int) -> Positions:
        """Return the codes of rows."""
        if not columns:
            return np.zeros(size, dtype=np.int64)
        result = self._columns[0].encode(columns[0])
        for column, encoder, pairs in zip(columns[1:], self._columns[1:], self._pairs, strict=True):
            result = pairs.encode(pa.array(result << _HALF | encoder.encode(column)))
        return result
