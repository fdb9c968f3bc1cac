"""Hash index from ids to ordinals: sorted hashes in segments, so that new rows only cost a new segment.

A segment covers the rows of some runs of a numbering, deleted rows included; callers check candidates against the ids
themselves and against live rows.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Ordinals, Values
from omnigraph.execution.growing import text_layout

Hashes = npt.NDArray[np.uint64]

_START = 0xC2B2AE3D27D4EB4F
_FACTOR = 0x9E3779B97F4A7C15
_SHIFT = 29
_WORD = 8
_U64 = 2**64 - 1
# Masks of the bytes of an 8-byte word that belong to a text with this many bytes left.
_MASKS = np.array([256**count - 1 for count in range(_WORD + 1)], dtype=np.uint64)


def hash_text(text: str) -> int:
    """Hash one text; agrees with the vectorized version."""
    data = text.encode("utf-8", "surrogatepass")
    hashed = len(data) * _START & _U64
    for start in range(0, len(data), _WORD):
        hashed = (hashed ^ int.from_bytes(data[start : start + _WORD], "little")) * _FACTOR & _U64
        hashed ^= hashed >> _SHIFT
    return hashed


def hash_texts(texts: Values) -> Hashes:
    """Hash many texts, eight bytes of all of them at a time."""
    offsets, data = text_layout(texts)
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


@dataclass(frozen=True, slots=True)
class _Segment:
    """Sorted hashes, and the ordinals of their texts."""

    hashes: Hashes
    ordinals: Ordinals


@dataclass(frozen=True, slots=True)
class IdIndex:
    """Index that proposes the ordinals whose ids may be a given one.

    Attributes:
        segments: a few segments of disjoint rows.
        size: number of ordinals covered, from 0.
    """

    segments: tuple[_Segment, ...]
    size: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(segment.hashes.nbytes + segment.ordinals.nbytes for segment in self.segments)

    def candidates(self, text: str) -> list[int]:
        """Return the ordinals of ids with the same hash; the last rows first."""
        return self.find_few(text, self.size) or []

    def find_few(self, text: str, most: int) -> list[int] | None:
        """Return the candidates; None if there are more than `most`."""
        hashed = hash_text(text)
        wanted = np.uint64(hashed)
        found: list[int] = []
        for segment in reversed(self.segments):
            hashes = segment.hashes
            place = int(hashes.searchsorted(wanted))
            # As Python ints: numpy scalars take longer to compare than to find.
            while place < len(hashes) and hashes.item(place) == hashed:
                if len(found) == most:
                    return None
                found.append(segment.ordinals.item(place))
                place += 1
        return found

    def find_all(self, text: str) -> Ordinals:
        """Return all candidates as an array."""
        wanted = np.uint64(hash_text(text))
        return np.concatenate(
            [
                segment.ordinals[
                    segment.hashes.searchsorted(wanted) : segment.hashes.searchsorted(wanted, side="right")
                ]
                for segment in self.segments
            ]
        )

    def extended(self, ids: Values) -> "IdIndex":
        """Return the index of more rows; those this index covers come first in `ids`.

        Segments no larger than what follows them are merged with it, so there are always few.
        """
        if len(ids) == self.size:
            return self
        merged = [_build_segment(ids.slice(self.size), self.size)]
        older, total = self.segments, len(ids) - self.size
        while older and len(older[-1].hashes) <= total:
            merged.append(older[-1])
            total += len(older[-1].hashes)
            older = older[:-1]
        return IdIndex((*older, _merge(merged)), len(ids))


def build_id_index(ids: Values) -> IdIndex:
    """Build the index of all rows."""
    return IdIndex((_build_segment(ids, 0),), len(ids))


def _build_segment(ids: Values, first: int) -> _Segment:
    hashes = hash_texts(ids)
    order = np.argsort(hashes)
    return _Segment(hashes[order], (order + first).astype(np.int32))


def _merge(segments: list[_Segment]) -> _Segment:
    if len(segments) == 1:
        return segments[0]
    hashes = np.concatenate([segment.hashes for segment in segments])
    ordinals = np.concatenate([segment.ordinals for segment in segments])
    order = np.argsort(hashes, kind="stable")
    return _Segment(hashes[order], ordinals[order])
