"""The commits of a graph on a server, and what they changed."""

import json
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from typing import IO, Any

from omnigraph.api.commit import Commit
from omnigraph.api.pages import Page
from omnigraph.branch.arguments import checked
from omnigraph.branch.point import Instant
from omnigraph.branch.told import CommitChangesPage, FeedPage, whole_commits
from omnigraph.client import values
from omnigraph.client.snapshot import RemoteSnapshot
from omnigraph.client.values import instant
from omnigraph.client.wire import NDJSON, Ask, Wire, segment
from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.model.commit import MAIN as MAIN_BRANCH

# How much of a baseline stays in memory before it goes to a file.
_SPOOLED_BYTES = 4 * 1024**2


class RemoteCommits:
    """The states a graph went through; see `omnigraph.Graph.commits`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @checked
    def list(
        self,
        branch: str = MAIN_BRANCH,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> Page[Commit]:
        """The commits of a branch, newest first: its own, then those it inherited.

        Args:
            branch (str): which branch.
            actor (str | None): only those made by this actor.
            kind (str | None): only those of this kind.
            since (datetime | str | None): only those made at this time or later.
            until (datetime | str | None): only those made at this time or earlier.
            limit (int | None): at most so many; all by default.
            page_token (str | None): of the page before; the other arguments must be the same.

        Returns:
            Page[Commit]: a list, with a token for the next page where there is one.
        """
        if limit is not None and limit < 1:
            raise InvalidRequestError("page limit must be greater than zero")
        found: list[Commit] = []
        while True:
            document = self._wire.get(
                "commits",
                branch=branch,
                actor=actor,
                kind=kind,
                since=instant(since),
                until=instant(until),
                limit=None if limit is None else limit - len(found),
                page_token=page_token,
            )
            found += [Commit(values.record_of(each)) for each in document["commits"]]
            page_token = document.get("next_page_token")
            # An answer has a bound of its own; who asked for more gets more of them.
            if page_token is None or len(found) == limit:
                return Page(found, page_token)

    @checked
    def show(self, commit: str) -> Commit:
        """One commit, on whichever branch it was made.

        Args:
            commit (str): its id.

        Returns:
            Commit: with who, when and why.
        """
        return Commit(values.record_of(self._wire.get(f"commits/{segment(commit)}")))

    @checked
    def changes(
        self,
        commit: str,
        *,
        limit: int | None = None,
        max_bytes: int | None = None,
        page_token: str | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> CommitChangesPage:
        """What a commit did to entities, against its first parent; see `omnigraph.Graph.commits`.

        Args:
            commit (str): its id.
            limit (int | None): at most so many changes; 1000 by default.
            max_bytes (int | None): not to be named: the server bounds its pages.
            page_token (str | None): of the page before.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            CommitChangesPage: the changes, and a token for the rest.
        """
        _refuse_bounds(max_bytes=max_bytes)
        return values.commit_changes(
            self._wire.get(
                f"commits/{segment(commit)}/changes",
                limit=limit,
                page_token=page_token,
                kind=tuple(kinds),
                type=tuple(types),
                op=tuple(ops),
            )
        )


class RemoteBaseline:
    """A whole state to begin from, and the cursor that goes on exactly after it.

    Attributes:
        snapshot: the state.
        resume_cursor: for the first poll.
    """

    __slots__ = ("__weakref__", "_lines", "resume_cursor", "snapshot")

    def __init__(self, snapshot: RemoteSnapshot, resume_cursor: str, lines: IO[bytes]) -> None:
        self.snapshot = snapshot
        self.resume_cursor = resume_cursor
        self._lines = lines
        weakref.finalize(self, lines.close)

    @property
    def commit(self) -> str:
        """The commit whose state it is."""
        return self.snapshot.commit

    def to_dict(self) -> dict[str, Any]:
        """The end of the baseline as a JSON document."""
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.resume_cursor}

    def lines(self) -> Iterator[bytes]:
        """The state as JSON lines, and at the end one line with the commit and the cursor.

        Yields:
            bytes: whole lines.
        """
        self._lines.seek(0)
        yield from self._lines

    def write(self, stream: IO[bytes]) -> None:
        """Write the lines.

        Args:
            stream (IO[bytes]): where to.
        """
        for line in self.lines():
            stream.write(line)


class RemoteChangeFeed:
    """What happened on a branch, commit by commit; see `omnigraph.Graph.changes`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    @checked
    def poll(
        self,
        branch: str = MAIN_BRANCH,
        *,
        cursor: str | None = None,
        start: str | None = None,
        page_token: str | None = None,
        limit: int | None = None,
        max_bytes: int | None = None,
        max_commits: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        """What came after a place in the history of a branch.

        Args:
            branch (str): whose feed.
            cursor (str | None): of an earlier poll.
            start (str | None): without a cursor: `now` (by default), `beginning` or `after:<commit>`.
            page_token (str | None): of a page that ended inside a commit's changes.
            limit (int | None): at most so many changes; 1000 by default.
            max_bytes (int | None): not to be named: the server bounds its pages.
            max_commits (int | None): likewise.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            FeedPage: one block for each commit, oldest first, and the cursor or page token to go on with.
        """
        _refuse_bounds(max_bytes=max_bytes, max_commits=max_commits)
        return values.feed_page(
            self._wire.get(
                "changes",
                branch=branch,
                cursor=cursor,
                start=start,
                page_token=page_token,
                limit=limit,
                kind=tuple(kinds),
                type=tuple(types),
                op=tuple(ops),
            )
        )

    @checked
    def drain(
        self,
        branch: str = MAIN_BRANCH,
        *,
        cursor: str | None = None,
        start: str | None = None,
        limit: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        """Like `poll`, with as many pages as it takes to end after a commit; a commit's changes are put together.

        Args:
            branch (str): whose feed.
            cursor (str | None): of an earlier poll.
            start (str | None): without a cursor: `now` (by default), `beginning` or `after:<commit>`.
            limit (int | None): at most so many changes in a page.
            kinds (Iterable[str]): only `node` or `edge`.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): only `insert`, `update` or `delete`.

        Returns:
            FeedPage: with a cursor.
        """
        wanted = (tuple(kinds), tuple(types), tuple(ops))

        def poll(cursor: str | None = None, start: str | None = None, page_token: str | None = None) -> FeedPage:
            only_kinds, only_types, only_ops = wanted
            return self.poll(
                branch,
                cursor=cursor,
                start=start,
                page_token=page_token,
                limit=limit,
                kinds=only_kinds,
                types=only_types,
                ops=only_ops,
            )

        return whole_commits(poll(cursor, start), lambda token: poll(page_token=token))

    @checked
    def baseline(
        self,
        branch: str = MAIN_BRANCH,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> RemoteBaseline:
        """A whole state of a branch, and the cursor that goes on exactly after it. All of it is fetched now.

        Args:
            branch (str): which.
            kinds (Iterable[str]): only `node` or `edge`; the cursor is bound to this and the next two.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): what the cursor will tell; the state is whole all the same.

        Returns:
            RemoteBaseline: its lines, and the cursor to poll from.

        Raises:
            UnavailableError: the stream broke off.
        """
        body = {"branch": branch, "kind": list(kinds), "type": list(types), "op": list(ops)}
        # Kept apart until the last line says that it is whole; a file of its own where it is large.
        kept: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115  (closed with the baseline)
        try:
            with self._wire.streamed(Ask("POST", "changes/baseline", json=body, media=NDJSON)) as answer:
                for piece in answer.iter_bytes():
                    kept.write(piece)
            end = _last_line(kept)
            document = self._wire.get("snapshot", snapshot=end["snapshot_commit_id"])
        except BaseException:
            kept.close()
            raise
        snapshot = RemoteSnapshot(self._wire, values.snapshot_record(document), head_of=branch)
        return RemoteBaseline(snapshot, end["resume_cursor"], kept)


def _last_line(kept: IO[bytes]) -> dict[str, Any]:
    kept.seek(0)
    [last] = deque(kept, maxlen=1) or (b"",)
    try:
        end: dict[str, Any] = json.loads(last)["baseline"]
    except (ValueError, KeyError, TypeError):
        raise UnavailableError("the baseline broke off before its end", code="answer_lost") from None
    return end


def _refuse_bounds(**bounds: int | None) -> None:
    for name, value in bounds.items():
        if value is not None:
            raise InvalidRequestError(f"a server bounds its pages itself: `{name}` cannot be named", code="own_limits")
