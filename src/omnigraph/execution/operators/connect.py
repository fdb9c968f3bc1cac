"""Rows whose two nodes are joined by edges."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import Mask
from omnigraph.execution.expressions import Computation, holds
from omnigraph.execution.frame import Bound, Frame
from omnigraph.execution.operators.expand import Hop, present
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.reach import reached_in_parts
from omnigraph.execution.run import Run


class Connect(Operator[Frame]):
    """Passes on the rows whose nodes are joined by an edge; with an edge variable, once for each edge."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        target: str,
        keep: frozenset[str],
        edge_variable: str | None = None,
        edge_condition: Computation | None = None,
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._keep = keep
        self._edge_variable = edge_variable
        self._edge_condition = edge_condition

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows."""
        for frame in self._rows.batches(run, given):
            there = present(present(frame, self._source), self._target)
            if there.size:
                made = self._joined(run, there) if self._edge_variable is None else self._by_edge(run, there)
                if made.size:
                    yield made

    def _joined(self, run: Run, frame: Frame) -> Frame:
        nodes, targets = frame.bound(self._source).ordinals, frame.bound(self._target).ordinals
        return frame.where(self._hop.way(run, len(nodes)).joins(nodes, targets)).only(self._keep)

    def _by_edge(self, run: Run, frame: Frame) -> Frame:
        assert self._edge_variable is not None
        nodes, targets = frame.bound(self._source).ordinals, frame.bound(self._target).ordinals
        rows, records = self._hop.way(run, len(nodes)).between(nodes, targets)
        found = Bound(run.edges(self._hop.edge), records)
        if self._edge_condition is not None:
            mask = holds(self._edge_condition, frame.like(len(records), {self._edge_variable: found}))
            rows, found = rows[mask], found.take(np.flatnonzero(mask))
        made = frame.only(self._keep).take(rows)
        return made.with_slots({self._edge_variable: found}) if self._edge_variable in self._keep else made


class ConnectFar(Operator[Frame]):
    """Passes on the rows whose second node is within some hops of the first."""

    def __init__(
        self, rows: Frames, hop: Hop, *, source: str, target: str, least: int, most: int, keep: frozenset[str]
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._least = least
        self._most = most
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows."""
        for frame in self._rows.batches(run, given):
            there = present(present(frame, self._source), self._target)
            kept = there.where(self._is_within(run, there)) if there.size else there
            if kept.size:
                yield kept.only(self._keep)

    def _is_within(self, run: Run, frame: Frame) -> Mask:
        targets = frame.bound(self._target).ordinals
        found = np.zeros(frame.size, dtype=np.bool_)
        sources = frame.bound(self._source).ordinals
        for low, reached in reached_in_parts(run, self._hop, sources, least=self._least, most=self._most):
            rows = reached.starts + low
            found[rows[reached.nodes == targets[rows]]] = True
        return found
