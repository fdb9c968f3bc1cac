"""The data source `omnigraph`: one type of one graph as a table of Spark's.

    spark.read.format("omnigraph").option("graph", uri).option("type", "Person").load()

Options: `graph`, `type`, and of these at most one: `branch`, `versionAsOf` (a commit id, or a number of the branch's
log), `timestampAsOf`, `tag`. `columns` names the columns to read, as does a schema given to the reader: of others
nothing is read. `filter` is a condition in SQL that the scan itself judges, with indexes where there are some. Which
commit is read is decided when the frame is made; the frame shows it for ever.
"""

import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from omnigraph import limits
from omnigraph.branch.points import Point, entry_at
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.ids import UlidSource, is_ulid
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.schema import TypeKind
from omnigraph.pipeline.columns import arrow_schema, spark_schema, table_columns
from omnigraph.pipeline.source.reading import PinnedTable, TableReader, check_filter
from omnigraph.pipeline.source.writing import RowsWriter, Target
from omnigraph.storage.tables.place import place_of
from omnigraph.transaction import root

NAME = "omnigraph"


class OmnigraphSource(DataSource):
    """One type of one graph at one commit."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Looked up once: a frame is planned again for every action, and shall show the same commit every time.
        self._type_key, self._pinned = _pinned(options)

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> StructType:
        """The columns of the type, or those that were asked for."""
        columns = self._pinned.open().schema
        named = self.options.get("columns")
        names = None if named is None else [name.strip() for name in named.split(",") if name.strip()]
        for name in names or ():
            if name not in columns.names:
                raise NotFoundError(f"{self.options.get('type')} has no column '{name}'", code="column_not_found")
        condition = self.options.get("filter")
        if condition is not None:
            check_filter(self._pinned.open(), condition)
        return spark_schema(columns, names)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns."""
        rows = _whole_number("taskRows", self.options.get("taskRows", str(limits.SPARK_TASK_ROWS)))
        return TableReader(self._pinned, schema, filter=self.options.get("filter"), task_rows=rows)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  (Spark's own)
        """A writer of rows with these columns.

        The option `mode` may be `merge`, which puts new rows in the place of old ones; `branch`, `actor`, `message`,
        `idempotencyKey` and `prunePrevious` say the rest. `spill` is a folder for rows under way that all workers
        share. `engine` says where they are loaded, `local` or `spark`; otherwise their number decides.
        """
        uri, name = self.options.get("graph"), self.options.get("type")
        if not uri or not name:
            raise InvalidRequestError("writing to a graph needs the options 'graph' and 'type'")
        target = Target(
            graph=uri,
            type_key=self._type_key,
            branch=self.options.get("branch") or MAIN,
            mode="overwrite" if overwrite else self.options.get("mode", "append"),
            actor=self.options.get("actor"),
            message=self.options.get("message"),
            idempotency_key=self.options.get("idempotencyKey"),
            prune_previous=self.options.get("prunePrevious", "false").lower() == "true",
            engine=self.options.get("engine"),
        )
        folder = Path(self.options.get("spill") or tempfile.gettempdir()) / f"omnigraph-frames-{UlidSource().new()}"
        return RowsWriter(target, folder, table_columns(arrow_schema(schema), self._pinned.open().schema))


def register(spark: SparkSession) -> None:
    """Make the format known to a session.

    Args:
        spark (SparkSession): any session.
    """
    spark.dataSource.register(OmnigraphSource)


def type_key_in(record: Record, name: str) -> str:
    """The key of a type by its name: the node type, else the edge type, or a key as it is.

    Args:
        record (Record): the commit.
        name (str): as a caller spells it.

    Returns:
        str: like `node:Person`.

    Raises:
        NotFoundError: there is no such type.
    """
    for key in (f"{TypeKind.NODE}:{name}", f"{TypeKind.EDGE}:{name}", name):
        if key in record.tables:
            return key
    raise NotFoundError(f"there is no type '{name}'", code="type_not_found", type=name)


def _pinned(options: Mapping[str, str]) -> tuple[str, PinnedTable]:
    uri, name = options.get("graph"), options.get("type")
    if not uri or not name:
        raise InvalidRequestError("reading a graph needs the options 'graph' and 'type'")
    parts = root.open_root(uri, read_only=True)
    record = entry_at(parts, _point(options))
    key = type_key_in(record, name)
    return key, PinnedTable(place_of(parts.tables), record.tables[key])


def _point(options: Mapping[str, str]) -> Point:
    version = options.get("versionAsOf")
    of_commit = version is not None and is_ulid(version)
    return Point(
        branch=options.get("branch"),
        commit=version if of_commit else None,
        number=None if version is None or of_commit else _whole_number("versionAsOf", version, "or the id of a commit"),
        tag=options.get("tag"),
        at=options.get("timestampAsOf"),
    )


def _whole_number(option: str, text: str, else_: str = "") -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidRequestError(f"the option '{option}' is a number {else_}".rstrip() + f", and '{text}' is not")
    return int(text)
