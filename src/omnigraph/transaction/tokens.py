"""Footprint tokens of many names at once, in passes over their bytes instead of over the names.

The same function as `model.footprint.tokens`, to the bit; a test compares the two.
"""

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.model import footprint
from omnigraph.model.footprint import TokenKind

_Words = np.ndarray[tuple[int], np.dtype[np.uint64]]


def tokens(kind: TokenKind, names: Iterable[str]) -> frozenset[int]:
    """The tokens of `names`."""
    known = names if isinstance(names, list | tuple) else list(names)
    if len(known) < limits.TOKENS_AT_ONCE_MIN:
        return footprint.tokens(kind, known)
    try:
        column = pa.array(known, pa.large_string())
    except ValueError:  # half a surrogate pair: no column can hold it
        return footprint.tokens(kind, known)
    return frozenset(_hashed(kind, column).tolist())


def _hashed(kind: TokenKind, column: pa.LargeStringArray) -> _Words:
    _, starts, text = column.buffers()
    offsets = np.frombuffer(memoryview(starts or b""), np.int64)[: len(column) + 1]
    lengths = np.diff(offsets)
    totals = np.zeros(len(column), np.uint64)
    filled = lengths > 0
    if filled.any():
        raw = np.frombuffer(memoryview(text or b""), np.uint8)[: offsets[-1]].astype(np.uint64)
        place = np.arange(len(raw)) - np.repeat(offsets[:-1], lengths)
        weighted = (raw + np.uint64(1)) * _weights(int(lengths.max()))[place]
        totals[filled] = np.add.reduceat(weighted, offsets[:-1][filled])
    return _mixed((totals ^ np.uint64(footprint.seed(kind))) + lengths.astype(np.uint64))


def _weights(count: int) -> _Words:
    return _mixed(np.arange(count, dtype=np.uint64))


def _mixed(value: _Words) -> _Words:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))
