"""Pruning: marking old commits of a branch, in one entry of its log. Nothing is deleted here.

A mark has two depths. Marked commits vanish from what readers see, and keep their data: somebody may just be writing on
top of one. Those below the *floor* are gone for good, and a sweep may delete what only they needed.

    1 2 3 4 5 6 7 | 8 9 10 | 11
    below the floor   marked   shown

However eager the caller, these stay at or above the floor: the commit that is shown by the head, the anchor (the one it
has just superseded), everything younger than the protection window, and the base of every write that left an intent.
Tags, branches and leases need no regard here: they hold what they name against the sweep.

How many requests it takes does not depend on how long the history is.
"""

from dataclasses import dataclass, replace
from itertools import chain

from omnigraph import limits
from omnigraph.clock import backoff_s
from omnigraph.errors import ConflictError, InvalidRequestError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.retention import Pruned
from omnigraph.model.times import sampled
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Done
from omnigraph.transaction.pruning.floor import bases_of_writes, first_not_older, floor_below
from omnigraph.transaction.publish import Draft, entry_after
from omnigraph.transaction.validation import (
    require_optional_seconds,
    require_optional_text,
    require_optional_whole_number,
)
from omnigraph.transaction.write_set.stage import nothing_staged

_SECOND_US = 1_000_000
_READ_AHEAD = 8
SWEEP_ACTOR = "omnigraph:sweep"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which commits a prune marks. With `keep` and `older_than_s` both, only those that neither keeps."""

    keep: int | None = None  # how many of the newest stay; the newest always does
    older_than_s: float | None = None  # those younger than this stay
    numbers: tuple[int, ...] = ()  # these entries instead, whatever their age
    # gives no time to those who still use what is marked: neither the window nor the anchor keeps its data
    now: bool = False


@dataclass(frozen=True, slots=True)
class PrunedBranch:
    """What a prune did, or would do, to one branch."""

    branch: str
    before: Pruned  # what had been pruned before
    after: Pruned  # what is pruned now
    first: int  # with which entry the branch began; lower ones are of a branch that had the name before
    entry: Record | None  # the mark; None where nothing was to be marked, or nothing was done

    @property
    def marked(self) -> int:
        """Number of entries that this prune has hidden, commits and others."""
        return sum(
            self.before.is_listed(number) and not self.after.is_listed(number) for number in self._up_to_last_mark()
        )

    @property
    def waiting(self) -> int:
        """Number of hidden entries that keep their data until a later prune passes them."""
        return sum(
            self.after.is_kept(number) and not self.after.is_listed(number) for number in self._up_to_last_mark()
        )

    def _up_to_last_mark(self) -> range:
        return range(max(self.before.floor, self.first), max(self.after.through, *self.after.single, 0) + 1)


def check(policy: Policy) -> None:
    """Refuse a policy that says nothing, or what cannot be."""
    if policy.keep is None and policy.older_than_s is None and not policy.numbers and not policy.now:
        raise InvalidRequestError("cleanup requires at least one of --keep or --older-than", code="no_policy")
    keep = require_optional_whole_number(policy.keep, "the number of commits to keep")
    if keep is not None and keep < 0:
        raise InvalidRequestError(f"the number of commits to keep cannot be {policy.keep}")
    require_optional_seconds(policy.older_than_s, "an age")
    if policy.numbers and (policy.keep is not None or policy.older_than_s is not None):
        raise InvalidRequestError("name commits, or say how many or how old; not both")


def prune(
    context: GraphContext, branch: str, policy: Policy, *, actor: str | None = None, dry_run: bool = False
) -> PrunedBranch:
    """Mark what a policy does not keep, in one entry; with `dry_run`, only say what would be marked.

    Raises:
        NotFoundError: there is no such branch.
        InvalidRequestError: the policy says nothing, or names a commit that cannot be marked.
        ConflictError: others keep writing the log.
    """
    check(policy)
    name = paths.branch_name(branch)
    if not dry_run:
        context.refuse_read_only()
    require_optional_text(actor, "the actor")
    for attempt in range(1, limits.PUBLISH_ATTEMPTS_MAX + 1):
        head = context.log.live_head(name)
        after = marked(context, head, policy)
        if dry_run or after == head.pruned:
            return PrunedBranch(name, head.pruned, after, head.life or 1, None)
        reached(Failpoint.PRUNE_PLANNED)
        draft = Draft(branch=name, kind=CommitKind.PRUNE, actor=actor)
        entry = replace(entry_after(context, head, nothing_staged(head), draft), pruned=after)
        outcome = context.log.put(entry, after=head)
        if isinstance(outcome, Done):
            reached(Failpoint.PRUNE_ENTRY_PUT)
            return PrunedBranch(name, head.pruned, after, head.life or 1, outcome.entry)
        context.clock.sleep(backoff_s(attempt))
    raise ConflictError(f"branch '{name}' is too busy: others keep writing its log; try again", code="too_busy")


def marked(context: GraphContext, head: Record, policy: Policy) -> Pruned:
    """What is pruned once a policy was applied to a branch with this head; the same again where that is nothing new."""
    before = head.pruned
    if policy.numbers:
        return _singly_marked(context, head, policy)
    newest, anchor, oldest_to_keep = _newest_commits(context, head, policy)
    start = max(before.floor, head.life or 1)
    if policy.older_than_s is not None:
        instant = context.clock.now_us() - int(policy.older_than_s * _SECOND_US)
        by_age = first_not_older(context, head, start, instant)
        oldest_to_keep = by_age if oldest_to_keep is None else min(oldest_to_keep, by_age)
    shown_from = max(min(newest, oldest_to_keep if oldest_to_keep is not None else newest), start)
    through = max(before.through, shown_from - 1 if shown_from > start else 0)
    if through == before.through and not _may_rise(before, policy):
        return before
    floor = floor_below(
        context,
        head,
        at_most=min(shown_from, newest) if policy.now else min(shown_from, newest, anchor),
        window_s=0 if policy.now else context.settings.protection_s,
    )
    return Pruned(
        floor=floor,
        through=through,
        single=tuple(number for number in before.single if number > through),
        gone=tuple(number for number in before.gone if number >= floor),
        ages=sampled([(number, at_us) for number, at_us in before.ages if number >= floor], limits.PRUNED_AGES_MAX),
        unswept=context.log.floors.highest(head.branch),
    )


def _may_rise(before: Pruned, policy: Policy) -> bool:
    """Whether marked commits that kept their data so far may have come of age."""
    return before.floor <= before.through or policy.now


def _newest_commits(context: GraphContext, head: Record, policy: Policy) -> tuple[int, int, int | None]:
    """Entries of the newest commit, of the one before it, and of the oldest that `keep` keeps; reads what is kept."""
    start = max(head.pruned.floor, head.life or 1)
    wanted = max(policy.keep, 1) if policy.keep is not None else 1 if policy.older_than_s is None else None
    found: list[int] = []
    listed: list[int] = []
    for entry in chain(
        [head], context.log.backwards(head.branch, start=head.number_before, first=start, step=_READ_AHEAD)
    ):
        if entry.is_commit:
            found.append(entry.number)
            # Commits that were marked one by one are not among those to keep.
            listed += [entry.number] if head.pruned.is_listed(entry.number) else []
            if len(found) >= 2 and len(listed) >= (wanted or 1):
                break
    if not found:
        return start, start, start  # what it has was written on another branch, and is pruned there
    oldest = None if wanted is None else listed[wanted - 1] if len(listed) >= wanted else start
    return found[0], found[1] if len(found) > 1 else found[0], oldest


def _singly_marked(context: GraphContext, head: Record, policy: Policy) -> Pruned:
    before = head.pruned
    single = sorted({*before.single, *(number for number in policy.numbers if number > before.through)})
    if len(single) > limits.PRUNED_SINGLE_MAX:
        raise InvalidRequestError(
            f"branch '{head.branch}' would have {len(single)} commits marked one by one, of at most "
            f"{limits.PRUNED_SINGLE_MAX}; prune by number or age first"
        )
    gone = _without_grace(context, head, {*single, *policy.numbers} - {*before.gone}, policy)
    return replace(before, single=tuple(single), gone=tuple(sorted({*before.gone, *_with_marks(context, head, gone)})))


def _with_marks(context: GraphContext, head: Record, numbers: set[int]) -> set[int]:
    """Entries of commits, and the marks right behind them, which name the same versions."""
    found = set(numbers)
    for number in numbers:
        for later in range(number + 1, head.number):
            entry = context.log.read(head.branch, later)
            if entry is not None and entry.is_commit:
                break
            found.add(later)
    return found


def _without_grace(context: GraphContext, head: Record, marked: set[int], policy: Policy) -> set[int]:
    """Of marked entries, those whose data need not wait: with `now` those that were named, else those of age."""
    kept = set(bases_of_writes(context, head.branch))
    if policy.now:
        return ({*policy.numbers} & marked) - kept
    _, anchor, _ = _newest_commits(context, head, Policy(keep=2))
    instant = context.clock.now_us() - int(context.settings.protection_s * _SECOND_US)
    entries = (context.log.read(head.branch, number) for number in sorted(marked - kept - {anchor}))
    return {entry.number for entry in entries if entry is not None and entry.created_at_us < instant}


def put_barrier(context: GraphContext, branch: str) -> Record | None:
    """Put a barrier at the end of a branch's log.

    A writer without an intent that staged before finds its place taken, reads the barrier and writes its files anew;
    what it had staged before may be deleted.
    """
    for attempt in range(1, limits.PUBLISH_ATTEMPTS_MAX + 1):
        head = context.log.head(branch, tentative=True)
        if head is None or not head.is_live:
            return None
        draft = Draft(branch=branch, kind=CommitKind.BARRIER, actor=SWEEP_ACTOR)
        entry = entry_after(context, head, nothing_staged(head), draft)
        outcome = context.log.put(entry, after=head)
        if isinstance(outcome, Done):
            return outcome.entry
        context.clock.sleep(backoff_s(attempt))
    raise ConflictError(f"branch '{branch}' is too busy: others keep writing its log; try again", code="too_busy")
