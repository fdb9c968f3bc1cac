"""Read branch logs: find the newest entry, read entries, step over strays; and how far the logs were cut."""

import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import Enum
from itertools import count, pairwise

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.errors import FormatError, NotFoundError
from omnigraph.model import times
from omnigraph.model.commit import Link, Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.records.read import CUT_MARK, read_record, read_stamp
from omnigraph.transaction.store_clock import AHEAD_US_MAX, StoreClock

_READ_THREADS = 8


class Floors:
    """The floors of all branches of one graph."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def highest(self, branch: str) -> int:
        """The first entry that counts; 1 where nothing was ever cut. One request."""
        for limit in (1, None):
            listed = [
                paths.entry_number(file.path) for file in self._store.list(paths.floor_folder(branch), limit=limit)
            ]
            numbers = [number for number in listed if number is not None]
            if numbers or not listed:
                return max(numbers, default=1)
        return 1  # somebody else's files are all there is

    def raise_to(self, branch: str, number: int) -> None:
        """Let entries below a number count for nothing; durable when this returns."""
        put_or_read(self._store, paths.floor(branch, number), b"{}", clock=self._clock)


class Stray(Enum):
    """An object in a place of a log that does not belong to the log."""

    CUT = "the mark that entries were cut away here"
    FOREIGN = "an entry of another graph"


@dataclass(frozen=True, slots=True)
class Head:
    """The newest entry, and the first place after it that may be free."""

    record: Record
    free: int


class LogReader:
    """Reads the logs of all branches of one graph."""

    def __init__(self, store: ObjectStore, *, clock: Clock, graph: str = "") -> None:
        self._store = store
        self._clock = clock
        self._graph = graph
        self._stamp_seen: tuple[int, ...] | None = None
        self.floors = Floors(store, clock=clock)
        self.store_clock = StoreClock(store, clock)
        self._times: dict[str, times.Times] = {}
        self._heads: dict[str, Head] = {}
        self._seen: dict[str, tuple[str, tuple[int, ...]]] = {}
        self._whole_maps: dict[str, tuple[int, dict[str, Pin]]] = {}
        self._damaged_blocks: dict[str, set[int | None]] = {}
        self._lock = threading.Lock()

    # -- whose root it is ---------------------------------------------------------------------------------------------

    def expect(self, graph: str, seen: tuple[int, ...] | None = None) -> None:
        """Read only entries of this graph, and put only such; until it is set, entries of every graph are read.

        `seen` is the identity of the stamp that names it, taken before the stamp was read.
        """
        self._graph, self._stamp_seen = graph, seen

    def confirm_root(self) -> None:
        """Make sure that the root still holds the graph that was opened; no request on local disk."""
        if not self._graph:
            return
        seen = self._store.identity(paths.STAMP)
        if seen and seen == self._stamp_seen:
            return
        try:
            stamp = read_stamp(self._store.get(paths.STAMP), path=paths.absolute(self._store, paths.STAMP))
        except ObjectNotFound:
            raise NotFoundError(
                f"the graph that was opened at {self._store.uri} is gone: its root was removed", code="graph_not_found"
            ) from None
        if stamp.graph != self._graph:
            raise NotFoundError(
                f"another graph is at {self._store.uri} now ({stamp.graph}), in place of the one that was opened "
                f"there ({self._graph}); nothing was done to it: open it again",
                code="graph_replaced",
            )
        self._stamp_seen = seen

    # -- reading ------------------------------------------------------------------------------------------------------

    def head(self, branch: str, *, tentative: bool = False) -> Record | None:
        """The newest entry, fresh from the store; None where there never was such a branch.

        Where requests cost, two answer: the next place is free, and the entry known last is still there. `tentative`
        leaves out the second, for a caller that builds an entry on it: `put` checks it then.
        """
        known = self._heads.get(branch)
        if known is not None:
            newest = self._newest_from(branch, known)
            is_trusted = newest is known and tentative and self._store.identity(paths.STAMP) is None
            # What follows an entry is read before it is seen to be there still: whatever is cut is cut oldest first.
            if newest is not None and (is_trusted or self.is_there(known.record)):
                return self._remember(newest)
            self.forget(branch)
            self.confirm_root()
        found = self._from_hint(branch) or self._from_listing(branch)
        if found is not None:
            return self._remember(found)
        if known is None:
            self.confirm_root()
        return None

    def _newest_from(self, branch: str, known: Head) -> Head | None:
        """Return the last entry at or after a known one, by galloping search; None if the log was cut behind it."""
        taken, step, free = known.free - 1, 1, 0
        last: Record | Stray | None = known.record
        damaged: dict[int, FormatError] = {}
        while free - taken != 1:
            place = taken + step if not free else (taken + free) // 2
            found = self._look_or_note(branch, place, damaged)
            if found is None:
                free = place
            else:
                taken, last, step = place, found, step * 2
        if free in damaged:
            raise damaged[free]  # the next entry is there, and cannot be read
        if taken < known.free:
            return known
        if isinstance(last, Record) and (last.follows(known.record) or self._is_founded(last)):
            return Head(last, free)
        return self._walk_from(branch, known)

    def _walk_from(self, branch: str, known: Head) -> Head | None:
        """Like `_newest_from`, where strays stand at the end of the log: entry after entry."""
        newest = known
        while (found := self._look(branch, newest.free)) is not None:
            if found is Stray.CUT:
                return None
            is_next = isinstance(found, Record) and found.follows(newest.record)
            newest = Head(found if is_next and isinstance(found, Record) else newest.record, newest.free + 1)
        return newest

    def _is_founded(self, record: Record) -> bool:
        """True unless the entry is a stray: what it was built on is on the store, or was cut away."""
        previous = record.previous
        if previous is None:
            return True
        try:
            found = self._look(record.branch, previous.number)
        except FormatError:
            return True  # damage to the entry before it makes no stray of this one
        is_linked = isinstance(found, Record) and found.link == previous
        return is_linked or self.floors.highest(record.branch) == record.number

    def is_stray(self, branch: str, number: int) -> bool:
        """Return True if a readable object in a place of a log does not belong to it."""
        found = self._look(branch, number)
        return found is not None and not (isinstance(found, Record) and self._is_founded(found))

    def is_there(self, record: Record) -> bool:
        """True if an entry is on the store as it was read; no request on local disk."""
        path = paths.entry(record.branch, record.number)
        seen = self._store.identity(path)
        if seen and self._seen.get(record.branch) == (record.checksum, seen):
            return True
        try:
            found = self._look(record.branch, record.number)
        except FormatError:
            return True  # damaged since: whoever reads it next is told
        if not isinstance(found, Record) or found.checksum != record.checksum:
            return False
        if found.erased and self.floors.highest(record.branch) > record.number:
            return False  # cut away, and put once more by a sweep that erased it and was slow
        if seen:
            self._seen[record.branch] = (record.checksum, seen)
        return True

    def live_head(self, branch: str, *, tentative: bool = False) -> Record:
        """The newest entry of a branch that exists."""
        head = self.head(branch, tentative=tentative)
        if head is None or not head.is_live:
            raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
        return head

    def read(self, branch: str, number: int) -> Record | None:
        """One entry; None where there is none yet, or none of this graph."""
        found = self._look(branch, number)
        return found if isinstance(found, Record) else None

    def _look(self, branch: str, number: int) -> Record | Stray | None:
        """What lies in a place of a log."""
        path = paths.entry(branch, number)
        try:
            body = self._store.get(path)
        except ObjectNotFound:
            return None
        if body == CUT_MARK:
            return Stray.CUT
        found = read_record(
            body, path=paths.absolute(self._store, path), whole_map=lambda since: self._whole_map(branch, since)
        )
        if found.graph and self._graph and found.graph != self._graph:
            return Stray.FOREIGN
        return self._timed(self._checked(found, branch, number, path))

    def _timed(self, record: Record) -> Record:
        """An entry with its corrected time, where a repair has corrected it; the head tells."""
        branch = record.branch
        if branch not in self._times and record.created_at_us > self._clock.now_us() + AHEAD_US_MAX:
            self._times[branch] = ()
            self.head(branch)
        at_us = times.correct_time(self._times.get(branch, ()), record.number, record.created_at_us)
        return record if at_us == record.created_at_us else replace(record, created_at_us=at_us)

    def _look_or_note(self, branch: str, number: int, damaged: dict[int, FormatError]) -> Record | Stray | None:
        """What lies in a place; what cannot be read counts as nothing, unless it turns out to be the next entry."""
        try:
            return self._look(branch, number)
        except FormatError as fault:
            damaged[number] = fault
            return None

    def _whole_map(self, branch: str, number: int) -> dict[str, Pin]:
        """The table map of an entry that holds it whole, for one that names only what changed since."""
        with self._lock:
            known = self._whole_maps.get(branch)
        if known is None or known[0] != number:
            [record] = self._read_many(branch, [number])
            known = (number, record.tables)
            with self._lock:
                self._whole_maps[branch] = known
        return known[1]

    def since(self, branch: str, number: int) -> list[Record]:
        """The entries after `number`, oldest first, up to the head; none below the floor."""
        head = self.head(branch)
        if head is None or head.number <= number:
            return []
        return [*self.between(branch, max(number + 1, head.pruned.floor), head.number_before), head]

    def between(self, branch: str, first: int, last: int) -> list[Record]:
        """The entries from `first` to `last`, both included, oldest first; whole blocks come from checkpoints.

        Strays between them are left out; `last` must be an entry of the log.
        """
        return list(reversed(list(self.backwards(branch, start=last, first=first))))

    def backwards(self, branch: str, *, start: int, first: int = 1, step: int | None = None) -> Iterator[Record]:
        """The entries from `start`, an entry of the log, down to `first`, newest first, read on demand.

        With `step`, at most so many are read ahead, unless a checkpoint gives more in one request.
        """
        block = limits.CHECKPOINT_ENTRIES
        last, wanted = start, None
        while last >= first:
            some: list[Record] | None = None
            if last % block == 0 and last - block + 1 >= first:
                some = self._from_checkpoint(branch, last, wanted)
            if some is None:
                # Down to the next block boundary, so that the block after it can come from its checkpoint.
                lowest = max(first, last - (last - 1) % block, 0 if step is None else last - step + 1)
                some = self._read_many(branch, range(lowest, last + 1), wanted)
            yield from reversed(some)
            wanted = some[0].previous
            last = some[0].number_before

    def _read_many(self, branch: str, numbers: Sequence[int], wanted: Link | None = None) -> list[Record]:
        """The entries in these places, oldest first; the last is the wanted one, or is not doubted where none is."""
        damaged: dict[int, FormatError] = {}

        def look(number: int) -> Record | Stray | None:
            return self._look_or_note(branch, number, damaged)

        if len(numbers) <= 1 or self._store.is_near:
            looked = list(map(look, numbers))
        else:
            with ThreadPoolExecutor(min(_READ_THREADS, len(numbers))) as pool:
                looked = list(pool.map(look, numbers))
        kept: list[Record] = []
        for number, found in reversed(list(zip(numbers, looked, strict=True))):
            if wanted is not None and number > wanted.number:
                continue  # a stray, stepped over
            if number in damaged:
                raise damaged[number]
            where = paths.absolute(self._store, paths.entry(branch, number))
            if not isinstance(found, Record) or (wanted is not None and found.link != wanted):
                is_there = isinstance(found, Record)
                problem = "is not the one that its successor was built on" if is_there else "is missing from its log"
                raise FormatError(
                    f"entry {number} of branch '{branch}' {problem}: {where}",
                    code="entry_missing",
                    branch=branch,
                    number=number,
                )
            kept.append(found)
            wanted = found.previous
        return kept[::-1]

    def _from_hint(self, branch: str) -> Head | None:
        """The head, from the entry that the hint names; where requests cost, a listing takes fewer."""
        number = self.hinted(branch) if self._store.is_near else None
        damaged: dict[int, FormatError] = {}
        found = None if number is None else self._look_or_note(branch, number, damaged)
        if not isinstance(found, Record) or not self._is_founded(found):
            return None  # led astray: the listing knows
        newest = self._newest_from(branch, Head(found, found.number + 1))
        return newest if self.is_there(found) else None

    def _from_listing(self, branch: str) -> Head | None:
        # Names that are no entries (a file left in the folder) may sort first: look past them.
        for limit in (limits.HEAD_LISTED_FIRST, None):
            listed = [paths.entry_number(file.path) for file in self._store.list(paths.log_folder(branch), limit=limit)]
            numbers = [number for number in listed if number is not None]
            # Places are taken in order, so a file far above the others is a stray, as a rule.
            likely = [number for number, below in pairwise(numbers) if number == below + 1]
            is_whole = limit is None or len(listed) < limit
            for number in likely + (numbers[-1:] if is_whole else []):
                seen = self._store.identity(paths.entry(branch, number))
                found = self._look(branch, number)
                if isinstance(found, Record) and self._is_founded(found):
                    if seen:
                        self._seen[branch] = (found.checksum, seen)
                    return Head(found, next(free for free in count(number + 1) if free not in numbers))
            if is_whole:
                return None
        return None

    def _checked(self, record: Record, branch: str, number: int, path: str) -> Record:
        if record.branch != branch or record.number != number:
            where = paths.absolute(self._store, path)
            raise FormatError(
                f"the log entry {where} belongs elsewhere: it says it is number {record.number} "
                f"of branch '{record.branch}'",
                branch=branch,
                number=number,
            )
        return record

    def _remember(self, head: Head) -> Record:
        branch = head.record.branch
        with self._lock:
            known = self._heads.get(branch)
            if known is None or known.free < head.free:
                self._heads[branch] = head
                self._times[branch] = head.record.times
        return head.record

    def hinted(self, branch: str) -> int | None:
        """The number that the hint of a branch names; None where it says nothing."""
        try:
            return int(self._store.get(paths.hint(branch)).decode("ascii"))
        except (StoreError, ValueError):
            return None

    def forget(self, branch: str) -> None:
        """Know nothing of a branch: the next look at its head begins at the store."""
        with self._lock:
            self._heads.pop(branch, None)
            self._whole_maps.pop(branch, None)

    def _from_checkpoint(self, branch: str, last: int, wanted: Link | None = None) -> list[Record] | None:
        path = paths.checkpoint(branch, last)
        try:
            lines = self._store.get(path).split(b"\n")
        except StoreError:
            return None  # none there, or out of reach
        first = last - limits.CHECKPOINT_ENTRIES + 1
        where = paths.absolute(self._store, path)
        try:
            if len(lines) == limits.CHECKPOINT_ENTRIES:
                found = [
                    self._timed(self._checked(read_record(line, path=where), branch, number, path))
                    for number, line in enumerate(lines, first)
                ]
                if wanted is None or found[-1].link == wanted:
                    return found
        except FormatError:
            pass
        self._damaged_blocks.setdefault(branch, set()).add(last)  # the entries themselves are the truth
        return None
