"""Every row with every row of something that does not depend on it."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.frame import Frame, together
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Product(Operator[Frame]):
    """Each row with each of the inner rows, which are made once per run."""

    def __init__(self, rows: Frames, inner: Frames, *, keep: frozenset[str]) -> None:
        self._rows = rows
        self._inner = inner
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows, in the order of the outer ones."""
        for frame in self._rows.batches(run, given):
            inner = self._inner_rows(run)
            if inner is None:
                return
            outer = frame.only(self._keep)
            step = max(run.batch_rows // inner.size, 1)
            for low in range(0, outer.size, step):
                some = np.arange(low, min(low + step, outer.size))
                for start in range(0, inner.size, run.batch_rows):
                    run.budget.in_time()
                    part = np.arange(start, min(start + run.batch_rows, inner.size))
                    yield _crossed(outer.take(np.repeat(some, len(part))), inner.take(np.tile(part, len(some))))

    def _inner_rows(self, run: Run) -> Frame | None:
        if self not in run.kept:
            frames = []
            for frame in self._inner.batches(run, None):
                narrow = frame.only(self._keep)
                run.budget.hold(narrow.nbytes)
                frames.append(narrow)
            run.kept[self] = together(frames) if frames else None
        kept = run.kept[self]
        return kept if isinstance(kept, Frame) else None


class Times(Operator[Frame]):
    """Each row standing for as many as the inner ones are; none if there are none."""

    def __init__(self, rows: Frames, inner: Frames) -> None:
        self._rows = rows
        self._inner = inner

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows."""
        for frame in self._rows.batches(run, given):
            count = self._count(run)
            if not count:
                return
            yield frame.with_weights(weights.times(frame.weights, np.full(frame.size, count, dtype=np.int64)))

    def _count(self, run: Run) -> int:
        if self not in run.kept:
            total = 0
            for frame in self._inner.batches(run, None):
                total += weights.total(frame.weights, frame.size)
            run.kept[self] = total
        kept = run.kept[self]
        assert isinstance(kept, int)
        return kept


def _crossed(one: Frame, other: Frame) -> Frame:
    made = one.with_slots(other.slots)
    for name, values in other.hidden.items():
        made = made.with_hidden(name, values)
    if other.weights is None:
        return made
    return made.with_weights(weights.times(one.weights, other.weights))
