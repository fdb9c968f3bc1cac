"""The data source `omnigraph`: one type of one graph as a table of Spark's.

    spark.read.format("omnigraph").option("graph", uri).option("type", "Person").load()

Options: `graph`, `type`, and of these at most one: `branch`, `versionAsOf` (a commit id, or a number of the branch's
log), `timestampAsOf`, `tag`. `columns` names the columns to read, as does a schema given to the reader: of others
nothing is read. `filter` is a condition in SQL that the scan itself judges, with indexes where there are some. Which
commit is read is decided when the frame is made; the frame shows it for ever.
"""

import json
from collections.abc import Mapping, MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader
from pyspark.sql.types import StructType

from omnigraph import limits
from omnigraph.branch.points import Point, entry_at
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.ids import is_ulid
from omnigraph.model.commit import Pin, Record
from omnigraph.model.schema import TypeKind
from omnigraph.pipeline.columns import spark_schema
from omnigraph.pipeline.source.reading import PinnedTable, TableReader
from omnigraph.storage.tables.place import TablesPlace, place_of
from omnigraph.transaction import root

NAME = "omnigraph"
_PINNED = "pinned"
_STORE = "store."


class OmnigraphSource(DataSource):
    """One type of one graph at one commit."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        # Looked up once: a frame is planned again for every action, and shall show the same commit every time.
        self._pinned = _pinned(options)

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
            self._pinned.open().scan(
                columns=["id"], filter=condition, limit=1
            )  # a wrong one is told here, not by tasks
        return spark_schema(columns, names)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns."""
        rows = int(self.options.get("taskRows", limits.SPARK_TASK_ROWS))
        return TableReader(self._pinned, schema, filter=self.options.get("filter"), task_rows=rows)


def register(spark: SparkSession) -> None:
    """Make the format known to a session.

    Args:
        spark (SparkSession): any session.
    """
    spark.dataSource.register(OmnigraphSource)


def pinned_options(table: PinnedTable) -> dict[str, str]:
    """Options that name a version directly, for a frame of a graph that is open already.

    Args:
        table (PinnedTable): the version.

    Returns:
        dict[str, str]: keys of the store are options of their own, so that Spark hides them where it shows options.
    """
    named = {"uri": table.place.uri, "table": table.pin.table, "version": str(table.pin.version)}
    return {_PINNED: json.dumps(named)} | {f"{_STORE}{key}": value for key, value in table.place.storage_options}


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


def _pinned(options: Mapping[str, str]) -> PinnedTable:
    named = options.get(_PINNED)
    if named is not None:
        found = json.loads(named)
        store = tuple((key.removeprefix(_STORE), value) for key, value in options.items() if key.startswith(_STORE))
        return PinnedTable(TablesPlace(found["uri"], store), Pin(found["table"], int(found["version"])))
    uri, name = options.get("graph"), options.get("type")
    if not uri or not name:
        raise InvalidRequestError("reading a graph needs the options 'graph' and 'type'")
    parts = root.open_root(uri, read_only=True)
    record = entry_at(parts, _point(options))
    return PinnedTable(place_of(parts.tables), record.tables[type_key_in(record, name)])


def _point(options: Mapping[str, str]) -> Point:
    version = options.get("versionAsOf")
    return Point(
        branch=options.get("branch"),
        commit=version if version is not None and is_ulid(version) else None,
        number=int(version) if version is not None and version.isdigit() else None,
        tag=options.get("tag"),
        at=options.get("timestampAsOf"),
    )
