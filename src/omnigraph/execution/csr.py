"""Compressed sparse rows (CSR): the neighbours of every node, consecutive in one array.

Neighbours of a node are ascending, and so are the records of parallel edges. All kernels are vectorized over nodes;
none loops over nodes or edges.

Versions share the arrays: where one differs from the next in the edges of a few nodes, the rows of these are appended
behind all others, and the version keeps a short list of where they are. When the list grows long, everything is laid
out in order again.
"""

import threading
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import NO_ORDINALS, NO_POSITIONS, Mask, Ordinals, Positions, sorted_unique
from omnigraph.execution.edge_list import (
    BloomFilter,
    EdgeList,
    Expansion,
    concat_edges,
    equal_at,
    expand_ranges,
    lower_bounds,
    sort_edges,
)
from omnigraph.execution.growing import GrowingNumbers


@dataclass(frozen=True, slots=True)
class Patches:
    """Rows of some nodes that replace those of the base.

    Attributes:
        nodes: ascending.
        firsts: positions of their first neighbours.
        counts: their degrees.
    """

    nodes: Ordinals
    firsts: Positions
    counts: Positions

    def find(self, nodes: Ordinals) -> tuple[Positions, Mask]:
        """Return the places of some nodes, and which of them are right."""
        places = np.minimum(self.nodes.searchsorted(nodes), len(self.nodes) - 1)
        return places, self.nodes[places] == nodes


_NO_PATCHES = Patches(NO_ORDINALS, NO_POSITIONS, NO_POSITIONS)


class _Base:
    """Rows of all nodes as they were when the CSR was built, and behind them the rows that replace some since."""

    def __init__(self, starts: Positions, neighbours: Ordinals, records: Ordinals) -> None:
        self.starts = starts
        self.edges = len(neighbours)
        self._neighbours = GrowingNumbers(neighbours)
        self._records = GrowingNumbers(records)
        self._lock = threading.Lock()

    @property
    def nbytes(self) -> int:
        """Size in bytes, with the Bloom filter, which may be built."""
        return self.starts.nbytes + self._neighbours.nbytes + self._records.nbytes + 2 * self.edges

    @property
    def used(self) -> int:
        """Number of neighbours, replaced ones included."""
        return self._neighbours.used

    @property
    def rows(self) -> tuple[Ordinals, Ordinals]:
        """All neighbours and records."""
        return self._neighbours.values[: self.edges], self._records.values[: self.edges]

    @cached_property
    def degrees(self) -> Positions:
        """Degree of each node."""
        return cast(Positions, np.diff(self.starts))

    @cached_property
    def bloom_filter(self) -> BloomFilter:
        """Bloom filter of the edges."""
        sources = np.repeat(np.arange(len(self.degrees), dtype=np.int32), self.degrees)
        return BloomFilter(sources, self.rows[0])

    @cached_property
    def has_repeats(self) -> bool:
        """Whether two edges connect the same two nodes."""
        return bool(_repeats(self.starts, self.rows[0]).any())

    def append(self, rows: EdgeList) -> tuple[int, Ordinals, Ordinals]:
        """Append rows that replace others: the position of the first, and all neighbours and records."""
        with self._lock:
            first = self._neighbours.used
            return first, self._neighbours.append(rows.targets), self._records.append(rows.records)


class Csr:
    """Edges in one direction: a base that versions share, and the rows of nodes that differ from it.

    Attributes:
        nodes: number of nodes; those the base does not have have no edges, unless patched.
        neighbours: of all nodes, by position; the rows of patched nodes come last.
        records: the edges to them.
        patches: rows that differ from the base.
    """

    def __init__(self, starts: Positions, neighbours: Ordinals, records: Ordinals) -> None:
        """Wrap arrays: offsets of each node's neighbours, one more than there are nodes; neighbours; records."""
        self._base = _Base(starts, neighbours, records)
        self.nodes = len(starts) - 1
        self.neighbours = neighbours
        self.records = records
        self.patches = _NO_PATCHES
        self._simple: Csr | None = None

    def _derive(self, nodes: int, patches: Patches, neighbours: Ordinals, records: Ordinals) -> "Csr":
        made = object.__new__(Csr)
        made._base, made.nodes, made.patches = self._base, nodes, patches
        made.neighbours, made.records, made._simple = neighbours, records, None
        return made

    @property
    def base(self) -> object:
        """What versions share: equal for two of them that are charged once."""
        return self._base

    @property
    def starts(self) -> Positions:
        """Offsets of each node's neighbours, of a CSR without patches."""
        assert not len(self.patches.nodes)
        return self._base.starts

    @property
    def nbytes(self) -> int:
        """Size in bytes, with the simple form if it is another one."""
        own = self._base.nbytes + 20 * len(self.patches.nodes)
        simple = self._simple
        return own if simple is None or simple._base is self._base else own + simple._base.nbytes

    @cached_property
    def count(self) -> int:
        """Number of edges."""
        replaced = self.patches.nodes[self.patches.nodes < len(self._base.starts) - 1]
        return int(self._base.edges - self._base.degrees[replaced].sum() + self.patches.counts.sum())

    @cached_property
    def degrees(self) -> Positions:
        """Degree of each node."""
        degrees, patches = self._base.degrees, self.patches
        if len(degrees) == self.nodes and not len(patches.nodes):
            return degrees
        whole = np.zeros(self.nodes, dtype=np.int64)
        whole[: len(degrees)] = degrees
        whole[patches.nodes] = patches.counts
        return whole

    @property
    def has_parallel_edges(self) -> bool:
        """Whether two edges may connect the same two nodes."""
        return self.simple is not self

    @property
    def simple(self) -> "Csr":
        """The same without parallel edges."""
        found = self._simple
        if found is None:
            has_repeats = self._base.has_repeats or self.edges_of(self.patches.nodes).repeats.any()
            found = self._simple = self._without_repeats() if has_repeats else self
            found._simple = found
        return found

    def _without_repeats(self) -> "Csr":
        flat = self.flattened()
        kept = np.ones(len(flat.neighbours), dtype=np.bool_)
        kept[1:] = ~_repeats(flat._base.starts, flat.neighbours)
        before = np.zeros(len(kept) + 1, dtype=np.int64)
        np.cumsum(kept, out=before[1:])
        return Csr(before[flat._base.starts], flat.neighbours[kept], flat.records[kept])

    def flattened(self) -> "Csr":
        """Return the same in one piece, without patches."""
        base = self._base
        if not len(self.patches.nodes) and self.nodes == len(base.starts) - 1:
            return self if len(self.neighbours) == base.edges else Csr(base.starts, *base.rows)
        firsts, counts = self.ranges(np.arange(self.nodes, dtype=np.int32))
        neighbours, records = gather(self, firsts, counts, each_record=True)
        assert records is not None
        made = Csr(_starts(counts), neighbours, records)
        simple = self._simple
        if simple is not None:
            made._simple = made if simple is self else simple.flattened()
        return made

    def may_contain(self, nodes: Ordinals, targets: Ordinals) -> Positions:
        """Return the positions where a node may have an edge to its target; elsewhere there is none."""
        likely = self._base.bloom_filter.may_contain(nodes, targets)
        if not len(self.patches.nodes):
            return likely
        _, is_patched = self.patches.find(nodes)
        is_patched[likely] = True
        return np.flatnonzero(is_patched)

    def range_of(self, node: int) -> tuple[int, int]:
        """Return the range of one node's edges: first position and end."""
        patches, starts = self.patches, self._base.starts
        if len(patches.nodes):
            place = int(patches.nodes.searchsorted(node))
            if place < len(patches.nodes) and patches.nodes.item(place) == node:
                first = patches.firsts.item(place)
                return first, first + patches.counts.item(place)
        return (starts.item(node), starts.item(node + 1)) if node < len(starts) - 1 else (0, 0)

    def ranges(self, nodes: Ordinals) -> tuple[Positions, Positions]:
        """Return the first positions of some nodes' edges, and their numbers; both may be overwritten."""
        starts, patches = self._base.starts, self.patches
        last = len(starts) - 1
        if self.nodes == last:
            firsts = starts.take(nodes)
            counts = starts.take(nodes + np.int32(1)) - firsts
        else:
            firsts = starts[np.minimum(nodes, last)]
            counts = starts[np.minimum(nodes + np.int32(1), last)] - firsts
        if len(patches.nodes):
            places, hit = patches.find(nodes)
            firsts[hit], counts[hit] = patches.firsts[places[hit]], patches.counts[places[hit]]
        return firsts, counts

    def expand(self, nodes: Ordinals, *, each_record: bool) -> Expansion:
        """Expand nodes, in any order and repeated or not, to their neighbours in the order of `nodes`.

        With `each_record`, parallel edges count separately.
        """
        csr = self if each_record else self.simple
        if len(nodes) == 1:
            start, stop = csr.range_of(int(nodes[0]))
            records = csr.records[start:stop] if each_record else None
            return Expansion(np.zeros(stop - start, dtype=np.int64), csr.neighbours[start:stop], records)
        rows, places = csr.places(nodes)
        return Expansion(rows, csr.neighbours[places], csr.records[places] if each_record else None)

    def places(self, nodes: Ordinals) -> tuple[Positions, Positions]:
        """Return for each edge of these nodes the position of its node, and the position of the edge."""
        return expand_ranges(*self.ranges(nodes))

    def edge_list(self) -> EdgeList:
        """Return all edges."""
        flat = self.flattened()
        sources = np.repeat(np.arange(self.nodes, dtype=np.int32), flat.degrees)
        return EdgeList(sources, flat.neighbours, flat.records)

    def edges_of(self, nodes: Ordinals) -> EdgeList:
        """Return the edges of some distinct nodes."""
        rows, places = self.places(nodes)
        return EdgeList(nodes[rows], self.neighbours[places], self.records[places])

    def edge_ranges(self, nodes: Ordinals, targets: Ordinals) -> tuple[Positions, Positions]:
        """Return the range of edges from each node to its target: first position and end."""
        firsts, counts = self.ranges(nodes)
        stops = firsts + counts
        first = lower_bounds(self.neighbours, firsts, stops, targets)
        if not self.has_parallel_edges:
            return first, first + equal_at(self.neighbours, first, stops, targets)
        return first, lower_bounds(self.neighbours, first, stops, targets + np.int32(1))

    def has_edges(self, nodes: Ordinals, targets: Ordinals) -> Mask:
        """Return whether each node has an edge to its target."""
        firsts, counts = self.ranges(nodes)
        stops = firsts + counts
        return equal_at(self.neighbours, lower_bounds(self.neighbours, firsts, stops, targets), stops, targets)

    def resized(self, nodes: int) -> "Csr":
        """Return the same with room for more nodes, which have no edges."""
        if nodes <= self.nodes:
            return self
        made = self._derive(nodes, self.patches, self.neighbours, self.records)
        if self._simple is not None:
            made._simple = made if self._simple is self else self._simple.resized(nodes)
        return made

    def updated(self, dropped: Ordinals, sources: Ordinals, added: EdgeList) -> "Csr":
        """Return the same with some edges removed and some added; rebuilds everything if much changes.

        Args:
            dropped: the records removed.
            sources: the nodes that lose edges.
            added: new edges between existing nodes.
        """
        touched = sorted_unique(np.concatenate([sources, added.sources]))
        old = self.edges_of(touched)
        rows = concat_edges(old.where(~np.isin(old.records, dropped)) if len(dropped) else old, added)
        return self.replaced(touched, rows)

    def replaced(self, nodes: Ordinals, rows: EdgeList) -> "Csr":
        """Return the same with other rows of some nodes; rebuilds everything if these are many.

        Args:
            nodes: ascending and distinct.
            rows: all edges of these nodes, in any order.
        """
        if not len(nodes):
            return self
        ordered = sort_edges(rows)
        if len(nodes) > limits.CSR_SPLICED_NODES_MAX or len(rows) * 4 > self.count:
            return self._rebuilt(nodes, ordered)
        made = self._patched(nodes, ordered)
        simple = self._simple
        if simple is not None:
            repeats = ordered.repeats
            if simple is self and not repeats.any():
                made._simple = made
            else:
                made._simple = simple._patched(nodes, ordered.where(~repeats))._compacted()
                made._simple._simple = made._simple
        return made._compacted()

    def _compacted(self) -> "Csr":
        """Return the same laid out in order, if too much of it is not."""
        base = self._base
        is_long = base.used > 2 * base.edges + limits.CSR_SPLICED_NODES_MAX
        return self.flattened() if is_long or len(self.patches.nodes) > limits.CSR_PATCHED_NODES_MAX else self

    def _patched(self, nodes: Ordinals, ordered: EdgeList) -> "Csr":
        first, neighbours, records = self._base.append(ordered)
        bounds = np.searchsorted(ordered.sources, nodes), np.searchsorted(ordered.sources, nodes, side="right")
        before = self.patches
        if len(before.nodes):
            kept = ~np.isin(before.nodes, nodes, assume_unique=True)
            every = np.concatenate([before.nodes[kept], nodes])
            order = np.argsort(every)
            patches = Patches(
                every[order],
                np.concatenate([before.firsts[kept], bounds[0] + first])[order],
                np.concatenate([before.counts[kept], bounds[1] - bounds[0]])[order],
            )
        else:
            patches = Patches(nodes, bounds[0] + first, bounds[1] - bounds[0])
        return self._derive(self.nodes, patches, neighbours, records)

    def _rebuilt(self, nodes: Ordinals, ordered: EdgeList) -> "Csr":
        everything = self.edge_list()
        is_other = np.ones(self.nodes, dtype=np.bool_)
        is_other[nodes] = False
        return build_csr(concat_edges(everything.where(is_other[everything.sources]), ordered), self.nodes)


def _repeats(starts: Positions, neighbours: Ordinals) -> Mask:
    same: Mask = neighbours[1:] == neighbours[:-1]
    firsts = starts[1:-1]
    same[firsts[(firsts > 0) & (firsts < len(neighbours))] - 1] = False
    return same


def gather(csr: Csr, firsts: Positions, counts: Positions, *, each_record: bool) -> tuple[Ordinals, Ordinals | None]:
    """Return the neighbours and records of ranges of positions; ranges that follow each other are copied at once."""
    full = np.flatnonzero(counts)
    firsts, counts = firsts[full], counts[full]
    stops = firsts + counts
    jumps = np.flatnonzero(firsts[1:] != stops[:-1])
    if len(jumps) * 8 > len(full):
        _, places = expand_ranges(firsts, counts)
        return csr.neighbours[places], csr.records[places] if each_record else None
    starts = [*firsts[:1].tolist(), *firsts[jumps + 1].tolist()]
    parts = [slice(*ends) for ends in zip(starts, [*stops[jumps].tolist(), *stops[-1:].tolist()], strict=True)]
    return _joined(csr.neighbours, parts), _joined(csr.records, parts) if each_record else None


def _joined(values: Ordinals, parts: list[slice]) -> Ordinals:
    if len(parts) == 1:
        return values[parts[0]]
    return np.concatenate([values[part] for part in parts]) if parts else NO_ORDINALS


def build_csr(edges: EdgeList, nodes: int) -> Csr:
    """Build the CSR of edges in any order, with room for `nodes` nodes."""
    ordered = sort_edges(edges)
    return Csr(_starts(np.bincount(edges.sources, minlength=nodes)), ordered.targets, ordered.records)


def _starts(degrees: Positions) -> Positions:
    starts = np.zeros(len(degrees) + 1, dtype=np.int64)
    np.cumsum(degrees, out=starts[1:])
    return starts
