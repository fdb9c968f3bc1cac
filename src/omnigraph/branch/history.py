"""The commits of a branch, newest first: its own, then those of the line it was forked from."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.branch.lines import Line, lines, newest_at
from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.parts import Parts


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


EVERY_COMMIT = CommitFilter()


def commits(parts: Parts, head: Record, wanted: CommitFilter = EVERY_COMMIT) -> Iterator[Record]:
    """The commits of the chain that ends at an entry, newest first, read as they are asked for.

    Marks in the log (forks, prunes, barriers) are not commits. Times rise along the chain, so neither commits younger
    than `until` nor those older than `since` are read, but for a few.
    """
    for line in lines(parts, head):
        last = _last_in_time(parts, line, wanted)
        for entry in () if last is None else backwards(parts, line, last):
            if wanted.since_us is not None and entry.created_at_us < wanted.since_us:
                return
            if entry.is_commit and wanted.takes(entry):
                yield entry


def backwards(parts: Parts, line: Line, last: int) -> Iterator[Record]:
    """The entries of a line from `last` down, newest first, read as they are asked for."""
    return parts.log.backwards(line.branch, start=last, first=line.first, step=limits.HISTORY_READ_AHEAD_ENTRIES)


def _last_in_time(parts: Parts, line: Line, wanted: CommitFilter) -> int | None:
    if wanted.until_us is None:
        return line.last
    found = newest_at(parts, line, wanted.until_us)
    return None if found is None else found.number
