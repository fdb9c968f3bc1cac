"""Compare two states, here or on Spark."""

from functools import partial

from omnigraph import limits
from omnigraph.api.engines import Engine, engine_of, session_for, spark_module
from omnigraph.api.interface.reads import State
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.diff import Diff, compared_here, counted_here
from omnigraph.branch.entity_change import ChangeFilter
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.history_values import DiffStats
from omnigraph.branch.merge import base
from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.branch.point import Point, instant_us
from omnigraph.branch.row_changes import RowChanges
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.ids import is_ulid
from omnigraph.model.commit import Pin, Record
from omnigraph.storage.tables.delta_pieces import delta_bytes
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.validation import require_text


def diff(
    parts: GraphContext, older: State, newer: State, wanted: ChangeFilter, *, engine: str, merge_base: bool = False
) -> Diff:
    """Compare two states, or the newer one with their merge base; see `Graph.diff`."""
    chosen = engine_of(engine)
    compare, count = partial(_compared, parts, chosen), partial(_counted, parts, chosen)
    before, after = _entry(parts, older), _entry(parts, newer)
    if merge_base:
        before = base.merge_base(Ancestry(parts), after, before).state
    return Diff(compare, before, after, wanted, count)


def _compared(parts: GraphContext, engine: Engine, older: Pin | None, newer: Pin | None) -> RowChanges:
    """Compare the rows of one type, here or on Spark."""
    return compare_on_spark(parts, engine, older, newer) or compared_here(parts.tables, older, newer)


def _counted(parts: GraphContext, engine: Engine, older: Pin | None, newer: Pin | None) -> DiffStats | None:
    """Count the rows of one type that differ; None if Spark is to compare, or only a comparison can tell."""
    return None if _is_for_spark(parts, engine, older, newer) else counted_here(parts.tables, older, newer)


def compare_on_spark(parts: GraphContext, engine: Engine, older: Pin | None, newer: Pin | None) -> RowChanges | None:
    """Compare the rows of one type on Spark; None if this process is to do it."""
    session = session_for(engine) if _is_for_spark(parts, engine, older, newer) else None
    if session is None:
        return None
    found: RowChanges = spark_module("diff.spark").changes_on_spark(session, parts.tables, parts.ids, older, newer)
    return found


def _is_for_spark(parts: GraphContext, engine: Engine, older: Pin | None, newer: Pin | None) -> bool:
    if engine is Engine.AUTO:
        return delta_bytes(parts.tables, older, newer) > limits.DIFF_LOCAL_BYTES_MAX
    return engine is Engine.SPARK


def _entry(parts: GraphContext, state: State) -> Record:
    """Find the log entry of a state; a text is a branch, a tag, the id of a commit, or `BRANCH@WHEN`."""
    if isinstance(state, Snapshot):
        return state.record
    if isinstance(state, Point):
        return entry_at(parts, state)
    name = require_text(state, "a state")  # type: ignore[arg-type]  # a snapshot of another graph is refused like any object
    points = [Point(branch=name), Point(tag=name)]
    if is_ulid(name):
        points.insert(0, Point(commit=name))
    for point in points:
        try:
            return entry_at(parts, point)
        except NotFoundError as missing:
            if missing.code not in ("branch_not_found", "tag_not_found", "commit_not_found"):
                raise
    # Last of all: a name may contain an @.
    earlier = _earlier(name)
    if earlier is not None:
        return entry_at(parts, earlier)
    raise NotFoundError(f"there is no branch, tag or commit '{name}'", code="point_not_found", point=name)


def _earlier(state: str) -> Point | None:
    """Parse `BRANCH@NUMBER` or `BRANCH@TIME`, the branch by default `main`; None if the text is neither."""
    branch, at, when = state.rpartition("@")
    if not at:
        return None
    line = branch or None
    if when.isascii() and when.isdigit():
        return Point(branch=line, number=int(when))
    try:
        instant_us(when)
    except InvalidRequestError:
        return None
    return Point(branch=line, at=when)
