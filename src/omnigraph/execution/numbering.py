"""Ordinals: small integers for the rows of a table, which the engine computes with instead of ids.

Every fragment takes a run of ordinals, one for each row of its files, deleted rows included. A newer version keeps the
runs of the fragments it shares with the one before and appends new runs, so arrays made for the older version only have
to grow. Deleted rows leave holes; when holes become many, numbering starts over.

A numbering belongs to one version: caches use its `key`, and arrays that several versions share are restricted to a
numbering before they are read.
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
# Numberings of this process: a version that is opened again may get other ordinals.
_serials = count()


@dataclass(frozen=True, slots=True)
class FragmentRun:
    """Ordinals of one fragment.

    Attributes:
        fragment: the fragment; in its last known state, if the version no longer has it.
        first: ordinal of its first row.
        is_present: whether the version has it.
    """

    fragment: StoredFragment
    first: int
    is_present: bool = True


@dataclass(frozen=True, eq=False)
class Numbering:
    """Ordinals of one version's rows.

    Attributes:
        pin: the version.
        runs: in ordinal order.
        dead: mask of ordinals without a row; None if all have one.
        serial: distinguishes it from every other numbering, of the same version too.
    """

    pin: Pin
    runs: tuple[FragmentRun, ...]
    dead: Mask | None
    serial: int = field(default_factory=_serials.__next__, init=False)

    @property
    def key(self) -> tuple[str, int, int]:
        """Cache key."""
        return self.pin.table, self.pin.version, self.serial

    @cached_property
    def size(self) -> int:
        """One more than the greatest ordinal."""
        return self.runs[-1].first + self.runs[-1].fragment.rows if self.runs else 0

    @cached_property
    def live(self) -> Ordinals:
        """Ordinals of live rows, ascending."""
        if self.dead is None:
            return np.arange(self.size, dtype=np.int32)
        return np.flatnonzero(~self.dead).astype(np.int32)

    @property
    def count(self) -> int:
        """Number of live rows."""
        return self.size if self.dead is None else len(self.live)

    @cached_property
    def _firsts(self) -> npt.NDArray[np.int64]:
        return np.array([run.first for run in self.runs], dtype=np.int64)

    @cached_property
    def _numbers(self) -> npt.NDArray[np.uint64]:
        return np.array([run.fragment.number for run in self.runs], dtype=np.uint64)

    @cached_property
    def _by_number(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Fragment numbers, ascending, and the ordinals of their first rows."""
        there = sorted((run.fragment.number, run.first) for run in self.runs if run.is_present)
        return np.array([number for number, _ in there], np.uint64), np.array([first for _, first in there], np.int64)

    def ordinals_at(self, addresses: npt.NDArray[np.uint64]) -> Ordinals:
        """Return the ordinals of rows at these addresses of this version."""
        numbers, firsts = self._by_number
        places = np.searchsorted(numbers, addresses >> _OFFSET_BITS)
        return (firsts[places] + (addresses & _OFFSET_MASK).astype(np.int64)).astype(np.int32)

    def addresses(self, ordinals: Ordinals) -> npt.NDArray[np.uint64]:
        """Return the addresses of rows with these ordinals in this version."""
        places = np.searchsorted(self._firsts, ordinals, side="right") - 1
        offsets = (ordinals - self._firsts[places]).astype(np.uint64)
        return self._numbers[places] << _OFFSET_BITS | offsets

    def address(self, ordinal: int) -> int:
        """Return the address of one row, computed with Python ints, which are faster for a single one."""
        place = bisect_right(self._starts, ordinal) - 1
        return self.runs[place].fragment.number << 32 | (ordinal - self._starts[place])

    def is_dead(self, ordinal: int) -> bool:
        """Return whether an ordinal has no row."""
        return self.dead is not None and bool(self.dead.item(ordinal))

    @cached_property
    def _starts(self) -> list[int]:
        return [run.first for run in self.runs]

    def starts_run_at(self, ordinal: int) -> bool:
        """Return whether a run starts at this ordinal, or all end before it."""
        return ordinal >= self.size or self._starts[bisect_right(self._starts, ordinal) - 1] == ordinal

    def is_compatible(self, other: "Numbering") -> bool:
        """Return whether ordinals that both have mean the same rows."""
        return all(
            mine.first == theirs.first and mine.fragment.key == theirs.fragment.key
            for mine, theirs in zip(self.runs, other.runs, strict=False)
        )

    def live_mask(self, size: int) -> Mask:
        """Return the mask of the first `size` ordinals that have a row."""
        alive = np.zeros(size, dtype=np.bool_)
        count = min(size, self.size)
        alive[:count] = True if self.dead is None else ~self.dead[:count]
        return alive

    def removed_since(self, other: "Numbering") -> Ordinals:
        """Return the ordinals of rows that the compatible `other` has and this one has not."""
        if self.dead is None and other.size <= self.size:
            return NO_ORDINALS
        return np.flatnonzero(other.live_mask(other.size) & ~self.live_mask(other.size)).astype(np.int32)

    def added_since(self, other: "Numbering") -> Ordinals:
        """Return the ordinals of rows that this one has and the compatible `other` has not."""
        if other.dead is None:
            return self.live[np.searchsorted(self.live, other.size) :]
        return np.flatnonzero(self.live_mask(self.size) & ~other.live_mask(self.size)).astype(np.int32)


def assign_ordinals(table: Table, before: Numbering | None = None) -> Numbering:
    """Assign ordinals to a version's rows, continuing those of another version if that leaves few holes.

    Reads the manifest, and deletion vectors that `before` does not know.
    """
    fragments = stored_fragments(table)
    if before is not None:
        continued = _with_dead_mask(table, _continue_runs(before, fragments), before)
        if continued.size - continued.count <= max(
            continued.count * limits.ORDINAL_HOLES_SHARE_MAX, limits.ORDINAL_HOLES_ALLOWED
        ):
            return continued
    return _with_dead_mask(table, _make_runs(fragments, 0), None)


def _make_runs(fragments: tuple[StoredFragment, ...], first: int) -> tuple[FragmentRun, ...]:
    runs = []
    for fragment in fragments:
        runs.append(FragmentRun(fragment, first))
        first += fragment.rows
    return tuple(runs)


def _continue_runs(before: Numbering, fragments: tuple[StoredFragment, ...]) -> tuple[FragmentRun, ...]:
    now = {fragment.key: fragment for fragment in fragments}
    kept = [
        FragmentRun(now.get(run.fragment.key, run.fragment), run.first, is_present=run.fragment.key in now)
        for run in before.runs
    ]
    known = {run.fragment.key for run in kept}
    return (*kept, *_make_runs(tuple(fragment for fragment in fragments if fragment.key not in known), before.size))


def _with_dead_mask(table: Table, runs: tuple[FragmentRun, ...], before: Numbering | None) -> Numbering:
    size = runs[-1].first + runs[-1].fragment.rows if runs else 0
    if size > limits.ORDINALS_MAX:
        raise LimitError(
            f"table {table.pin.table} has {size:,} rows; a query can number at most {limits.ORDINALS_MAX:,}",
            code="table_too_large",
        )
    if all(run.is_present and not run.fragment.deletions for run in runs):
        return Numbering(table.pin, runs, None)
    known = {} if before is None else {run.fragment.key: run for run in before.runs if run.is_present}
    dead = np.zeros(size, dtype=np.bool_)
    for run in runs:
        place = slice(run.first, run.first + run.fragment.rows)
        if not run.is_present:
            dead[place] = True
        elif run.fragment.deletions:
            old = known.get(run.fragment.key)
            if old is not None and old.fragment.deletions == run.fragment.deletions and before is not None:
                # The same deletion vector: copy the mask.
                assert before.dead is not None
                dead[place] = before.dead[place]
            else:
                dead[place] = True
                dead[live_rows(table, run.fragment).astype(np.int64) + run.first] = False
    return Numbering(table.pin, runs, dead)
