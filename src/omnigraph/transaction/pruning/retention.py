"""Which commits of a branch are still kept, and which are shown. All from its head: nothing else is read.

A commit is *listed* until a prune marks it, and *kept* until the floor passes it. What is kept may be read by whoever
already uses it (a writer's base, the base of a merge, a fork, a tag); what is listed may be read by everybody.

A commit below the floor may still be held by a tag, a branch made from it, an intent or a lease. Whoever comes through
one of those needs no look at the floor.
"""

from omnigraph.errors import FormatError, NotFoundError, ReclaimedError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.retention import Pruned
from omnigraph.storage.tables.location import reopened
from omnigraph.transaction.graph_context import GraphContext


def check_listed(head: Record, number: int, pruned: Pruned | None = None) -> None:
    """Raise if a prune has marked an entry."""
    marks = head.pruned if pruned is None else pruned
    if not marks.is_listed(number):
        raise reclaimed(head.branch, number, next_number=marks.next_listed(number))


def still_kept(context: GraphContext, branch: str, number: int) -> bool:
    """Return whether the data of an entry is kept, by the branch's head as it is now.

    For whoever takes over the versions of another line: put what names them first (an intent, a fork, a tag, a lease),
    then ask. If the answer is yes, every sweep from here on either sees what was put, or had the entry among its roots.
    """
    head = context.log.head(branch)
    return head is not None and head.is_live and number <= head.number and is_kept(head, number)


def is_kept(head: Record, number: int) -> bool:
    """Whether the data of an entry is kept by its branch: above the floor, and of the life the branch has now."""
    return number >= (head.life or 1) and head.pruned.is_kept(number)


def check_kept(context: GraphContext, entry: Record) -> None:
    """Raise unless `still_kept`."""
    head = context.log.head(entry.branch)
    if head is None or not head.is_live:
        raise NotFoundError(f"branch '{entry.branch}' not found", code="branch_not_found", branch=entry.branch)
    # Where a backup was restored, another entry may have its number.
    if not is_kept(head, entry.number) or (entry.commit != head.commit and not context.log.is_there(entry)):
        raise reclaimed(entry.branch, entry.number, next_number=head.pruned.next_listed(entry.number))


def check_made(context: GraphContext, head: Record) -> None:
    """Refuse a branch without commits of its own whose creator died before noticing that its source had been pruned."""
    if head.kind is not CommitKind.FORK or head.fork_of is None or head.fork_number is None:
        return
    if still_kept(context, head.fork_of, head.fork_number):
        return
    tables = reopened(context.tables)
    try:
        for pin in head.tables.values():
            tables.open(pin)
    except FormatError as fault:
        if fault.code != ReclaimedError.code:
            raise
        raise NotFoundError(
            f"branch '{head.branch}' was never made: its source had been pruned, and its creator died before noticing; "
            "create it again, or delete it",
            code="branch_not_found",
            branch=head.branch,
        ) from fault


def reclaimed(branch: str, number: int, *, next_number: int | None) -> ReclaimedError:
    """The error of a commit that was pruned."""
    if next_number is None:
        return ReclaimedError(
            f"commit number {number} went with its branch '{branch}', which was deleted", branch=branch, number=number
        )
    return ReclaimedError(
        f"commit number {number} of branch '{branch}' was pruned; the next that can be read is number {next_number}",
        branch=branch,
        number=number,
        next_number=next_number,
    )
