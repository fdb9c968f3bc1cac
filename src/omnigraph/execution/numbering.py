"""Small numbers for the rows of a table: what the engine computes with instead of ids.

Every fragment takes a run of numbers, one for each row of its files, deleted rows included. A newer version keeps the
runs of the fragments it shares with the one before and adds new runs behind, so arrays made for the older version only
have to grow. Rows that are gone leave holes; when holes become many, numbering starts over.

A numbering belongs to one version, and what is computed with belongs to one numbering: caches know values by its `key`,
and arrays that several versions share are cut to a numbering before anybody reads them.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np
import numpy.typing as npt

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import NO_ORDINALS, Mask, Ordinals
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.fragments import StoredFragment, live_rows, stored_fragments
from omnigraph.storage.tables.tables import Table

_OFFSET_BITS = np.uint64(32)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
# Numberings of this process, counted: a version that is opened again may be numbered in another way.
_serials = count()


@dataclass(frozen=True, slots=True)
class Run:
    """The numbers of one fragment.

    Attributes:
        fragment: the fragment; as it was when it was last there, if it is not any more.
        first: the ordinal of its first row.
        is_there: whether the version has it.
    """

    fragment: StoredFragment
    first: int
    is_there: bool = True


@dataclass(frozen=True, eq=False)
class Numbering:
    """The numbers of one version's rows.

    Attributes:
        pin: the version.
        runs: in the order of their numbers.
        dead: which numbers stand for no row; None if all stand for one.
        serial: tells it from every other numbering, of the same version too.
    """

    pin: Pin
    runs: tuple[Run, ...]
    dead: Mask | None
    serial: int = field(default_factory=_serials.__next__, init=False)

    @property
    def key(self) -> tuple[str, int, int]:
        """Name it in caches."""
        return self.pin.table, self.pin.version, self.serial

    @cached_property
    def size(self) -> int:
        """One more than the greatest number."""
        return self.runs[-1].first + self.runs[-1].fragment.rows if self.runs else 0

    @cached_property
    def live(self) -> Ordinals:
        """The numbers that stand for rows, ascending."""
        if self.dead is None:
            return np.arange(self.size, dtype=np.int32)
        return np.flatnonzero(~self.dead).astype(np.int32)

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.size if self.dead is None else len(self.live)

    @cached_property
    def _firsts(self) -> npt.NDArray[np.int64]:
        return np.array([run.first for run in self.runs], dtype=np.int64)

    @cached_property
    def _numbers(self) -> npt.NDArray[np.uint64]:
        return np.array([run.fragment.number for run in self.runs], dtype=np.uint64)

    @cached_property
    def _by_number(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """The fragments' own numbers, ascending, and the ordinals of their first rows."""
        there = sorted((run.fragment.number, run.first) for run in self.runs if run.is_there)
        return np.array([each for each, _ in there], np.uint64), np.array([first for _, first in there], np.int64)

    def at(self, addresses: npt.NDArray[np.uint64]) -> Ordinals:
        """The numbers of rows at these addresses of this version."""
        numbers, firsts = self._by_number
        places = np.searchsorted(numbers, addresses >> _OFFSET_BITS)
        return (firsts[places] + (addresses & _OFFSET_MASK).astype(np.int64)).astype(np.int32)

    def addresses(self, ordinals: Ordinals) -> npt.NDArray[np.uint64]:
        """Where rows with these numbers lie in this version."""
        places = np.searchsorted(self._firsts, ordinals, side="right") - 1
        offsets = (ordinals - self._firsts[places]).astype(np.uint64)
        return self._numbers[places] << _OFFSET_BITS | offsets

    def address(self, ordinal: int) -> int:
        """Where one row lies; in numbers of Python, because for one the others take longer."""
        place = bisect_right(self._starts, ordinal) - 1
        return self.runs[place].fragment.number << 32 | (ordinal - self._starts[place])

    def is_dead(self, ordinal: int) -> bool:
        """Whether a number stands for no row."""
        return self.dead is not None and bool(self.dead.item(ordinal))

    @cached_property
    def _starts(self) -> list[int]:
        return [run.first for run in self.runs]

    def starts_run_at(self, ordinal: int) -> bool:
        """Whether a run begins with this number, or all end before it."""
        return ordinal >= self.size or self._starts[bisect_right(self._starts, ordinal) - 1] == ordinal

    def agrees(self, other: "Numbering") -> bool:
        """Whether numbers that both have mean the same rows."""
        return all(
            mine.first == theirs.first and mine.fragment.key == theirs.fragment.key
            for mine, theirs in zip(self.runs, other.runs, strict=False)
        )

    def lives(self, size: int) -> Mask:
        """Which of so many numbers stand for rows."""
        alive = np.zeros(size, dtype=np.bool_)
        count = min(size, self.size)
        alive[:count] = True if self.dead is None else ~self.dead[:count]
        return alive

    def died_since(self, other: "Numbering") -> Ordinals:
        """The numbers of rows that `other`, which agrees with this one, has and this one has not."""
        if self.dead is None and other.size <= self.size:
            return NO_ORDINALS
        return np.flatnonzero(other.lives(other.size) & ~self.lives(other.size)).astype(np.int32)

    def born_since(self, other: "Numbering") -> Ordinals:
        """The numbers of rows that this one has and `other`, which agrees with it, has not."""
        if other.dead is None:
            return self.live[np.searchsorted(self.live, other.size) :]
        return np.flatnonzero(self.lives(self.size) & ~other.lives(self.size)).astype(np.int32)


def number(table: Table, before: Numbering | None = None) -> Numbering:
    """The numbers of a version's rows.

    Args:
        table (Table): the version.
        before (Numbering | None): of another version of the same table; continued, if that leaves few holes.

    Returns:
        Numbering: reads the manifest, and deletion vectors that `before` does not know.
    """
    fragments = stored_fragments(table)
    if before is not None:
        continued = _numbered(table, _continued(before, fragments), before)
        if continued.size - continued.count <= max(
            continued.count * limits.ORDINAL_HOLES_SHARE_MAX, limits.ORDINAL_HOLES_ALLOWED
        ):
            return continued
    return _numbered(table, _runs(fragments, 0), None)


def _runs(fragments: tuple[StoredFragment, ...], first: int) -> tuple[Run, ...]:
    runs = []
    for fragment in fragments:
        runs.append(Run(fragment, first))
        first += fragment.rows
    return tuple(runs)


def _continued(before: Numbering, fragments: tuple[StoredFragment, ...]) -> tuple[Run, ...]:
    now = {fragment.key: fragment for fragment in fragments}
    kept = [
        Run(now.get(run.fragment.key, run.fragment), run.first, is_there=run.fragment.key in now) for run in before.runs
    ]
    known = {run.fragment.key for run in kept}
    return (*kept, *_runs(tuple(each for each in fragments if each.key not in known), before.size))


def _numbered(table: Table, runs: tuple[Run, ...], before: Numbering | None) -> Numbering:
    size = runs[-1].first + runs[-1].fragment.rows if runs else 0
    if size > limits.ORDINALS_MAX:
        raise LimitError(
            f"table {table.pin.table} has {size:,} rows; a query can number at most {limits.ORDINALS_MAX:,}",
            code="table_too_large",
        )
    if all(run.is_there and not run.fragment.deletions for run in runs):
        return Numbering(table.pin, runs, None)
    known = {} if before is None else {run.fragment.key: run for run in before.runs if run.is_there}
    dead = np.zeros(size, dtype=np.bool_)
    for run in runs:
        place = slice(run.first, run.first + run.fragment.rows)
        if not run.is_there:
            dead[place] = True
        elif run.fragment.deletions:
            old = known.get(run.fragment.key)
            if old is not None and old.fragment.deletions == run.fragment.deletions and before is not None:
                # The same vector: what was dead is dead, and nothing else.
                assert before.dead is not None
                dead[place] = before.dead[place]
            else:
                dead[place] = True
                dead[live_rows(table, run.fragment).astype(np.int64) + run.first] = False
    return Numbering(table.pin, runs, dead)
