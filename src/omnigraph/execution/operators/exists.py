"""Whether steps yield something, row by row."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import Mask
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Exists(Operator[Frame]):
    """Passes on the rows for which the inner steps yield something, or those for which they do not."""

    def __init__(self, rows: Frames, inner: Frames, *, row: str, inner_keep: frozenset[str], wanted: bool) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._wanted = wanted

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from."""
        return self._rows.once_each

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows."""
        for frame in self._rows.batches(run, given):
            found = has_solutions(run, frame, self._inner, row=self._row, keep=self._inner_keep)
            kept = frame.where(found if self._wanted else ~found)
            if kept.size:
                yield kept


class Mark(Operator[Frame]):
    """Every row, with a hidden column that says whether the inner steps yield something."""

    def __init__(self, rows: Frames, inner: Frames, *, row: str, inner_keep: frozenset[str], name: str) -> None:
        self._rows = rows
        self._inner = inner
        self._row = row
        self._inner_keep = inner_keep
        self._name = name

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows."""
        for frame in self._rows.batches(run, given):
            found = has_solutions(run, frame, self._inner, row=self._row, keep=self._inner_keep)
            yield frame.with_hidden(self._name, found)


def has_solutions(run: Run, frame: Frame, inner: Frames, *, row: str, keep: frozenset[str]) -> Mask:
    """For which rows the inner steps yield something."""
    found = np.zeros(frame.size, dtype=np.bool_)
    for solution in inner.batches(run, numbered(frame, row, keep)):
        found[solution.hidden[row]] = True
    return found


def numbered(frame: Frame, row: str, keep: frozenset[str]) -> Frame:
    """The rows with their numbers, for steps inside another step: what these yield tells by it where it belongs."""
    return frame.only(keep).with_weights(None).with_hidden(row, np.arange(frame.size))
