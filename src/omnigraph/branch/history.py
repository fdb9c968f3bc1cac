"""The commits of a branch, newest first: its own, then those of the line it was forked from."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.branch.lines import Line, backwards, entries_to_commit, lines, newest_at
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.graph_context import GraphContext


@dataclass(frozen=True, slots=True)
class CommitFilter:
    """Which commits are wanted; what is None is not asked for.

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
        """Whether a commit was made within the times asked for."""
        is_too_old = self.since_us is not None and entry.created_at_us < self.since_us
        return not is_too_old and (self.until_us is None or entry.created_at_us <= self.until_us)


EVERY_COMMIT = CommitFilter()


def commits(
    parts: GraphContext, entry: Record, wanted: CommitFilter = EVERY_COMMIT, *, head: Record | None = None
) -> Iterator[Record]:
    """The commits of the chain that ends at an entry, newest first, read as they are asked for.

    Marks in the log (forks, prunes, barriers) are not commits, and pruned commits are not shown, but for the newest:
    a branch always shows the commit it is at, also where that was pruned on the branch it was made on. Times rise along
    the chain, so neither commits younger than `until` nor those older than `since` are read, but for a few.

    Args:
        entry: the last of the chain.
        wanted: which.
        head: the head of the entry's branch, where that was just read.

    Yields:
        Each commit's entry.
    """
    is_begun = False
    for line in lines(parts, entry, head=head):
        last = _last_in_time(parts, line, wanted)
        for each in () if last is None else backwards(parts, line, last):
            if not each.is_commit:
                continue
            if not is_begun and each.commit != entry.head_commit:
                yield from _newest(parts, entry, wanted)
            is_begun = True
            if wanted.since_us is not None and each.created_at_us < wanted.since_us:
                return
            if wanted.takes(each):
                yield each
    if not is_begun:
        yield from _newest(parts, entry, wanted)


def _newest(parts: GraphContext, entry: Record, wanted: CommitFilter) -> Iterator[Record]:
    """The commit that an entry shows, from whichever log it is in, if it is wanted."""
    newest = entries_to_commit(parts, entry)[-1]
    if newest.is_commit and wanted.is_in_time(newest) and wanted.takes(newest):
        yield newest


def _last_in_time(parts: GraphContext, line: Line, wanted: CommitFilter) -> int | None:
    if wanted.until_us is None:
        return line.last
    found = newest_at(parts, line, wanted.until_us)
    return None if found is None else found.number
