"""The changes of a graph: those of one commit, and the feed of a branch."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any

from omnigraph import limits
from omnigraph.api.following import Followed, PageWanted
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.snapshot import Reading, Snapshot
from omnigraph.branch.arguments import checked
from omnigraph.branch.entity_change import ChangeFilter, EntityKind, change_filter
from omnigraph.branch.feed import Feed, PageBounds
from omnigraph.branch.told import FeedPage
from omnigraph.model.schema import NodeType
from omnigraph.pipeline.export.formats import chosen_entities
from omnigraph.pipeline.export.run import stream_lines
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


@dataclass(frozen=True, slots=True)
class Baseline:
    """A whole state to begin from, and the cursor that goes on exactly after it.

    Attributes:
        snapshot: the state.
        resume_cursor: for the first poll.
    """

    snapshot: Snapshot
    resume_cursor: str
    _parts: Parts
    _wanted: ChangeFilter

    @property
    def commit(self) -> str:
        """The commit whose state it is."""
        return self.snapshot.commit

    def to_dict(self) -> dict[str, Any]:
        """The end of the baseline as a JSON document."""
        return {"snapshot_commit_id": self.commit, "resume_cursor": self.resume_cursor}

    def lines(self) -> Iterator[bytes]:
        """The state as JSON lines, like an export, and at the end one line with the commit and the cursor.

        Only whoever has the last line has the whole state.

        Yields:
            bytes: whole lines.
        """
        entities = [
            entity
            for entity in chosen_entities(self.snapshot.schema, None)
            if self._wanted.takes_type(
                EntityKind.NODE if isinstance(entity, NodeType) else EntityKind.EDGE, entity.name
            )
        ]
        for piece in stream_lines(self._parts.snapshot(self.snapshot.record), entities):
            yield piece.to_pybytes()
        yield json.dumps({"baseline": self.to_dict()}).encode() + b"\n"

    def write(self, stream: IO[bytes]) -> None:
        """Write the lines.

        Args:
            stream (IO[bytes]): where to.
        """
        for line in self.lines():
            stream.write(line)


class ChangeFeed(Followed):
    """What happened on a branch, commit by commit. Whoever keeps the cursor misses nothing and sees nothing twice."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._parts = reading.parts

    @checked
    def baseline(
        self,
        branch: str = MAIN_BRANCH,
        *,
        kinds: Iterable[str] = (),
        types: Iterable[str] = (),
        ops: Iterable[str] = (),
    ) -> Baseline:
        """A whole state of a branch, and the cursor that goes on exactly after it.

        Args:
            branch (str): which.
            kinds (Iterable[str]): only `node` or `edge`; the cursor is bound to this and the next two.
            types (Iterable[str]): only types of these names.
            ops (Iterable[str]): what the cursor will tell; the state is whole all the same.

        Returns:
            Baseline: read its lines to the end, then poll from its cursor.

        Raises:
            InvalidRequestError: a kind or operation is none.
            NotFoundError: there is no such branch.
        """
        name, wanted = paths.branch_name(branch), change_filter(kinds, types, ops)
        head = self._parts.log.live_head(name)
        cursor = Feed(self._parts, name, wanted).cursor_at(head)
        return Baseline(Snapshot(self._reading, head, head_of=name), cursor, self._parts, wanted)

    def _poll(
        self,
        branch: str,
        wanted: ChangeFilter,
        page: PageWanted,
        *,
        cursor: str | None = None,
        start: str | None = None,
    ) -> FeedPage:
        bounds = page_bounds(page.changes, page.bytes, page.commits)
        feed = Feed(self._parts, paths.branch_name(branch), wanted)
        return feed.poll(cursor=cursor, start=start, page_token=page.token, bounds=bounds)


def page_bounds(changes: int | None, size: int | None, commits: int | None) -> PageBounds:
    """Bounds of a page, the usual ones where none are given."""
    return PageBounds(
        limits.CHANGE_PAGE_CHANGES if changes is None else changes,
        limits.CHANGE_PAGE_BYTES if size is None else size,
        limits.CHANGE_POLL_COMMITS if commits is None else commits,
    )
