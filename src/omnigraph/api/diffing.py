"""Differences between states, as callers name them."""

from collections.abc import Iterable

from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.diff import Diff
from omnigraph.branch.entity_change import change_filter
from omnigraph.branch.points import Point, entry_at
from omnigraph.errors import NotFoundError
from omnigraph.ids import is_ulid
from omnigraph.model.commit import Record
from omnigraph.transaction.parts import Parts

State = str | Point | Snapshot


def diff(
    parts: Parts,
    older: State,
    newer: State,
    *,
    kinds: Iterable[str] = (),
    types: Iterable[str] = (),
    ops: Iterable[str] = (),
) -> Diff:
    """What lies between two states; see `Graph.diff`."""
    wanted = change_filter(kinds, types, ops)
    return Diff(parts, _entry(parts, older), _entry(parts, newer), wanted)


def _entry(parts: Parts, state: State) -> Record:
    """The entry that shows a state; a text is the name of a branch or a tag, or the id of a commit."""
    if isinstance(state, Snapshot):
        return state.record
    if isinstance(state, Point):
        return entry_at(parts, state)
    points = [Point(branch=state), Point(tag=state)]
    if is_ulid(state):
        points.insert(0, Point(commit=state))
    for point in points:
        try:
            return entry_at(parts, point)
        except NotFoundError as missing:
            if missing.code not in ("branch_not_found", "tag_not_found", "commit_not_found"):
                raise
    raise NotFoundError(f"there is no branch, tag or commit '{state}'", code="point_not_found", point=state)
