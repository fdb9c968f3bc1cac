"""Operators that pass on some of their rows: filter, limit and offset."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Batch, Frames, Operator
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run
from omnigraph.language.plan import pattern
from omnigraph.language.plan.expressions import Constant
from omnigraph.language.plan.pattern import Window


class Filter(Operator[Frame]):
    """Keeps the rows for which a condition is true."""

    def __init__(self, rows: Frames, condition: Computation) -> None:
        self._rows = rows
        self._condition = condition

    @property
    def unique_variable(self) -> str | None:
        """As in its input."""
        return self._rows.unique_variable

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the matching rows."""
        for frame in self._rows.batches(run, given):
            kept = frame.where(evaluate_condition(self._condition, frame))
            if kept.size:
                yield kept


class Limit(Operator[Batch]):
    """Passes on at most `count` rows, after skipping `skip`."""

    def __init__(self, rows: Operator[Batch], *, skip: Count | None, count: Count | None) -> None:
        self._rows: Operator[Batch] = rows
        self._skip = skip
        self._count = count

    def batches(self, run: Run, given: Frame | None) -> Iterator[Batch]:
        """Yield the rows in order; stops reading as soon as there are enough."""
        skip = 0 if self._skip is None else self._skip(run)
        left = None if self._count is None else self._count(run)
        if left == 0:
            return
        for batch in self._rows.batches(run, given):
            if skip >= batch.size:
                skip -= batch.size
                continue
            stop = batch.size if left is None else min(batch.size, skip + left)
            yield batch if skip == 0 and stop == batch.size else batch.take(np.arange(skip, stop))
            if left is not None:
                left -= stop - skip
                if left == 0:
                    return
            skip = 0


def prepare_count(number: pattern.Count | None) -> Count | None:
    """Compile a row count, which may be a parameter."""
    if number is None:
        return None
    if isinstance(number, Constant):
        constant = number.value
        assert isinstance(constant, int)
        return lambda _: constant
    name = number.name

    def of_run(run: Run) -> int:
        value = run.parameter(name)
        assert isinstance(value, int)
        return value

    return of_run


def prepare_limit(window: Window | None) -> Count | None:
    """Compile the number of rows that a limit and offset need."""
    count = None if window is None else prepare_count(window.count)
    skip = None if window is None else prepare_count(window.skip)
    if count is None or skip is None:
        return count
    return lambda run: count(run) + skip(run)
