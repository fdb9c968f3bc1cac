"""Ordinals: small integers for the rows of a table, which the engine computes with instead of ids.

A space gives every fragment of a table a run of ordinals the first time it is seen, one for each row of its files,
deleted rows included, and never changes it. So versions of one space, on whichever branch, have the same ordinals for
the rows they share, and arrays made for one only grow for the next. Ordinals of fragments and rows that a version does
not have are holes in it; a version that would have too many gets another space.

A numbering is the part of a space that one version has. Arrays that versions share are restricted to a numbering before
they are read; numberings of two spaces have nothing in common.
"""

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count

import numpy as np
import numpy.typing as npt

from omnigraph import limits
from omnigraph.errors import LimitError
from omnigraph.execution.arrays import NO_ORDINALS, NO_POSITIONS, Mask, Ordinals, Positions
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import FragmentKey
from omnigraph.storage.tables.fragments import StoredFragment, deleted_rows, stored_fragments
from omnigraph.storage.tables.tables import Table

_OFFSET_BITS = np.uint64(32)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
# Of spaces, numberings and columns of this process: a version that is opened again may get other ordinals.
serials = count()
# As many numberings of a space keep their masks.
_MASKS_KEPT = 8


@dataclass(frozen=True, slots=True)
class FragmentRun:
    """Ordinals of one fragment of a version.

    Attributes:
        fragment: as the version has it.
        first: ordinal of its first row.
        deleted: offsets of its deleted rows, ascending.
    """

    fragment: StoredFragment
    first: int
    deleted: Positions = field(default_factory=lambda: NO_POSITIONS)

    @property
    def end(self) -> int:
        """One more than its last ordinal."""
        return self.first + self.fragment.rows

    @property
    def live(self) -> Ordinals:
        """Ordinals of its live rows."""
        if not len(self.deleted):
            return np.arange(self.first, self.end, dtype=np.int32)
        alive = np.ones(self.fragment.rows, dtype=np.bool_)
        alive[self.deleted] = False
        return (np.flatnonzero(alive) + self.first).astype(np.int32)


class OrdinalSpace:
    """Ordinals of all fragments of a table that were seen together. Thread-safe; only grows."""

    def __init__(self) -> None:
        self.serial = next(serials)
        self._firsts: dict[FragmentKey, int] = {}
        self._end = 0
        self._lock = threading.Lock()
        self._masked: deque[Numbering] = deque()

    def size_with(self, fragments: Iterable[StoredFragment]) -> tuple[int, int]:
        """Return how many rows of these fragments are new here, and one more than their greatest ordinal."""
        firsts, new, end = self._firsts, 0, 0
        for fragment in fragments:
            first = firsts.get(fragment.key)
            if first is None:
                new += fragment.rows
            else:
                end = max(end, first + fragment.rows)
        return new, self._end + new if new else end

    def assign(self, fragments: Iterable[StoredFragment]) -> list[tuple[int, StoredFragment]]:
        """Return the first ordinals of some fragments, in ascending order."""
        with self._lock:
            found = []
            for fragment in fragments:
                first = self._firsts.get(fragment.key)
                if first is None:
                    first = self._firsts[fragment.key] = self._end
                    self._end += fragment.rows
                found.append((first, fragment))
        return sorted(found, key=lambda run: run[0])

    def keep_masks(self, numbering: "Numbering") -> None:
        """Let a numbering keep its masks, and the one that has kept them longest release them."""
        with self._lock:
            self._masked.append(numbering)
            oldest = self._masked.popleft() if len(self._masked) > _MASKS_KEPT else None
        if oldest is not None:
            oldest.release_masks()


class Numbering:
    """Ordinals of one version's rows.

    Attributes:
        pin: the version.
        space: where its ordinals come from.
        runs: of the fragments it has, in ordinal order.
        size: one more than the greatest ordinal.
        count: number of live rows.
        serial: distinguishes it from every other numbering, of the same version too.
    """

    def __init__(self, pin: Pin, space: OrdinalSpace, runs: tuple[FragmentRun, ...]) -> None:
        self.pin = pin
        self.space = space
        self.runs = runs
        self.serial = next(serials)
        self.size = runs[-1].end if runs else 0
        self.count = sum(run.fragment.rows - len(run.deleted) for run in runs)
        self._dead: Mask | None = None
        self._live: Ordinals | None = None

    @property
    def key(self) -> tuple[str, int, int]:
        """Cache key."""
        return self.pin.table, self.pin.version, self.serial

    @property
    def nbytes(self) -> int:
        """Approximate size in bytes, without masks."""
        return 1_000 + 300 * len(self.runs) + sum(run.deleted.nbytes for run in self.runs)

    @property
    def dead(self) -> Mask | None:
        """Mask of ordinals without a row; None if all have one."""
        if self.count == self.size:
            return None
        found = self._dead
        if found is None:
            found = self._dead = ~self.live_mask(self.size)
            self.space.keep_masks(self)
        return found

    @property
    def live(self) -> Ordinals:
        """Ordinals of live rows, ascending."""
        found = self._live
        if found is None:
            dead = self.dead
            found = np.arange(self.size, dtype=np.int32) if dead is None else np.flatnonzero(~dead).astype(np.int32)
            self._live = found
            self.space.keep_masks(self)
        return found

    def release_masks(self) -> None:
        """Forget the masks; they are made again when needed."""
        self._dead = self._live = None

    @cached_property
    def _firsts(self) -> npt.NDArray[np.int64]:
        return np.array(self._starts, dtype=np.int64)

    @cached_property
    def _numbers(self) -> npt.NDArray[np.uint64]:
        return np.array([run.fragment.number for run in self.runs], dtype=np.uint64)

    @cached_property
    def _by_number(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.int64]]:
        """Fragment numbers, ascending, and the ordinals of their first rows."""
        there = sorted((run.fragment.number, run.first) for run in self.runs)
        return np.array([number for number, _ in there], np.uint64), np.array([first for _, first in there], np.int64)

    @cached_property
    def _starts(self) -> list[int]:
        return [run.first for run in self.runs]

    @cached_property
    def _by_first(self) -> dict[int, FragmentRun]:
        return {run.first: run for run in self.runs}

    @cached_property
    def _states(self) -> dict[int, str]:
        """The deletion vector of each run."""
        return {run.first: run.fragment.deletions for run in self.runs}

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
        if self.count == self.size:
            return ordinal >= self.size
        place = bisect_right(self._starts, ordinal) - 1
        if place < 0:
            return True
        run = self.runs[place]
        offset = ordinal - run.first
        if offset >= run.fragment.rows:
            return True
        deleted = run.deleted
        if not len(deleted):
            return False
        found = int(deleted.searchsorted(offset))
        return found < len(deleted) and deleted.item(found) == offset

    def is_compatible(self, other: "Numbering") -> bool:
        """Return whether ordinals that both have mean the same rows."""
        return self.space is other.space

    def live_mask(self, size: int) -> Mask:
        """Return the mask of the first `size` ordinals that have a row."""
        alive = np.zeros(size, dtype=np.bool_)
        for run in self.runs:
            alive[run.first : run.end] = True
            if len(run.deleted):
                alive[run.deleted[: run.deleted.searchsorted(size - run.first)] + run.first] = False
        return alive

    def removed_since(self, other: "Numbering") -> Ordinals:
        """Return the ordinals of rows that the compatible `other` has and this one has not."""
        return other.added_since(self)

    def added_since(self, other: "Numbering") -> Ordinals:
        """Return the ordinals of rows that this one has and the compatible `other` has not; costs what differs."""
        assert self.space is other.space
        pieces = []
        for first in sorted({first for first, _ in self._states.items() ^ other._states.items()}):
            run, before = self._by_first.get(first), other._by_first.get(first)
            if run is None:
                continue
            if before is None:
                pieces.append(run.live)
            else:
                back = np.setdiff1d(before.deleted, run.deleted, assume_unique=True)
                pieces.append((back + first).astype(np.int32))
        return np.concatenate(pieces) if pieces else NO_ORDINALS

    def distance_to(self, other: "Numbering") -> int:
        """Return about how many rows two compatible numberings differ in."""
        total = 0
        for first in {first for first, _ in self._states.items() ^ other._states.items()}:
            run, before = self._by_first.get(first), other._by_first.get(first)
            if run is None or before is None:
                either = run or before
                total += 0 if either is None else either.fragment.rows
            else:
                total += abs(len(run.deleted) - len(before.deleted)) + 1
        return total


class Spaces:
    """The spaces of one table, most recently used first. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Each with the version numbered last in it.
        self._known: list[Numbering] = []

    def number(self, table: Table) -> Numbering:
        """Assign ordinals to a version's rows, continuing those of other versions if that leaves few holes.

        Reads the manifest, and deletion vectors that the version numbered last does not have.
        """
        fragments = stored_fragments(table)
        with self._lock:
            known = list(self._known)
        before = _nearest(known, fragments)
        space = OrdinalSpace() if before is None else before.space
        made = Numbering(table.pin, space, _make_runs(table, space.assign(fragments), before))
        if made.size > limits.ORDINALS_MAX:
            raise LimitError(
                f"table {table.pin.table} has {made.size:,} rows; a query can number at most {limits.ORDINALS_MAX:,}",
                code="table_too_large",
            )
        with self._lock:
            self._known = [made, *(known for known in self._known if known.space is not space)][
                : limits.ORDINAL_SPACES_MAX
            ]
        return made


def assign_ordinals(table: Table) -> Numbering:
    """Assign ordinals to a version's rows in a space of its own."""
    return Spaces().number(table)


def _nearest(known: Sequence[Numbering], fragments: Sequence[StoredFragment]) -> Numbering | None:
    """Return the numbering whose space lacks the fewest of these rows; None if all would have too many holes."""
    count = sum(fragment.rows for fragment in fragments)
    holes_max = max(count * limits.ORDINAL_HOLES_SHARE_MAX, limits.ORDINAL_HOLES_ALLOWED)
    best: Numbering | None = None
    least = -1
    for numbering in known:
        new, size = numbering.space.size_with(fragments)
        if size - count <= holes_max and (best is None or new < least):
            best, least = numbering, new
    return best


def _make_runs(
    table: Table, firsts: Iterable[tuple[int, StoredFragment]], before: Numbering | None
) -> tuple[FragmentRun, ...]:
    old: Callable[[int], FragmentRun | None] = (lambda _: None) if before is None else before._by_first.get
    runs = []
    for first, fragment in firsts:
        known = old(first)
        if known is not None and known.fragment == fragment:
            runs.append(known)
        elif not fragment.deletions:
            runs.append(FragmentRun(fragment, first))
        elif known is not None and known.fragment.deletions == fragment.deletions:
            runs.append(FragmentRun(fragment, first, known.deleted))
        else:
            runs.append(FragmentRun(fragment, first, deleted_rows(table, fragment)))
    return tuple(runs)
