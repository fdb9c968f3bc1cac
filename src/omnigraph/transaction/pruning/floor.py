"""The floor of a branch: the first entry whose data must be kept for running readers and writers."""

from omnigraph import limits
from omnigraph.model.commit import Record
from omnigraph.model.retention import Pruned
from omnigraph.model.times import sampled
from omnigraph.transaction.graph_context import GraphContext

_SECOND_US = 1_000_000


def superseding(context: GraphContext, head: Record, *, erases: bool = False, intent: str | None = None) -> Pruned:
    """What is pruned by a write that follows `head` and marks everything before itself, in the same entry.

    The head it supersedes is the anchor: whatever its age, its data stays. It is taken from the log, not from what the
    caller has read: what it had read may have been marked meanwhile. With `erases`, neither the window nor the anchor
    keeps data: what the write drops shall leave the store. The base of its own `intent` need not be kept.
    """
    before = head.pruned
    if erases:
        floor = floor_below(context, head, at_most=head.number + 1, window_s=0, except_intent=intent)
    else:
        floor = floor_below(context, head, at_most=head.number, window_s=context.settings.protection_s)
    known = [age for age in before.ages if age[0] >= floor]
    return Pruned(
        floor=floor,
        through=head.number,
        single=(),
        gone=tuple(number for number in before.gone if number >= floor),
        ages=sampled([*known, (head.number, head.created_at_us)], limits.PRUNED_AGES_MAX),
        unswept=before.unswept,
    )


def floor_below(
    context: GraphContext, head: Record, *, at_most: int, window_s: float, except_intent: str | None = None
) -> int:
    """The highest floor that leaves everybody what they may be using, and what is younger than the window."""
    start = max(head.pruned.floor, head.life or 1)
    floor = at_most
    if window_s > 0 and floor > start:
        instant = context.clock.now_us() - int(window_s * _SECOND_US)
        floor = min(floor, first_not_older(context, head, start, instant))
    if floor > start:
        floor = min([floor, *bases_of_writes(context, head.branch, except_intent=except_intent)])
    return max(floor, head.pruned.floor)


def bases_of_writes(context: GraphContext, branch: str, *, except_intent: str | None = None) -> list[int]:
    """The entries of a branch that writes with an intent are built on."""
    under_way = [found.intent for found in context.intents.everything()]
    return [intent.base_number for intent in under_way if intent.branch == branch and intent.id != except_intent]


def first_not_older(context: GraphContext, head: Record, start: int, instant_us: int) -> int:
    """The first entry from `start` on that was made at an instant or later; one after the head where none was.

    Times rise along a log. The head is at hand, some marked entries' times are in it; the oldest entry is asked first,
    since as a rule all are old or none is. What is left is halved a bounded number of times; an answer that is too
    low only keeps more.
    """
    if head.created_at_us < instant_us:
        return head.number + 1
    low, high = start, head.number
    for number, at_us in head.pruned.ages:
        if at_us < instant_us:
            low = max(low, number + 1)
        else:
            high = min(high, number)
    probe = low
    for _ in range(limits.PRUNE_PROBES_MAX):
        if low >= high:
            break
        entry = context.log.read(head.branch, probe)
        if entry is None or entry.created_at_us < instant_us:
            low = probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    return low
