"""Points in a graph's history: the log entry that a branch, a number, a commit, a tag or a time stands for."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

from omnigraph import limits
from omnigraph.branch import tags
from omnigraph.branch.lineage import Line, birth, entries_to_commit, lines, newest_at, read_if_whole
from omnigraph.branch.marks import live_branches
from omnigraph.branch.point import Instant, Point, check_point, instant_us
from omnigraph.branch.tags import held_at
from omnigraph.errors import FormatError, NotFoundError, ReclaimedError
from omnigraph.ids import is_ulid
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.retention import check_listed, reclaimed
from omnigraph.transaction.validation import require_text

Acted = TypeVar("Acted")

_SEARCH_THREADS = 16


def act_at(context: GraphContext, point: Point, act: Callable[[Record], Acted]) -> Acted:
    """Call a function with the entry that a point names; again where that was the head and is pruned meanwhile.

    Raises:
        NotFoundError: there is no such state.
        ReclaimedError: it was pruned.
    """
    for _ in range(limits.HEAD_LOOKS_MAX - 1 if point.is_head else 0):
        with suppress(ReclaimedError):  # the branch has moved on
            return act(entry_at(context, point))
    return act(entry_at(context, point))


def entry_at(context: GraphContext, point: Point) -> Record:
    """The entry that shows the state a point names.

    Raises:
        NotFoundError: there is no such branch, number, commit or tag, or nothing was there at that time.
        InvalidRequestError: two things are named of which one would do, or the time is none.
    """
    check_point(point)
    if point.commit is not None:
        return _still_there(context, _showing(context, point.commit))
    if point.tag is not None:
        return _of_tag(context, point.tag)
    name = paths.branch_name(point.branch if point.branch is not None else MAIN)
    head = context.log.live_head(name)
    if point.at is not None:
        return _at_time(context, head, point.at)
    if point.number is None or point.number == head.number:
        return head
    if point.number >= birth(context, head):
        check_listed(head, point.number)
    found = context.log.read(name, point.number) if birth(context, head) <= point.number < head.number else None
    if found is None:
        raise NotFoundError(
            f"branch '{name}' has no commit number {point.number}; its newest is {head.number}",
            code="commit_not_found",
        )
    return found


def of_commit(context: GraphContext, commit: str, *, near: str = MAIN) -> Record:
    """The entry of a commit, in whichever log it is; the log of `near` is searched first.

    Raises:
        NotFoundError: no log has it.
        ReclaimedError: it was pruned.
    """
    return entries_to_commit(context, _showing(context, commit, near))[-1]


def _showing(context: GraphContext, commit: str, near: str = MAIN) -> Record:
    """The entry that shows a commit: its own, or where that was pruned the head of a branch that is still there.

    Raises:
        NotFoundError: no log has it.
        ReclaimedError: it was pruned.
    """
    wanted = require_text(commit, "a commit")
    try:
        found = _in_any_log(context, wanted, near)
    except ReclaimedError:
        found = _inherited(context, wanted, heads_only=True)
        if found is None:
            raise
    if found is None and is_ulid(commit):
        found = _inherited(context, wanted)
    if found is None:
        raise NotFoundError(f"commit '{commit}' not found", code="commit_not_found", commit=commit)
    return found


def _in_any_log(context: GraphContext, commit: str, near: str) -> Record | None:
    """A commit in whichever log it is.

    Raises:
        ReclaimedError: it was pruned, and its entry is still there to tell.
    """
    found = in_log(context, near, commit)
    if found is not None:
        return found
    # Newer logs first would be no better: an id tells when it was made, and any log may have been written then.
    others = [name for name in context.log.branch_names() if name != near] if is_ulid(commit) else []
    for first in range(0, len(others), _SEARCH_THREADS):
        some = others[first : first + _SEARCH_THREADS]
        with ThreadPoolExecutor(len(some)) as pool:
            for entry in pool.map(lambda name: in_log(context, name, commit), some):
                if entry is not None:
                    return entry
    return None


def own_entry(context: GraphContext, commit: str) -> Record:
    """The entry that a commit itself was written as, for those who tell of it rather than read its state.

    Raises:
        NotFoundError: no log has it.
        ReclaimedError: it was pruned.
    """
    shown = entry = of_commit(context, commit)
    while entry.commit != commit:
        if entry.kind is CommitKind.FORK and entry.fork_of is not None and entry.fork_number is not None:
            earlier = read_if_whole(context, entry.fork_of, entry.fork_number)
        else:
            earlier = read_if_whole(context, entry.branch, entry.number_before)
        if earlier is None or earlier.head_commit != commit:
            return shown
        entry = earlier
    return entry


def _inherited(context: GraphContext, commit: str, *, heads_only: bool = False) -> Record | None:
    """A commit that a living branch shows or has inherited, though the log that it was written to has gone on or ended.

    With `heads_only`, one that a branch shows: that is never pruned.

    Raises:
        ReclaimedError: it was pruned there.
    """
    for name in live_branches(context):
        head = context.log.head(name)
        if head is None or not head.is_live or commit > head.commit:
            continue
        if head.head_commit == commit:
            return head
        for line in () if heads_only else lines(context, head, head=head):
            found = None if line.ended_at is None else _in_line(context, line, commit)
            if found is not None:
                check_listed(found, found.number, line.pruned)
                return found
    return None


def _in_line(context: GraphContext, line: Line, commit: str) -> Record | None:
    """A commit in a run of entries without gaps, by halving: ids rise along it."""
    below, above = line.lowest - 1, line.last + 1
    while above - below > 1:
        middle = (below + above) // 2
        entry = context.log.read(line.branch, middle)
        if entry is not None and entry.commit == commit:
            return entry if entry.is_commit else None
        if entry is None or entry.commit < commit:
            below = middle
        else:
            above = middle
    return None


def _still_there(context: GraphContext, entry: Record) -> Record:
    """An entry whose data may be gone with its branch; the log alone does not tell for a while.

    Raises:
        ReclaimedError: it is.
    """
    head = context.log.head(entry.branch)
    if head is None or (head.is_live and (entry.life is None or entry.life == head.life)):
        return entry
    try:
        for pin in entry.tables.values():
            context.tables.open(pin)
    except FormatError as fault:
        if fault.code != ReclaimedError.code:
            raise
        raise ReclaimedError(
            f"commit '{entry.commit}' went with its branch '{entry.branch}', which was deleted",
            branch=entry.branch,
            number=entry.number,
        ) from fault
    return entry


def in_log(context: GraphContext, branch: str, commit: str) -> Record | None:
    """A commit in one log, by halving: ids rise along a log.

    Raises:
        ReclaimedError: it was pruned, and its entry is still there to tell.
    """
    head = context.log.head(branch)
    if head is None or commit > head.commit:
        return None
    below, found = head.pruned.floor - 1, head
    while found.commit != commit:
        if found.number - below <= 1:
            return None
        middle = (below + found.number) // 2
        entry = context.log.read(branch, middle)
        # What is no longer there was cut away, and so was everything before it.
        if entry is None or entry.commit < commit:
            below = middle
        else:
            found = entry
    if not found.is_commit:
        return None
    check_listed(head, found.number)
    return found


def entry_before(context: GraphContext, entry: Record) -> Record | None:
    """Return an entry that shows the state of a commit's first parent; None if none can be read any more.

    The entry before it in its log does, unless it was pruned or belongs to an earlier branch of the same name, whose
    prunes the head does not know. The parent may still be listed elsewhere: on the branch it was forked from, say.
    """
    if entry.parent is None:
        return None
    head = context.log.head(entry.branch)
    number = entry.number_before
    if head is not None and number >= birth(context, head) and head.pruned.is_listed(number):
        return context.log.read(entry.branch, number)
    with suppress(NotFoundError, ReclaimedError):
        return _still_there(context, _showing(context, entry.parent, entry.branch))
    return None


def _of_tag(context: GraphContext, name: str) -> Record:
    tag = tags.read(context, name)
    found = context.log.read(tag.branch, tag.number)
    if found is None or found.head_commit != tag.commit:
        raise NotFoundError(f"commit '{tag.commit}' of tag '{tag.name}' not found", code="commit_not_found")
    return found


def _at_time(context: GraphContext, head: Record, at: Instant) -> Record:
    instant = instant_us(at)
    if head.created_at_us <= instant:
        return head
    for line in lines(context, head, head=head):
        found = newest_at(context, line, instant)
        if found is not None and line.pruned.is_listed(found.number):
            return found
        if found is not None or line.lowest > line.first:
            held = held_at(context, line.branch, instant)
            if held is not None:
                return held
            number = line.lowest - 1 if found is None else found.number
            raise reclaimed(line.branch, number, next_number=line.pruned.next_listed(number))
    raise NotFoundError(f"branch '{head.branch}' has no commit as old as {at}", code="commit_not_found")
