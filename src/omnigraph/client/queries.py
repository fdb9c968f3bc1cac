"""Asking a graph on a server."""

from omnigraph.api.asking import Asking
from omnigraph.api.prepared import Asked, PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.branch.point import Point
from omnigraph.client import values
from omnigraph.client.base import RemoteBase
from omnigraph.client.rows import row_stream, rows
from omnigraph.client.snapshot import RemoteSnapshot, query_body


class RemoteQueries(RemoteBase, Asking[RemoteSnapshot]):
    """How a graph on a server is asked. Every answer sees one commit."""

    def _at(self, point: Point) -> RemoteSnapshot:
        wire = self._open()
        record = values.snapshot_record(wire.get("snapshot", **values.state(point)))
        return RemoteSnapshot(wire, record, head_of=record.branch if point.is_head else None)

    def _schema_text(self, branch: str) -> str:
        return str(self._open().get("schema", branch=branch)["schema_source"])

    def _query(self, point: Point, asked: Asked) -> Result:
        return rows(self._open(), query_body(asked, **values.state(point)))

    def _stream(self, point: Point, asked: Asked) -> ResultStream:
        return row_stream(self._open(), query_body(asked, **values.state(point)))

    def _explain(self, point: Point, query: str | PreparedQuery, *, name: str | None) -> str:
        text, chosen = as_text(query, name)
        body = {"query": text, "name": chosen, **values.state(point)}
        return "\n".join(self._open().post("explain", body)["plan"])

    def _count(self, point: Point, type_name: str) -> int:
        return int(self._open().get("count", type=type_name, **values.state(point))["count"])
