"""The first-parent chain of a branch: runs of entries of its own log, of the log it was forked from, and so on."""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.model.commit import CommitKind, Record
from omnigraph.transaction.parts import Parts


@dataclass(frozen=True, slots=True)
class Line:
    """A run of entries of one log, both ends included.

    Attributes:
        branch: whose log.
        first: where it begins: with the entry that made the graph or forked this life of the branch.
        last: where it ends: at the head, or where the next line was forked off.
    """

    branch: str
    first: int
    last: int


def birth(parts: Parts, entry: Record) -> int:
    """Number of the entry with which this life of the branch began; the log is read where the record does not tell."""
    if entry.life is not None:
        return entry.life
    for earlier in parts.log.backwards(entry.branch, start=entry.number - 1):
        if earlier.life is not None:
            return earlier.life
    return 1


def lines(parts: Parts, head: Record) -> Iterator[Line]:
    """The chain that ends at an entry, newest line first; two reads for each fork in it."""
    while True:
        line = Line(head.branch, birth(parts, head), head.number)
        yield line
        fork = head if head.kind is CommitKind.FORK else parts.log.read(line.branch, line.first)
        if fork is None or fork.fork_of is None or fork.fork_number is None:
            return
        origin = parts.log.read(fork.fork_of, fork.fork_number)
        if origin is None:
            return
        head = origin


def newest_at(parts: Parts, line: Line, instant_us: int) -> Record | None:
    """The newest entry of a line that is not younger than an instant, by halving: times rise along a log."""
    below, above = line.first - 1, line.last + 1
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
