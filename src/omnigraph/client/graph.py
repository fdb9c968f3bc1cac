"""A graph on a server, with the interface of one that is open in this process.

What is left out needs the storage itself: Spark, Lance tables, Arrow exports, and upkeep.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from pathlib import Path

import pyarrow as pa

from omnigraph.api.blob import BlobName
from omnigraph.api.choosing import Resolutions, choices_of
from omnigraph.api.fetching import Fetching
from omnigraph.api.near import Neighbourhood
from omnigraph.api.receipts import MergeResult, RevertResult
from omnigraph.branch.arguments import checked, first_and_last
from omnigraph.branch.point import Point
from omnigraph.branch.told import Blame, EntityEvent
from omnigraph.client import values
from omnigraph.client.base import refuse_actor
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
from omnigraph.model.commit import MAIN as MAIN_BRANCH
from omnigraph.pipeline.export.destination import file_or_stream
from omnigraph.pipeline.export.formats import Destination, Exported, ExportFormat, as_format, chosen_entities
from omnigraph.transaction.said import text

RemoteState = str | Point | RemoteSnapshot


class RemoteGraph(RemoteQueries, RemoteStoredQueries, RemoteWrites, Fetching):
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

    @checked
    def diff(
        self,
        older: RemoteState,
        newer: RemoteState,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
        engine: str = "auto",  # noqa: ARG002  (the server decides; here so that calls are the same)
    ) -> RemoteDiff:
        """What lies between any two states; see `omnigraph.Graph.diff`.

        Args:
            older (RemoteState): a branch, tag or commit by name, `BRANCH@NUMBER`, `BRANCH@TIME`, a `Point`, or a
                snapshot.
            newer (RemoteState): likewise.
            kinds (Iterable[str]): only `node` or `edge`; all by default.
            types (Iterable[str]): only types of these names; all by default.
            ops (Iterable[str]): only `insert`, `update` or `delete`; all by default.
            engine (str): the server's matter; passed over.

        Returns:
            RemoteDiff: the changes, fetched as they are asked for.
        """
        states = [self._state(each) for each in (older, newer)]
        return diff_of(self._open(), *states, kinds=kinds, types=types, ops=ops)

    def _state(self, state: RemoteState) -> str:
        if isinstance(state, RemoteSnapshot):
            return state.commit
        if isinstance(state, Point):
            return self.snapshot(
                branch=state.branch, commit=state.commit, number=state.number, tag=state.tag, at=state.at
            ).commit
        return text(state, "a state")

    @checked
    def merge(
        self,
        source: str,
        *,
        into: str = MAIN_BRANCH,
        by: str = "row",
        prefer: str | None = None,
        resolutions: Resolutions | None = None,
        preview: bool = False,
        delete_branch: bool = False,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        if_source_commit: str | None = None,
        prune_previous: bool = False,
        engine: str = "auto",  # noqa: ARG002  (the server decides; here so that calls are the same)
    ) -> MergeResult:
        """Bring what one branch did into another, as one commit; see `omnigraph.Graph.merge`.

        Args:
            source (str): the branch brought in; it does not change.
            into (str): the branch changed.
            by (str): `row` or `property`: what must differ to conflict.
            prefer (str | None): `source` or `target`: whose row to take where both changed it.
            resolutions (Resolutions | None): by type and id, `"source"`, `"target"`, a row, or None to delete; or a
                JSON file that says so.
            preview (bool): work it out and write nothing; conflicts are returned.
            delete_branch (bool): delete the source afterwards.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is still the target's head commit.
            if_source_commit (str | None): only if this is still the source's.
            prune_previous (bool): in the same step, show earlier commits of the target no more.
            engine (str): the server's matter; passed over.

        Returns:
            MergeResult: the outcome and the commit.

        Raises:
            MergeConflictError: the branches did what cannot both stand; `conflicts` lists all of it.
            PreconditionError: a head is not the commit named.
            OutcomeUnknownError: the answer was lost; merging again does nothing if it was done.
        """
        refuse_actor(actor, self._open())
        choices_of(by, prefer, resolutions)  # refused here as an open graph refuses it
        body = {
            "source": source,
            "target": into,
            "by": by,
            "prefer": prefer,
            "resolve": _said(resolutions),
            "preview": preview,
            "delete_branch": delete_branch,
            "message": message,
            "if_commit": if_commit,
            "if_source_commit": if_source_commit,
            "prune_previous": prune_previous,
        }
        wire = self._open()
        if preview:
            return values.merge_result(wire.post("branches/merge", body))
        return values.merge_result(wire.act("POST", "branches/merge", body))

    @checked
    def revert(
        self,
        commit: str | tuple[str, str],
        *,
        branch: str = MAIN_BRANCH,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        prune_previous: bool = False,
    ) -> RevertResult:
        """Undo what a commit, or a range of commits, did to entities, as a new commit; see `omnigraph.Graph.revert`.

        Args:
            commit (str | tuple[str, str]): a commit by its id; or the first and the last of a range, both included.
            branch (str): where.
            actor (str | None): not to be named: the token decides.
            message (str | None): why.
            if_commit (str | None): only if this is the head commit of the branch.
            idempotency_key (str | None): the same key again does nothing and returns the first commit.
            prune_previous (bool): in the same step, show earlier commits of the branch no more.

        Returns:
            RevertResult: the commit; none where everything is as before already.
        """
        refuse_actor(actor, self._open())
        first, last = first_and_last(commit)
        body = {
            "commit": first,
            "last": last,
            "branch": branch,
            "message": message,
            "if_commit": if_commit,
            "prune_previous": prune_previous,
        }
        return values.revert_result(self._open().write("revert", body, idempotency_key))

    @checked
    def log_of(
        self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH, limit: int | None = None
    ) -> list[EntityEvent]:
        """What happened to one entity, newest first; see `omnigraph.Graph.log_of`.

        Args:
            type_name (str): a node type, else an edge type; or a type key like `edge:Knows`.
            entity_id (str): its id.
            branch (str): on whose line; a merge tells what it brought in.
            limit (int | None): at most so many; all by default.

        Returns:
            list[EntityEvent]: commits with what they did to it; empty where there never was such an entity.
        """
        found = self._open().get("entity/log", type=type_name, id=entity_id, branch=branch, limit=limit)
        return [values.entity_event(each) for each in found["events"]]

    @checked
    def blame(self, type_name: str, entity_id: str, *, branch: str = MAIN_BRANCH) -> Blame:
        """Which commit last set each property of an entity; see `omnigraph.Graph.blame`.

        Args:
            type_name (str): a node type, else an edge type; or a type key.
            entity_id (str): its id.
            branch (str): at whose head.

        Returns:
            Blame: a commit for every property, the one that made the entity, and the one that changed it last.
        """
        return values.blame(self._open().get("entity/blame", type=type_name, id=entity_id, branch=branch))


def _said(resolutions: Resolutions | None) -> Mapping[str, Mapping[str, object]] | None:
    """Resolutions as they are sent; a file is read here."""
    if isinstance(resolutions, str | PathLike):
        found: Mapping[str, Mapping[str, object]] = json.loads(Path(resolutions).read_bytes())
        return found
    return resolutions
