"""A graph at one commit: whatever is written later, every read through it shows the same."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from omnigraph.api.near import Neighbourhood
from omnigraph.api.neighbourhood import neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.schemas import Schemas
from omnigraph.errors import FormatError, GraphError, InvalidRequestError, NotFoundError
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.language.query import CompiledQuery, Params, bind_params, compile, explain
from omnigraph.language.query.lifted import compile_lifted
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import Record
from omnigraph.model.schema import EntityType, NodeType, Schema
from omnigraph.storage.blob_values import outward
from omnigraph.storage.tables.lend import LanceDataset, lend
from omnigraph.storage.tables.tables import StoredBlob, Table
from omnigraph.transaction import snapshot as pinned
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.said import text

_Batch = TypeVar("_Batch")


@dataclass(frozen=True, slots=True)
class Reading:
    """What every snapshot of one open graph reads with."""

    parts: Parts
    schemas: Schemas
    engine: QueryEngine


class Snapshot:
    """One commit, pinned for reading. Closing is a courtesy: nothing is held that others would wait for."""

    def __init__(self, reading: Reading, entry: Record, *, head_of: str | None) -> None:
        self._pinned: pinned.Snapshot = reading.parts.snapshot(entry)
        self._accepted: Accepted = reading.schemas.of(entry.schema)
        self._parts = reading.parts
        self._engine = reading.engine
        self._head_of = head_of
        self._closed = False

    @property
    def commit(self) -> str:
        """The id of the commit."""
        return self._pinned.commit

    @property
    def number(self) -> int:
        """The place of its entry in the branch's log."""
        return self._pinned.record.number

    @property
    def branch(self) -> str:
        """The branch in whose log the entry is."""
        return self._pinned.record.branch

    @property
    def head_of(self) -> str | None:
        """The branch whose head it was when it was taken; None where a commit was named."""
        return self._head_of

    @property
    def record(self) -> Record:
        """The entry itself: who, when, why, and the version of every table."""
        return self._pinned.record

    @property
    def table_versions(self) -> dict[str, int]:
        """The version of every table, by type key: what a write may expect to find still."""
        return {key: pin.version for key, pin in self.record.tables.items()}

    @property
    def schema(self) -> Schema:
        """The types there are."""
        return self._accepted.schema

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> Result:
        """Answer a query.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `Graph.prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): what it may use.

        Returns:
            Result: the rows.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than it may use.
            ReclaimedError: the commit was pruned since, and its data is gone.
        """
        at = self._open()
        compiled, bound = self._bound(query, params, name)
        try:
            rows = self._engine.run(at, compiled, bound, schema=self._accepted.schema, limits=limits)
        except FormatError as fault:
            raise self._told(fault) from fault
        return Result(rows, query_name=compiled.name, branch=self._head_of, commit=at.commit)

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
    ) -> ResultStream:
        """Answer a query a batch at a time, so that memory does not follow the size of the result.

        Args:
            query (str | PreparedQuery): a text in the query language, or one prepared with `Graph.prepare`.
            params (Mapping[str, object] | None): values of its parameters.
            name (str | None): which query of the text; may be left out where there is only one.
            limits (QueryLimits): what it may use; rows that were handed over do not count.

        Returns:
            ResultStream: the rows, found while they are asked for, all of them at this commit.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: the query writes, a parameter is missing, or a value does not fit.
            LimitError: it needs more memory than it may use; also later, when rows are asked for.
            ReclaimedError: the commit was pruned since, and its data is gone; likewise.
        """
        at = self._open()
        compiled, bound = self._bound(query, params, name)
        with self._telling():
            columns, batches = self._engine.stream(at, compiled, bound, schema=self._accepted.schema, limits=limits)
        return ResultStream(
            columns, self._watched(batches), query_name=compiled.name, branch=self._head_of, commit=at.commit
        )

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        """How a query or mutation would be carried out, as text for people.

        Args:
            query (str | PreparedQuery): a text in the query language, or a prepared one.
            name (str | None): which query of the text; may be left out where there is only one.

        Returns:
            str: the plan, one step per line.

        Raises:
            ParseError: the text is wrong.
            InvalidRequestError: there is no such query.
        """
        text, chosen = as_text(query, name)
        compiled = compile(text, self.schema, name=chosen)
        return "\n".join([explain(compiled), *self._engine.explain(self._open(), compiled, schema=self.schema)])

    def count(self, type_name: str) -> int:
        """How many nodes or edges of a type there are. Costs no request.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            int: the number.

        Raises:
            NotFoundError: there is no such type.
        """
        with self._telling():
            return self._open().count(self.entity(type_name).type_key)

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
    ) -> Neighbourhood:
        """What surrounds a node.

        Args:
            type_name (str): its type.
            entity_id (str): its id.
            edges (Iterable[str]): only edges of these types, in either direction; all by default.
            depth (int): how many steps outwards.
            limit (int): nodes at most, the one in the middle included.

        Returns:
            Neighbourhood: nodes with their properties, and the edges between them.

        Raises:
            NotFoundError: there is no such type or node.
            InvalidRequestError: it is an edge type, or a bound is out of range.
        """
        entity = self.entity(type_name)
        if not isinstance(entity, NodeType):
            raise InvalidRequestError(f"'{type_name}' is an edge type: a neighbourhood is that of a node")
        with self._telling():
            return neighbourhood(self._open(), self.schema, entity, entity_id, edges=edges, depth=depth, limit=limit)

    def export_arrow(self, type_name: str, *, columns: Sequence[str] | None = None) -> pa.RecordBatchReader:
        """All rows of a type, a batch at a time, so that memory does not follow the size of the type.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            columns (Sequence[str] | None): which; by default `id`, for edges `src` and `dst`, and every property.

        Returns:
            pa.RecordBatchReader: the rows, in no promised order. `Graph.write` takes them as they are.

        Raises:
            NotFoundError: there is no such type or column.
            InvalidRequestError: blobs of a column lie elsewhere, when they are met (`external_blob`).
        """
        table = self._table(type_name)
        names = table.schema.names if columns is None else list(columns)
        unknown = [name for name in names if name not in table.schema.names]
        if unknown:
            raise NotFoundError(f"{type_name} has no column '{unknown[0]}'", code="column_not_found")
        fields = [table.schema.field(name) for name in names]
        batches = self._watched(map(outward, table.batches(columns=names)))
        return pa.RecordBatchReader.from_batches(pa.schema(fields), batches)

    def stored_blob(self, type_key: str, id: str, column: str) -> StoredBlob | None:
        """A cell of a blob property as it is stored; `Graph.blob` gives the blob itself.

        Args:
            type_key (str): a type key like `node:Photo`.
            id (str): of the entity.
            column (str): the property.

        Returns:
            StoredBlob | None: None where it has no value.

        Raises:
            NotFoundError: there is no such entity.
        """
        return self._open().table(type_key).blob(id, column)

    def lance_table(self, type_name: str) -> LanceDataset:
        """The table of a type at this commit, as Lance itself opens it.

        Read from it only: Lance's `cleanup_old_versions` on it would delete files that commits still need.

        Args:
            type_name (str): a node type, else an edge type; or a type key.

        Returns:
            lance.LanceDataset: for reading. Whatever is done to it never reaches the graph.

        Raises:
            NotFoundError: there is no such type.
        """
        return lend(self._table(type_name))

    def close(self) -> None:
        """Refuse further reads through this object."""
        self._closed = True

    def __enter__(self) -> "Snapshot":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Snapshot of {self.branch} at commit {self.commit}>"

    def _bound(
        self, query: str | PreparedQuery, params: Mapping[str, object] | None, name: str | None
    ) -> tuple[CompiledQuery, Params]:
        """A query ready to run, and the values of this run."""
        accepted = self._accepted
        text, chosen = as_text(query, name)
        compiled, lifted = compile_lifted(text, accepted.schema, name=chosen, schema_digest=accepted.digest)
        bound = bind_params(compiled, json_params(params))
        return compiled, Params({**bound.values, **lifted}) if lifted else bound

    def _table(self, type_name: str) -> Table:
        with self._telling():
            return self._open().table(self.entity(type_name).type_key)

    def _told(self, fault: FormatError) -> GraphError:
        """What a file that cannot be read means: the commit was pruned, or the graph is damaged."""
        from omnigraph.api.pruning import as_reclaimed  # noqa: PLC0415  (what sweeps, for a file that is gone)

        return as_reclaimed(self._parts, self.record, fault)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        try:
            yield
        except FormatError as fault:
            raise self._told(fault) from fault

    def _watched(self, batches: Iterable[_Batch]) -> Iterator[_Batch]:
        """Batches as they are asked for; a sweep may come before the last."""
        with self._telling():
            yield from batches

    def entity(self, type_name: str) -> EntityType:
        """A type there is.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.

        Returns:
            EntityType: with its properties.

        Raises:
            NotFoundError: there is no such type.
        """
        schema, name = self.schema, text(type_name, "the name of a type")
        found = schema.entity(name) if ":" in name else schema.node(name) or schema.edge(name)
        if found is None:
            raise NotFoundError(f"there is no type '{type_name}'", code="type_not_found", type=type_name)
        return found

    def _open(self) -> pinned.Snapshot:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")
        return self._pinned
