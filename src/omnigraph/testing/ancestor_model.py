"""The state a merge compares both sides with, by plain loops: one common ancestor, or what several of them come to.

It shares no code with the product. A commit is anything hashable; a state maps keys to rows, a row cells to values.
What several ancestors do not agree about is an `Open` value, which equals nothing: to a three-way merge both sides have
changed it. A value that both sides have, though, is taken for the ancestors' one.
"""

from collections.abc import Callable, Collection, Hashable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, TypeVar

K = TypeVar("K", bound=Hashable)
C = TypeVar("C", bound=Hashable)
Cells = Mapping[Any, Any]

# How many times ancestors are compared with those that they have in common.
LEVELS = 4


class Open:
    """A value that is not known; no two are equal."""


@dataclass(frozen=True)
class Commits:
    """A graph of commits, by the parents of each."""

    parents: Callable[[Any], Collection[Any]]

    def ancestors(self, commit: C) -> set[C]:
        """Return a commit and everything it descends from."""
        found: set[C] = set()
        waiting = [commit]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found.add(here)
                waiting += self.parents(here)
        return found

    def best(self, one: C, other: C) -> list[C]:
        """Return the common ancestors that are above no other."""
        common = self.ancestors(one) & self.ancestors(other)
        below = {parent for commit in common for parent in self.parents(commit)}
        return [commit for commit in common if commit not in below]

    def involved(self, commits: Collection[C], levels: int = LEVELS) -> set[C]:
        """Return several ancestors, and all that they are compared with."""
        found = set(commits)
        for one, other in combinations(commits, 2) if levels else ():
            found |= self.involved(self.best(one, other), levels - 1)
        return found

    def row(
        self, commits: Collection[C], row_of: Callable[[C], Cells | None], levels: int = LEVELS
    ) -> Cells | Open | None:
        """Return what several ancestors come to for one row."""
        places = list(commits)
        rows = {commit: row_of(commit) for commit in places}
        if len(places) == 1:
            return rows[places[0]]
        older = {}
        for one, other in combinations(places, 2) if levels else ():
            common = self.best(one, other)
            if common:
                older[one, other] = self.row(common, row_of, levels - 1)
        if all(row is None for row in rows.values()):
            return None
        if any(row is None for row in rows.values()):
            return _whole_row(rows, older)
        found = {}
        for cell in {cell for row in rows.values() for cell in row or ()}:
            values = {commit: (row or {}).get(cell) for commit, row in rows.items()}
            was = {pair: row.get(cell) if isinstance(row, Mapping) else Open() for pair, row in older.items()}
            left = [values[commit] for commit in _newest(values, was)]
            found[cell] = left[0] if left and all(value == left[0] for value in left) else Open()
        return found


def _newest(values: Mapping[C, Any], older: Mapping[tuple[C, C], Any]) -> list[C]:
    """Return the commits that have not merely kept what another has changed."""
    kept = set()
    for (one, other), was in older.items():
        if values[one] != values[other]:
            kept |= {commit for commit in (one, other) if values[commit] == was}
    return [commit for commit in values if commit not in kept]


def _whole_row(rows: Mapping[C, Cells | None], older: Mapping[tuple[C, C], Any]) -> Cells | Open | None:
    """Decide about a row that some have and some have not."""
    left = [rows[commit] for commit in _newest(rows, older)]
    there = [row for row in left if row is not None]
    if len(there) not in (0, len(left)) or not left:
        return Open()
    if not there:
        return None
    cells = {cell for row in there for cell in row}
    return {
        cell: there[0].get(cell) if all(row.get(cell) == there[0].get(cell) for row in there) else Open()
        for cell in cells
    }


def settled(row: Cells | Open | None, one: Cells | None, other: Cells | None) -> Cells | None:
    """Return a row of the base, with what both sides agree on in the place of what is open."""
    if isinstance(row, Open):
        if one is None and other is None:
            return None
        row = {cell: Open() for cell in {**(one or {}), **(other or {})}}
    if row is None or one is None or other is None:
        return row
    return {
        cell: one.get(cell) if isinstance(value, Open) and one.get(cell) == other.get(cell) else value
        for cell, value in row.items()
    }


def _row_at(rows_of: Callable[[C], Mapping[K, Cells]], key: K, commit: C) -> Cells | None:
    return rows_of(commit).get(key)


def base_rows(
    commits: Commits,
    best: Collection[C],
    rows_of: Callable[[C], Mapping[K, Cells]],
    sides: tuple[Mapping[K, Cells], Mapping[K, Cells]],
) -> dict[K, Cells]:
    """Return all rows of the base of two sides."""
    keys = {key for commit in commits.involved(best) for key in rows_of(commit)}
    found = {}
    for key in keys:
        row = commits.row(best, partial(_row_at, rows_of, key))
        was = settled(row, sides[0].get(key), sides[1].get(key))
        if was is not None:
            found[key] = was
    return found
