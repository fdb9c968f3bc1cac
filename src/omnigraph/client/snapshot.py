"""A graph on a server at one commit: whatever is written later, every read through it shows the same."""

from collections.abc import Iterable
from functools import cached_property

from omnigraph.api.at_commit import AtCommit, no_type
from omnigraph.api.near import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import Asked, PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.branch.point import Point
from omnigraph.client import values
from omnigraph.client.rows import row_stream, rows
from omnigraph.client.wire import Wire, present
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import DEFAULT_LIMITS
from omnigraph.model.commit import Record
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import from_document
from omnigraph.transaction.said import text


class RemoteSnapshot(AtCommit):
    """One commit, pinned for reading. The server holds nothing for it."""

    def __init__(self, wire: Wire, record: Record, *, head_of: str | None) -> None:
        super().__init__(record, head_of=head_of)
        self._wire = wire

    def _schema(self) -> Schema:
        return self._types

    @cached_property
    def _types(self) -> Schema:
        return from_document(self._open().get("schema/resolved", snapshot=self.commit)["schema"])

    def _query(self, asked: Asked) -> Result:
        found = rows(self._open(), query_body(asked, snapshot=self.commit))
        return Result(found.to_arrow(), query_name=found.query_name, branch=self._head_of, commit=found.commit)

    def _stream(self, asked: Asked) -> ResultStream:
        found = row_stream(self._open(), query_body(asked, snapshot=self.commit))
        return ResultStream(
            found.schema, found.batches(), query_name=found.query_name, branch=self._head_of, commit=found.commit
        )

    def _explain(self, query: str | PreparedQuery, name: str | None) -> str:
        text, chosen = as_text(query, name)
        body = {"query": text, "name": chosen, "snapshot": self.commit}
        return "\n".join(self._open().post("explain", body)["plan"])

    def _count(self, type_name: str) -> int:
        self._open()
        tables, name = self._record.tables, text(type_name, "the name of a type")
        keys = [name] if ":" in name else [f"node:{name}", f"edge:{name}"]
        found = next((tables[key] for key in keys if key in tables), None)
        if found is None:
            raise no_type(type_name)
        return found.rows

    def _neighbourhood(
        self, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood:
        at = Point(commit=self.commit)
        return neighbourhood(self._open(), at, type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def _open(self) -> Wire:
        self._refuse_closed()
        return self._wire


def query_body(asked: Asked, **where: str | int | None) -> dict[str, object]:
    """The body of a request that asks a query.

    Raises:
        InvalidRequestError: the caller wants other limits than the server's.
    """
    if asked.limits is not DEFAULT_LIMITS:
        raise InvalidRequestError("a server has its own limits: a query to it cannot name others", code="own_limits")
    text, chosen = as_text(asked.query, asked.name)
    return present({"query": text, "name": chosen, "params": json_params(asked.params), **where})


def neighbourhood(
    wire: Wire, point: Point, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
) -> Neighbourhood:
    """What surrounds a node; see `omnigraph.Graph.neighbourhood`."""
    where = values.state(point)
    return values.neighbourhood(
        wire.get("neighbourhood", type=type_name, id=entity_id, edge=tuple(edges), depth=depth, limit=limit, **where)
    )
