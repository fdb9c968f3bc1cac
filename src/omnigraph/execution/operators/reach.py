"""From nodes along several hops, breadth first."""

from collections.abc import Iterator

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals
from omnigraph.execution.csr import repeated_places
from omnigraph.execution.expressions import Computation, holds
from omnigraph.execution.frame import Bound, Frame
from omnigraph.execution.operators.expand import Hop, present
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.reach import Reached, reach
from omnigraph.execution.run import Run


class Reach(Operator[Frame]):
    """One row for each node within some hops of a row's node, at its shortest distance."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        target: str,
        least: int,
        most: int,
        keep: frozenset[str],
        from_target: bool = False,
        target_condition: Computation | None = None,
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._least = least
        self._most = most
        self._keep = keep
        self._from_target = from_target
        self._target_condition = target_condition

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows, in the order of those they come from, as far as one batch reaches."""
        targets = run.nodes(self._hop.target_type)
        for frame in self._rows.batches(run, given):
            there = present(frame, self._source)
            sources = there.bound(self._source).ordinals
            parts = reached_in_parts(
                run, self._hop, sources, least=self._least, most=self._most, from_target=self._from_target
            )
            for low, reached in parts:
                run.budget.in_time()
                made = there.only(self._keep).take(reached.starts + low)
                found = Bound(targets, reached.nodes)
                if self._target_condition is not None:
                    mask = holds(self._target_condition, made.like(made.size, {self._target: found}))
                    rows = np.flatnonzero(mask)
                    made, found = made.take(rows), found.take(rows)
                if made.size:
                    yield made.with_slots({self._target: found}) if self._target in self._keep else made


def reached_in_parts(
    run: Run, hop: Hop, sources: Ordinals, *, least: int, most: int, from_target: bool = False
) -> Iterator[tuple[int, Reached]]:
    """What each of these nodes reaches, not much more than a batch at a time, with the position of the first of them.

    Equal nodes within a part are searched from once.
    """
    size = max(run.nodes(hop.source_type).numbering.size, 1)
    if hop.joins_types:
        # There is no second hop from a node of another type.
        most = min(most, 1)
        size = max(size, run.nodes(hop.target_type).numbering.size)
        if least > most:
            return
    step = max(limits.REACH_MARKS_BYTES_MAX // size, 1)
    for low in range(0, len(sources), step):
        some, back = np.unique(sources[low : low + step], return_inverse=True)
        reached = reach(
            lambda nodes: hop.way(run, nodes), some, least=least, most=most, size=size, loops_at_start=from_target
        )
        starts = np.searchsorted(reached.starts, np.arange(len(some) + 1))
        firsts, counts = starts[back], np.diff(starts)[back]
        ends = np.cumsum(counts)
        first = 0
        while first < len(back):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + run.batch_rows, side="right")))
            rows, places = repeated_places(firsts[first:last], counts[first:last])
            if len(rows):
                yield low + first, Reached(rows, reached.nodes[places])
            first = last
