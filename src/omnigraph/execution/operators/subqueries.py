"""Subqueries: operators that run inner steps for every row (exists, mark, optional, alternatives)."""

from collections.abc import Iterator, Sequence

import numpy as np

from omnigraph.execution.arrays import NONE, Mask, Positions, Values, to_arrow
from omnigraph.execution.encoder import RowEncoder
from omnigraph.execution.frame import Binding, Frame, PathBinding, Slot, concat_frames
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run

_ROW = "#row"


class Exists(Operator[Frame]):
    """Semi-join or anti-join: keeps the rows for which the inner steps yield something, or nothing."""

    def __init__(self, rows: Frames, inner: Frames, *, row: str, inner_keep: frozenset[str], wanted: bool) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._wanted = wanted

    @property
    def unique_variable(self) -> str | None:
        """As in its input."""
        return self._rows.unique_variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the matching rows."""
        for frame in self._rows.batches(run, given):
            found = solution_mask(run, frame, self._inner, row=self._row, keep=self._inner_keep)
            kept = frame.where(found if self._wanted else ~found)
            if kept.size:
                yield kept


class Mark(Operator[Frame]):
    """Adds a hidden column that says whether the inner steps yield something."""

    def __init__(self, rows: Frames, inner: Frames, *, row: str, inner_keep: frozenset[str], name: str) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._name = name

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield all rows."""
        for frame in self._rows.batches(run, given):
            found = solution_mask(run, frame, self._inner, row=self._row, keep=self._inner_keep)
            yield frame.with_hidden(self._name, found)


def solution_mask(run: Run, frame: Frame, inner: Frames, *, row: str, keep: frozenset[str]) -> Mask:
    """Return the mask of rows for which the inner steps yield something."""
    found = np.zeros(frame.size, dtype=np.bool_)
    for solution in inner.batches(run, number_rows(frame, row, keep)):
        found[solution.hidden[row]] = True
    return found


def number_rows(frame: Frame, row: str, keep: frozenset[str]) -> Frame:
    """Add a hidden column with row numbers, which the rows of inner steps carry along."""
    return frame.only(keep).with_weights(None).with_hidden(row, np.arange(frame.size))


class Optional(Operator[Frame]):
    """Left outer join: each row with each of its inner rows, or once with absent new variables."""

    def __init__(
        self,
        rows: Frames,
        inner: Frames,
        *,
        row: str,
        inner_keep: frozenset[str],
        types: dict[str, str],
        keep: frozenset[str],
    ) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._types = types
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield first the rows with a match, then those without, per batch."""
        for frame in self._rows.batches(run, given):
            outer = frame.only(self._keep)
            found = np.zeros(frame.size, dtype=np.bool_)
            for solution in self._inner.batches(run, number_rows(frame, self._row, self._inner_keep)):
                rows = solution.hidden[self._row]
                found[rows] = True
                yield outer.take(rows).with_slots(self._new_slots(solution))
            alone = outer.where(~found)
            if alone.size:
                yield alone.with_slots(
                    {
                        name: absent_binding(run, kind, alone.size)
                        for name, kind in self._types.items()
                        if name in self._keep
                    }
                )

    def _new_slots(self, solution: Frame) -> dict[str, Slot]:
        new_slots: dict[str, Slot] = {}
        for name in self._types:
            if name in self._keep:
                slot = solution.slots[name]
                new_slots[name] = (
                    Binding(slot.columns, slot.ordinals, absent=True) if isinstance(slot, Binding) else slot
                )
        return new_slots


def absent_binding(run: Run, kind: str, size: int) -> Slot:
    """Make the binding of a variable that is absent in every row; `kind` is as in `variable_kinds`."""
    what, _, type_name = kind.partition(":")
    if what == "path":
        starts = np.zeros(size + 1, dtype=np.int64)
        everywhere = np.ones(size, dtype=np.bool_)
        return PathBinding(run.nodes(type_name), starts, np.empty(0, dtype=np.int32), everywhere)
    columns = run.nodes(type_name) if what == "node" else run.edges(type_name)
    return Binding(columns, np.full(size, NONE, dtype=np.int32), absent=True)


class Alternatives(Operator[Frame]):
    """Joins each row with the results of any branch; equal results of one row count once."""

    def __init__(
        self,
        rows: Frames,
        branches: Sequence[tuple[Frames, str, frozenset[str]]],
        *,
        variables: frozenset[str],
        keep: frozenset[str],
    ) -> None:
        self._rows = rows
        # Each with the hidden column of its outer row number, and the outer variables it needs.
        self._branches = branches
        self._variables = variables
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows, in the order of the outer ones."""
        for frame in self._rows.batches(run, given):
            found: list[Frame] = []
            held = 0
            for branch, row, needed in self._branches:
                for solution in branch.batches(run, number_rows(frame, row, needed)):
                    narrow = solution.only(self._variables).with_weights(None)
                    narrow = narrow.with_hidden(_ROW, solution.hidden[row])
                    run.budget.hold(narrow.nbytes)
                    held += narrow.nbytes
                    found.append(narrow)
            if found:
                yield self._distinct(frame, concat_frames(found))
            run.budget.release(held)

    def _distinct(self, frame: Frame, solutions: Frame) -> Frame:
        rows = solutions.hidden[_ROW]
        columns = [to_arrow(rows)]
        for name in sorted(self._variables):
            columns += _identity(solutions, name)
        codes = RowEncoder(len(columns)).encode(columns, solutions.size)
        _, first = np.unique(codes, return_index=True)
        first = first[np.argsort(rows[first], kind="stable")]
        kept: Frame = solutions.take(first)
        new_slots: dict[str, Slot] = {name: slot for name, slot in kept.slots.items() if name in self._keep}
        numbers: Positions = kept.hidden[_ROW].astype(np.int64)
        return frame.only(self._keep).take(numbers).with_slots(new_slots)


def _identity(frame: Frame, name: str) -> list[Values]:
    """Return columns that are equal exactly where a variable has the same binding."""
    slot = frame.slots[name]
    if isinstance(slot, Binding):
        return [to_arrow(slot.ordinals)]
    return [frame.path_nodes(name)]
