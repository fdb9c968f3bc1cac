"""List the branches from the names in one listing.

Only a branch's own log decides whether the branch exists. The listing of the logs' folders answers without reading
them: a log on its own is that of a branch which never ended, and beside the others lie marks, folders whose names say
what somebody read there.

    {branch}.{number}.live        the branch was there at that entry
    {branch}.{number}.gone        it was not
    {branch}.{number}.changing    that entry, once it is there, may be the one that ends the branch or begins it again

The highest of `live` and `gone` is right unless a `changing` stands above it. That one is put *before* the entry, so
whoever dies between the two leaves a doubt and no lie; a doubt is looked up in the log and settled there. A mark below
a settled one means nothing and is taken away by whoever lists next.

So the first entry of a name needs no mark: making a branch is one put. Graphs made before ends were announced say so by
their stamp; in those a log on its own is a doubt as well.
"""

import contextlib
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph import limits
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import OutcomeUnknown, StoreError
from omnigraph.transaction.graph_context import GraphContext

_LOOK_THREADS = 8
_BEGINNING_OR_END = frozenset({CommitKind.FORK, CommitKind.DELETE})


class Mark(StrEnum):
    """What a mark says of its branch."""

    LIVE = "live"
    GONE = "gone"
    CHANGING = "changing"


_MARKS = {mark.value: mark for mark in Mark}


@dataclass(slots=True)
class _Known:
    """What one listing tells of one branch."""

    has_log: bool = False
    settled: tuple[int, Mark] | None = None
    changing: list[int] = field(default_factory=list)
    outdated: list[tuple[int, Mark]] = field(default_factory=list)
    is_noted: bool = True

    def add(self, number: int, mark: Mark) -> None:
        if mark is Mark.CHANGING:
            self.changing.append(number)
        elif self.settled is None or self.settled < (number, mark):
            self.outdated += [self.settled] if self.settled is not None and self.settled[0] else []
            self.settled = (number, mark)
        else:
            self.outdated.append((number, mark))

    @property
    def is_doubtful(self) -> bool:
        return self.settled is None or any(number > self.settled[0] for number in self.changing)

    def meaningless(self) -> Iterator[tuple[int, Mark]]:
        if not self.is_noted:
            return  # what would make them so is not on the store
        yield from self.outdated
        if self.settled is not None:
            # The entry is there, whatever it is, so whoever announced it has had the answer.
            yield from ((number, Mark.CHANGING) for number in self.changing if number <= self.settled[0])


def live_branches(context: GraphContext) -> list[str]:
    """The branches there are, in order: one listing, and a look into the logs of those in doubt."""
    context.log.confirm_root()
    never_ended = (0, Mark.LIVE) if context.ends_announced else None
    known: defaultdict[str, _Known] = defaultdict(lambda: _Known(settled=never_ended))
    for folder in context.store.list_folders(paths.LOGS):
        marked = paths.parse_branch_mark(folder)
        name = paths.unsegment(folder)
        if marked is not None and marked[2] in _MARKS:
            known[marked[0]].add(marked[1], _MARKS[marked[2]])
        elif paths.segment(name) == folder:  # otherwise somebody else left it there
            known[name].has_log = True
    known[MAIN].settled = (1, Mark.LIVE)  # nobody can delete it
    branches = {name: marks for name, marks in known.items() if marks.has_log}
    doubtful = [name for name, marks in branches.items() if marks.is_doubtful]
    if doubtful:
        with ThreadPoolExecutor(min(_LOOK_THREADS, len(doubtful))) as pool:
            for name, settled in zip(doubtful, pool.map(lambda name: _looked_up(context, name), doubtful), strict=True):
                if settled is None:
                    branches.pop(name)
                else:
                    number, mark, branches[name].is_noted = settled
                    branches[name].add(number, mark)
    if not context.read_only:
        _tidy(context, branches)
    return sorted(
        name for name, marks in branches.items() if marks.settled is not None and marks.settled[1] is Mark.LIVE
    )


def announce(context: GraphContext, branch: str, number: int) -> None:
    """Note, before the entry is put, that it may begin or end the branch."""
    mark = paths.branch_mark(branch, number, Mark.CHANGING)
    try:
        context.store.put(mark, b"")
    except OutcomeUnknown:
        context.store.put(mark, b"")  # put twice it is put once; the entry must not come before it
    reached(Failpoint.BRANCH_CHANGE_NOTED)


def settle(context: GraphContext, branch: str, number: int, mark: Mark, *, announced: bool = False) -> bool:
    """Note what holds since an entry, and take back the announcement of it. Best effort: a listing does it as well."""
    try:
        context.store.put(paths.branch_mark(branch, number, mark), b"")
    except StoreError:
        return False  # and the doubt stays: without the new mark an older one would count again
    if announced:
        withdraw(context, branch, number)
    return True


def give_way(context: GraphContext, branch: str, number: int, winner: Record) -> None:
    """Take back the announcement of an entry that lost its place in the log to another one. Best effort.

    The winner may have announced itself by the same name and died before it wrote its mark: then we write it.
    """
    is_ordinary = winner.number == number and winner.kind not in _BEGINNING_OR_END
    if is_ordinary or settle(context, branch, winner.number, Mark.LIVE if winner.is_live else Mark.GONE):
        withdraw(context, branch, number)


def withdraw(context: GraphContext, branch: str, number: int) -> None:
    """Take an announcement back: what came of the entry is noted, or it is an ordinary one. Best effort."""
    with contextlib.suppress(StoreError):
        context.store.delete(paths.branch_mark(branch, number, Mark.CHANGING))


def _looked_up(context: GraphContext, branch: str) -> tuple[int, Mark, bool] | None:
    """What the log says, and whether that is noted now; None where the folder is no log after all."""
    head = context.log.head(branch)
    if head is None:
        return None
    mark = Mark.LIVE if head.is_live else Mark.GONE
    noted = not context.read_only and settle(context, branch, head.number, mark)
    return head.number, mark, noted


def _tidy(context: GraphContext, branches: dict[str, _Known]) -> None:
    """Delete marks that mean nothing any more; some of them, where there are many."""
    left = limits.BRANCH_MARKS_TIDIED_MAX
    for name, marks in branches.items():
        for number, mark in marks.meaningless():
            if not left:
                return
            left -= 1
            with contextlib.suppress(StoreError):
                context.store.delete(paths.branch_mark(name, number, mark))
