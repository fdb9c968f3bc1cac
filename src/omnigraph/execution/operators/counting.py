"""How many rows there would be, without the rows."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.arrays import Ordinals, Positions
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.expand import Hop, present
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.reach import reached_in_parts
from omnigraph.execution.run import Run


class CountRows(Operator[Frame]):
    """One row without variables that stands for as many as there are; none if there are none."""

    def __init__(self, rows: Frames) -> None:
        self._rows = rows

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The one row."""
        count = 0
        for frame in self._rows.batches(run, given):
            count += weights.total(frame.weights, frame.size)
        if count:
            yield Frame(run, 1, {}, None, np.array([count], dtype=np.int64))


class CountEdges(Operator[Frame]):
    """Each row standing for as many as it has neighbours, or edges, or nodes within some hops."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        least: int,
        most: int,
        each_record: bool,
        counts: bool,
        keep: frozenset[str],
        from_target: bool = False,
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._least = least
        self._most = most
        self._each_record = each_record
        self._counts = counts
        self._keep = keep
        self._from_target = from_target

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from, if that is kept."""
        once = self._rows.once_each
        return once if once in self._keep else None

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows that have any."""
        for frame in self._rows.batches(run, given):
            there = present(frame, self._source)
            if not there.size:
                continue
            degrees = self._degrees(run, there.bound(self._source).ordinals)
            rows = np.flatnonzero(degrees)
            if not len(rows):
                continue
            made = there.only(self._keep)
            if len(rows) < made.size:
                made, degrees = made.take(rows), degrees[rows]
            if self._counts:
                made = made.with_weights(weights.times(made.weights, degrees))
            yield made

    def _degrees(self, run: Run, nodes: Ordinals) -> Positions:
        if self._least == self._most == 1:
            return self._hop.way(run, len(nodes)).degrees(nodes, each_record=self._each_record)
        degrees = np.zeros(len(nodes), dtype=np.int64)
        parts = reached_in_parts(
            run, self._hop, nodes, least=self._least, most=self._most, from_target=self._from_target
        )
        for low, reached in parts:
            some = np.bincount(reached.starts)
            degrees[low : low + len(some)] += some
        return degrees
