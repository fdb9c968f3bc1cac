"""The columns of the result."""

from collections.abc import Iterator, Sequence

from omnigraph.execution.expressions import Computation, values_of
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.results import Results
from omnigraph.execution.run import Run


class Project(Operator[Results]):
    """Rows of variables as rows of values."""

    def __init__(self, rows: Frames, columns: Sequence[Computation]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """The rows, in their order."""
        for frame in self._rows.batches(run, given):
            yield Results(run, frame.size, [values_of(column(frame), frame.size) for column in self._columns])
