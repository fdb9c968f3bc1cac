"""Asking an open graph."""

from collections.abc import Mapping

from omnigraph.api.asking import Asking
from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.prepared import PreparedQuery
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.point import Instant, Point
from omnigraph.branch.points import entry_at
from omnigraph.errors import ReclaimedError
from omnigraph.execution.engine import EngineStats
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.model.schema import Schema

# How often a read of the newest state starts again because a prune and a sweep were faster.
_NEWEST_LOOKS_MAX = 8


class GraphQueries(OpenGraph, Asking):
    """What can be asked of a graph, by itself: whoever only asks imports nothing else. Every answer sees one commit."""

    def snapshot(
        self,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
    ) -> Snapshot:
        """The graph at one commit. Queries on it are checked against the schema of that commit.

        Args:
            branch (str | None): its head, or with `number` or `at` an earlier state of it; `main` by default.
            commit (str | None): a commit by its id, whatever its branch.
            number (int | None): a place in the branch's log.
            tag (str | None): the commit a tag names.
            at (datetime | str | None): the branch as it was at this time; without a zone it is UTC.

        Returns:
            Snapshot: for reading; it never changes.

        Raises:
            NotFoundError: there is no such branch, commit, number or tag, or nothing was there at that time.
            InvalidRequestError: two of them are named of which one would do.
        """
        return self._at(Point(branch=branch, commit=commit, number=number, tag=tag, at=at))

    def stats(self) -> EngineStats:
        """What reads keep in memory, bounded in bytes, and where it came from.

        Returns:
            EngineStats: the cache of columns, indexes and adjacency; where adjacency came from; plans ready to run.
        """
        self._open()
        return self._reading.engine.stats()

    # -- how it is answered -------------------------------------------------------------------------------------------

    def _at(self, point: Point) -> Snapshot:
        entry = entry_at(self._open(), point)
        return Snapshot(self._reading, entry, head_of=entry.branch if point.is_head else None)

    def _schema(self, branch: str) -> Schema:
        return self._at(Point(branch=branch)).schema

    def _schema_text(self, branch: str) -> str:
        return self._schemas.text(self._at(Point(branch=branch)).record.schema)

    def _query(
        self,
        point: Point,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None,
        *,
        name: str | None,
        limits: QueryLimits,
    ) -> Result:
        if point.is_head:
            for _ in range(_NEWEST_LOOKS_MAX):
                try:
                    return self._at_head(point.branch).query(query, params, name=name, limits=limits)
                except ReclaimedError:
                    continue  # pruned and swept between the look at the head and the reading of rows
        return self._at(point).query(query, params, name=name, limits=limits)

    def _stream(
        self,
        point: Point,
        query: str | PreparedQuery,
        params: Mapping[str, object] | None,
        *,
        name: str | None,
        limits: QueryLimits,
    ) -> ResultStream:
        return self._at(point).stream(query, params, name=name, limits=limits)

    def _explain(self, point: Point, query: str | PreparedQuery, *, name: str | None) -> str:
        return self._at(point).explain(query, name=name)

    def _count(self, point: Point, type_name: str) -> int:
        return self._at(point).count(type_name)
