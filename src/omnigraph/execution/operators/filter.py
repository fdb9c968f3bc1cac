"""Rows for which a condition is true."""

from collections.abc import Iterator

from omnigraph.execution.expressions import Computation, holds
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run


class Filter(Operator[Frame]):
    """Passes on the rows for which a condition is true."""

    def __init__(self, rows: Frames, condition: Computation) -> None:
        self._rows = rows
        self._condition = condition

    @property
    def once_each(self) -> str | None:
        """As in the rows it takes from."""
        return self._rows.once_each

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows."""
        for frame in self._rows.batches(run, given):
            kept = frame.where(holds(self._condition, frame))
            if kept.size:
                yield kept
