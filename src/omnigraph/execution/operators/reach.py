"""Multi-hop expansion, breadth first."""

from collections.abc import Iterator

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals
from omnigraph.execution.edge_list import expand_ranges
from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.operators.expand import Hop, drop_absent
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run
from omnigraph.execution.traversal import Reached, reach


class Reach(Operator[Frame]):
    """Joins each row with the nodes within a number of hops of its node, each at its shortest distance."""

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
        """Yield the rows, in the order of the input within a batch."""
        targets = run.nodes(self._hop.target_type)
        for frame in self._rows.batches(run, given):
            present = drop_absent(frame, self._source)
            sources = present.binding(self._source).ordinals
            parts = reach_in_batches(
                run, self._hop, sources, least=self._least, most=self._most, from_target=self._from_target
            )
            for low, reached in parts:
                run.budget.check_time()
                made = present.only(self._keep).take(reached.starts + low)
                found = Binding(targets, reached.nodes)
                if self._target_condition is not None:
                    mask = evaluate_condition(self._target_condition, made.like(made.size, {self._target: found}))
                    rows = np.flatnonzero(mask)
                    made, found = made.take(rows), found.take(rows)
                if made.size:
                    yield made.with_slots({self._target: found}) if self._target in self._keep else made


def reach_in_batches(
    run: Run, hop: Hop, sources: Ordinals, *, least: int, most: int, from_target: bool = False
) -> Iterator[tuple[int, Reached]]:
    """Yield the nodes that each source reaches, about a batch at a time, with the position of the first source.

    Equal sources within a part are searched once.
    """
    size = max(run.nodes(hop.source_type).numbering.size, 1)
    if hop.is_between_types:
        # There is no second hop from a node of another type.
        most = min(most, 1)
        size = max(size, run.nodes(hop.target_type).numbering.size)
        if least > most:
            return
    step = max(limits.REACH_MARKS_BYTES_MAX // size, 1)
    for low in range(0, len(sources), step):
        some, back = np.unique(sources[low : low + step], return_inverse=True)
        reached = reach(
            lambda nodes: hop.access(run, nodes), some, least=least, most=most, size=size, loops_at_start=from_target
        )
        starts = np.searchsorted(reached.starts, np.arange(len(some) + 1))
        firsts, counts = starts[back], np.diff(starts)[back]
        ends = np.cumsum(counts)
        first = 0
        while first < len(back):
            before = int(ends[first - 1]) if first else 0
            last = max(first + 1, int(np.searchsorted(ends, before + run.batch_rows, side="right")))
            rows, places = expand_ranges(firsts[first:last], counts[first:last])
            if len(rows):
                yield low + first, Reached(rows, reached.nodes[places])
            first = last
