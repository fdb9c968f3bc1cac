"""Frames of Spark's out of a graph, and into files that a load reads.

Rows of a frame are first written down, each partition in a file of its own, and then loaded like any other file: so
that a task that runs twice finds the same rows, whatever the frame is made of, and every rule holds as for any load.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)
from pyspark.sql.types import StructType

from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import Record
from omnigraph.model.schema import EdgeType, Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.columns import arrow_schema, spark_schema, table_columns
from omnigraph.pipeline.jobs import job_group
from omnigraph.pipeline.load.jobs import spark_fault
from omnigraph.pipeline.load.sources import Format, Source
from omnigraph.pipeline.narrowing import Needed, marked, needed, refuse_commands
from omnigraph.pipeline.settings import is_one_process
from omnigraph.pipeline.source.reading import PinnedTable, TableReader, check_columns, check_filter
from omnigraph.pipeline.spill import Spill, SpilledFile, spill_beside, write_part
from omnigraph.storage.layout import table_schema
from omnigraph.storage.tables.location import TablesLocation, location_of
from omnigraph.transaction.graph_context import GraphContext


def read_frame(
    spark: SparkSession,
    place: TablesLocation,
    record: Record,
    type_key: str,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
) -> DataFrame:
    """A type at a commit, as a frame.

    Args:
        spark (SparkSession): the session.
        place (TablesLocation): where the graph's tables are.
        record (Record): the commit.
        type_key (str): the type.
        columns (Sequence[str] | None): which columns are read; all by default.
        where (str | None): a condition in SQL that the scan judges.

    Returns:
        DataFrame: shows this commit for ever.

    Raises:
        NotFoundError: there is no such column.
        InvalidRequestError: the condition is wrong.
    """
    pinned = PinnedTable(place, record.tables[type_key])
    table = pinned.open()
    columns = [columns] if isinstance(columns, str) else columns
    check_columns(type_key, table.schema.names, columns or ())
    if where is not None and not isinstance(where, str):
        raise InvalidRequestError(f"a condition is a text in SQL, like 'age > 40', not {where!r}")
    if where is not None:
        check_filter(table, where)
    return _frame(spark, pinned, spark_schema(table.schema, columns), where)


def query_frame(
    spark: SparkSession, place: TablesLocation, record: Record, names: Mapping[str, str], text: str
) -> DataFrame:
    """A query in SQL over the types of a commit, of which no more is read than it needs.

    Args:
        spark (SparkSession): the session; its own views are there as well, and are left as they are.
        place (TablesLocation): where the graph's tables are.
        record (Record): the commit.
        names (Mapping[str, str]): by type key, what the type is called in the text.
        text (str): the query.

    Returns:
        DataFrame: its answer, when it is asked for.

    Raises:
        InvalidRequestError: it is no query.
        AnalysisException: a name in it is none.
    """
    refuse_commands(spark, text)
    pins = {key: PinnedTable(place, record.tables[key]) for key in names}
    columns = {key: spark_schema(pinned.open().schema) for key, pinned in pins.items()}
    first = _session_like(spark)
    for key, name in names.items():
        _frame(first, pins[key], marked(columns[key], key), None).createOrReplaceTempView(name)
    wanted = needed(first.sql(text))
    session = _session_like(spark)
    for key, name in names.items():
        some = wanted.get(key)
        frame = (
            _frame(session, pins[key], columns[key], None)
            if some is None
            else _narrowed(session, pins[key], columns[key], some)
        )
        frame.createOrReplaceTempView(name)
    return session.sql(text)


def _narrowed(spark: SparkSession, pinned: PinnedTable, columns: StructType, some: Needed) -> DataFrame:
    """All columns of a type, of which those that nobody looks at are null; and no row that would be dropped."""
    read = StructType([each for each in columns if each.name in some.columns] or [columns["id"]])
    frame = _frame(spark, pinned, read, some.where)
    return frame.select(
        *(
            frame[each.name] if each.name in read.names else F.lit(None).cast(each.dataType).alias(each.name)
            for each in columns
        )
    )


def _session_like(spark: SparkSession) -> SparkSession:
    """A session with the same settings and views, whose views are its own from now on."""
    return SparkSession(spark.sparkContext, spark._jsparkSession.cloneSession())


def _frame(spark: SparkSession, pinned: PinnedTable, wanted: StructType, where: str | None) -> DataFrame:
    # Not through the data source, for which Spark starts a process of Python's each time it plans one.
    reader = TableReader(pinned, wanted, filter=where)
    groups = list(reader.partitions())

    def read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from reader.read(groups[row["id"]])

    return spark.range(0, len(groups), 1, len(groups)).mapInArrow(read, wanted)


def view_names(schema: Schema, prefix: str = "") -> dict[str, str]:
    """What the views of a graph's types are called: their names; an edge type named like a node type gets an ending.

    Args:
        schema (Schema): the types there are.
        prefix (str): goes before the names.

    Returns:
        dict[str, str]: by type key.

    Raises:
        InvalidRequestError: with the prefix they would be no names.
    """
    if not isinstance(prefix, str) or not f"{prefix}x".isidentifier() or not prefix.isascii():
        raise InvalidRequestError(f"names begin with letters, digits and _, and {prefix!r} is no such beginning")
    taken = {node.name.lower() for node in schema.nodes}
    return {
        entity.type_key: f"{prefix}{entity.name}_edge"
        if isinstance(entity, EdgeType) and entity.name.lower() in taken
        else f"{prefix}{entity.name}"
        for entity in schema.entities
    }


@dataclass(frozen=True, slots=True)
class Spilled:
    """Frames, written down.

    Attributes:
        sources: the files, in the order of types and partitions.
        type_keys: whose rows each file holds; none for lines that name their types themselves.
    """

    sources: tuple[Source, ...]
    type_keys: tuple[str, ...]


def chosen_types(schema: Schema, names: Sequence[str]) -> dict[str, str]:
    """The types of names.

    Args:
        schema (Schema): the types there are.
        names (Sequence[str]): names of node types, else edge types, or type keys.

    Returns:
        dict[str, str]: type keys by these names.

    Raises:
        InvalidRequestError: there is no such type, or one is named twice.
    """
    found: dict[str, str] = {}
    for name in names:
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            known = (each.name for each in schema.entities)
            raise InvalidRequestError(explain_unknown("unknown type", name, known), code="type_not_found")
        if entity.type_key in found.values():
            raise InvalidRequestError(f"the type '{entity.name}' is given twice")
        found[name] = entity.type_key
    return found


@contextmanager
def spilled_frames(parts: GraphContext, schema: Schema, frames: Mapping[str, DataFrame]) -> Iterator[Spilled]:
    """Frames written down, for as long as the block lasts.

    Args:
        schema (Schema): its types.
        frames (Mapping[str, DataFrame]): by the names of types.

    Yields:
        Spilled: the files.

    Raises:
        InvalidRequestError: there is no such type, or nothing was given.
    """
    if not isinstance(frames, Mapping) or not frames:
        raise InvalidRequestError("a write needs a frame for at least one type: {'Person': frame, …}")
    for name, frame in frames.items():
        if not isinstance(frame, DataFrame):
            raise InvalidRequestError(
                f"what is given for {name} is no frame of Spark's but a {type(frame).__name__}: make one of it with "
                "spark.createDataFrame, or write it with graph.write"
            )
        if frame.isStreaming:
            raise InvalidRequestError(f"the frame for {name} is a stream: write it with graph.spark.stream")
    types = chosen_types(schema, list(frames))
    first = next(iter(frames.values()))
    with _spill(parts, first.sparkSession) as spill:
        sources: list[Source] = []
        keys: list[str] = []
        for number, (name, frame) in enumerate(frames.items()):
            key = types[name]
            entity = schema.entity(key)
            columns = arrow_schema(frame.schema)
            wanted = columns if entity is None else table_columns(columns, table_schema(entity))
            written = [(0, spill.empty_table(f"{number:03}-none.parquet", wanted))]
            written += _written(parts, frame, spill, f"{number:03}", wanted)
            for part, file in written:
                called = f"the frame for {name}, partition {part}"
                sources.append(spill.source(len(sources), file, called=called, format=Format.PARQUET))
                keys.append(key)
        yield Spilled(tuple(sources), tuple(keys))


@contextmanager
def spilled_lines(parts: GraphContext, lines: DataFrame) -> Iterator[Spilled]:
    """Lines of text written down, for as long as the block lasts.

    Args:
        lines (DataFrame): one column of texts, each a record in JSON.

    Yields:
        Spilled: the files.
    """
    with _spill(parts, lines.sparkSession) as spill:
        written = [(0, spill.write("none.jsonl", b"")), *_written(parts, lines, spill, "lines", None)]
        yield Spilled(
            tuple(
                spill.source(number, file, called=f"the batch, partition {part}", format=Format.JSONL)
                for number, (part, file) in enumerate(written)
            ),
            (),
        )


def _written(
    parts: GraphContext, frame: DataFrame, spill: Spill, stem: str, columns: pa.Schema | None
) -> list[tuple[int, SpilledFile]]:
    """The files of a frame, each with the number of its partition, in order."""

    def part(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        files = write_part(batches, spill, stem, columns)
        number = 0 if context is None else context.partitionId()
        yield pa.RecordBatch.from_pydict(
            {
                "part": pa.array([number] * len(files), pa.int64()),
                "name": pa.array([file.name for file in files], pa.string()),
                "size": pa.array([file.size for file in files], pa.int64()),
            }
        )

    with job_group(frame.sparkSession.sparkContext, parts.ids, what="writing frames down", fault=spark_fault):
        rows = frame.mapInArrow(part, "part bigint, name string, size bigint").collect()
    return sorted(((row["part"], SpilledFile(row["name"], row["size"])) for row in rows), key=lambda each: each[1].name)


@contextmanager
def _spill(parts: GraphContext, spark: SparkSession) -> Iterator[Spill]:
    """A folder that every worker reaches: on this machine where Spark is this process's own, else beside the graph."""
    if is_one_process(spark.sparkContext.master or ""):
        with tempfile.TemporaryDirectory(prefix="omnigraph-frames-") as temporary:
            yield spill_beside(TablesLocation(temporary), parts.ids)
        return
    spill = spill_beside(location_of(parts.tables), parts.ids)
    try:
        yield spill
    finally:
        spill.forget()
