"""Append-only arrays with spare capacity: versions of a table share one buffer and differ in how much of it they see.

Appending writes behind what anybody reads and returns a longer view, so growing by a row costs a row.
"""

import threading
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.arrays import Mask, Values, concat, pc

_Item = TypeVar("_Item", bound=np.generic)

# Spare capacity, as a share of what is there and at least this many items. Untouched pages take no memory.
_SPARE_SHARE, _SPARE_MIN = 8, 1_024
_STRING_BYTES_MAX = 2**31 - 1


class GrowingNumbers(Generic[_Item]):
    """Append-only numpy array. Used under the lock of its owner."""

    __slots__ = ("_buffer", "used")

    def __init__(self, values: "npt.NDArray[_Item]", capacity: int = 0) -> None:
        """Start with some values: a copy with room for more than `capacity` items, or these themselves."""
        self._buffer = values
        self.used = len(values)
        if capacity:
            self._reserve(capacity)

    @property
    def values(self) -> "npt.NDArray[_Item]":
        """All items."""
        return self._buffer[: self.used]

    @property
    def nbytes(self) -> int:
        """Size in bytes, without spare capacity."""
        return self.used * self._buffer.itemsize

    def append(self, added: "npt.NDArray[Any]") -> "npt.NDArray[_Item]":
        """Append items and return all of them; earlier views stay as they are."""
        end = self.used + len(added)
        if end > len(self._buffer):
            self._reserve(end)
        self._buffer[self.used : end] = added
        self.used = end
        return self._buffer[:end]

    def _reserve(self, size: int) -> None:
        larger = np.empty(_capacity(size), dtype=self._buffer.dtype)
        larger[: self.used] = self._buffer[: self.used]
        self._buffer = larger


class _GrowingBits:
    """Append-only bitmap, lowest bits first."""

    __slots__ = ("_bytes", "_used")

    def __init__(self) -> None:
        self._bytes = GrowingNumbers(np.empty(0, np.uint8))
        self._used = 0

    def append(self, bits: Mask) -> None:
        """Append bits; the last byte may be shared with readers of the bits before, which stay as they are."""
        loose = self._used % 8
        if not loose:
            self._bytes.append(np.packbits(bits, bitorder="little"))
        else:
            last = self._bytes.values[-1:]
            head = np.unpackbits(last, bitorder="little")[:loose].astype(np.bool_)
            packed = np.packbits(np.concatenate([head, bits]), bitorder="little")
            last[:] = packed[:1]
            self._bytes.append(packed[1:])
        self._used += len(bits)

    @property
    def buffer(self) -> pa.Buffer:
        """All bits."""
        return pa.py_buffer(self._bytes.values.data)


class GrowingArray:
    """Append-only Arrow array of numbers, dates, booleans or texts; of other types every append copies. Thread-safe."""

    __slots__ = ("_data", "_lock", "_nulls", "_offsets", "_valid", "array")

    def __init__(self, pieces: list[Values]) -> None:
        """Copy some values (at least one array of them) into a buffer with room for more."""
        self._lock = threading.Lock()
        self._reset(pieces)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return int(self.array.nbytes)

    def append(self, added: Values) -> Values:
        """Append values and return all of them; arrays returned before stay as they are."""
        with self._lock:
            if len(added):
                if self._has_room_for([added]):
                    self._write(added)
                    self._wrap(len(self.array) + len(added))
                else:
                    self._reset([self.array, added])
            return self.array

    def _reset(self, pieces: list[Values]) -> None:
        type_, size = pieces[0].type, sum(map(len, pieces))
        self.array: Values = pieces[0]
        self._nulls = 0
        self._valid: _GrowingBits | None = None
        self._offsets: GrowingNumbers[Any] | None = None
        self._data: GrowingNumbers[Any] | _GrowingBits | None = None
        if pa.types.is_boolean(type_):
            self._data = _GrowingBits()
        elif _is_text(type_):
            self._offsets = GrowingNumbers(np.zeros(1, _offset_type(type_)), size + 1)
            self._data = GrowingNumbers(np.empty(0, np.uint8), sum(piece.nbytes for piece in pieces))
        elif _is_plain(type_):
            self._data = GrowingNumbers(np.empty(0, np.uint8), size * (type_.bit_width // 8))
        if not self._has_room_for(pieces):
            self._data, self.array = None, concat(pieces)
            return
        self.array = pieces[0].slice(0, 0)
        written = 0
        for piece in pieces:
            if len(piece):
                self._write(piece, written)
                written += len(piece)
        self._wrap(size)

    def _write(self, added: Values, size: int | None = None) -> None:
        """Write values behind those there are, `size` of them."""
        if self._valid is not None or added.null_count:
            if self._valid is None:
                self._valid = _GrowingBits()
                self._valid.append(np.ones(len(self.array) if size is None else size, dtype=np.bool_))
            self._valid.append(_valid_bits(added))
            self._nulls += added.null_count
        if isinstance(self._data, _GrowingBits):
            self._data.append(_bits(added))
        elif self._offsets is not None and self._data is not None:
            offsets, data = text_layout(added)
            self._offsets.append(offsets[1:] + self._data.used)
            self._data.append(data)
        elif self._data is not None:
            self._data.append(_plain_bytes(added))

    def _wrap(self, size: int) -> None:
        """Make the array of everything written."""
        buffers: list[Any] = [None if self._valid is None else self._valid.buffer]
        if self._offsets is not None:
            buffers.append(pa.py_buffer(self._offsets.values.data))
        assert self._data is not None
        buffers.append(
            self._data.buffer if isinstance(self._data, _GrowingBits) else pa.py_buffer(self._data.values.data)
        )
        make: Any = pa.Array.from_buffers
        self.array = make(self.array.type, size, buffers, self._nulls)

    def _has_room_for(self, added: list[Values]) -> bool:
        if self._data is None or any(piece.type != self.array.type for piece in added):
            return False
        if not isinstance(self._data, GrowingNumbers) or self._offsets is None:
            return True
        is_large = self._offsets.values.dtype == np.int64
        return is_large or self._data.used + sum(piece.nbytes for piece in added) <= _STRING_BYTES_MAX


def text_layout(texts: Values) -> "tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]":
    """Return the offsets of texts in their bytes, and the bytes."""
    buffers: Any = texts.buffers()
    _, offsets, data = buffers
    if not len(texts) or offsets is None:
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    places = np.frombuffer(offsets, _offset_type(texts.type))[texts.offset : texts.offset + len(texts) + 1]
    places = places.astype(np.int64)
    everything = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return places - places[0], everything[places[0] : places[-1]]


def _capacity(size: int) -> int:
    return size + max(size // _SPARE_SHARE, _SPARE_MIN)


def _offset_type(type_: pa.DataType) -> Any:  # noqa: ANN401  (a numpy type)
    return np.int64 if pa.types.is_large_string(type_) or pa.types.is_large_binary(type_) else np.int32


def _is_text(type_: pa.DataType) -> bool:
    of = pa.types
    return of.is_string(type_) or of.is_large_string(type_) or of.is_binary(type_) or of.is_large_binary(type_)


def _is_plain(type_: pa.DataType) -> bool:
    """Return whether values of a type are a fixed number of bytes in one buffer."""
    return bool(pa.types.is_primitive(type_)) and not pa.types.is_boolean(type_)


def _plain_bytes(values: Values) -> "npt.NDArray[np.uint8]":
    width = values.type.bit_width // 8
    buffers: Any = values.buffers()
    if buffers[1] is None:
        return np.zeros(len(values) * width, dtype=np.uint8)
    return np.frombuffer(buffers[1], np.uint8)[values.offset * width : (values.offset + len(values)) * width]


def _valid_bits(values: Values) -> Mask:
    found: Mask = pc.is_valid(values).to_numpy(zero_copy_only=False)
    return found


def _bits(values: Values) -> Mask:
    found: Mask = pc.fill_null(values, False).to_numpy(zero_copy_only=False)  # noqa: FBT003  (Arrow's own)
    return found.astype(np.bool_, copy=False)
