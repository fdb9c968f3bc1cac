"""The first-parent chain of a branch: runs of entries of its own log, of the log it was forked from, and so on."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.errors import FormatError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.retention import NOTHING_PRUNED, Pruned
from omnigraph.storage import paths
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


def birth(context: GraphContext, entry: Record) -> int:
    """Number of the entry with which this life of the branch began; the log is read where the record does not tell."""
    if entry.life is not None:
        return entry.life
    for earlier in context.log.backwards(entry.branch, start=entry.number_before, first=entry.pruned.floor):
        if earlier.life is not None:
            return earlier.life
    return entry.pruned.floor


def lines(
    context: GraphContext, entry: Record, *, head: Record | None = None, marked_too: bool = False
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
        newest = head if head is not None else context.log.head(entry.branch)
        line = _line(context, birth(context, entry), entry, newest)
        yield line
        if line.lowest > line.first or (line.pruned.through >= line.first and not marked_too):
            return  # pruned past its beginning, and with it what it had inherited
        fork = entry if entry.kind is CommitKind.FORK else context.log.read(line.branch, line.first)
        if fork is None or fork.fork_of is None or fork.fork_number is None:
            return
        origin = context.log.read(fork.fork_of, fork.fork_number)
        if origin is None:
            return
        entry, head = origin, None


def entries_to_commit(context: GraphContext, entry: Record) -> list[Record]:
    """An entry, and the marks and forks before it that show the same commit, down to the entry of the commit itself.

    Where that, or one on the way, was cut away, the last is a mark.
    """
    found = [entry]
    while not found[-1].is_commit:
        mark = found[-1]
        branch, number = mark.branch, mark.number_before
        if mark.kind is CommitKind.FORK and mark.fork_of is not None and mark.fork_number is not None:
            branch, number = mark.fork_of, mark.fork_number
        earlier = read_if_whole(context, branch, number)
        if earlier is None or earlier.head_commit != entry.head_commit:
            break
        found.append(earlier)
    return found


def read_if_whole(context: GraphContext, branch: str, number: int) -> Record | None:
    """Read an entry of a log that may be cut anywhere; None, too, where the entry that its table map counts from was.

    Such an entry is left only because others count from it.
    """
    try:
        return context.log.read(branch, number)
    except FormatError as fault:
        if fault.code != "entry_missing":
            raise
        return None


def entry_of_commit(context: GraphContext, head: Record, commit: str) -> Record | None:
    """Find the entry of a commit in a log that may be cut anywhere, by binary search: ids rise along it."""
    if commit > head.commit:
        return None
    listed = (paths.entry_number(file.path) for file in context.store.list(paths.log_folder(head.branch)))
    numbers = sorted(number for number in listed if number is not None)
    while numbers:
        middle = len(numbers) // 2
        entry = read_if_whole(context, head.branch, numbers[middle])
        if entry is not None and entry.commit == commit:
            return entry
        if entry is None:
            del numbers[middle]  # cut away just now, or not whole
        elif entry.commit < commit:
            numbers = numbers[middle + 1 :]
        else:
            numbers = numbers[:middle]
    return None


def _line(context: GraphContext, first: int, entry: Record, newest: Record | None) -> Line:
    """The line that ends at an entry. What a later branch of the same name has pruned does not affect it."""
    while newest is not None and (newest.life or 1) > first:
        newest = context.log.read(entry.branch, (newest.life or 1) - 1)  # the entry that ended the life before
    if newest is None:
        return Line(entry.branch, first, entry.number)
    if newest.is_live:
        return Line(entry.branch, first, entry.number, newest.pruned)
    pruned = newest.pruned
    lowest = max(first, pruned.floor)
    if entry.number_before > lowest and context.log.read(entry.branch, entry.number_before) is None:
        # Sweeps of earlier releases left nothing of a deleted branch but what others were made from.
        pruned = replace(pruned, floor=entry.number)
    return Line(entry.branch, first, entry.number, pruned, newest.number)


def inherited(context: GraphContext, heads: Iterable[Record]) -> dict[tuple[str, int], Line]:
    """The lines of ended branches that living ones have inherited, marked or not, by branch and first entry.

    Of those with the same beginning, the longest.
    """
    found: dict[tuple[str, int], Line] = {}
    for head in heads:
        for line in lines(context, head, head=head, marked_too=True):
            known = found.get((line.branch, line.first))
            if line.ended_at is not None and (known is None or known.last < line.last):
                found[line.branch, line.first] = line
    return found


def backwards(context: GraphContext, line: Line, last: int) -> Iterator[Record]:
    """The entries of a line that readers are shown, from `last` down, newest first, read lazily."""
    entries = context.log.backwards(line.branch, start=last, first=line.lowest, step=limits.HISTORY_READ_AHEAD_ENTRIES)
    return (entry for entry in entries if line.pruned.is_listed(entry.number))


def newest_at(context: GraphContext, line: Line, instant_us: int) -> Record | None:
    """The newest entry of a line that is not younger than an instant, by halving: times rise along a log."""
    below, above = line.lowest - 1, line.last + 1
    found: Record | None = None
    while above - below > 1:
        middle = (below + above) // 2
        entry = context.log.read(line.branch, middle)
        # What is no longer there was cut away, and so was everything before it.
        if entry is None or entry.created_at_us <= instant_us:
            below = middle
            found = entry if entry is not None else found
        else:
            above = middle
    return found


@dataclass(frozen=True, slots=True)
class CommitFilter:
    """Filter for commits; None means any.

    Attributes:
        actor: made by this actor.
        kind: of this kind.
        since_us: made at this time or later, microseconds since 1970.
        until_us: made at this time or earlier.
    """

    actor: str | None = None
    kind: CommitKind | None = None
    since_us: int | None = None
    until_us: int | None = None

    def takes(self, entry: Record) -> bool:
        """Whether a commit is wanted, its time aside."""
        return (self.actor is None or entry.actor == self.actor) and (self.kind is None or entry.kind is self.kind)

    def is_in_time(self, entry: Record) -> bool:
        """True if a commit was made within the time range."""
        is_too_old = self.since_us is not None and entry.created_at_us < self.since_us
        return not is_too_old and (self.until_us is None or entry.created_at_us <= self.until_us)


EVERY_COMMIT = CommitFilter()


def commits(
    context: GraphContext, entry: Record, wanted: CommitFilter = EVERY_COMMIT, *, head: Record | None = None
) -> Iterator[Record]:
    """The commits of the chain that ends at an entry, newest first, read lazily.

    Marks in the log (forks, prunes, barriers) are not commits, and pruned commits are not shown, but for the newest:
    a branch always shows the commit it is at, also where that was pruned on the branch it was made on. Times rise along
    the chain, so neither commits younger than `until` nor those older than `since` are read, but for a few.

    Args:
        entry: the last of the chain.
        head: the head of the entry's branch, where that was just read.
    """
    is_begun = False
    for line in lines(context, entry, head=head):
        last = _last_in_time(context, line, wanted)
        for commit in () if last is None else backwards(context, line, last):
            if not commit.is_commit:
                continue
            if not is_begun and commit.commit != entry.head_commit:
                yield from _newest(context, entry, wanted)
            is_begun = True
            if wanted.since_us is not None and commit.created_at_us < wanted.since_us:
                return
            if wanted.takes(commit):
                yield commit
    if not is_begun:
        yield from _newest(context, entry, wanted)


def _newest(context: GraphContext, entry: Record, wanted: CommitFilter) -> Iterator[Record]:
    """The commit that an entry shows, from whichever log it is in, if it is wanted."""
    newest = entries_to_commit(context, entry)[-1]
    if newest.is_commit and wanted.is_in_time(newest) and wanted.takes(newest):
        yield newest


def _last_in_time(context: GraphContext, line: Line, wanted: CommitFilter) -> int | None:
    if wanted.until_us is None:
        return line.last
    found = newest_at(context, line, wanted.until_us)
    return None if found is None else found.number
