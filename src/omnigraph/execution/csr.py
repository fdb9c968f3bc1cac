"""Compressed sparse rows (CSR): the neighbours of every node, consecutive in one array.

Neighbours of a node are ascending, and so are the records of parallel edges. All kernels are vectorized over nodes;
none loops over nodes or edges.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from omnigraph import limits
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


@dataclass(frozen=True)
class Csr:
    """Edges in one direction.

    Attributes:
        starts: offsets of each node's neighbours; one more than there are nodes.
        neighbours: of all nodes, consecutive.
        records: the edges to them.
    """

    starts: Positions
    neighbours: Ordinals
    records: Ordinals

    @property
    def nbytes(self) -> int:
        """Size in bytes, including the simple form if it differs, and the Bloom filter."""
        own = self.starts.nbytes + self.neighbours.nbytes + self.records.nbytes
        return own * (2 if self.has_parallel_edges else 1) + self.neighbours.nbytes // 2

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.starts) - 1

    @cached_property
    def degrees(self) -> Positions:
        """Degree of each node."""
        return cast(Positions, np.diff(self.starts))

    @cached_property
    def has_parallel_edges(self) -> bool:
        """Whether two edges connect the same two nodes."""
        return bool(self._repeats.any())

    @property
    def _repeats(self) -> Mask:
        """Mask of neighbours, from the second on, that repeat the one before of the same node."""
        same: Mask = self.neighbours[1:] == self.neighbours[:-1]
        firsts = self.starts[1:-1]
        same[firsts[(firsts > 0) & (firsts < len(self.neighbours))] - 1] = False
        return same

    @cached_property
    def simple(self) -> "Csr":
        """The same without parallel edges."""
        if not self.has_parallel_edges:
            return self
        kept = np.ones(len(self.neighbours), dtype=np.bool_)
        kept[1:] = ~self._repeats
        before = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=before[1:])
        return Csr(before[self.starts], self.neighbours[kept], self.records[kept])

    @cached_property
    def bloom_filter(self) -> BloomFilter:
        """Bloom filter of the edges."""
        edges = self.edge_list()
        return BloomFilter(edges.sources, edges.targets)

    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes, in any order and repeated or not, to their neighbours in the order of `nodes`.

        With `each_record`, parallel edges count separately.
        """
        csr = self if each_record else self.simple
        if len(nodes) == 1:
            node = int(nodes[0])
            start, stop = int(csr.starts[node]), int(csr.starts[node + 1])
            records = csr.records[start:stop] if each_record else None
            return Expansion(np.zeros(stop - start, dtype=np.int64), csr.neighbours[start:stop], records)
        rows, places = csr.places(nodes)
        return Expansion(rows, csr.neighbours[places], csr.records[places] if each_record else None)

    def places(self, nodes: Ordinals) -> tuple[Positions, Positions]:
        """Return for each edge of these nodes the position of its node, and the position of the edge."""
        firsts = self.starts[nodes]
        return expand_ranges(firsts, self.starts[nodes + np.int32(1)] - firsts)

    def edge_list(self) -> EdgeList:
        """Return all edges."""
        sources = np.repeat(np.arange(self.nodes, dtype=np.int32), self.degrees)
        return EdgeList(sources, self.neighbours, self.records)

    def edges_of(self, nodes: Ordinals) -> EdgeList:
        """Return the edges of some distinct nodes."""
        rows, places = self.places(nodes)
        return EdgeList(nodes[rows], self.neighbours[places], self.records[places])

    def edge_ranges(self, nodes: Ordinals, targets: Ordinals) -> tuple[Positions, Positions]:
        """Return the range of edges from each node to its target: first position and end."""
        firsts, stops = self.starts[nodes], self.starts[nodes + np.int32(1)]
        first = _lower_bounds(self.neighbours, firsts, stops, targets)
        if not self.has_parallel_edges:
            return first, first + _found(self.neighbours, first, stops, targets)
        return first, _lower_bounds(self.neighbours, first, stops, targets + np.int32(1))

    def has_edges(self, nodes: Ordinals, targets: Ordinals) -> Mask:
        """Return whether each node has an edge to its target."""
        stops = self.starts[nodes + np.int32(1)]
        return _found(
            self.neighbours, _lower_bounds(self.neighbours, self.starts[nodes], stops, targets), stops, targets
        )

    def resized(self, nodes: int) -> "Csr":
        """Return the same with room for more nodes, which have no edges."""
        if nodes <= self.nodes:
            return self
        more = np.full(nodes - self.nodes, self.starts[-1], dtype=np.int64)
        return Csr(np.concatenate([self.starts, more]), self.neighbours, self.records)

    def updated(self, dropped: Mask, sources: Ordinals, added: EdgeList) -> "Csr":
        """Return the same with some edges removed and some added; rebuilds everything if much changes.

        Args:
            dropped: by record, whether it is removed.
            sources: the nodes that lose edges.
            added: new edges between existing nodes.
        """
        touched = np.union1d(sources, added.sources).astype(np.int32)
        if not len(touched):
            return self
        old = self.edges_of(touched)
        if len(touched) > limits.CSR_SPLICED_NODES_MAX or len(old) * 4 > len(self.neighbours):
            everything = self.edge_list()
            return build_csr(concat_edges(everything.where(~dropped[everything.records]), added), self.nodes)
        rows = _ordered(concat_edges(old.where(~dropped[old.records]), added))
        degrees = self.degrees.copy()
        counts = np.bincount(np.searchsorted(touched, rows.sources), minlength=len(touched))
        degrees[touched] = counts
        cuts = np.empty(2 * len(touched), dtype=np.int64)
        cuts[0::2], cuts[1::2] = self.starts[touched], self.starts[touched + np.int32(1)]
        return Csr(
            _starts(degrees),
            _spliced(self.neighbours, cuts, rows.targets, counts),
            _spliced(self.records, cuts, rows.records, counts),
        )


def expand_ranges(firsts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """Expand ranges of `counts` positions each: the number of the range for each position, and the positions."""
    ends = np.cumsum(counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.repeat(firsts - ends + counts, counts)
    places += np.arange(len(places))
    return rows, places


def build_csr(edges: EdgeList, nodes: int) -> Csr:
    """Build the CSR of edges in any order, with room for `nodes` nodes."""
    ordered = _ordered(edges)
    return Csr(_starts(np.bincount(edges.sources, minlength=nodes)), ordered.targets, ordered.records)


def _ordered(edges: EdgeList) -> EdgeList:
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


def _starts(degrees: Positions) -> Positions:
    starts = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(degrees, out=starts[1:])
    return starts


def _spliced(old: Ordinals, cuts: Positions, new: Ordinals, counts: Positions) -> Ordinals:
    """Replace the old values between each pair of cuts with `counts` of the new ones."""
    outside = np.split(old, cuts)[0::2]
    inside = np.split(new, np.cumsum(counts)[:-1])
    pieces = [piece for pair in zip(outside, inside, strict=False) for piece in pair]
    return np.concatenate([*pieces, outside[-1]])


def _lower_bounds(ordered: Ordinals, lows: Positions, highs: Positions, wanted: Ordinals) -> Positions:
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


def _found(ordered: Ordinals, places: Positions, stops: Positions, wanted: Numbers) -> Mask:
    if not len(ordered):
        return np.zeros(len(places), dtype=np.bool_)
    return cast(Mask, (places < stops) & (ordered[np.minimum(places, len(ordered) - 1)] == wanted))
