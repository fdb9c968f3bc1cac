"""Skip and stop."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Batch, Operator
from omnigraph.execution.operators.scan import Count
from omnigraph.execution.run import Run


class Limit(Operator[Batch]):
    """Passes on at most so many rows, after skipping some."""

    def __init__(self, rows: Operator[Batch], *, skip: Count | None, count: Count | None) -> None:
        self._rows: Operator[Batch] = rows
        self._skip = skip
        self._count = count

    def batches(self, run: Run, given: Frame | None) -> Iterator[Batch]:
        """The rows, in their order; stops asking as soon as there are enough."""
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
