"""The history of a graph on a server: branches, tags, commits, and the change feed."""

import json
import tempfile
import weakref
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import IO, Any

from omnigraph.api.baseline import Baseline
from omnigraph.api.commit import Commit
from omnigraph.api.interface.history import (
    BranchesInterface,
    ChangeFeedInterface,
    CommitsInterface,
    TagsInterface,
)
from omnigraph.api.pages import Page, check_limit, page_of_names
from omnigraph.branch.arguments import checked_methods
from omnigraph.branch.entity_change import change_filter
from omnigraph.branch.history_values import CommitChangesPage, FeedPage, Tag, whole_commits
from omnigraph.branch.point import Instant
from omnigraph.client import values
from omnigraph.client.requests import refuse_actor
from omnigraph.client.snapshot import RemoteSnapshot
from omnigraph.client.values import filter_fields, format_instant
from omnigraph.client.wire import NDJSON, ServerRequest, Wire, quote_segment
from omnigraph.errors import InvalidRequestError, NotFoundError, UnavailableError
from omnigraph.model.commit import MAIN

# How much of a baseline stays in memory before it goes to a file.
_SPOOLED_BYTES = 4 * 1024**2


@checked_methods
class RemoteBranches(BranchesInterface):
    """The branches of a graph on a server; see `omnigraph.Branches`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(
        self,
        name: str,
        *,
        source: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        tag: str | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> str:
        refuse_actor(actor, self._wire)
        body = {"name": name, "from": source, "commit": commit, "number": number, "tag": tag, "at": format_instant(at)}
        return str(self._wire.act("POST", "branches", body)["graph_commit_id"])

    def delete(self, name: str, *, actor: str | None = None, if_commit: str | None = None) -> None:
        refuse_actor(actor, self._wire)
        _ = self._wire.act("DELETE", f"branches/{_segment(name, 'branch')}", params={"if_commit": if_commit})["name"]

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        return page_of_names(self._wire.get("branches")["branches"], limit=limit, page_token=page_token)

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            _ = self._wire.get("snapshot", branch=name)["datasets"]
        except NotFoundError:
            return False
        except InvalidRequestError as wrong:
            if wrong.code == "no_server":
                raise
            return False
        return True


@checked_methods
class RemoteTags(TagsInterface):
    """The tags of a graph on a server; see `omnigraph.Graph.tags`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def create(
        self,
        name: str,
        *,
        branch: str | None = None,
        commit: str | None = None,
        number: int | None = None,
        at: Instant | None = None,
        actor: str | None = None,
    ) -> Tag:
        refuse_actor(actor, self._wire)
        body = {"name": name, "branch": branch, "commit": commit, "number": number, "at": format_instant(at)}
        return values.parse_tag(self._wire.act("POST", "tags", body))

    def read(self, name: str) -> Tag:
        return values.parse_tag(self._wire.get(f"tags/{_segment(name, 'tag')}"))

    def delete(self, name: str) -> None:
        self._wire.act("DELETE", f"tags/{_segment(name, 'tag')}")

    def list(self, *, limit: int | None = None, page_token: str | None = None) -> Page[str]:
        names = [tag["name"] for tag in self._wire.get("tags")["tags"]]
        return page_of_names(names, limit=limit, page_token=page_token)


@checked_methods
class RemoteCommits(CommitsInterface):
    """The commits of a graph on a server; see `omnigraph.Graph.commits`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def list(
        self,
        branch: str = MAIN,
        *,
        actor: str | None = None,
        kind: str | None = None,
        since: Instant | None = None,
        until: Instant | None = None,
        limit: int | None = None,
        page_token: str | None = None,
    ) -> Page[Commit]:
        check_limit(limit)
        fetch = partial(
            self._wire.get,
            "commits",
            branch=branch,
            actor=actor,
            kind=kind,
            since=format_instant(since),
            until=format_instant(until),
        )
        found: list[Commit] = []
        while True:
            document = fetch(limit=None if limit is None else limit - len(found), page_token=page_token)
            found += [Commit(values.parse_record(commit)) for commit in document["commits"]]
            page_token = document.get("next_page_token")
            # A server bounds its pages: callers that want more get several of them.
            if page_token is None or len(found) == limit:
                return Page(found, page_token)

    def show(self, commit: str) -> Commit:
        return Commit(values.parse_record(self._wire.get(f"commits/{quote_segment(commit)}")))

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
        _refuse_bounds(max_bytes=max_bytes)
        wanted = filter_fields(change_filter(kinds, types, ops))
        path = f"commits/{quote_segment(commit)}/changes"
        return values.parse_commit_changes(self._wire.get(path, limit=limit, page_token=page_token, **wanted))


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RemoteBaseline(Baseline):
    """A state that a server has sent, kept in a temporary file while it is referenced."""

    _file: IO[bytes] = field(repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, self._file.close)

    def lines(self) -> Iterator[bytes]:
        self._file.seek(0)
        yield from self._file


@checked_methods
class RemoteChangeFeed(ChangeFeedInterface):
    """The changes of a branch, commit by commit; see `omnigraph.Graph.changes`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def baseline(
        self,
        branch: str = MAIN,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> RemoteBaseline:
        body = {"branch": branch, **filter_fields(change_filter(kinds, types, ops))}
        # Complete only if the last line arrives; in a file of its own if it is large.
        file: IO[bytes] = tempfile.SpooledTemporaryFile(_SPOOLED_BYTES)  # noqa: SIM115  (closed with the baseline)
        try:
            with self._wire.open_stream(ServerRequest("POST", "changes/baseline", json=body, media=NDJSON)) as answer:
                for piece in answer.iter_bytes():
                    file.write(piece)
            end = _last_line(file)
            document = self._wire.get("snapshot", snapshot=end["snapshot_commit_id"])
        except BaseException:
            file.close()
            raise
        snapshot = RemoteSnapshot(self._wire, values.parse_snapshot_record(document), head_of=branch)
        return RemoteBaseline(snapshot, end["resume_cursor"], file)

    def poll(
        self,
        branch: str = MAIN,
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
        _refuse_bounds(max_bytes=max_bytes, max_commits=max_commits)
        where = {"branch": branch, "cursor": cursor, "start": start, "page_token": page_token}
        wanted = filter_fields(change_filter(kinds, types, ops))
        return values.parse_feed_page(self._wire.get("changes", **where, limit=limit, **wanted))

    def drain(
        self,
        branch: str = MAIN,
        *,
        cursor: str | None = None,
        start: str | None = None,
        limit: int | None = None,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> FeedPage:
        poll = partial(self.poll, branch, limit=limit, kinds=kinds, types=types, ops=ops)
        return whole_commits(poll(cursor=cursor, start=start), lambda token: poll(page_token=token))


def _last_line(file: IO[bytes]) -> dict[str, Any]:
    file.seek(0)
    [last] = deque(file, maxlen=1) or (b"",)
    try:
        end: dict[str, Any] = json.loads(last)["baseline"]
    except (ValueError, KeyError, TypeError):
        raise UnavailableError("the baseline broke off before its end", code="answer_lost") from None
    return end


def _refuse_bounds(**bounds: int | None) -> None:
    """Refuse bounds of a page that a server sets itself.

    Raises:
        InvalidRequestError: one of them is named.
    """
    for name, value in bounds.items():
        if value is not None:
            raise InvalidRequestError(f"a server bounds its pages itself: `{name}` cannot be named", code="own_limits")


def _segment(name: str, what: str) -> str:
    """Quote a name as the last segment of a path; an empty one would address something else."""
    if not name.strip():
        raise InvalidRequestError(f"a {what} has a name")
    return quote_segment(name)
