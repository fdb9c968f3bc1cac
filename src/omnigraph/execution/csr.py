"""Compressed rows: for every node its neighbours, one after the other in one array. Everything here is whole arrays.

Neighbours of a node are in ascending order, and so are the records of parallel edges. All kernels work on any number
of nodes at once; none has a loop over nodes or edges.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
import numpy.typing as npt

from omnigraph import limits
from omnigraph.execution.arrays import Mask, Numbers, Ordinals, Positions


@dataclass(frozen=True, slots=True)
class Spread:
    """What lies next to some nodes.

    Attributes:
        rows: for each neighbour the position of its node among those asked for, ascending.
        targets: the neighbours.
        records: the edges to them; None where parallel edges count once.
    """

    rows: Positions
    targets: Ordinals
    records: Ordinals | None


@dataclass(frozen=True, slots=True)
class Triples:
    """Edges as such: where from, where to, and which record."""

    sources: Ordinals
    targets: Ordinals
    records: Ordinals

    @property
    def reversed(self) -> "Triples":
        """The same edges from their other end."""
        return Triples(self.targets, self.sources, self.records)

    def where(self, mask: Mask) -> "Triples":
        """Some of them."""
        return Triples(self.sources[mask], self.targets[mask], self.records[mask])

    def __len__(self) -> int:
        return len(self.records)


def together(*parts: Triples) -> Triples:
    """All of these edges."""
    return Triples(
        np.concatenate([part.sources for part in parts]),
        np.concatenate([part.targets for part in parts]),
        np.concatenate([part.records for part in parts]),
    )


class Sketch:
    """Marks by which most pairs of nodes that are not joined can be told at once.

    Two marks for each edge, at places that have nothing to do with each other, a bit each: small enough to stay in the
    processor's own memory.
    """

    __slots__ = ("_marks", "_shift")

    def __init__(self, sources: Ordinals, targets: Ordinals) -> None:
        bits = min(max((8 * len(targets)).bit_length(), 10), 30)
        self._shift = np.uint32(32 - bits)
        self._marks: list[npt.NDArray[np.uint8]] = []
        for factors in _SKETCH_FACTORS:
            marks = np.zeros(2**bits, dtype=np.bool_)
            marks[self._places(sources, targets, factors)] = True
            self._marks.append(np.packbits(marks, bitorder="little"))

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return sum(marks.nbytes for marks in self._marks)

    def likely(self, nodes: Ordinals, targets: Ordinals) -> Positions:
        """Where a node may have an edge to its target; everywhere else it has certainly none."""
        found = np.flatnonzero(self._marked(0, nodes, targets))
        return found[self._marked(1, nodes[found], targets[found]).view(np.bool_)]

    def _marked(self, which: int, nodes: Ordinals, targets: Ordinals) -> npt.NDArray[np.uint8]:
        places = self._places(nodes, targets, _SKETCH_FACTORS[which])
        bits: npt.NDArray[np.uint8] = self._marks[which][places >> np.uint32(3)]
        bits >>= (places & np.uint32(7)).astype(np.uint8)
        bits &= np.uint8(1)
        return bits

    def _places(self, nodes: Ordinals, targets: Ordinals, factors: tuple[int, int]) -> npt.NDArray[np.uint32]:
        mixed = nodes.view(np.uint32) * np.uint32(factors[0])
        mixed ^= targets.view(np.uint32) * np.uint32(factors[1])
        mixed *= np.uint32(0xC2B2AE3D)
        mixed >>= self._shift
        return mixed


_SKETCH_FACTORS = ((0x9E3779B1, 0x85EBCA77), (0x27D4EB2F, 0x165667B1))


@dataclass(frozen=True)
class Csr:
    """Edges one way.

    Attributes:
        starts: where the neighbours of each node start; one more than there are nodes.
        neighbours: of all nodes.
        records: the edges to them.
    """

    starts: Positions
    neighbours: Ordinals
    records: Ordinals

    @property
    def nbytes(self) -> int:
        """How many bytes it takes, with its simple form if that is another one, and its sketch."""
        own = self.starts.nbytes + self.neighbours.nbytes + self.records.nbytes
        return own * (2 if self.has_parallel else 1) + self.neighbours.nbytes // 2

    @property
    def nodes(self) -> int:
        """How many nodes have a place here."""
        return len(self.starts) - 1

    @cached_property
    def degrees(self) -> Positions:
        """How many edges each node has."""
        return cast(Positions, np.diff(self.starts))

    @cached_property
    def has_parallel(self) -> bool:
        """Whether two edges join the same two nodes."""
        return bool(self._repeats.any())

    @property
    def _repeats(self) -> Mask:
        """Which neighbours, but the first of all, are the same as the one before, of the same node."""
        same: Mask = self.neighbours[1:] == self.neighbours[:-1]
        firsts = self.starts[1:-1]
        same[firsts[(firsts > 0) & (firsts < len(self.neighbours))] - 1] = False
        return same

    @cached_property
    def simple(self) -> "Csr":
        """The same with parallel edges once."""
        if not self.has_parallel:
            return self
        kept = np.ones(len(self.neighbours), dtype=np.bool_)
        kept[1:] = ~self._repeats
        before = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=before[1:])
        return Csr(before[self.starts], self.neighbours[kept], self.records[kept])

    @cached_property
    def sketch(self) -> Sketch:
        """Marks of its edges."""
        edges = self.triples()
        return Sketch(edges.sources, edges.targets)

    def spread(self, nodes: Ordinals, *, each_record: bool) -> Spread:
        """The neighbours of some nodes.

        Args:
            nodes (Ordinals): which, in any order, repeated or not.
            each_record (bool): whether parallel edges count each.

        Returns:
            Spread: in the order of `nodes`.
        """
        csr = self if each_record else self.simple
        if len(nodes) == 1:
            node = int(nodes[0])
            start, stop = int(csr.starts[node]), int(csr.starts[node + 1])
            records = csr.records[start:stop] if each_record else None
            return Spread(np.zeros(stop - start, dtype=np.int64), csr.neighbours[start:stop], records)
        rows, places = csr.places(nodes)
        return Spread(rows, csr.neighbours[places], csr.records[places] if each_record else None)

    def places(self, nodes: Ordinals) -> tuple[Positions, Positions]:
        """For each edge of these nodes the position of its node among them, and the place of the edge."""
        firsts = self.starts[nodes]
        return repeated_places(firsts, self.starts[nodes + np.int32(1)] - firsts)

    def triples(self) -> Triples:
        """All edges."""
        sources = np.repeat(np.arange(self.nodes, dtype=np.int32), self.degrees)
        return Triples(sources, self.neighbours, self.records)

    def triples_of(self, nodes: Ordinals) -> Triples:
        """The edges of some nodes, each node given once."""
        rows, places = self.places(nodes)
        return Triples(nodes[rows], self.neighbours[places], self.records[places])

    def span(self, nodes: Ordinals, targets: Ordinals) -> tuple[Positions, Positions]:
        """Where the edges from each node to its target lie: from the first place up to the second."""
        firsts, stops = self.starts[nodes], self.starts[nodes + np.int32(1)]
        first = _lower_bounds(self.neighbours, firsts, stops, targets)
        if not self.has_parallel:
            return first, first + _found(self.neighbours, first, stops, targets)
        return first, _lower_bounds(self.neighbours, first, stops, targets + np.int32(1))

    def joins(self, nodes: Ordinals, targets: Ordinals) -> Mask:
        """Whether each node has an edge to its target."""
        stops = self.starts[nodes + np.int32(1)]
        return _found(
            self.neighbours, _lower_bounds(self.neighbours, self.starts[nodes], stops, targets), stops, targets
        )

    def resized(self, nodes: int) -> "Csr":
        """The same with room for more nodes, which have no edges."""
        if nodes <= self.nodes:
            return self
        more = np.full(nodes - self.nodes, self.starts[-1], dtype=np.int64)
        return Csr(np.concatenate([self.starts, more]), self.neighbours, self.records)

    def changed(self, dropped: Mask, sources: Ordinals, added: Triples) -> "Csr":
        """The same with some edges less and some more.

        Args:
            dropped (Mask): by record, whether it goes.
            sources (Ordinals): the nodes that lose edges.
            added (Triples): new edges; their nodes have a place here.

        Returns:
            Csr: made anew if much changes, else from the rows that do not.
        """
        touched = np.union1d(sources, added.sources).astype(np.int32)
        if not len(touched):
            return self
        old = self.triples_of(touched)
        if len(touched) > limits.CSR_SPLICED_NODES_MAX or len(old) * 4 > len(self.neighbours):
            everything = self.triples()
            return build(together(everything.where(~dropped[everything.records]), added), self.nodes)
        rows = _ordered(together(old.where(~dropped[old.records]), added))
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


def repeated_places(firsts: Positions, counts: Positions) -> tuple[Positions, Positions]:
    """For stretches of so many places each: the number of the stretch for each place, and the places themselves."""
    ends = np.cumsum(counts)
    rows = np.repeat(np.arange(len(counts)), counts)
    places = np.repeat(firsts - ends + counts, counts)
    places += np.arange(len(places))
    return rows, places


def build(edges: Triples, nodes: int) -> Csr:
    """The rows of these edges.

    Args:
        edges (Triples): in any order.
        nodes (int): how many nodes they may start from.

    Returns:
        Csr: with a place for each.
    """
    ordered = _ordered(edges)
    return Csr(_starts(np.bincount(edges.sources, minlength=nodes)), ordered.targets, ordered.records)


def _ordered(edges: Triples) -> Triples:
    """Edges by source, target and record."""
    count = len(edges)
    if not count:
        return edges
    widths = [int(part.max()).bit_length() for part in (edges.sources, edges.targets, edges.records)]
    if sum(widths) > 63:
        order = np.lexsort((edges.records, edges.targets, edges.sources))
        return Triples(edges.sources[order], edges.targets[order], edges.records[order])
    # Sorting plain numbers is several times faster than sorting positions by them.
    packed = edges.sources.astype(np.int64) << (widths[1] + widths[2])
    packed |= edges.targets.astype(np.int64) << widths[2]
    packed |= edges.records
    packed.sort()
    records = (packed & ((1 << widths[2]) - 1)).astype(np.int32)
    packed >>= widths[2]
    targets = (packed & ((1 << widths[1]) - 1)).astype(np.int32)
    return Triples((packed >> widths[1]).astype(np.int32), targets, records)


def _starts(degrees: Positions) -> Positions:
    starts = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(degrees, out=starts[1:])
    return starts


def _spliced(old: Ordinals, cuts: Positions, new: Ordinals, counts: Positions) -> Ordinals:
    """The old values with those between each pair of cuts replaced by so many of the new ones."""
    outside = np.split(old, cuts)[0::2]
    inside = np.split(new, np.cumsum(counts)[:-1])
    pieces = [piece for pair in zip(outside, inside, strict=False) for piece in pair]
    return np.concatenate([*pieces, outside[-1]])


def _lower_bounds(ordered: Ordinals, lows: Positions, highs: Positions, wanted: Ordinals) -> Positions:
    """In each stretch of an ordered array, the first place whose value is not less than the one wanted."""
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
