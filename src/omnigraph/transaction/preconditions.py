"""Preconditions of a write: the head commit and the table versions that its caller expects."""

from collections.abc import Iterator, Mapping
from itertools import chain, pairwise

from omnigraph import limits
from omnigraph.errors import ConflictError, PreconditionError
from omnigraph.model.commit import Record
from omnigraph.transaction.conflicts import message_for, mismatches
from omnigraph.transaction.graph_context import GraphContext

# Entries read at once on the way back from the head.
_READ_AHEAD = 4


def check_head(context: GraphContext, head: Record, if_commit: str | None) -> None:
    """Refuse when a caller names a commit and another one is the head of the branch."""
    if (
        if_commit is not None
        and not head.has_content_of(if_commit)
        and not _only_layout_changed_since(context, head, if_commit)
    ):
        raise PreconditionError(
            f"precondition failed on branch '{head.branch}': expected head '{if_commit}' but current is "
            f"{head.head_commit}",
            branch=head.branch,
            expected=if_commit,
            actual=head.head_commit,
        )


def _earlier(context: GraphContext, head: Record) -> Iterator[tuple[Record, Record]]:
    """The entries before `head`, newest first, each with the one after it; few, and none of an earlier life."""
    first = max(head.pruned.floor, head.life or 1, head.number - limits.LAYOUTS_LOOKED_THROUGH_MAX)
    entries = context.log.backwards(head.branch, start=head.number_before, first=first, step=_READ_AHEAD)
    return ((before, after) for after, before in pairwise(chain([head], entries)))


def _only_layout_changed_since(context: GraphContext, head: Record, commit: str) -> bool:
    """True if only index and compaction commits, and marks, lie between a commit and the head."""
    for before, after in _earlier(context, head):
        if after.is_commit and not after.is_layout:
            return False
        if before.head_commit == commit:
            return True
    return False


def _only_layout_changed_of(context: GraphContext, head: Record, type_key: str, version: int) -> bool:
    """True if only index and compaction commits have changed a table since it was at a version."""
    for before, after in _earlier(context, head):
        pin = before.tables.get(type_key)
        if pin is None or (pin != after.tables.get(type_key) and not after.is_layout):
            return False
        if pin.version == version:
            return True
    return False


def check_preconditions(
    context: GraphContext, head: Record, if_commit: str | None, expected_table_versions: Mapping[str, int] | None
) -> None:
    """Refuse when what the caller expected of the head does not hold."""
    check_head(context, head, if_commit)
    if expected_table_versions:
        wrong = tuple(
            mismatch
            for mismatch in mismatches(expected_table_versions, head)
            if not _only_layout_changed_of(context, head, mismatch.table_key, mismatch.expected)
        )
        if wrong:
            raise ConflictError(message_for(wrong[0]), conflicts=wrong)
