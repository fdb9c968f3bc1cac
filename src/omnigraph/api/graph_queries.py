"""Asking an open graph."""

from omnigraph.api.asking import Asking
from omnigraph.api.graph_base import OpenGraph
from omnigraph.api.prepared import Asked, PreparedQuery
from omnigraph.api.result import Result, ResultStream
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.point import Point
from omnigraph.branch.points import entry_at
from omnigraph.errors import ReclaimedError
from omnigraph.execution.engine import EngineStats

# How often a read of the newest state starts again because a prune and a sweep were faster.
_NEWEST_LOOKS_MAX = 8


class GraphQueries(OpenGraph, Asking[Snapshot]):
    """What can be asked of a graph, by itself: whoever only asks imports nothing else. Every answer sees one commit."""

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

    def _schema_text(self, branch: str) -> str:
        return self._schemas.text(self._at(Point(branch=branch)).record.schema)

    def _query(self, point: Point, asked: Asked) -> Result:
        if point.is_head:
            for _ in range(_NEWEST_LOOKS_MAX):
                try:
                    return _answer(self._at_head(point.branch), asked)
                except ReclaimedError:
                    continue  # pruned and swept between the look at the head and the reading of rows
        return _answer(self._at(point), asked)

    def _stream(self, point: Point, asked: Asked) -> ResultStream:
        return self._at(point).stream(asked.query, asked.params, name=asked.name, limits=asked.limits)

    def _explain(self, point: Point, query: str | PreparedQuery, *, name: str | None) -> str:
        return self._at(point).explain(query, name=name)

    def _count(self, point: Point, type_name: str) -> int:
        return self._at(point).count(type_name)


def _answer(at: Snapshot, asked: Asked) -> Result:
    return at.query(asked.query, asked.params, name=asked.name, limits=asked.limits)
