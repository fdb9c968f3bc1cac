"""Nodes that are neighbours of two nodes at once: what closes a triangle, without listing what does not."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.arrays import Ordinals, Positions
from omnigraph.execution.csr import Csr, repeated_places
from omnigraph.execution.frame import Bound, Frame
from omnigraph.execution.operators.expand import Hop, present
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Intersect(Operator[Frame]):
    """One row for each node that is beside both of a row's nodes.

    Of the two, the one with fewer neighbours is asked for them, and the other whether it has them too.
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
        """The rows, in no order; where the target is not needed, each row with how many there are."""
        (one, one_hop), (other, other_hop) = self._one, self._other
        for frame in self._rows.batches(run, given):
            there = present(present(frame, one), other)
            if not there.size:
                continue
            sides = (there.bound(one).ordinals, there.bound(other).ordinals)
            ways = tuple(hop.way(run, there.size) for hop in (one_hop, other_hop))
            csrs = [way.rows.simple for way in ways if way.rows is not None]
            if len(csrs) < 2:
                yield from self._looked_up(run, there, sides)
                continue
            yield from self._by_rows(run, there, sides, (csrs[0], csrs[1]))

    def _by_rows(
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
                places, targets = _common(csrs[fewer], sides[fewer][part], csrs[more], sides[more][part])
                low = high
                if self._target in self._keep:
                    yield from self._made(run, frame, part[places], targets)
                else:
                    totals[part] = np.bincount(places, minlength=len(part))
        if self._target not in self._keep:
            yield from self._counted(frame, totals)

    def _looked_up(self, run: Run, frame: Frame, sides: tuple[Ordinals, Ordinals]) -> Iterator[Frame]:
        """The same where neighbours are not in memory."""
        spread = self._one[1].way(run, frame.size).spread(sides[0], each_record=False)
        found = self._other[1].way(run, len(spread.rows)).joins(sides[1][spread.rows], spread.targets)
        rows, targets = spread.rows[found], spread.targets[found]
        if self._target in self._keep:
            yield from self._made(run, frame, rows, targets)
        else:
            yield from self._counted(frame, np.bincount(rows, minlength=frame.size))

    def _made(self, run: Run, frame: Frame, rows: Positions, targets: Ordinals) -> Iterator[Frame]:
        if len(rows):
            found = Bound(run.nodes(self._one[1].target_type), targets)
            yield frame.only(self._keep).take(rows).with_slots({self._target: found})

    def _counted(self, frame: Frame, totals: Positions) -> Iterator[Frame]:
        rows = np.flatnonzero(totals)
        if len(rows):
            made = frame.only(self._keep).take(rows)
            if self._counts:
                made = made.with_weights(weights.times(made.weights, totals[rows]))
            yield made


def _common(few: Csr, nodes: Ordinals, many: Csr, others: Ordinals) -> tuple[Positions, Ordinals]:
    """The neighbours of each node that are neighbours of the other one too, with the node's position."""
    firsts = few.starts[nodes]
    rows, places = repeated_places(firsts, few.starts[nodes + np.int32(1)] - firsts)
    targets = few.neighbours[places]
    # Most candidates fail: a sketch of all edges tells that from one look.
    asked = others[rows]
    likely = many.sketch.likely(asked, targets)
    rows, targets = rows[likely], targets[likely]
    found = many.joins(asked[likely], targets)
    return rows[found], targets[found]
