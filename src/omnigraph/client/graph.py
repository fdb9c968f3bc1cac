"""A graph on a server, with the interface of one that is open in this process.

What is left out needs the storage itself: Spark, Lance tables, Arrow exports, and upkeep.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from omnigraph.api.blob import BlobName
from omnigraph.api.fetching import Fetching
from omnigraph.api.lines import Lines, MergeWanted
from omnigraph.api.near import Neighbourhood
from omnigraph.api.receipts import MergeResult, RevertResult
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.merge.choices import resolutions_document
from omnigraph.branch.point import Point
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.client import values
from omnigraph.client.blobs import RemoteBlob, blob_of
from omnigraph.client.diff import RemoteDiff, diff_of
from omnigraph.client.history import RemoteChangeFeed, RemoteCommits
from omnigraph.client.names import RemoteBranches, RemoteTags
from omnigraph.client.queries import RemoteQueries
from omnigraph.client.snapshot import RemoteSnapshot, neighbourhood
from omnigraph.client.stored import RemoteStoredQueries
from omnigraph.client.wire import NDJSON, Ask, present
from omnigraph.client.writes import RemoteWrites
from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.export.destination import file_or_stream
from omnigraph.pipeline.export.formats import Destination, Exported, ExportFormat, as_format, chosen_entities
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.said import text

RemoteState = str | Point | RemoteSnapshot


class RemoteGraph(RemoteQueries, RemoteStoredQueries, RemoteWrites, Fetching, Lines[RemoteSnapshot, RemoteDiff]):
    """A graph on a server. Safe to share between threads; made by `omnigraph.connect`.

    Every read sees one commit. Every write becomes visible whole, as one commit, or leaves no trace; when an answer is
    lost, it is sent again under its idempotency key and done once.
    """

    @property
    def branches(self) -> RemoteBranches:
        """Its branches."""
        return RemoteBranches(self._open())

    @property
    def commits(self) -> RemoteCommits:
        """The states it went through."""
        return RemoteCommits(self._open())

    @property
    def changes(self) -> RemoteChangeFeed:
        """What happened on its branches, for whoever follows them."""
        return RemoteChangeFeed(self._open())

    @property
    def tags(self) -> RemoteTags:
        """Its tags."""
        return RemoteTags(self._open())

    # -- what can be fetched ------------------------------------------------------------------------------------------

    def _neighbourhood(
        self, point: Point, type_name: str, entity_id: str, *, edges: Iterable[str], depth: int, limit: int
    ) -> Neighbourhood:
        return neighbourhood(self._open(), point, type_name, entity_id, edges=edges, depth=depth, limit=limit)

    def _blob(self, point: Point, name: BlobName) -> RemoteBlob:
        if point.number is not None or point.tag is not None or point.at is not None:
            point = Point(commit=self._at(point).commit)
        return blob_of(self._open(), name, branch=point.branch, commit=point.commit)

    def _export(
        self, point: Point, to: Destination, *, format: str, types: Iterable[str] | None, files: int | None
    ) -> Exported:
        if as_format(format) is not ExportFormat.JSONL or files is not None:
            raise InvalidRequestError(
                "a server exports JSON lines, as one file; other formats are made at the graph's storage",
                code="json_lines_only",
            )
        snapshot = self._at(point)
        entities = chosen_entities(snapshot.schema, types)
        with file_or_stream(to) as stream:
            for piece in self._export_lines(Point(commit=snapshot.commit), types):
                stream.write(piece)
        rows = {entity.type_key: snapshot.count(entity.type_key) for entity in entities}
        return Exported(snapshot.commit, format, rows, (str(to),) if isinstance(to, str | Path) else ())

    def _export_lines(self, point: Point, types: Iterable[str] | None) -> Iterator[pa.Buffer]:
        wanted = present({"type_names": types, **values.state(point)})
        return self._exported(Ask("POST", "export", json=wanted, media=NDJSON))

    def _exported(self, ask: Ask) -> Iterator[pa.Buffer]:
        with self._open().streamed(ask) as answer:
            for piece in answer.iter_bytes():
                yield pa.py_buffer(piece)

    # -- lines of history ---------------------------------------------------------------------------------------------

    def _diff(
        self,
        older: RemoteState,
        newer: RemoteState,
        wanted: ChangeFilter,
        engine: str,  # noqa: ARG002  (the server decides)
        *,
        merge_base: bool,
    ) -> RemoteDiff:
        return diff_of(self._open(), self._state(older), self._state(newer), wanted, merge_base=merge_base)

    def _state(self, state: RemoteState) -> str:
        if isinstance(state, RemoteSnapshot):
            return state.commit
        if isinstance(state, Point):
            return self._at(state).commit
        return text(state, "a state")

    def _merge(self, wanted: MergeWanted, options: WriteOptions) -> MergeResult:
        wire = self._as_told(options)
        body = {
            "source": wanted.source,
            "target": wanted.into,
            "by": wanted.choices.by,
            "prefer": wanted.choices.prefer,
            "resolve": resolutions_document(wanted.choices.resolutions) or None,
            "base": wanted.choices.base,
            "preview": wanted.preview,
            "delete_branch": wanted.delete_branch,
            "message": options.message,
            "if_commit": options.if_commit,
            "if_source_commit": wanted.if_source_commit,
            "prune_previous": options.prune_previous,
        }
        if wanted.preview:
            return values.merge_result(wire.post("branches/merge", body))
        return values.merge_result(wire.act("POST", "branches/merge", body))

    def _revert(self, first: str, last: str | None, branch: str, options: WriteOptions) -> RevertResult:
        wire = self._as_told(options)
        body = {
            "commit": first,
            "last": last,
            "branch": branch,
            "message": options.message,
            "if_commit": options.if_commit,
            "prune_previous": options.prune_previous,
        }
        return values.revert_result(wire.write("revert", body, options.idempotency_key))

    def _log_of(self, type_name: str, entity_id: str, branch: str, limit: int | None) -> list[EntityEvent]:
        found = self._open().get("entity/log", type=type_name, id=entity_id, branch=branch, limit=limit)
        return [values.entity_event(each) for each in found["events"]]

    def _blame(self, type_name: str, entity_id: str, branch: str) -> Blame:
        return values.blame(self._open().get("entity/blame", type=type_name, id=entity_id, branch=branch))
