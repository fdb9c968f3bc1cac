"""Edge lists (COO), a Bloom filter of edges, and vectorized kernels over ranges of an array."""

from dataclasses import dataclass
from typing import cast

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask, Numbers, Ordinals, Positions


@dataclass(frozen=True, slots=True)
class Expansion:
    """Edges that leave some nodes.

    Attributes:
        rows: for each neighbour the position of its node in the input, ascending.
        targets: the neighbours.
        records: the edges to them; None where parallel edges count once.
    """

    rows: Positions
    targets: Ordinals
    records: Ordinals | None


@dataclass(frozen=True, slots=True)
class EdgeList:
    """Edge list (COO): sources, targets and edge records."""

    sources: Ordinals
    targets: Ordinals
    records: Ordinals

    @property
    def reversed(self) -> "EdgeList":
        """Edges with source and target swapped."""
        return EdgeList(self.targets, self.sources, self.records)

    def where(self, mask: Mask) -> "EdgeList":
        """Select edges by a mask."""
        return EdgeList(self.sources[mask], self.targets[mask], self.records[mask])

    @property
    def repeats(self) -> Mask:
        """Mask of the edges that connect the same nodes as the one before, in an ordered list."""
        found = np.zeros(len(self.records), dtype=np.bool_)
        found[1:] = (self.sources[1:] == self.sources[:-1]) & (self.targets[1:] == self.targets[:-1])
        return found

    def __len__(self) -> int:
        return len(self.records)


def concat_edges(*parts: EdgeList) -> EdgeList:
    """Concatenate edge lists."""
    return EdgeList(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
        np.concatenate([part.records for part in parts]),
    )


class BloomFilter:
    """Bloom filter of edges: rules out most pairs of nodes without an edge.

    Two hash functions with a bit array each, small enough to stay in the processor's cache.
    """

    __slots__ = ("_bits", "_shift")

    def __init__(self, sources: Ordinals, targets: Ordinals) -> None:
        bits = min(max((8 * len(targets)).bit_length(), 10), 30)
        self._shift = np.uint32(32 - bits)
        self._bits: list[npt.NDArray[np.uint8]] = []
        for factors in _HASH_FACTORS:
            marks = np.zeros(2**bits, dtype=np.bool_)
            marks[self._hash(sources, targets, factors)] = True
            self._bits.append(np.packbits(marks, bitorder="little"))

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return sum(marks.nbytes for marks in self._bits)

    def may_contain(self, nodes: Ordinals, targets: Ordinals) -> Positions:
        """Return the positions where a node may have an edge to its target; elsewhere there is none."""
        found = np.flatnonzero(self._test_bits(0, nodes, targets))
        return found[self._test_bits(1, nodes[found], targets[found]).view(np.bool_)]

    def _test_bits(self, which: int, nodes: Ordinals, targets: Ordinals) -> npt.NDArray[np.uint8]:
        places = self._hash(nodes, targets, _HASH_FACTORS[which])
        bits: npt.NDArray[np.uint8] = self._bits[which][places >> np.uint32(3)]
        bits >>= (places & np.uint32(7)).astype(np.uint8)
        bits &= np.uint8(1)
        return bits

    def _hash(self, nodes: Ordinals, targets: Ordinals, factors: tuple[int, int]) -> npt.NDArray[np.uint32]:
        mixed = nodes.view(np.uint32) * np.uint32(factors[0])
        mixed ^= targets.view(np.uint32) * np.uint32(factors[1])
        mixed *= np.uint32(0xC2B2AE3D)
        mixed >>= self._shift
        return mixed


_HASH_FACTORS = ((0x9E3779B1, 0x85EBCA77), (0x27D4EB2F, 0x165667B1))


def expand_ranges(firsts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Expand ranges of `counts` positions each: the number of the range for each position, and the positions."""
    ends = np.cumsum(counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.repeat(firsts - ends + counts, counts)
    places += np.arange(len(places))
    return rows, places


def sort_edges(edges: EdgeList) -> EdgeList:
    """Sort edges by source, target and record."""
    count = len(edges)
    if not count:
        return edges
    widths = [int(part.max()).bit_length() for part in (edges.sources, edges.targets, edges.records)]
    if sum(widths) > 63:
        order = np.lexsort((edges.records, edges.targets, edges.sources))
        return EdgeList(edges.sources[order], edges.targets[order], edges.records[order])
    # Sorting plain numbers is several times faster than sorting positions by them.
    packed = edges.sources.astype(np.int64) << (widths[1] + widths[2])
    packed |= edges.targets.astype(np.int64) << widths[2]
    packed |= edges.records
    packed.sort()
    records = (packed & ((1 << widths[2]) - 1)).astype(np.int32)
    packed >>= widths[2]
    targets = (packed & ((1 << widths[1]) - 1)).astype(np.int32)
    return EdgeList((packed >> widths[1]).astype(np.int32), targets, records)


def lower_bounds(ordered: Ordinals, lows: Positions, highs: Positions, wanted: Ordinals) -> Positions:
    """Binary search in each range of an ordered array: the first position whose value is not less than wanted."""
    places = lows.copy()
    left = highs - lows
    if not len(ordered):
        return places
    last = len(ordered) - 1
    for _ in range(int(left.max(initial=0)).bit_length()):
        half = left >> 1
        middle = places + half
        less = (ordered[np.minimum(middle, last)] < wanted) & (left > 0)
        places = np.where(less, middle + 1, places)
        left = np.where(less, left - half - 1, half)
    return places


def equal_at(ordered: Ordinals, places: Positions, stops: Positions, wanted: Numbers) -> Mask:
    """Return whether the values at these places, where they are below the stops, are the wanted ones."""
    if not len(ordered):
        return np.zeros(len(places), dtype=np.bool_)
    return cast(Mask, (places < stops) & (ordered[np.minimum(places, len(ordered) - 1)] == wanted))
