"""Asking a graph on a server."""

from collections.abc import Mapping

from omnigraph.api.asking import Asking
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.result import Result, ResultStream
from omnigraph.branch.point import Instant, Point
from omnigraph.client import values
from omnigraph.client.base import RemoteBase
from omnigraph.client.rows import row_stream, rows
from omnigraph.client.snapshot import RemoteSnapshot, query_body
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.model.schema import Schema


class RemoteQueries(RemoteBase, Asking):
    """What can be asked of a graph on a server. Every answer sees one commit."""

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> RemoteSnapshot:
        """The graph at one commit; see `omnigraph.Graph.snapshot`.

        Args:
            branch (str | None): its head, or with `number` or `at` an earlier state of it; `main` by default.
            commit (str | None): a commit by its id, whatever its branch.
            number (int | None): a place in the branch's log.
            tag (str | None): the commit a tag names.
            at (datetime | str | None): the branch as it was at this time; without a zone it is UTC.

        Returns:
            RemoteSnapshot: for reading; it never changes.
        """
        return self._at(Point(branch=branch, commit=commit, number=number, tag=tag, at=at))

    # -- how it is answered -------------------------------------------------------------------------------------------

    def _at(self, point: Point) -> RemoteSnapshot:
        wire = self._open()
        record = values.snapshot_record(wire.get("snapshot", **values.state(point)))
        return RemoteSnapshot(wire, record, head_of=record.branch if point.is_head else None)

    def _schema(self, branch: str) -> Schema:
        return self._at(Point(branch=branch)).schema

    def _schema_text(self, branch: str) -> str:
        return str(self._open().get("schema", branch=branch)["schema_source"])

    def _query(
        self,
        point: Point,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None,
        *,
        name: str | None,
        limits: QueryLimits,
    ) -> Result:
        return rows(self._open(), query_body(query, params, name, limits, **values.state(point)))

    def _stream(
        self,
        point: Point,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None,
        *,
        name: str | None,
        limits: QueryLimits,
    ) -> ResultStream:
        return row_stream(self._open(), query_body(query, params, name, limits, **values.state(point)))

    def _explain(self, point: Point, query: str | PreparedQuery, *, name: str | None) -> str:
        text, chosen = as_text(query, name)
        body = {"query": text, "name": chosen, **values.state(point)}
        return "\n".join(self._open().post("explain", body)["plan"])

    def _count(self, point: Point, type_name: str) -> int:
        return int(self._open().get("count", type=type_name, **values.state(point))["count"])
