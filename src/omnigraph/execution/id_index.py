"""From ids to ordinals: hashes in order, part by part, so that new rows cost what they are and no more.

A part covers the rows of some runs of a numbering, dead ones included; who asks checks what it gets against the ids
themselves and against what is alive.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.arrays import Ordinals, Values

Hashes = npt.NDArray[np.uint64]

_START = 0xC2B2AE3D27D4EB4F
_FACTOR = 0x9E3779B97F4A7C15
_SHIFT = 29
_WORD = 8
_U64 = 2**64 - 1
# The bytes of a word that belong to a text with so many bytes left.
_MASKS = np.array([256**count - 1 for count in range(_WORD + 1)], dtype=np.uint64)


def hash_of(text: str) -> int:
    """The hash of one text; the same as `hashes_of` gives."""
    data = text.encode("utf-8", "surrogatepass")
    hashed = len(data) * _START & _U64
    for start in range(0, len(data), _WORD):
        hashed = (hashed ^ int.from_bytes(data[start : start + _WORD], "little")) * _FACTOR & _U64
        hashed ^= hashed >> _SHIFT
    return hashed


def hashes_of(texts: Values) -> Hashes:
    """The hashes of many texts, a word of all of them at a time."""
    offsets, data = _layout(texts)
    # Room to read a whole word where the last text starts.
    padded = np.zeros(len(data) + _WORD, dtype=np.uint8)
    padded[: len(data)] = data
    words = np.ndarray((len(data) + 1,), dtype="<u8", buffer=padded, strides=(1,))
    starts, lengths = offsets[:-1], np.diff(offsets)
    hashed = lengths.astype(np.uint64) * np.uint64(_START)
    active = np.arange(len(starts))
    for start in range(0, int(lengths.max(initial=0)), _WORD):
        active = active[lengths[active] > start]
        left = np.minimum(lengths[active] - start, _WORD)
        mixed = (hashed[active] ^ (words[starts[active] + start] & _MASKS[left])) * np.uint64(_FACTOR)
        hashed[active] = mixed ^ (mixed >> np.uint64(_SHIFT))
    return hashed


def _layout(texts: Values) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]:
    """Where texts start in their bytes, and the bytes."""
    buffers: Any = texts.buffers()
    _, offsets, data = buffers
    if not len(texts) or offsets is None:
        return np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.uint8)
    width = np.int64 if pa.types.is_large_string(texts.type) else np.int32
    places = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    everything = np.empty(0, dtype=np.uint8) if data is None else np.frombuffer(data, np.uint8)
    return places - places[0], everything[places[0] : places[-1]]


@dataclass(frozen=True, slots=True)
class _Part:
    """Hashes in order, and the ordinals of their texts."""

    hashes: Hashes
    ordinals: Ordinals


@dataclass(frozen=True, slots=True)
class IdIndex:
    """Finds the ordinals whose ids may be a given one.

    Attributes:
        parts: few; each covers other rows.
        size: how many ordinals are covered, from 0.
    """

    parts: tuple[_Part, ...]
    size: int

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return sum(part.hashes.nbytes + part.ordinals.nbytes for part in self.parts)

    def candidates(self, text: str) -> list[int]:
        """The ordinals of ids with the hash of this one; the last rows first."""
        return self.few(text, self.size) or []

    def few(self, text: str, most: int) -> list[int] | None:
        """The same; None if there are more than so many."""
        hashed = hash_of(text)
        wanted = np.uint64(hashed)
        found: list[int] = []
        for part in reversed(self.parts):
            hashes = part.hashes
            place = int(hashes.searchsorted(wanted))
            # As Python's own numbers: numpy's take longer to compare than to find.
            while place < len(hashes) and hashes.item(place) == hashed:
                if len(found) == most:
                    return None
                found.append(part.ordinals.item(place))
                place += 1
        return found

    def ordinals(self, text: str) -> Ordinals:
        """The ordinals of texts with the hash of this one, however many there are."""
        wanted = np.uint64(hash_of(text))
        return np.concatenate(
            [
                part.ordinals[part.hashes.searchsorted(wanted) : part.hashes.searchsorted(wanted, side="right")]
                for part in self.parts
            ]
        )

    def extended(self, ids: Values, *, parts_max: int) -> "IdIndex":
        """The index of more rows.

        Args:
            ids (Values): of all rows; those this index covers come first.
            parts_max (int): more parts than this are made into one.
        """
        parts = (*self.parts, _part(ids.slice(self.size), self.size))
        if len(parts) > parts_max:
            hashes = np.concatenate([part.hashes for part in parts])
            ordinals = np.concatenate([part.ordinals for part in parts])
            order = np.argsort(hashes)
            parts = (_Part(hashes[order], ordinals[order]),)
        return IdIndex(parts, len(ids))


def index_ids(ids: Values) -> IdIndex:
    """The index of all rows."""
    return IdIndex((_part(ids, 0),), len(ids))


def _part(ids: Values, first: int) -> _Part:
    hashes = hashes_of(ids)
    order = np.argsort(hashes)
    return _Part(hashes[order], (order + first).astype(np.int32))
