"""What merges need of commits that are pruned: the bases of any two branches, and the way there.

Logs are cut, but two branches that live must still find the last commit they have in common. Its versions are kept, and
of the entries that are cut away on the way to it, those that lines of descent meet at are noted in one file per log.
Where criss-cross merges leave two branches several such commits, these are treated like tips of branches themselves: a
merge compares them with what they have in common.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph import limits
from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.branch.merge.base import Painted, paint
from omnigraph.errors import FormatError
from omnigraph.model.ancestry import Ancestor, CutCommit, CutLog
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.records.ancestry_v1 import ancestry_bytes
from omnigraph.transaction.graph_context import GraphContext


@dataclass(frozen=True, slots=True)
class Descent:
    """The commits between the tips of all branches and the last one that all have in common."""

    ancestry: Ancestry
    painted: Painted
    tips: frozenset[str]

    def bases(self) -> list[Record]:
        """The entries that show the best common ancestors of any two tips, as far as they are there."""
        found = []
        for commit in self.painted.bases():
            entry = self.ancestry.entry_of(commit) or self.ancestry.state(commit)
            found += [] if entry is None else [entry]
        return found

    def cut_logs(self, first: dict[str, int]) -> dict[str, CutLog]:
        """By branch, what must be noted of the entries below the first that counts; nothing where that is nothing."""
        named = self._named(first)
        rows: dict[str, list[CutCommit]] = {}
        for commit in named & self.painted.parents.keys():
            place = self.ancestry.places[commit]
            if place.number < first.get(place.branch, 0):
                rows.setdefault(place.branch, []).append(CutCommit(commit, place.number, self._above(commit, named)))
        return {
            branch: CutLog(branch, first[branch], tuple(sorted(some, key=lambda row: row.number)))
            for branch, some in rows.items()
        }

    def _named(self, first: dict[str, int]) -> set[str]:
        """The commits that must be known by name: all but those with one parent and one child on the same line."""
        found = set(self.tips)
        newest_below: dict[str, tuple[int, str]] = {}
        children: dict[str, int] = {}
        for commit, parents in self.painted.parents.items():
            place = self.ancestry.places[commit]
            if place.number < first.get(place.branch, 0):
                newest_below[place.branch] = max(newest_below.get(place.branch, (0, "")), (place.number, commit))
            if len(parents) != 1:
                found.add(commit)
            found.update(parents if self._leaves_its_line(commit, parents[:1]) else parents[1:])
            for parent in parents:
                children[parent] = children.get(parent, 0) + 1
        found.update(commit for commit, count in children.items() if count > 1)
        return found | {commit for _, commit in newest_below.values()}

    def _leaves_its_line(self, commit: str, parents: tuple[str, ...]) -> bool:
        """Whether the first parent of a commit lies elsewhere than before it in the same life of its branch."""
        entry = self.ancestry.entry_of(commit)
        if entry is None or not parents:
            return True
        place = self.ancestry.places[parents[0]]
        return place.branch != entry.branch or place.number < (entry.life or 1)

    def _above(self, commit: str, named: set[str]) -> tuple[Ancestor, ...] | None:
        """The nearest ancestors of a commit that have names."""
        if commit in self.ancestry.unknown or commit in self.painted.unexplored:
            return None
        found = []
        for parent in self.painted.parents[commit]:
            at, steps = parent, self.ancestry.steps(commit, parent)
            while at not in named and at in self.painted.parents:
                [further] = self.painted.parents[at]
                steps += self.ancestry.steps(at, further)
                at = further
            found.append(Ancestor(at, self.ancestry.places[at], steps))
        return tuple(found)


def descent(context: GraphContext, tips: list[Record], known: list[Record]) -> Descent:
    """Follow the lines of descent from some entries down to the last commit that all of them have in common."""
    ancestry = Ancestry(context, known)

    def parents(commit: str) -> tuple[str, ...]:
        try:
            return ancestry.parents(commit)
        except FormatError:
            ancestry.unknown.add(commit)  # a damaged entry keeps no sweep from going on; merges there are refused
            return ()

    commits = list(dict.fromkeys(ancestry.enter(entry) for entry in tips))
    painted = paint(commits, parents)
    for _ in range(limits.MERGE_BASE_LEVELS):
        more = [commit for commit in crossed(painted) if commit not in commits]
        if not more:
            break
        commits += more
        painted = paint(commits, parents)
    return Descent(ancestry, painted, frozenset(commits))


def crossed(painted: Painted) -> list[str]:
    """The best common ancestors of any two tips that have several: both have merged since, and neither the other."""
    merges = [commit for commit, parents in painted.parents.items() if len(parents) > 1]
    reached = 0
    for commit in merges:
        reached |= 0 if painted.is_shared(commit) else painted.reached_from[commit]
    lines = [tip for tip in range(painted.tips) if reached >> tip & 1][: limits.CRISS_CROSS_LINES_MAX]
    if len(lines) < 2:
        return []

    def pairs(tips: int) -> npt.NDArray[np.bool_]:
        there = np.array([tips >> line & 1 for line in lines], np.bool_)
        return np.triu(np.outer(there, there), 1)

    def best_for(commit: str) -> npt.NDArray[np.bool_]:
        found = pairs(painted.reached_from[commit])
        for tips in painted.by_child.get(commit, ()):
            found &= ~pairs(tips)
        return found

    bases = painted.bases()
    counts: npt.NDArray[Any] = np.zeros((len(lines), len(lines)), np.int64)
    for commit in bases:
        counts += best_for(commit)
    return [commit for commit in bases if (best_for(commit) & (counts > 1)).any()] if (counts > 1).any() else []


def note(context: GraphContext, cut: CutLog) -> None:
    """Write down the ancestry of entries that are about to be cut away; durable when this returns."""
    path = paths.ancestry(cut.branch, cut.first)
    context.store.put(path, ancestry_bytes(cut))
    context.store.make_durable([path])
