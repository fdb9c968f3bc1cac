"""A graph at one commit: whatever is written later, every read through it shows the same."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import pyarrow as pa

from omnigraph.api.at_commit import AtCommit
from omnigraph.api.near import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import Asked, PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.schemas import Schemas
from omnigraph.errors import FormatError, GraphError, InvalidRequestError, NotFoundError
from omnigraph.execution.engine import QueryEngine
from omnigraph.language.query import CompiledQuery, Params, bind_params, compile, explain
from omnigraph.language.query.lifted import compile_lifted
from omnigraph.model.commit import Record
from omnigraph.model.schema import NodeType, Schema
from omnigraph.storage.blob_values import outward
from omnigraph.storage.tables.lend import LanceDataset, lend
from omnigraph.storage.tables.tables import StoredBlob, Table
from omnigraph.transaction import snapshot as pinned
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.parts import Parts

_Batch = TypeVar("_Batch")


@dataclass(frozen=True, slots=True)
class Reading:
    """What every snapshot of one open graph reads with."""

    parts: Parts
    schemas: Schemas
    engine: QueryEngine


class Snapshot(AtCommit):
    """One commit, pinned for reading. Closing is a courtesy: nothing is held that others would wait for."""

    def __init__(self, reading: Reading, entry: Record, *, head_of: str | None) -> None:
        super().__init__(entry, head_of=head_of)
        self._pinned: pinned.Snapshot = reading.parts.snapshot(entry)
        self._accepted: Accepted = reading.schemas.of(entry.schema)
        self._parts = reading.parts
        self._engine = reading.engine

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

    # -- how it is answered -------------------------------------------------------------------------------------------

    def _schema(self) -> Schema:
        return self._accepted.schema

    def _query(self, asked: Asked) -> Result:
        at = self._open()
        compiled, bound = self._bound(asked)
        try:
            rows = self._engine.run(at, compiled, bound, schema=self._accepted.schema, limits=asked.limits)
        except FormatError as fault:
            raise self._told(fault) from fault
        return Result(rows, query_name=compiled.name, branch=self._head_of, commit=at.commit)

    def _stream(self, asked: Asked) -> ResultStream:
        at = self._open()
        compiled, bound = self._bound(asked)
        with self._telling():
            columns, batches = self._engine.stream(
                at, compiled, bound, schema=self._accepted.schema, limits=asked.limits
            )
        return ResultStream(
            columns, self._watched(batches), query_name=compiled.name, branch=self._head_of, commit=at.commit
        )

    def _explain(self, query: str | PreparedQuery, name: str | None) -> str:
        text, chosen = as_text(query, name)
        compiled = compile(text, self.schema, name=chosen)
        return "\n".join([explain(compiled), *self._engine.explain(self._open(), compiled, schema=self.schema)])

    def _count(self, type_name: str) -> int:
        with self._telling():
            return self._open().count(self.entity(type_name).type_key)

    def _neighbourhood(
        self, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood:
        from omnigraph.api.neighbourhood import neighbourhood  # noqa: PLC0415  (queries do without it: test_startup)

        entity = self.entity(type_name)
        if not isinstance(entity, NodeType):
            raise InvalidRequestError(f"'{type_name}' is an edge type: a neighbourhood is that of a node")
        with self._telling():
            return neighbourhood(self._open(), self.schema, entity, entity_id, edges=edges, depth=depth, limit=limit)

    def _bound(self, asked: Asked) -> tuple[CompiledQuery, Params]:
        """A query ready to run, and the values of this run."""
        accepted = self._accepted
        text, chosen = as_text(asked.query, asked.name)
        compiled, lifted = compile_lifted(text, accepted.schema, name=chosen, schema_digest=accepted.digest)
        bound = bind_params(compiled, json_params(asked.params))
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

    def _open(self) -> pinned.Snapshot:
        self._refuse_closed()
        return self._pinned
