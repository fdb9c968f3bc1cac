"""Operators that count or merge equal rows where later steps do not need them one by one."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.arrays import NO_POSITIONS, Ordinals, Positions, sorted_unique
from omnigraph.execution.columns import Columns
from omnigraph.execution.frame import Binding, Frame
from omnigraph.execution.operators.expand import Hop, drop_absent
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.operators.reach import reach_in_batches
from omnigraph.execution.run import Run

_HALF = 32


class CountRows(Operator[Frame]):
    """One row without variables whose multiplicity is the number of rows; none if there are none."""

    def __init__(self, rows: Frames) -> None:
        self._rows = rows

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the one row."""
        count = 0
        for frame in self._rows.batches(run, given):
            count += weights.total(frame.weights, frame.size)
        if count:
            yield Frame(run, 1, {}, None, np.array([count], dtype=np.int64))


class CountEdges(Operator[Frame]):
    """Multiplies each row by its number of neighbours, or edges, or nodes within some hops."""

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
    def unique_variable(self) -> str | None:
        """As in its input, if that variable is kept."""
        unique = self._rows.unique_variable
        return unique if unique in self._keep else None

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows with at least one."""
        for frame in self._rows.batches(run, given):
            present = drop_absent(frame, self._source)
            if not present.size:
                continue
            degrees = self._degrees(run, present.binding(self._source).ordinals)
            rows = np.flatnonzero(degrees)
            if not len(rows):
                continue
            made = present.only(self._keep)
            if len(rows) < made.size:
                made, degrees = made.take(rows), degrees[rows]
            if self._counts:
                made = made.with_weights(weights.multiply(made.weights, degrees))
            yield made

    def _degrees(self, run: Run, nodes: Ordinals) -> Positions:
        if self._least == self._most == 1:
            return self._hop.access(run, len(nodes)).degrees(nodes, each_record=self._each_record)
        degrees = np.zeros(len(nodes), dtype=np.int64)
        parts = reach_in_batches(
            run, self._hop, nodes, least=self._least, most=self._most, from_target=self._from_target
        )
        for low, reached in parts:
            some = np.bincount(reached.starts)
            degrees[low : low + len(some)] += some
        return degrees


class Collapse(Operator[Frame]):
    """Merges rows with one variable only: each node unique, with its multiplicity."""

    def __init__(self, rows: Frames, variable: str, *, counts: bool) -> None:
        self._rows = rows
        self._variable = variable
        self._counts = counts

    @property
    def unique_variable(self) -> str | None:
        """The only variable."""
        return self._variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the nodes, ascending."""
        frames = self._rows.batches(run, given)
        first = next(frames, None)
        if first is None:
            return
        columns = first.binding(self._variable).columns
        second = next(frames, None)
        if second is None and first.size * 8 < columns.numbering.size:
            yield self._collapse_few(first, columns)
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

    def _collapse_few(self, frame: Frame, columns: Columns) -> Frame:
        if not self._counts:
            nodes = sorted_unique(frame.binding(self._variable).ordinals)
            return self._frame(frame, columns, nodes, NO_POSITIONS)
        nodes, places = np.unique(frame.binding(self._variable).ordinals, return_inverse=True)
        totals = np.zeros(len(nodes), dtype=np.int64)
        weights.add(totals, places, frame.weights)
        return self._frame(frame, columns, nodes, totals)

    def _add(self, totals: Positions, frame: Frame) -> None:
        ordinals = frame.binding(self._variable).ordinals
        if self._counts:
            weights.add(totals, ordinals, frame.weights)
        else:
            totals[ordinals] = 1

    def _frame(self, frame: Frame, columns: Columns, ordinals: Ordinals, totals: Positions) -> Frame:
        counted = totals if self._counts else None
        return frame.like(len(ordinals), {self._variable: Binding(columns, ordinals)}, counted)


class DistinctPerRow(Operator[Frame]):
    """Removes duplicate pairs of a node and its outer row, within a batch."""

    def __init__(self, rows: Frames, variable: str, *, row: str) -> None:
        self._rows = rows
        self._variable = variable
        self._row = row

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the distinct pairs of each batch."""
        for frame in self._rows.batches(run, given):
            pairs = frame.hidden[self._row] << _HALF | frame.binding(self._variable).ordinals
            _, first = np.unique(pairs, return_index=True)
            yield frame if len(first) == frame.size else frame.take(first)


class CountTargets(Operator[Frame]):
    """The targets of all edges of a type with their in-degrees: what expanding every node collapses to."""

    def __init__(self, target: str, hop: Hop, *, each_record: bool, counts: bool) -> None:
        self._target = target
        self._hop = hop
        self._each_record = each_record
        self._counts = counts

    @property
    def unique_variable(self) -> str | None:
        """The target variable."""
        return self._target

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:  # noqa: ARG002  (takes nothing)
        """Yield the nodes, ascending."""
        targets = run.nodes(self._hop.target_type)
        live = targets.numbering.live
        for start in range(0, len(live), run.batch_rows):
            some = live[start : start + run.batch_rows]
            degrees = self._hop.reverse_access(run, len(some)).degrees(some, each_record=self._each_record)
            kept = degrees > 0
            frame = Frame(run, int(kept.sum()), {self._target: Binding(targets, some[kept])})
            if frame.size:
                yield frame.with_weights(degrees[kept]) if self._counts else frame
