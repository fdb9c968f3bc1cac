"""The data source `omnigraph`: one type of one graph as a table of Spark's.

    spark.read.format("omnigraph").option("graph", uri).option("type", "Person").load()

Options: `graph`, `type`, and of these at most one: `branch`, `versionAsOf` (a commit id, or a number of the branch's
log), `timestampAsOf`, `tag`. `columns` names the columns to read, as does a schema given to the reader: of others
nothing is read. `filter` is a condition in SQL that the scan itself judges, with indexes where there are some. Which
commit is read is decided when the frame is made; the frame shows it for ever. An option that is none is refused.
"""

from collections.abc import Mapping, MutableMapping

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter
from pyspark.sql.types import StructType

from omnigraph import limits
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.point import Point
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.ids import UlidSource, is_ulid
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.schema import TypeKind
from omnigraph.model.suggest import explain_unknown
from omnigraph.pipeline.columns import arrow_schema, spark_schema, table_columns
from omnigraph.pipeline.source.options import mode_of, one_of, refuse_unknown, whole_number
from omnigraph.pipeline.source.reading import PinnedTable, TableReader, check_columns, check_filter
from omnigraph.pipeline.source.writing import RowsWriter, Target
from omnigraph.pipeline.spill import spill_beside
from omnigraph.storage.tables.location import location_of
from omnigraph.transaction import root
from omnigraph.transaction.options import WriteOptions

NAME = "omnigraph"


class OmnigraphSource(DataSource):
    """One type of one graph at one commit."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        refuse_unknown(options)
        # Looked up once: a frame is planned again for every action, and shall show the same commit every time.
        self._type_key, self._pinned = _pinned(options)

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def schema(self) -> StructType:
        """Return the columns of the type, or those in the option `columns`."""
        refuse_unknown(self.options, reading=True)
        columns = self._pinned.open().schema
        named = self.options.get("columns")
        names = None if named is None else [name.strip() for name in named.split(",") if name.strip()]
        check_columns(self._type_key, columns.names, names or ())
        condition = self.options.get("filter")
        if condition is not None:
            check_filter(self._pinned.open(), condition)
        return spark_schema(columns, names)

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader of these columns."""
        refuse_unknown(self.options, reading=True)
        rows = whole_number("taskRows", self.options.get("taskRows", str(limits.SPARK_TASK_ROWS)))
        return TableReader(self._pinned, schema, filter=self.options.get("filter"), task_rows=rows)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:  # noqa: FBT001  (Spark's own)
        """A writer of rows with these columns.

        The option `mode` may be `merge`, which puts new rows in the place of old ones; `branch`, `actor`, `message`,
        `idempotencyKey` and `prunePrevious` say the rest. `engine` says where the rows are loaded, `local` or `spark`;
        otherwise their size decides. Until then they lie beside the graph, where every worker reaches them.
        """
        refuse_unknown(self.options, reading=False)
        target = Target(
            graph=self.options["graph"],
            type_key=self._type_key,
            branch=self.options.get("branch") or MAIN,
            mode=mode_of(self.options, overwrite=overwrite),
            write=WriteOptions(
                actor=self.options.get("actor"),
                message=self.options.get("message"),
                idempotency_key=self.options.get("idempotencyKey"),
                prune_previous=one_of(self.options, "prunePrevious", ("false", "true")) == "true",
            ),
            engine=one_of(self.options, "engine", ("local", "spark")),
        )
        spill = spill_beside(self._pinned.place, UlidSource())
        return RowsWriter(target, spill, table_columns(arrow_schema(schema), self._pinned.open().schema))


def register(spark: SparkSession) -> None:
    """Make the format known to a session.

    Args:
        spark: any session.
    """
    spark.dataSource.register(OmnigraphSource)


def type_key_in(record: Record, name: str) -> str:
    """The key of a type by its name: the node type, else the edge type, or a key as it is.

    Args:
        record: the commit.
        name: as a caller spells it.

    Returns:
        str: like `node:Person`.

    Raises:
        NotFoundError: there is no such type.
    """
    for key in (f"{TypeKind.NODE}:{name}", f"{TypeKind.EDGE}:{name}", name):
        if key in record.tables:
            return key
    known = (key.partition(":")[2] for key in record.tables)
    raise NotFoundError(explain_unknown("there is no type", name, known), code="type_not_found", type=name)


def _pinned(options: Mapping[str, str]) -> tuple[str, PinnedTable]:
    uri, name = options.get("graph"), options.get("type")
    if not uri or not name:
        raise InvalidRequestError("reading a graph needs the options 'graph' and 'type'")
    parts = root.open_root(uri, read_only=True)
    record = entry_at(parts, _point(options))
    key = type_key_in(record, name)
    return key, PinnedTable(location_of(parts.tables), record.tables[key])


def _point(options: Mapping[str, str]) -> Point:
    version = options.get("versionAsOf")
    of_commit = version is not None and is_ulid(version)
    return Point(
        branch=options.get("branch"),
        commit=version if of_commit else None,
        number=None if version is None or of_commit else whole_number("versionAsOf", version, "or the id of a commit"),
        tag=options.get("tag"),
        at=options.get("timestampAsOf"),
    )
