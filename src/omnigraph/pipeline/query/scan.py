"""Scans of tables as DataFrames: one task for each group of fragments, which applies the condition itself."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)
from pyspark.sql.types import StructType

from omnigraph import limits
from omnigraph.execution.arrays import Values
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.walk import find_properties, split_conjuncts
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID
from omnigraph.pipeline.columns import arrow_schema, cast_batch
from omnigraph.pipeline.query.evaluate import Inputs, true_rows
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Names, Rows, struct_of
from omnigraph.pipeline.source.reading import PinnedTable
from omnigraph.storage.tables.fragments import fragment_groups, rows_of_fragments, stored_fragments
from omnigraph.storage.tables.location import TablesLocation

# What a task makes of the numbers of its groups of fragments.
ReadTask = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]


@dataclass(frozen=True, slots=True)
class Source:
    """The tables of one commit, as a session of Spark's reads them.

    Attributes:
        place: where the tables are.
        record: the commit.
        inputs: parameters of conditions.
        names: makes names of columns.
    """

    spark: SparkSession
    place: TablesLocation
    record: Record
    inputs: Inputs
    names: Names
    _scanned: dict[object, DataFrame] = field(default_factory=dict)

    def scan(self, type_key: str, wanted: Mapping[Key, str], condition: Expression | None = None) -> Rows:
        """Scan a type.

        Args:
            type_key: the type.
            wanted: the columns to read, by table column.
            condition: a filter over these rows, applied where they are read.
        """
        table = PinnedTable(self.place, self.record.tables[type_key]).open()
        cells = {
            key: Cell(self.names.new(), table.schema.field(name).type, table.schema.field(name).nullable)
            for key, name in wanted.items()
        }
        columns = tuple(wanted.values())
        known = self._scanned.get((type_key, columns, condition))
        if known is not None:
            # The same frame under other names: Spark reads and shuffles it once for both.
            return Rows(known.toDF(*(cell.column for cell in cells.values())), cells)
        task = replace(self.prepare(type_key, columns), cells=tuple(cells.values()), condition=condition)
        frame = self.run(task, task.read, struct_of(cells.values()))
        self._scanned[type_key, columns, condition] = frame
        return Rows(frame, cells)

    def prepare(self, type_key: str, columns: tuple[str, ...]) -> "ScanTask":
        """Return a task that reads columns of a table."""
        pinned = PinnedTable(self.place, self.record.tables[type_key])
        table = pinned.open()
        groups = fragment_groups(table, rows=limits.SPARK_TASK_ROWS) or ((),)
        rows = sum(fragment.rows for fragment in stored_fragments(table))
        return ScanTask(pinned, groups, rows, columns, self.inputs)

    def run(self, task: "ScanTask", read: "ReadTask", columns: StructType) -> DataFrame:
        """Return what a task reads: read here where the table is small, else by one task per group of fragments."""
        groups = len(task.groups)
        if task.rows <= limits.SPARK_QUERY_LOCAL_ROWS:
            numbers = pa.RecordBatch.from_pydict({"group": pa.array(range(groups), pa.int64())})
            batches = list(read(iter([numbers])))
            if not batches:
                return self.spark.createDataFrame([], columns)
            return self.spark.createDataFrame(pa.Table.from_batches(batches, arrow_schema(columns)), columns)
        return _fragment_tasks(self.spark, groups, task.rows).mapInArrow(read, columns)


def _fragment_tasks(spark: SparkSession, groups: int, rows: int) -> DataFrame:
    """Return a frame with one row and one partition for each group of fragments.

    Spark estimates the size of a table from it, to choose between joins, as if it had all these rows. So it counts
    them, and leaves out all but the first of each partition.
    """
    each = max(-(-rows // groups), 1)
    numbers = spark.range(0, groups * each, 1, groups)
    return numbers.where(F.col("id") % each == 0).select((F.col("id") / each).cast("bigint").alias("group"))


@dataclass(frozen=True, slots=True)
class ScanTask:
    """Reads groups of fragments of a table."""

    pinned: PinnedTable
    groups: Sequence[tuple[int, ...]]
    rows: int
    columns: tuple[str, ...]
    inputs: Inputs
    cells: tuple[Cell, ...] = ()
    condition: Expression | None = None

    def read(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Read the groups that the batches name."""
        wanted = arrow_schema(struct_of(self.cells))
        for batch in self.batches(batches):
            arrays = [batch.column(name) for name in self.columns]
            yield cast_batch(pa.RecordBatch.from_arrays(arrays, names=wanted.names), wanted)

    def batches(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows that satisfy the condition, as they lie in the table."""
        conditions = () if self.condition is None else split_conjuncts(self.condition)
        read = dict.fromkeys((*self.columns, *(name for _, name in find_properties(conditions)), ID))
        table = self.pinned.open()
        numbers: list[int] = [number for batch in batches for number in batch.column(0).to_pylist()]  # type: ignore[misc]  # none is null
        for number in numbers:
            for batch in rows_of_fragments(table, self.groups[number], columns=list(read)):
                kept = self._filtered(batch, conditions)
                if kept.num_rows:
                    yield kept

    def _filtered(self, batch: pa.RecordBatch, conditions: Sequence[Expression]) -> pa.RecordBatch:
        def column(key: Key) -> Values:
            return some.column(ID if key.kind is Kind.ID else key.property)

        for condition in conditions:
            some = batch
            batch = some.filter(true_rows(some, condition, self.inputs, column))
        return batch
