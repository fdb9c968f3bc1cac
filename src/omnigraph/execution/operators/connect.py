"""Edge tests between two nodes that are already bound."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import Mask
from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.operators.expand import Hop, drop_absent
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.reach import reach_in_batches
from omnigraph.execution.run import Run


class Connect(Operator[Frame]):
    """Keeps the rows whose nodes are connected by an edge; with an edge variable, one row for each edge."""

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
        """Yield the matching rows."""
        for frame in self._rows.batches(run, given):
            present = drop_absent(drop_absent(frame, self._source), self._target)
            if present.size:
                made = (
                    self._filter_connected(run, present) if self._edge_variable is None else self._by_edge(run, present)
                )
                if made.size:
                    yield made

    def _filter_connected(self, run: Run, frame: Frame) -> Frame:
        nodes, targets = frame.binding(self._source).ordinals, frame.binding(self._target).ordinals
        return frame.where(self._hop.access(run, len(nodes)).has_edges(nodes, targets)).only(self._keep)

    def _by_edge(self, run: Run, frame: Frame) -> Frame:
        assert self._edge_variable is not None
        nodes, targets = frame.binding(self._source).ordinals, frame.binding(self._target).ordinals
        rows, records = self._hop.access(run, len(nodes)).edges_between(nodes, targets)
        found = Binding(run.edges(self._hop.edge), records)
        if self._edge_condition is not None:
            mask = evaluate_condition(self._edge_condition, frame.like(len(records), {self._edge_variable: found}))
            rows, found = rows[mask], found.take(np.flatnonzero(mask))
        made = frame.only(self._keep).take(rows)
        return made.with_slots({self._edge_variable: found}) if self._edge_variable in self._keep else made


class ConnectFar(Operator[Frame]):
    """Keeps the rows whose second node is within a number of hops of the first."""

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
        """Yield the matching rows."""
        for frame in self._rows.batches(run, given):
            present = drop_absent(drop_absent(frame, self._source), self._target)
            kept = present.where(self._is_within(run, present)) if present.size else present
            if kept.size:
                yield kept.only(self._keep)

    def _is_within(self, run: Run, frame: Frame) -> Mask:
        targets = frame.binding(self._target).ordinals
        found = np.zeros(frame.size, dtype=np.bool_)
        sources = frame.binding(self._source).ordinals
        for low, reached in reach_in_batches(run, self._hop, sources, least=self._least, most=self._most):
            rows = reached.starts + low
            found[rows[reached.nodes == targets[rows]]] = True
        return found
