"""Barriers: an entry that changes nothing, and makes every writer of a branch stage again what it staged before."""

from omnigraph import limits
from omnigraph.clock import backoff_s
from omnigraph.errors import ConflictError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Done
from omnigraph.transaction.publish import Draft, entry_after
from omnigraph.transaction.stage_versions import nothing_staged

SWEEP_ACTOR = "omnigraph:sweep"


def put_barrier(parts: GraphContext, branch: str) -> Record | None:
    """Put a barrier at the end of a branch's log.

    A writer without an intent that staged before finds its place taken, reads the barrier and writes its files anew;
    what it had staged before may be deleted.

    Returns:
        Record | None: the barrier; None where the branch is gone, and with it whoever would write there.

    Raises:
        ConflictError: others keep writing the log.
    """
    for attempt in range(1, limits.PUBLISH_ATTEMPTS_MAX + 1):
        head = parts.log.head(branch, tentative=True)
        if head is None or not head.is_live:
            return None
        draft = Draft(branch=branch, kind=CommitKind.BARRIER, actor=SWEEP_ACTOR)
        entry = entry_after(parts, head, nothing_staged(head), draft)
        outcome = parts.log.put(entry, after=head)
        if isinstance(outcome, Done):
            return outcome.entry
        parts.clock.sleep(backoff_s(attempt))
    raise ConflictError(f"branch '{branch}' is too busy: others keep writing its log; try again", code="too_busy")
