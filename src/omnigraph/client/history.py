"""The commits of a graph on a server, and what they changed."""

import json
import tempfile
import weakref
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from omnigraph.api.baseline import Baseline
from omnigraph.api.commit import Commit
from omnigraph.api.following import CommitsWanted, Followed, PageWanted, Past
from omnigraph.api.pages import Page
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.told import CommitChangesPage, FeedPage
from omnigraph.client import values
from omnigraph.client.snapshot import RemoteSnapshot
from omnigraph.client.values import changes_wanted, instant
from omnigraph.client.wire import NDJSON, Ask, Wire, segment
from omnigraph.errors import InvalidRequestError, UnavailableError

# How much of a baseline stays in memory before it goes to a file.
_SPOOLED_BYTES = 4 * 1024**2


class RemoteCommits(Past):
    """The states a graph went through; see `omnigraph.Graph.commits`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _list(self, wanted: CommitsWanted, limit: int | None, page_token: str | None) -> Page[Commit]:
        found: list[Commit] = []
        while True:
            document = self._wire.get(
                "commits",
                branch=wanted.branch,
                actor=wanted.actor,
                kind=wanted.kind,
                since=instant(wanted.since),
                until=instant(wanted.until),
                limit=None if limit is None else limit - len(found),
                page_token=page_token,
            )
            found += [Commit(values.record_of(each)) for each in document["commits"]]
            page_token = document.get("next_page_token")
            # An answer has a bound of its own; who asked for more gets more of them.
            if page_token is None or len(found) == limit:
                return Page(found, page_token)

    def _show(self, commit: str) -> Commit:
        return Commit(values.record_of(self._wire.get(f"commits/{segment(commit)}")))

    def _changes(self, commit: str, wanted: ChangeFilter, page: PageWanted) -> CommitChangesPage:
        return values.commit_changes(
            self._wire.get(f"commits/{segment(commit)}/changes", **_bounded(page), **changes_wanted(wanted))
        )


@dataclass(frozen=True, slots=True, weakref_slot=True, eq=False)
class RemoteBaseline(Baseline[RemoteSnapshot]):
    """A state that a server has sent, kept until nobody needs it."""

    _kept: IO[bytes] = field(repr=False)

    def __post_init__(self) -> None:
        weakref.finalize(self, self._kept.close)

    def _lines(self) -> Iterator[bytes]:
        self._kept.seek(0)
        yield from self._kept


class RemoteChangeFeed(Followed[RemoteSnapshot]):
    """What happened on a branch, commit by commit; see `omnigraph.Graph.changes`."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def _baseline(self, branch: str, wanted: ChangeFilter) -> RemoteBaseline:
        body = {"branch": branch, **changes_wanted(wanted)}
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

    def _poll(
        self, branch: str, wanted: ChangeFilter, page: PageWanted, cursor: str | None, start: str | None
    ) -> FeedPage:
        where = {"branch": branch, "cursor": cursor, "start": start}
        return values.feed_page(self._wire.get("changes", **where, **_bounded(page), **changes_wanted(wanted)))


def _last_line(kept: IO[bytes]) -> dict[str, Any]:
    kept.seek(0)
    [last] = deque(kept, maxlen=1) or (b"",)
    try:
        end: dict[str, Any] = json.loads(last)["baseline"]
    except (ValueError, KeyError, TypeError):
        raise UnavailableError("the baseline broke off before its end", code="answer_lost") from None
    return end


def _bounded(page: PageWanted) -> dict[str, str | int | None]:
    """How much, as a request says it.

    Raises:
        InvalidRequestError: it is bounded in a way that is the server's matter.
    """
    for name, value in (("max_bytes", page.bytes), ("max_commits", page.commits)):
        if value is not None:
            raise InvalidRequestError(f"a server bounds its pages itself: `{name}` cannot be named", code="own_limits")
    return {"limit": page.changes, "page_token": page.token}
