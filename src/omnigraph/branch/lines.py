"""The first-parent chain of a branch: runs of entries of its own log, of the log it was forked from, and so on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.retention import NOTHING_PRUNED, Pruned
from omnigraph.transaction.graph_context import GraphContext


@dataclass(frozen=True, slots=True)
class Line:
    """A run of entries of one log, both ends included.

    Attributes:
        branch: whose log.
        first: where it begins: with the entry that made the graph or forked this life of the branch.
        last: where it ends: at the head, or where the next line was forked off.
        pruned: what prunes have marked in that log, in this life of the branch.
        ended_at: the entry that ended this life of the branch; None where it lives.
    """

    branch: str
    first: int
    last: int
    pruned: Pruned = NOTHING_PRUNED
    ended_at: int | None = None

    @property
    def lowest(self) -> int:
        """The first entry that is still there."""
        return max(self.first, self.pruned.floor)


def birth(parts: GraphContext, entry: Record) -> int:
    """Number of the entry with which this life of the branch began; the log is read where the record does not tell."""
    if entry.life is not None:
        return entry.life
    for earlier in parts.log.backwards(entry.branch, start=entry.number_before, first=entry.pruned.floor):
        if earlier.life is not None:
            return earlier.life
    return entry.pruned.floor


def lines(
    parts: GraphContext, entry: Record, *, head: Record | None = None, marked_too: bool = False
) -> Iterator[Line]:
    """The chain that ends at an entry, newest line first; a few reads for each fork in it.

    Args:
        entry: the last of the chain.
        head: the head of its branch, where that was just read.
        marked_too: go on below what prunes have marked, as long as it is kept.

    Yields:
        Each run of entries. A line whose first entry was pruned is the last.
    """
    while True:
        newest = head if head is not None else parts.log.head(entry.branch)
        line = _line(parts, birth(parts, entry), entry, newest)
        yield line
        if line.lowest > line.first or (line.pruned.through >= line.first and not marked_too):
            return  # pruned past its beginning, and with it what it had inherited
        fork = entry if entry.kind is CommitKind.FORK else parts.log.read(line.branch, line.first)
        if fork is None or fork.fork_of is None or fork.fork_number is None:
            return
        origin = parts.log.read(fork.fork_of, fork.fork_number)
        if origin is None:
            return
        entry, head = origin, None


def entries_to_commit(parts: GraphContext, entry: Record) -> list[Record]:
    """An entry, and the marks and forks before it that show the same commit, down to the entry of the commit itself.

    Where that, or one on the way, was cut away, the last is a mark.
    """
    found = [entry]
    while not found[-1].is_commit:
        mark = found[-1]
        branch, number = mark.branch, mark.number_before
        if mark.kind is CommitKind.FORK and mark.fork_of is not None and mark.fork_number is not None:
            branch, number = mark.fork_of, mark.fork_number
        earlier = parts.log.read(branch, number)
        if earlier is None or earlier.head_commit != entry.head_commit:
            break
        found.append(earlier)
    return found


def _line(parts: GraphContext, first: int, entry: Record, newest: Record | None) -> Line:
    """The line that ends at an entry. What a later branch of the same name has pruned is no concern of it."""
    while newest is not None and (newest.life or 1) > first:
        newest = parts.log.read(entry.branch, (newest.life or 1) - 1)  # the entry that ended the life before
    if newest is None:
        return Line(entry.branch, first, entry.number)
    if newest.is_live:
        return Line(entry.branch, first, entry.number, newest.pruned)
    pruned = newest.pruned
    lowest = max(first, pruned.floor)
    if entry.number_before > lowest and parts.log.read(entry.branch, entry.number_before) is None:
        # Sweeps of earlier releases left nothing of a deleted branch but what others were made from.
        pruned = replace(pruned, floor=entry.number)
    return Line(entry.branch, first, entry.number, pruned, newest.number)


def inherited(parts: GraphContext, heads: Iterable[Record]) -> dict[tuple[str, int], Line]:
    """The lines of ended branches that living ones have inherited, marked or not, by branch and first entry.

    Of those with the same beginning, the longest.
    """
    found: dict[tuple[str, int], Line] = {}
    for head in heads:
        for line in lines(parts, head, head=head, marked_too=True):
            known = found.get((line.branch, line.first))
            if line.ended_at is not None and (known is None or known.last < line.last):
                found[line.branch, line.first] = line
    return found


def backwards(parts: GraphContext, line: Line, last: int) -> Iterator[Record]:
    """The entries of a line that readers are shown, from `last` down, newest first, read as they are asked for."""
    entries = parts.log.backwards(line.branch, start=last, first=line.lowest, step=limits.HISTORY_READ_AHEAD_ENTRIES)
    return (entry for entry in entries if line.pruned.is_listed(entry.number))


def newest_at(parts: GraphContext, line: Line, instant_us: int) -> Record | None:
    """The newest entry of a line that is not younger than an instant, by halving: times rise along a log."""
    below, above = line.lowest - 1, line.last + 1
    found: Record | None = None
    while above - below > 1:
        middle = (below + above) // 2
        entry = parts.log.read(line.branch, middle)
        # What is no longer there was cut away, and so was everything before it.
        if entry is None or entry.created_at_us <= instant_us:
            below = middle
            found = entry if entry is not None else found
        else:
            above = middle
    return found
