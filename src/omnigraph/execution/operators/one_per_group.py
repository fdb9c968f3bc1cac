"""One row for each group, where every row is a group of its own."""

from collections.abc import Iterator, Sequence

import numpy as np

from omnigraph.execution.arrays import arrow
from omnigraph.execution.frame import Frame
from omnigraph.execution.operators.aggregate import AggregateColumn, KeyColumn
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.results import Late, OutputColumn, Results
from omnigraph.execution.run import Run


class OnePerGroup(Operator[Results]):
    """Groups by something no two rows share: nothing has to be put together, and counts are what rows stand for."""

    def __init__(self, rows: Frames, columns: Sequence[KeyColumn | AggregateColumn]) -> None:
        self._rows = rows
        self._columns = columns

    def batches(self, run: Run, given: Frame | None) -> Iterator[Results]:
        """The groups, in the order of their rows."""
        for frame in self._rows.batches(run, given):
            yield Results(run, frame.size, [self._output(frame, column) for column in self._columns])

    def _output(self, frame: Frame, column: KeyColumn | AggregateColumn) -> OutputColumn:
        if isinstance(column, KeyColumn):
            assert column.variable is not None
            return Late(frame.bound(column.variable), column.name)
        return arrow(np.ones(frame.size, dtype=np.int64) if frame.weights is None else frame.weights)


def has_groups_of_one(
    rows: Frames, columns: Sequence[KeyColumn | AggregateColumn], identifying: frozenset[str]
) -> bool:
    """Whether every row is a group of its own, and nothing is asked of it but how often it counts.

    Args:
        rows (Frames): what is grouped.
        columns (Sequence[KeyColumn | AggregateColumn]): of the result.
        identifying (frozenset[str]): the columns of the nodes that each identify one.
    """
    keys = [column for column in columns if isinstance(column, KeyColumn)]
    counts = [column for column in columns if isinstance(column, AggregateColumn)]
    return (
        rows.once_each is not None
        and all(key.variable == rows.once_each for key in keys)
        and any(key.name in identifying for key in keys)
        and all(column.counts_rows for column in counts)
    )
