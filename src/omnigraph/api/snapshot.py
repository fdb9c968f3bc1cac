"""A graph in this process, at one commit."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Self, TypeVar, Unpack

import pyarrow as pa

from omnigraph.api.engines import Engine, engine_of
from omnigraph.api.interface.snapshot import SnapshotInterface
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.query_result import Result, ResultStream, nest_nodes, wants_objects
from omnigraph.api.schemas import Schemas
from omnigraph.api.spark_query import open_spark_query, rows_on_spark, run_query
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.point import Point, PointKeywords, point_of
from omnigraph.embedding.choose import choose_provider
from omnigraph.errors import FormatError, InvalidRequestError, NotFoundError, ReclaimedError
from omnigraph.execution.engine import QueryEngine
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.execution.search.query_text import Embedder
from omnigraph.language.query import CompiledQuery, Params, bind_params, compile, explain
from omnigraph.language.query.lifted import compile_lifted
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import MAIN, Record
from omnigraph.model.schema import NodeType, Schema
from omnigraph.storage import paths
from omnigraph.storage.blob_values import outward
from omnigraph.storage.tables.table import LanceDataset, as_lance_dataset
from omnigraph.storage.tables.tables import StoredBlob, Table
from omnigraph.transaction import snapshot as pinned
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.graph_context import GraphContext

_Batch = TypeVar("_Batch")

# How often a read of a head starts again because a prune and a sweep were faster.
_HEAD_READS_MAX = 8


class GraphReader:
    """Reads of one open graph: what queries need, and nothing that writes. Its snapshots share one query engine.

    Attributes:
        parts: of the graph; they look up rows through the query engine.
        schemas: the schemas of its commits.
        engine: runs queries, and keeps tables in memory.
    """

    def __init__(self, parts: GraphContext, schemas: Schemas, engine: QueryEngine) -> None:
        self.parts = parts
        self.schemas = schemas
        self.engine = engine
        self._newest: Snapshot | None = None

    @classmethod
    def of(cls, parts: GraphContext, schemas: Schemas, *, cache_bytes: int) -> Self:
        """Make the query engine of an open graph."""
        engine = QueryEngine(
            parts.tables,
            parts.store,
            read_only=parts.read_only,
            clock=parts.clock,
            cache_bytes=cache_bytes,
            embedder=Embedder(partial(choose_provider, parts.settings.embeddings)),
        )
        return cls(replace(parts, finder=engine.row_index), schemas, engine)

    def snapshot(self, **point: Unpack[PointKeywords]) -> "Snapshot":
        """Pin any state; see `Graph.snapshot`."""
        at = point_of(point)
        entry = entry_at(self.parts, at)
        return Snapshot(self, entry, head_of=entry.branch if at.is_head else None)

    def schema_text(self, *, branch: str = MAIN) -> str:
        """Return the schema text at the head of a branch; see `Graph.schema_text`."""
        return self.schemas.text(entry_at(self.parts, Point(branch=branch)).schema)

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = Engine.AUTO,
        nodes: str = "id",
        **point: Unpack[PointKeywords],
    ) -> Result:
        """Run a query at any state; see `Graph.query`."""
        at = point_of(point)
        for _ in range(_HEAD_READS_MAX if at.is_head else 0):
            with suppress(ReclaimedError):  # pruned and swept between the look at the head and the reading of rows
                return self._head(at.branch).query(query, params, name=name, limits=limits, engine=engine, nodes=nodes)
        return self.snapshot(point=at).query(query, params, name=name, limits=limits, engine=engine, nodes=nodes)

    def explain(self, query: str | PreparedQuery, *, name: str | None = None, **point: Unpack[PointKeywords]) -> str:
        """Describe the plan of a query; see `Graph.explain`."""
        return self.snapshot(**point).explain(query, name=name)

    def _head(self, branch: str | None) -> "Snapshot":
        """Take a snapshot of a head; the last one again as long as the branch has not moved."""
        head = self.parts.log.live_head(paths.branch_name(MAIN if branch is None else branch))
        newest = self._newest
        if newest is None or newest.record is not head:
            newest = self._newest = Snapshot(self, head, head_of=head.branch)
        return newest


class Snapshot(SnapshotInterface):
    """One commit, pinned for reading. Closing is optional: nothing is held that others would wait for."""

    def __init__(self, reader: GraphReader, entry: Record, *, head_of: str | None) -> None:
        self._record = entry
        self._head_of = head_of
        self._closed = False
        self._pinned: pinned.Snapshot = reader.parts.snapshot(entry)
        self._accepted: Accepted = reader.schemas.of(entry.schema)
        self._reader = reader

    @property
    def record(self) -> Record:
        return self._record

    @property
    def head_of(self) -> str | None:
        return self._head_of

    @property
    def schema(self) -> Schema:
        return self._accepted.schema

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = Engine.AUTO,
        nodes: str = "id",
    ) -> Result:
        at = self._open()
        chosen = engine_of(engine)
        compiled, bound = self._bind(query, params, name, nodes)
        with self._reporting_pruned_data():
            rows, used = run_query(
                chosen,
                lambda: self._reader.engine.run(at, compiled, bound, schema=self.schema, limits=limits),
                lambda session: rows_on_spark(
                    open_spark_query(self._reader.parts, self._record, self.schema, session), compiled, bound, limits
                ),
            )
        if compiled.objects:
            batches = [nest_nodes(batch, compiled.objects) for batch in (rows.to_batches() or [_no_rows(rows.schema)])]
            rows = pa.Table.from_batches(batches)
        return Result(rows, query_name=compiled.name, branch=self._head_of, commit=at.commit, engine=used)

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        nodes: str = "id",
    ) -> ResultStream:
        at = self._open()
        compiled, bound = self._bind(query, params, name, nodes)
        with self._reporting_pruned_data():
            columns, batches = self._reader.engine.stream(at, compiled, bound, schema=self.schema, limits=limits)
        if compiled.objects:
            columns = nest_nodes(_no_rows(columns), compiled.objects).schema
            batches = map(partial(nest_nodes, objects=compiled.objects), batches)
        return ResultStream(
            columns, self._watched(batches), query_name=compiled.name, branch=self._head_of, commit=at.commit
        )

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        text, chosen = as_text(query, name)
        compiled = compile(text, self.schema, name=chosen)
        steps = self._reader.engine.explain(self._open(), compiled, schema=self.schema)
        return "\n".join([explain(compiled), *steps])

    def count(self, type_name: str) -> int:
        with self._reporting_pruned_data():
            return self._open().count(self.entity(type_name).type_key)

    def get_many(self, type_name: str, ids: Iterable[str]) -> list[dict[str, Any] | None]:
        from omnigraph.api.entities import read_entities  # noqa: PLC0415  (queries do without it: test_startup)

        entity = self.entity(type_name)
        with self._reporting_pruned_data():
            return read_entities(self._open(), self.schema, entity, ids)

    def neighbourhood(
        self,
        type_name: str,
        entity_id: str,
        *,
        edges: Iterable[str] = (),
        depth: int = 1,
        limit: int = NEIGHBOURHOOD_NODES,
        vectors: bool = False,
    ) -> Neighbourhood:
        from omnigraph.api.neighbourhood_search import (  # noqa: PLC0415  (queries do without it: test_startup)
            search_neighbourhood,
        )

        entity = self.entity(type_name)
        if not isinstance(entity, NodeType):
            raise InvalidRequestError(f"'{type_name}' is an edge type: a neighbourhood is that of a node")
        with self._reporting_pruned_data():
            return search_neighbourhood(
                self._open(), self.schema, entity, entity_id, edges=edges, depth=depth, limit=limit, vectors=vectors
            )

    def close(self) -> None:
        self._closed = True

    # -- what needs the storage ---------------------------------------------------------------------------------------

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
        return as_lance_dataset(self._table(type_name))

    # -- inside -------------------------------------------------------------------------------------------------------

    def _open(self) -> pinned.Snapshot:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")
        return self._pinned

    def _bind(
        self, query: str | PreparedQuery, params: Mapping[str, object] | None, name: str | None, nodes: str
    ) -> tuple[CompiledQuery, Params]:
        """Compile a query, and bind its parameters."""
        accepted = self._accepted
        text, chosen = as_text(query, name)
        compiled, lifted = compile_lifted(
            text, accepted.schema, name=chosen, schema_digest=accepted.digest, objects=wants_objects(nodes)
        )
        bound = bind_params(compiled, json_params(params))
        return compiled, Params({**bound.values, **lifted}) if lifted else bound

    def _table(self, type_name: str) -> Table:
        with self._reporting_pruned_data():
            return self._open().table(self.entity(type_name).type_key)

    @contextmanager
    def _reporting_pruned_data(self) -> Iterator[None]:
        """Say of a file that is gone whether the commit was pruned or the graph is damaged."""
        try:
            yield
        except FormatError as fault:
            from omnigraph.api.prune import as_reclaimed  # noqa: PLC0415  (imports what sweeps; only when data is gone)

            raise as_reclaimed(self._reader.parts, self._record, fault) from fault

    def _watched(self, batches: Iterable[_Batch]) -> Iterator[_Batch]:
        """Read batches lazily; a sweep may come before the last."""
        with self._reporting_pruned_data():
            yield from batches


def _no_rows(columns: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], column.type) for column in columns], schema=columns)
