"""The changes of a graph: those of one commit, and the feed of a branch."""

import json
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.api.baseline import Baseline
from omnigraph.api.following import Followed, PageWanted
from omnigraph.api.snapshot import Reading, Snapshot
from omnigraph.branch.entity_change import ChangeFilter, EntityKind
from omnigraph.branch.feed import Feed, PageBounds
from omnigraph.branch.told import FeedPage
from omnigraph.model.schema import NodeType
from omnigraph.pipeline.export.formats import chosen_entities
from omnigraph.pipeline.export.run import stream_lines
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts


@dataclass(frozen=True, slots=True)
class BaselineInStorage(Baseline[Snapshot]):
    """A state of an open graph, read when its lines are asked for."""

    _parts: Parts
    _wanted: ChangeFilter

    def _lines(self) -> Iterator[bytes]:
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


class ChangeFeed(Followed[Snapshot]):
    """What happened on a branch, commit by commit. Whoever keeps the cursor misses nothing and sees nothing twice."""

    def __init__(self, reading: Reading) -> None:
        self._reading = reading
        self._parts = reading.parts

    def _baseline(self, branch: str, wanted: ChangeFilter) -> BaselineInStorage:
        name = paths.branch_name(branch)
        head = self._parts.log.live_head(name)
        cursor = Feed(self._parts, name, wanted).cursor_at(head)
        return BaselineInStorage(Snapshot(self._reading, head, head_of=name), cursor, self._parts, wanted)

    def _poll(
        self, branch: str, wanted: ChangeFilter, page: PageWanted, cursor: str | None, start: str | None
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
