"""Projection to the columns of the result, and removal of duplicate rows."""

from collections.abc import Iterator, Sequence

import numpy as np

from omnigraph.execution.encoder import RowEncoder
from omnigraph.execution.expressions import Computation, to_array
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Frames, Operator, ResultRows
from omnigraph.execution.results import Results
from omnigraph.execution.run import Run


class Project(Operator[Results]):
    """Computes the result columns of each row."""

    def __init__(self, rows: Frames, columns: Sequence[Computation]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """Yield the rows, in order."""
        for frame in self._rows.batches(run, given):
            yield Results(run, frame.size, [to_array(column(frame), frame.size) for column in self._columns])


class Distinct(Operator[Results]):
    """Removes duplicate rows; null equals null, and both zeros are equal."""

    def __init__(self, rows: ResultRows, *, columns: int) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """Yield first occurrences, in order."""
        encoder = RowEncoder(self._columns)
        seen = np.zeros(0, dtype=np.bool_)
        held = 0
        for batch in self._rows.batches(run, given):
            codes = encoder.encode([batch.output(position) for position in range(self._columns)], batch.size)
            if len(seen) < encoder.size:
                longer = np.zeros(max(encoder.size, 2 * len(seen)), dtype=np.bool_)
                longer[: len(seen)] = seen
                seen = longer
            numbers, first = np.unique(codes, return_index=True)
            fresh = np.sort(first[~seen[numbers]])
            seen[numbers] = True
            now = encoder.nbytes + seen.nbytes
            run.budget.hold(now - held)
            held = now
            if len(fresh):
                yield batch.take(fresh)
        run.budget.release(held)
