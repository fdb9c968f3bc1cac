"""Common neighbours of two nodes: closes triangles without listing other neighbours."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.arrays import Ordinals, Positions
from omnigraph.execution.csr import Csr
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.operators.expand import Hop, drop_absent
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Intersect(Operator[Frame]):
    """Joins each row with the common neighbours of two of its nodes.

    The neighbours of the node with fewer of them are listed, and tested against the other node.
    """

    def __init__(
        self,
        rows: Frames,
        *,
        one: tuple[str, Hop],
        other: tuple[str, Hop],
        target: str,
        keep: frozenset[str],
        counts: bool,
    ) -> None:
        self._rows = rows
        self._one = one
        self._other = other
        self._target = target
        self._keep = keep
        self._counts = counts

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows, in no order; where the target is not needed, each row with its count."""
        (one, one_hop), (other, other_hop) = self._one, self._other
        for frame in self._rows.batches(run, given):
            present = drop_absent(drop_absent(frame, one), other)
            if not present.size:
                continue
            sides = (present.binding(one).ordinals, present.binding(other).ordinals)
            accesses = tuple(hop.access(run, present.size) for hop in (one_hop, other_hop))
            csrs = [access.csr.simple for access in accesses if access.csr is not None]
            if len(csrs) < 2:
                yield from self._intersect_by_lookup(run, present, sides)
                continue
            yield from self._intersect_csr(run, present, sides, (csrs[0], csrs[1]))

    def _intersect_csr(
        self, run: Run, frame: Frame, sides: tuple[Ordinals, Ordinals], csrs: tuple[Csr, Csr]
    ) -> Iterator[Frame]:
        degrees = csrs[0].degrees[sides[0]], csrs[1].degrees[sides[1]]
        first_is_less = degrees[0] <= degrees[1]
        totals = np.zeros(frame.size, dtype=np.int64)
        for fewer, more, rows in ((0, 1, np.flatnonzero(first_is_less)), (1, 0, np.flatnonzero(~first_is_less))):
            counts = degrees[fewer][rows]
            ends = np.cumsum(counts)
            low = 0
            while low < len(rows):
                before = int(ends[low - 1]) if low else 0
                high = max(low + 1, int(np.searchsorted(ends, before + run.batch_rows * 4, side="right")))
                part = rows[low:high]
                places, targets = _common_neighbours(csrs[fewer], sides[fewer][part], csrs[more], sides[more][part])
                low = high
                if self._target in self._keep:
                    yield from self._bind(run, frame, part[places], targets)
                else:
                    totals[part] = np.bincount(places, minlength=len(part))
        if self._target not in self._keep:
            yield from self._with_counts(frame, totals)

    def _intersect_by_lookup(self, run: Run, frame: Frame, sides: tuple[Ordinals, Ordinals]) -> Iterator[Frame]:
        """Intersect where neighbours are not in memory."""
        expansion = self._one[1].access(run, frame.size).expand(sides[0], each_record=False)
        found = self._other[1].access(run, len(expansion.rows)).has_edges(sides[1][expansion.rows], expansion.targets)
        rows, targets = expansion.rows[found], expansion.targets[found]
        if self._target in self._keep:
            yield from self._bind(run, frame, rows, targets)
        else:
            yield from self._with_counts(frame, np.bincount(rows, minlength=frame.size))

    def _bind(self, run: Run, frame: Frame, rows: Positions, targets: Ordinals) -> Iterator[Frame]:
        if len(rows):
            found = Binding(run.nodes(self._one[1].target_type), targets)
            yield frame.only(self._keep).take(rows).with_slots({self._target: found})

    def _with_counts(self, frame: Frame, totals: Positions) -> Iterator[Frame]:
        rows = np.flatnonzero(totals)
        if len(rows):
            made = frame.only(self._keep).take(rows)
            if self._counts:
                made = made.with_weights(weights.multiply(made.weights, totals[rows]))
            yield made


def _common_neighbours(few: Csr, nodes: Ordinals, many: Csr, others: Ordinals) -> tuple[Positions, Ordinals]:
    """Return the neighbours of each node that are neighbours of the other one too, with the node's position."""
    rows, places = few.places(nodes)
    targets = few.neighbours[places]
    # Most candidates fail: a Bloom filter of all edges rules them out quickly.
    candidates = others[rows]
    likely = many.may_contain(candidates, targets)
    rows, targets = rows[likely], targets[likely]
    found = many.has_edges(candidates[likely], targets)
    return rows[found], targets[found]
