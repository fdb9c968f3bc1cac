"""A graph on a server, at one commit."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

from omnigraph.api.interface.snapshot import SnapshotInterface, no_type
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.query_result import Result, ResultStream
from omnigraph.branch.point import Point
from omnigraph.client.requests import fetch_entities, fetch_neighbourhood, query_body
from omnigraph.client.rows import fetch_rows, stream_rows
from omnigraph.client.wire import Wire
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.limits import NEIGHBOURHOOD_NODES
from omnigraph.model.commit import Record
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import from_document
from omnigraph.transaction.validation import require_text


class RemoteSnapshot(SnapshotInterface):
    """One commit, pinned for reading. The server holds nothing for it."""

    def __init__(self, wire: Wire, record: Record, *, head_of: str | None) -> None:
        self._wire = wire
        self._record = record
        self._head_of = head_of
        self._closed = False

    @property
    def record(self) -> Record:
        return self._record

    @property
    def head_of(self) -> str | None:
        return self._head_of

    @property
    def schema(self) -> Schema:
        return self._schema

    def query(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        engine: str = "auto",
        nodes: str = "id",
    ) -> Result:
        body = query_body(query, params, name, limits, Point(commit=self.commit), engine=engine, nodes=nodes)
        found = fetch_rows(self._open(), body)
        return Result(
            found.to_arrow(),
            query_name=found.query_name,
            branch=self._head_of,
            commit=found.commit,
            engine=found.engine,
        )

    def stream(
        self,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None = None,
        *,
        name: str | None = None,
        limits: QueryLimits = DEFAULT_LIMITS,
        nodes: str = "id",
    ) -> ResultStream:
        found = stream_rows(
            self._open(), query_body(query, params, name, limits, Point(commit=self.commit), nodes=nodes)
        )
        return ResultStream(
            found.schema, found.batches(), query_name=found.query_name, branch=self._head_of, commit=found.commit
        )

    def explain(self, query: str | PreparedQuery, *, name: str | None = None) -> str:
        written, chosen = as_text(query, name)
        body = {"query": written, "name": chosen, "snapshot": self.commit}
        return "\n".join(self._open().post("explain", body)["plan"])

    def count(self, type_name: str) -> int:
        self._open()
        tables, name = self._record.tables, require_text(type_name, "the name of a type")
        keys = [name] if ":" in name else [f"node:{name}", f"edge:{name}"]
        found = next((tables[key] for key in keys if key in tables), None)
        if found is None:
            raise no_type(type_name)
        return found.rows

    def get_many(self, type_name: str, ids: Iterable[str]) -> list[dict[str, Any] | None]:
        return fetch_entities(self._open(), type_name, ids, Point(commit=self.commit))

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
        around = {"edge": tuple(edges), "depth": depth, "limit": limit, "vectors": vectors}
        return fetch_neighbourhood(self._open(), type_name, entity_id, around, Point(commit=self.commit))

    def close(self) -> None:
        self._closed = True

    @cached_property
    def _schema(self) -> Schema:
        return from_document(self._open().get("schema/resolved", snapshot=self.commit)["schema"])

    def _open(self) -> Wire:
        if self._closed:
            raise InvalidRequestError("the snapshot was closed", code="closed")
        return self._wire
