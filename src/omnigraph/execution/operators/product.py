"""Cross products with rows that do not depend on the outer ones."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution import weights
from omnigraph.execution.frame import Frame, concat_frames
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Product(Operator[Frame]):
    """Cross product of each row with the inner rows, which are computed once per run."""

    def __init__(self, rows: Frames, inner: Frames, *, keep: frozenset[str]) -> None:
        self._rows = rows
        self._inner = inner
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows, in the order of the outer ones."""
        for frame in self._rows.batches(run, given):
            inner = self._inner_rows(run)
            if inner is None:
                return
            outer = frame.only(self._keep)
            step = max(run.batch_rows // inner.size, 1)
            for low in range(0, outer.size, step):
                some = np.arange(low, min(low + step, outer.size))
                for start in range(0, inner.size, run.batch_rows):
                    run.budget.check_time()
                    part = np.arange(start, min(start + run.batch_rows, inner.size))
                    yield _cross(outer.take(np.repeat(some, len(part))), inner.take(np.tile(part, len(some))))

    def _inner_rows(self, run: Run) -> Frame | None:
        if self not in run.memo:
            frames = []
            for frame in self._inner.batches(run, None):
                narrow = frame.only(self._keep)
                run.budget.hold(narrow.nbytes)
                frames.append(narrow)
            run.memo[self] = concat_frames(frames) if frames else None
        kept = run.memo[self]
        return kept if isinstance(kept, Frame) else None


class Multiply(Operator[Frame]):
    """Multiplies each row by the number of inner rows; yields none if there are none."""

    def __init__(self, rows: Frames, inner: Frames) -> None:
        self._rows = rows
        self._inner = inner

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows."""
        for frame in self._rows.batches(run, given):
            count = self._count(run)
            if not count:
                return
            yield frame.with_weights(weights.multiply(frame.weights, np.full(frame.size, count, dtype=np.int64)))

    def _count(self, run: Run) -> int:
        if self not in run.memo:
            total = 0
            for frame in self._inner.batches(run, None):
                total += weights.total(frame.weights, frame.size)
            run.memo[self] = total
        kept = run.memo[self]
        assert isinstance(kept, int)
        return kept


def _cross(one: Frame, other: Frame) -> Frame:
    made = one.with_slots(other.slots)
    for name, values in other.hidden.items():
        made = made.with_hidden(name, values)
    if other.weights is None:
        return made
    return made.with_weights(weights.multiply(one.weights, other.weights))
