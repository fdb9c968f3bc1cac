"""Types of a graph as Spark frames, SQL over them, and frames of the caller to load."""

from collections.abc import Iterator, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)
from pyspark.sql.types import StructType

from omnigraph.errors import InvalidRequestError
from omnigraph.model.commit import Record
from omnigraph.model.schema import EdgeType, Schema
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.columns import spark_schema
from omnigraph.pipeline.load.request import FrameToLoad
from omnigraph.pipeline.narrowing import Needed, clone_session, marked, needed, refuse_commands
from omnigraph.pipeline.source.reading import PinnedTable, TableReader, check_columns, check_filter
from omnigraph.storage.tables.location import TablesLocation


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
        place: where the graph's tables are.
        record: the commit.
        columns: which columns are read; all by default.
        where: a condition in SQL that the scan judges.

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
    """Run a SQL query over the types of a commit, reading only the columns and rows that it needs.

    Args:
        spark: the session; its own views are there as well, and are left as they are.
        place: where the graph's tables are.
        record: the commit.
        names: by type key, what the type is called in the text.
        text: the query.

    Returns:
        DataFrame: its answer, when it is asked for.

    Raises:
        InvalidRequestError: it is no query.
        AnalysisException: a name in it is none.
    """
    refuse_commands(spark, text)
    pins = {key: PinnedTable(place, record.tables[key]) for key in names}
    columns = {key: spark_schema(pinned.open().schema) for key, pinned in pins.items()}
    first = clone_session(spark)
    for key, name in names.items():
        _frame(first, pins[key], marked(columns[key], key), None).createOrReplaceTempView(name)
    wanted = needed(first.sql(text))
    session = clone_session(spark)
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
    """Read a type with unused columns as null, and without rows that the query would drop."""
    read = StructType([field for field in columns if field.name in some.columns] or [columns["id"]])
    frame = _frame(spark, pinned, read, some.where)
    return frame.select(
        *(
            frame[field.name] if field.name in read.names else F.lit(None).cast(field.dataType).alias(field.name)
            for field in columns
        )
    )


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
        schema: the types there are.
        prefix: goes before the names.

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


def chosen_types(schema: Schema, names: Sequence[str]) -> dict[str, str]:
    """The types of names.

    Args:
        schema: the types there are.
        names: names of node types, else edge types, or type keys.

    Returns:
        dict[str, str]: type keys by these names.

    Raises:
        InvalidRequestError: there is no such type, or one is named twice.
    """
    found: dict[str, str] = {}
    for name in names:
        entity = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if entity is None:
            known = (field.name for field in schema.entities)
            raise InvalidRequestError(explain_unknown("unknown type", name, known), code="type_not_found")
        if entity.type_key in found.values():
            raise InvalidRequestError(f"the type '{entity.name}' is given twice")
        found[name] = entity.type_key
    return found


def frames_to_load(schema: Schema, frames: Mapping[str, DataFrame]) -> tuple[FrameToLoad, ...]:
    """Validate frames by the names of types.

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
    return tuple(FrameToLoad(f"the frame for {name}", frame, types[name]) for name, frame in frames.items())
