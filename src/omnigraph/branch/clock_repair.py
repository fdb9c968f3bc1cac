"""Correcting the times of commits that were made by a clock ahead of the store's.

Entries are immutable. An entry of its own kind says which times count instead, and every later one takes that on; the
log applies it to whatever it reads. The right times are those at which the store was given the entries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.branch.marks import live_branches
from omnigraph.clock import backoff_s
from omnigraph.errors import ConflictError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.times import Times, correct_time, sampled
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Done
from omnigraph.transaction.publish import Draft, entry_after
from omnigraph.transaction.store_clock import AHEAD_US_MAX
from omnigraph.transaction.write_set.stage import nothing_staged


@dataclass(frozen=True, slots=True)
class CorrectedClock:
    """The commits of one branch whose times a repair has corrected.

    Attributes:
        numbers: of the entries.
        ahead_s: how far the worst of them was ahead.
        entry: the entry that corrects them.
    """

    branch: str
    numbers: tuple[int, ...]
    ahead_s: float
    entry: Record


def repair_clock(context: GraphContext, *, actor: str | None = None) -> list[CorrectedClock]:
    """Correct the times of all living branches, where they are ahead of the store's clock.

    Raises:
        ClockError: the clock of this machine is ahead as well; set it first.
        ConflictError: others keep writing the log.
    """
    context.refuse_read_only()
    found = [_repaired(context, branch, actor) for branch in live_branches(context)]
    return [entry for entry in found if entry is not None]


def _repaired(context: GraphContext, branch: str, actor: str | None) -> CorrectedClock | None:
    for attempt in range(1, limits.PUBLISH_ATTEMPTS_MAX + 1):
        head = context.log.head(branch)
        if head is None or not head.is_live:
            return None
        now_us = context.log.store_clock.ask()
        put_at = _times_of_puts(context, branch)
        entries = [*context.log.between(branch, max(head.pruned.floor, head.life or 1), head.number_before), head]
        times = {entry.number: min(put_at.get(entry.number) or now_us, now_us) for entry in entries}
        ahead = [entry for entry in entries if entry.created_at_us > times[entry.number] + AHEAD_US_MAX]
        if not ahead:
            return None
        corrected = _corrected(entries, times, first=ahead[0].number, last=ahead[-1].number)
        kept = tuple(pair for pair in head.times if not corrected[0][0] <= pair[0] < corrected[-1][0])
        merged = tuple(sorted((*kept, *corrected)))
        ages = tuple((number, correct_time(merged, number, at_us)) for number, at_us in head.pruned.ages)
        entry = replace(
            entry_after(context, head, nothing_staged(head), Draft(branch=branch, kind=CommitKind.CLOCK, actor=actor)),
            created_at_us=max(context.clock.now_us(), correct_time(merged, head.number, head.created_at_us)),
            pruned=replace(head.pruned, ages=ages),
            times=merged,
        )
        outcome = context.log.put(entry, after=head)
        if isinstance(outcome, Done):
            worst_us = max(entry.created_at_us - times[entry.number] for entry in ahead)
            return CorrectedClock(branch, tuple(entry.number for entry in ahead), worst_us / 1_000_000, outcome.entry)
        context.clock.sleep(backoff_s(attempt))
    raise ConflictError(f"branch '{branch}' is too busy: others keep writing its log; try again", code="too_busy")


def _times_of_puts(context: GraphContext, branch: str) -> dict[int | None, int]:
    """When the store was given the entries of a log, by number."""
    return {paths.entry_number(file.path): file.modified_us for file in context.store.list(paths.log_folder(branch))}


def _corrected(entries: Sequence[Record], put_at: Mapping[int, int], *, first: int, last: int) -> Times:
    """The times of a run of entries, rising, and where the run ends."""
    pairs: list[tuple[int, int]] = []
    at_us = 0
    for entry in entries:
        if entry.number < first:
            at_us = entry.created_at_us
            continue
        if entry.number > last and entry.created_at_us >= at_us:
            break
        at_us = max(at_us, min(entry.created_at_us, put_at[entry.number]))
        pairs.append((entry.number, at_us))
    return (*sampled(pairs, limits.CORRECTED_TIMES_MAX), (pairs[-1][0] + 1, 0))
