"""One type at one commit, read by Spark: a partition for each group of fragments."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from omnigraph import limits
from omnigraph.errors import NotFoundError
from omnigraph.model.commit import Pin
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.columns import arrow_schema, cast_batch
from omnigraph.storage.blob_values import outward
from omnigraph.storage.tables.fragments import fragment_groups, rows_of_fragments
from omnigraph.storage.tables.location import TablesLocation, tables_at
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class PinnedTable:
    """A version of a table, in plain values: it can be sent to any process.

    Attributes:
        place: where the graph's tables are.
        pin: which table, at which version.
    """

    place: TablesLocation
    pin: Pin

    def open(self) -> Table:
        """The version, for reading."""
        return tables_at(self.place).open(self.pin)


def check_columns(type_key: str, known: Sequence[str], wanted: Sequence[str]) -> None:
    """Tell that a column is not there, and which may be meant.

    Args:
        type_key: whose columns.
        known: those it has.
        wanted: those asked for.

    Raises:
        NotFoundError: one of them is none.
    """
    for name in wanted:
        if name not in known:
            message = explain_unknown(f"{type_key.partition(':')[2]} has no column", name, known)
            raise NotFoundError(message, code="column_not_found")


def check_filter(table: Table, filter: str) -> None:
    """Tell that a condition is wrong here, and not in a task.

    Args:
        table: what it is about.
        filter: the condition.

    Raises:
        InvalidRequestError: it is.
    """
    table.scan(columns=["id"], filter=filter, limit=1)


class FragmentGroup(InputPartition):
    """What one task reads."""

    def __init__(self, numbers: tuple[int, ...]) -> None:
        super().__init__(numbers)
        self.numbers = numbers


class TableReader(DataSourceReader):
    """Reads some columns of a version, and of its rows those that satisfy a condition.

    It takes no conditions from Spark's planner: Spark keeps the last conditions handed down for all plans over one
    frame, so that a second plan, or the other side of a join, would see the rows of the first.
    """

    def __init__(
        self,
        pinned: PinnedTable,
        columns: StructType,
        *,
        filter: str | None = None,
        task_rows: int = limits.SPARK_TASK_ROWS,
    ) -> None:
        self._pinned = pinned
        self._columns = columns
        self._filter = filter
        self._task_rows = task_rows

    def partitions(self) -> Sequence[InputPartition]:
        """One for each group of fragments."""
        groups = fragment_groups(self._pinned.open(), rows=self._task_rows)
        return [FragmentGroup(numbers) for numbers in groups or ((),)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a partition, in the columns that Spark needs."""
        if not isinstance(partition, FragmentGroup):
            return
        wanted = arrow_schema(self._columns)
        table = self._pinned.open()
        # A scan without any column has no rows to count; the id is the cheapest of all.
        names = wanted.names or ["id"]
        for batch in rows_of_fragments(table, partition.numbers, columns=names, filter=self._filter):
            if batch.num_rows:
                yield cast_batch(outward(batch), wanted)
