"""Results of queries: an Arrow table or stream, with conversions to other forms."""

import html
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

import pyarrow as pa

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import ID
from omnigraph.storage.json_values import to_json

NODES = ("id", "object")


def wants_objects(nodes: str) -> bool:
    """Validate how nodes are returned.

    Raises:
        InvalidRequestError: it is neither `id` nor `object`.
    """
    if nodes not in NODES:
        raise InvalidRequestError(f"unknown form of nodes {nodes!r}; use {' or '.join(NODES)}")
    return nodes == "object"


def nest_nodes(batch: pa.RecordBatch, objects: Sequence[tuple[int, Sequence[str]]]) -> pa.RecordBatch:
    """Replace the columns of each node and its properties, which follow it, by one column of objects."""
    inside = dict(objects)
    names, columns, place = [], [], 0
    while place < batch.num_columns:
        column, properties = batch.column(place), inside.get(place)
        names.append(batch.schema.names[place])
        place += 1
        if properties is not None:
            children = [column, *batch.columns[place : place + len(properties)]]
            fields = [pa.field(name, child.type) for name, child in zip([ID, *properties], children, strict=True)]
            column = pa.StructArray.from_arrays(children, fields=fields, mask=column.is_null())
            place += len(properties)
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, names)


class Result:
    """The rows of one query, read at one commit.

    Iterating yields one dictionary of JSON values per row. Libraries that read Arrow streams (polars, DuckDB, pandas,
    another `pyarrow`) accept a result directly.

    Attributes:
        query_name: the query's name.
        branch: whose head was read; None for a read at a commit.
        commit: the commit that was read.
        engine: what found the rows, `local` or `spark`.
    """

    def __init__(
        self, table: pa.Table, *, query_name: str, branch: str | None, commit: str, engine: str = "local"
    ) -> None:
        self._table = table
        self.engine = str(engine)
        self.query_name = query_name
        self.branch = branch
        self.commit = commit

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._table.column_names)

    @property
    def row_count(self) -> int:
        """The number of rows."""
        return self._table.num_rows

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table."""
        return self._table

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return the rows as dictionaries of JSON values: dates as text, nodes as ids or objects."""
        return [row for batch in self._table.to_batches() for row in _rows(batch)]

    def to_pandas(self) -> Any:  # noqa: ANN401  (pandas is imported only here)
        """Return the rows as a pandas data frame; pandas must be installed."""
        _import_installed("pandas")
        return self._table.to_pandas()

    def to_polars(self) -> Any:  # noqa: ANN401  (polars is imported only here)
        """Return the rows as a polars data frame; polars must be installed.

        Raises:
            InvalidRequestError: two columns have the same name, which polars does not allow.
        """
        twice = next((name for name, times in Counter(self.columns).items() if times > 1), None)
        if twice is not None:
            raise InvalidRequestError(f"two columns are called '{twice}'; give each a name of its own with `as`")
        return _import_installed("polars").from_arrow(self._table)

    def to_json(self) -> dict[str, Any]:
        """Return the result as one JSON document."""
        document: dict[str, Any] = {
            "query_name": self.query_name,
            "target": {"branch": self.branch, "snapshot": None if self.branch is not None else self.commit},
            "row_count": self.row_count,
        }
        if self.columns:
            document["columns"] = self.columns
        document["rows"] = self.to_pylist()
        document["graph_commit_id"] = self.commit
        if self.engine != "local":
            document["engine"] = self.engine
        return document

    def __len__(self) -> int:
        return self.row_count

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.to_pylist())

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows through Arrow's C stream interface."""
        rows: Any = self._table
        stream: object = rows.__arrow_c_stream__(requested_schema)
        return stream

    def __repr__(self) -> str:
        columns = ", ".join(self.columns)
        return f"<Result of {self.query_name}: {self.row_count} rows of ({columns}) at commit {self.commit}>"

    def _repr_html_(self) -> str:
        """Return an HTML table of the first rows, for notebooks."""
        shown = Result(
            self._table.slice(0, limits.HTML_ROWS_MAX),
            query_name=self.query_name,
            branch=self.branch,
            commit=self.commit,
            engine=self.engine,
        )
        head = "".join(f"<th>{html.escape(name)}</th>" for name in self.columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in values) + "</tr>" for values in shown._values()
        )
        hidden = self.row_count - shown.row_count
        rest = f" ({hidden} more not shown)" if hidden else ""
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{self.row_count} rows{rest}, commit {html.escape(self.commit)}</p>"
        )

    def _values(self) -> Iterator[tuple[Any, ...]]:
        return zip(*(to_json(column) for column in self._table.columns), strict=True)


class ResultStream:
    """The rows of one query, computed while they are read; they can be read once.

    Iterating yields one dictionary of JSON values per row; `batches` returns Arrow batches. Libraries that read Arrow
    streams accept it directly. All rows come from one commit, however long reading takes.

    Attributes:
        query_name: the query's name.
        branch: whose head was read; None for a read at a commit.
        commit: the commit that is read.
    """

    def __init__(
        self,
        columns: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        *,
        query_name: str,
        branch: str | None,
        commit: str,
    ) -> None:
        self._columns = columns
        self._batches: Iterator[pa.RecordBatch] | None = batches
        self.query_name = query_name
        self.branch = branch
        self.commit = commit

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return list(self._columns.names)

    @property
    def schema(self) -> pa.Schema:
        """The columns with their Arrow types."""
        return self._columns

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Return the rows as Arrow batches, none of them empty.

        Raises:
            InvalidRequestError: the stream was read before.
        """
        batches, self._batches = self._batches, None
        if batches is None:
            raise InvalidRequestError("a stream can be read once; run the query again", code="stream_consumed")
        return batches

    def to_reader(self) -> pa.RecordBatchReader:
        """Return the rows as a `pyarrow.RecordBatchReader`."""
        return pa.RecordBatchReader.from_batches(self._columns, self.batches())

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (row for batch in self.batches() for row in _rows(batch))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the rows through Arrow's C stream interface."""
        reader: Any = self.to_reader()
        stream: object = reader.__arrow_c_stream__(requested_schema)
        return stream

    def __repr__(self) -> str:
        return f"<ResultStream of {self.query_name}: ({', '.join(self.columns)}) at commit {self.commit}>"


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    names = batch.schema.names
    columns = [to_json(column) for column in batch.columns]
    if len(columns) == 1:
        [name], [values] = names, columns
        return [{name: value} for value in values]
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _cell(value: object) -> str:
    return "" if value is None else html.escape(str(value))


def _import_installed(package: str) -> Any:  # noqa: ANN401  (a module)
    try:
        return import_module(package)
    except ImportError:
        raise InvalidRequestError(f"{package} is not installed; install it, or take the rows with to_arrow()") from None
