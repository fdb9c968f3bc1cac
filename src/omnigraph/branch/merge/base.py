"""The commit that two branches are compared with: their best common ancestor.

Both parents of every commit are followed. An ancestor of another common ancestor is never the best one, however short a
way leads to it: what happened between the two would count as done by both sides, and undoing it as done by neither.
Of several best ones, as criss-cross merges leave them, it is the one nearest to both heads together, then the newest.
"""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import IntFlag

from omnigraph import ids
from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.errors import ConflictError
from omnigraph.model.commit import Record


class _Seen(IntFlag):
    NOWHERE = 0
    FROM_SOURCE = 1
    FROM_TARGET = 2
    BELOW_COMMON = 4


_COMMON = _Seen.FROM_SOURCE | _Seen.FROM_TARGET
_FAR = 2**62


@dataclass(slots=True)
class _Found:
    seen: _Seen = _Seen.NOWHERE
    from_source: int = _FAR
    from_target: int = _FAR

    @property
    def distance(self) -> int:
        return self.from_source + self.from_target


@dataclass(frozen=True, slots=True)
class Base:
    """A common ancestor.

    Attributes:
        commit: its id.
        state: an entry that shows its state: its own, or of a branch that was forked there.
    """

    commit: str
    state: Record


@dataclass(slots=True)
class Painted:
    """What a walk from two heads has seen.

    Attributes:
        best: common ancestors that no other common ancestor descends from, the best first.
        from_source: all other commits that only the source descends from, as far as the walk went.
        from_target: likewise for the target.
    """

    best: list[str]
    from_source: list[str] = field(default_factory=list)
    from_target: list[str] = field(default_factory=list)


def best_common(source: str, target: str, parents: Callable[[str], tuple[str, ...]]) -> Painted:
    """Walk down from two commits until everything left is below a common ancestor.

    Ids rise along every line of descent, so commits in the order of their ids, greatest first, come after everything
    that descends from them.

    Args:
        source: one commit.
        target: the other.
        parents: of a commit.

    Returns:
        What was found; no best ones where the two have no common ancestor.
    """
    found: dict[str, _Found] = {source: _Found(_Seen.FROM_SOURCE, from_source=0)}
    start = found.setdefault(target, _Found())
    start.seen |= _Seen.FROM_TARGET
    start.from_target = 0
    waiting = [(-ids.decode(commit), commit) for commit in found]
    heapq.heapify(waiting)
    best: list[str] = []
    walked: list[str] = []
    while any(_Seen.BELOW_COMMON not in found[commit].seen for _, commit in waiting):
        _, commit = heapq.heappop(waiting)
        here = found[commit]
        walked.append(commit)
        handed_on = here.seen
        if _COMMON in here.seen:
            if _Seen.BELOW_COMMON not in here.seen:
                best.append(commit)
            handed_on |= _Seen.BELOW_COMMON
            if all(_Seen.BELOW_COMMON in found[each].seen for _, each in waiting):
                break  # what is below it would only be told so, and would have to be read for that
        for parent in parents(commit):
            if parent not in found:
                found[parent] = _Found()
                heapq.heappush(waiting, (-ids.decode(parent), parent))
            there = found[parent]
            there.seen |= handed_on
            there.from_source = min(there.from_source, here.from_source + 1)
            there.from_target = min(there.from_target, here.from_target + 1)
    best.sort(key=lambda commit: (found[commit].distance, -ids.decode(commit)))
    return Painted(
        best,
        [each for each in walked if found[each].seen == _Seen.FROM_SOURCE],
        [each for each in walked if found[each].seen == _Seen.FROM_TARGET],
    )


def merge_base(ancestry: Ancestry, source: Record, target: Record) -> Base:
    """The commit that a merge compares both sides with.

    Args:
        ancestry: to read commits with.
        source: the entry brought in.
        target: the head it is brought into.

    Returns:
        The base, and a record of its state.

    Raises:
        ConflictError: they have no common ancestor of which anything is kept (`no_common_history`).
    """
    painted = best_common(ancestry.enter(source), ancestry.enter(target), ancestry.parents)
    for commit in painted.best or _joined_below_a_cut(ancestry, painted):
        state = ancestry.states.get(commit)
        if state is not None:
            return Base(commit, state)
    raise ConflictError(
        f"branches '{source.branch}' and '{target.branch}' have no commit in common of which anything is kept",
        code="no_common_history",
    )


def _joined_below_a_cut(ancestry: Ancestry, painted: Painted) -> list[str]:
    """Commits of one side that lie on the other's line below where its log was cut: the entries between are gone."""
    found = set()
    for some, others in ((painted.from_source, painted.from_target), (painted.from_target, painted.from_source)):
        ends = [ancestry.places[each] for each in others if ancestry.is_cut(each)]
        for commit in some:
            place = ancestry.places[commit]
            if any(place.number <= end.number and ancestry.same_life(place, end) for end in ends):
                found.add(commit)
    return sorted(found, reverse=True)
