"""Equal rows as one row that counts as many, where nobody behind looks at them one by one."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.arrays import NO_POSITIONS, Ordinals, Positions, once
from omnigraph.execution.columns import Columns
from omnigraph.execution.frame import Bound, Frame
from omnigraph.execution.operators.expand import Hop
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run

_HALF = 32


class Collapse(Operator[Frame]):
    """Rows that hold one variable only: each node once, with how many rows it stands for."""

    def __init__(self, rows: Frames, variable: str, *, counts: bool) -> None:
        self._rows = rows
        self._variable = variable
        self._counts = counts

    @property
    def once_each(self) -> str | None:
        """The one variable there is."""
        return self._variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The nodes, ascending."""
        frames = self._rows.batches(run, given)
        first = next(frames, None)
        if first is None:
            return
        columns = first.bound(self._variable).columns
        second = next(frames, None)
        if second is None and first.size * 8 < columns.numbering.size:
            yield self._few(first, columns)
            return
        totals = np.zeros(columns.numbering.size, dtype=np.int64)
        run.budget.hold(totals.nbytes)
        for frame in (first, *(() if second is None else (second,)), *frames):
            self._add(totals, frame)
        ordinals = np.flatnonzero(totals).astype(np.int32)
        for start in range(0, len(ordinals), run.batch_rows):
            some = ordinals[start : start + run.batch_rows]
            yield self._frame(first, columns, some, totals[some])
        run.budget.release(totals.nbytes)

    def _few(self, frame: Frame, columns: Columns) -> Frame:
        if not self._counts:
            nodes = once(frame.bound(self._variable).ordinals)
            return self._frame(frame, columns, nodes, NO_POSITIONS)
        nodes, places = np.unique(frame.bound(self._variable).ordinals, return_inverse=True)
        totals = np.zeros(len(nodes), dtype=np.int64)
        weights.add(totals, places, frame.weights)
        return self._frame(frame, columns, nodes, totals)

    def _add(self, totals: Positions, frame: Frame) -> None:
        ordinals = frame.bound(self._variable).ordinals
        if self._counts:
            weights.add(totals, ordinals, frame.weights)
        else:
            totals[ordinals] = 1

    def _frame(self, frame: Frame, columns: Columns, ordinals: Ordinals, totals: Positions) -> Frame:
        counted = totals if self._counts else None
        return frame.like(len(ordinals), {self._variable: Bound(columns, ordinals)}, counted)


class OncePerRow(Operator[Frame]):
    """Rows that hold one variable beside the number of the row around: each pair once."""

    def __init__(self, rows: Frames, variable: str, *, row: str) -> None:
        self._rows = rows
        self._variable = variable
        self._row = row

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The pairs; equal ones of different batches stay."""
        for frame in self._rows.batches(run, given):
            pairs = frame.hidden[self._row] << _HALF | frame.bound(self._variable).ordinals
            _, first = np.unique(pairs, return_index=True)
            yield frame if len(first) == frame.size else frame.take(first)


class EdgeEnds(Operator[Frame]):
    """The targets of all edges of a type, each with how many sources it has: what expanding every node collapses to."""

    def __init__(self, target: str, hop: Hop, *, each_record: bool, counts: bool) -> None:
        self._target = target
        self._hop = hop
        self._each_record = each_record
        self._counts = counts

    @property
    def once_each(self) -> str | None:
        """The targets."""
        return self._target

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (takes nothing)
        """The nodes, ascending."""
        targets = run.nodes(self._hop.target_type)
        live = targets.numbering.live
        for start in range(0, len(live), run.batch_rows):
            some = live[start : start + run.batch_rows]
            degrees = self._hop.way_back(run, len(some)).degrees(some, each_record=self._each_record)
            kept = degrees > 0
            frame = Frame(run, int(kept.sum()), {self._target: Bound(targets, some[kept])})
            if frame.size:
                yield frame.with_weights(degrees[kept]) if self._counts else frame
