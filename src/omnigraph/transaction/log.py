"""A branch's log: the one place where graph commits become visible.

Invariants:
    Entries are immutable, their numbers rise and are never reused, not even by a re-created branch. Only what a commit
    that was pruned by name had to tell of entities is taken out of its entry, which keeps its place and its checksum.
    An entry names its graph and the entry it was built on. One that names another graph, or an entry that is not there,
    is a stray: never read as part of the log, never deleted by itself, and stepped over by whoever writes next. So from
    the floor to the newest entry every place is taken, and nothing counts behind the first that is free.
    An entry is put only if absent. It is acknowledged after what it was built on has been seen on the store once more:
    a log is cut oldest first, so a place that was cut away is never taken for one that was free (`cut`).
    The hint and the checkpoints are conveniences: every answer is the same without them.

This module is the only one that puts log entries; a test on the source keeps it so.
"""

import contextlib
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import count, pairwise

from omnigraph import limits
from omnigraph.clock import Clock, backoff_s
from omnigraph.errors import AlreadyExistsError, FormatError, NotFoundError, OutcomeUnknownError
from omnigraph.model import times
from omnigraph.model.commit import Link, Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import (
    ObjectExists,
    ObjectNotFound,
    ObjectStore,
    OutcomeUnknown,
    StoreError,
    StoreRefused,
    StoreTransient,
)
from omnigraph.storage.records.read import CUT_MARK, checksum_of, copy_bytes, read_record, read_stamp, record_bytes
from omnigraph.transaction.floor import Floors
from omnigraph.transaction.store_clock import AHEAD_US_MAX, StoreClock

_READ_THREADS = 8


@dataclass(frozen=True, slots=True)
class Done:
    """The entry is ours: visible and durable. It says where it stands, as it was put."""

    entry: Record = field(compare=False)


@dataclass(frozen=True, slots=True)
class Refused:
    """Another entry was built on the same one first."""

    winner: Record


@dataclass(frozen=True, slots=True)
class Baseless:
    """What the entry was built on is not in the log any more: it was cut away, or a backup was restored."""


PutOutcome = Done | Refused | Baseless


class _Stray(Enum):
    """What lies in a place of a log and is no entry of it."""

    CUT = "the mark that entries were cut away here"
    FOREIGN = "an entry of another graph"


@dataclass(frozen=True, slots=True)
class _Head:
    """The newest entry, and the first place after it that may be free."""

    record: Record
    free: int


class Log:
    """The logs of all branches of one graph."""

    def __init__(self, store: ObjectStore, *, clock: Clock, graph: str = "") -> None:
        self._store = store
        self._clock = clock
        self._graph = graph
        self._stamp_seen: tuple[int, ...] | None = None
        self.floors = Floors(store, clock=clock)
        self.store_clock = StoreClock(store, clock)
        self._times: dict[str, times.Times] = {}
        self._heads: dict[str, _Head] = {}
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
        """Make sure that the root still holds the graph that was opened; no request on local disk.

        Raises:
            NotFoundError: another graph is there, or none.
            UnavailableError: the store does not answer.
        """
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

        Where requests cost, two answer: the next place is free, and the entry known last is still there.

        Args:
            branch: whose.
            tentative: leave out the second, for a caller that builds an entry on it: `put` asks then.

        Raises:
            NotFoundError: another graph has taken the place of this one, or none.
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

    def _newest_from(self, branch: str, known: _Head) -> _Head | None:
        """The last entry at or after a known one: doubling steps up, then halving, since places are taken in order.

        One request when nothing is newer; otherwise a number that grows with the logarithm of how much is. None where
        the log was cut behind the known entry.
        """
        taken, step, free = known.free - 1, 1, 0
        last: Record | _Stray | None = known.record
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
            return _Head(last, free)
        return self._walk_from(branch, known)

    def _walk_from(self, branch: str, known: _Head) -> _Head | None:
        """Like `_newest_from`, where strays stand at the end of the log: entry after entry."""
        newest = known
        while (found := self._look(branch, newest.free)) is not None:
            if found is _Stray.CUT:
                return None
            is_next = isinstance(found, Record) and found.follows(newest.record)
            newest = _Head(found if is_next and isinstance(found, Record) else newest.record, newest.free + 1)
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
        return (isinstance(found, Record) and found.link == previous) or self.floors.highest(
            record.branch
        ) == record.number

    def is_stray(self, branch: str, number: int) -> bool:
        """True if what lies in a place of a log is no entry of it, though it can be read."""
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
        """The newest entry of a branch that exists.

        Raises:
            NotFoundError: there is no such branch, or it was deleted.
        """
        head = self.head(branch, tentative=tentative)
        if head is None or not head.is_live:
            raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
        return head

    def read(self, branch: str, number: int) -> Record | None:
        """One entry; None where there is none yet, or none of this graph.

        Raises:
            FormatError: what lies there is damaged, newer than this release, or belongs elsewhere.
        """
        found = self._look(branch, number)
        return found if isinstance(found, Record) else None

    def _look(self, branch: str, number: int) -> Record | _Stray | None:
        """What lies in a place of a log."""
        path = paths.entry(branch, number)
        try:
            body = self._store.get(path)
        except ObjectNotFound:
            return None
        if body == CUT_MARK:
            return _Stray.CUT
        found = read_record(
            body, path=paths.absolute(self._store, path), whole_map=lambda since: self._whole_map(branch, since)
        )
        if found.graph and self._graph and found.graph != self._graph:
            return _Stray.FOREIGN
        return self._timed(self._checked(found, branch, number, path))

    def _timed(self, record: Record) -> Record:
        """An entry with its corrected time, where a repair has corrected it; the head tells."""
        branch = record.branch
        if branch not in self._times and record.created_at_us > self._clock.now_us() + AHEAD_US_MAX:
            self._times[branch] = ()
            self.head(branch)
        at_us = times.correct_time(self._times.get(branch, ()), record.number, record.created_at_us)
        return record if at_us == record.created_at_us else replace(record, created_at_us=at_us)

    def _look_or_note(self, branch: str, number: int, damaged: dict[int, FormatError]) -> Record | _Stray | None:
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
        """The entries from `start`, an entry of the log, down to `first`, newest first, read as they are asked for.

        With `step`, at most so many are read ahead, unless a checkpoint gives more in one request.

        Raises:
            FormatError: an entry is missing, damaged, or not the one that its successor was built on.
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

        def look(number: int) -> Record | _Stray | None:
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
            if not isinstance(found, Record):
                raise FormatError(
                    f"entry {number} of branch '{branch}' is missing from its log: {where}",
                    code="entry_missing",
                    branch=branch,
                    number=number,
                )
            if wanted is not None and found.link != wanted:
                raise FormatError(
                    f"entry {number} of branch '{branch}' is not the one that its successor was built on: {where}",
                    code="entry_missing",
                    branch=branch,
                    number=number,
                )
            kept.append(found)
            wanted = found.previous
        return kept[::-1]

    def _from_hint(self, branch: str) -> _Head | None:
        """The head, from the entry that the hint names; where requests cost, a listing takes fewer."""
        number = self.hinted(branch) if self._store.is_near else None
        damaged: dict[int, FormatError] = {}
        found = None if number is None else self._look_or_note(branch, number, damaged)
        if not isinstance(found, Record) or not self._is_founded(found):
            return None  # led astray: the listing knows
        newest = self._newest_from(branch, _Head(found, found.number + 1))
        return newest if self.is_there(found) else None

    def _from_listing(self, branch: str) -> _Head | None:
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
                    return _Head(found, next(free for free in count(number + 1) if free not in numbers))
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

    def _remember(self, head: _Head) -> Record:
        branch = head.record.branch
        with self._lock:
            known = self._heads.get(branch)
            if known is None or known.free < head.free:
                self._heads[branch] = head
                self._times[branch] = head.record.times
        return head.record

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, record: Record, *, after: Record | None) -> PutOutcome:
        """Put an entry in the first free place after the one it was built on. This is the one commit point there is.

        Args:
            record: what to put; the log says where, and adds what proves it.
            after: the entry it was built on; None for the first of a log, which its caller has to confirm.

        Raises:
            ClockError: its time is ahead of the store's clock.
            NotFoundError: another graph has taken the place of this one, or none.
            OutcomeUnknownError: the store never said, and does not answer when asked.
            UnavailableError: the store does not take it, and certainly has not.
        """
        self.store_clock.check(record.created_at_us)
        known = self._heads.get(record.branch)
        number = record.number
        if after is not None:
            record = replace(record, times=times.keep_since(record.times or after.times, record.pruned.floor))
        if known is not None and after is not None and known.record.commit == after.commit:
            number = known.free
        since = self._map_to_count_from(record)
        if after is not None and self._store.is_near and not self.is_there(after):
            return self._refuse_baseless(record.branch)  # found out for nothing, before it leaves a stray
        while True:
            entry = replace(record, number=number, graph=self._graph, previous=None if after is None else after.link)
            body = record_bytes(entry, since=since)
            entry = replace(entry, checksum=checksum_of(body))
            found = self._put_or_find(entry, body)
            if found is None:
                break
            if isinstance(found, Record) and (after is None or found.follows(after)):
                return Refused(found)
            # A stray: step over it, if it is one, and not we who are behind.
            if found is _Stray.CUT or (after is not None and not self.is_there(after)):
                return self._refuse_baseless(record.branch)
            head = self.head(record.branch) if after is None else None
            if head is not None:
                return Refused(head)
            number += 1
        if after is not None and not self.is_there(after):
            return self._judge_baseless(entry, after)
        return self._published(entry, whole=since is None)

    def _put_or_find(self, entry: Record, body: bytes) -> Record | _Stray | None:
        """Put an entry, whatever it takes to know that it was; what has its place where that is another."""
        path = paths.entry(entry.branch, entry.number)
        failed: StoreError | None = None
        certain = True  # that it was not put; a lost answer ends that
        for attempt in range(1, limits.STORE_RETRY_ATTEMPTS_MAX + 1):
            try:
                self._store.put_if_absent(path, body)
            except ObjectExists:
                pass  # perhaps our own, from a try whose answer was lost: the entry tells
            except OutcomeUnknown:
                certain = False
                self._clock.sleep(backoff_s(attempt))
            except StoreTransient as fault:
                failed = fault
                self._clock.sleep(backoff_s(attempt))
            except StoreRefused:
                if certain:
                    raise
            else:
                return None
            try:
                found = self._look(entry.branch, entry.number)
            except StoreError:
                certain = False
                continue
            if found is None:
                continue  # the store answered and it is not there: put it again
            if isinstance(found, Record) and found.commit == entry.commit:
                # There, but perhaps not yet safe: what failed may have been the sync of its name.
                self._store.make_durable([path])
                return None
            return found
        if certain and failed is not None:
            raise failed
        raise self._unknown(entry, "the store did not say whether it was written; look for that commit in the log")

    def _map_to_count_from(self, record: Record) -> tuple[int, dict[str, Pin]] | None:
        """For a graph of very many types: the last whole map, so that this entry need only name what changed since."""
        if len(record.tables) <= limits.WHOLE_MAP_TYPES_MAX:
            return None
        with self._lock:
            known = self._whole_maps.get(record.branch)
        return known if known is not None and record.number - known[0] < limits.WHOLE_MAP_EVERY_ENTRIES else None

    def _published(self, entry: Record, *, whole: bool) -> PutOutcome:
        seen = self._store.identity(paths.entry(entry.branch, entry.number))
        if seen:
            self._seen[entry.branch] = (entry.checksum, seen)
        self._remember(_Head(entry, entry.number + 1))
        if whole and len(entry.tables) > limits.WHOLE_MAP_TYPES_MAX:
            with self._lock:
                self._whole_maps[entry.branch] = (entry.number, entry.tables)
        if entry.number % limits.HINT_EVERY_ENTRIES == 0:
            with contextlib.suppress(StoreError):  # only a hint; the next one will do
                self._store.put(paths.hint(entry.branch), str(entry.number).encode())
        return Done(entry)

    def _judge_baseless(self, entry: Record, after: Record) -> PutOutcome:
        """What became of an entry that was put, when the one before it is gone or another.

        It stays where it is, whatever comes out: others may have stepped over it. What was put where entries had been
        cut away, or in a log that a backup replaced, is a stray. What was overtaken and then cut away is not. The log
        is cut oldest first, so where the next place was cut already, an entry that is still there was put afterwards.
        """
        self.forget(entry.branch)
        self.confirm_root()
        following = self._look(entry.branch, entry.number + 1)
        if isinstance(following, Record) and following.follows(entry):
            return Done(entry)
        if after.number < self.floors.highest(entry.branch) <= entry.number:
            return Done(entry)
        if following is not _Stray.CUT and self.is_there(entry):
            return self._refuse_baseless(entry.branch)
        raise self._unknown(entry, "it was pruned before that could be told; look whether what it did is there")

    def _refuse_baseless(self, branch: str) -> Baseless:
        self.forget(branch)
        self.confirm_root()
        return Baseless()

    def _unknown(self, entry: Record, why: str) -> OutcomeUnknownError:
        return OutcomeUnknownError(
            f"entry {entry.number} of branch '{entry.branch}' (commit {entry.commit}): {why} before trying again",
            commit=entry.commit,
            branch=entry.branch,
            number=entry.number,
        )

    # -- housekeeping -------------------------------------------------------------------------------------------------

    def branch_names(self) -> list[str]:
        """Every branch that ever was, in order; those deleted since are among them."""
        self.confirm_root()
        folders = self._store.list_folders(paths.LOGS)
        # A folder whose name is not how a branch is spelled there was left by somebody else.
        return sorted(paths.unsegment(folder) for folder in folders if paths.segment(paths.unsegment(folder)) == folder)

    def cut(self, branch: str, doomed: Collection[int], *, listed: Mapping[int, int], floor: int) -> Iterator[int]:
        """Delete entries below the floor, which must be durable, oldest first; yields those that are gone.

        A writer that stood still may put an entry where one was deleted. It is then certain to find the entry before
        it gone, or, after one that stays, a mark in the place of the next.

        Args:
            branch: whose.
            doomed: the numbers of the entries to delete.
            listed: those of all entries there are, and their sizes in bytes.
            floor: the first that counts.
        """
        marks = {number for number, size in listed.items() if size == len(CUT_MARK)}
        kept = {number for number in listed if number < floor} - marks - set(doomed)
        marked = {number + 1 for number in kept if number + 1 < floor} - kept
        for number in sorted(marked - marks):
            self._store.put(paths.entry(branch, number), CUT_MARK)
            yield number
        for number in sorted(set(doomed) - marked):
            self._store.delete(paths.entry(branch, number))
            yield number

    def replace_erased(self, branch: str, records: Sequence[Record]) -> None:
        """Put entries without what was erased in the place of the whole ones, and in the checkpoints that hold them.

        Entries first: a checkpoint that still holds a whole one shows the next sweep that something is left to do.

        Args:
            branch: whose.
            records: the entries, with the checksums by which their successors know them.
        """
        block = limits.CHECKPOINT_ENTRIES
        by_number = {record.number: record for record in records}
        for number, record in by_number.items():
            self._store.put(paths.entry(branch, number), copy_bytes(record))
        for last in sorted({number + -number % block for number in by_number}):
            folded = self._from_checkpoint(branch, last)
            if folded is not None:
                body = b"\n".join(copy_bytes(by_number.get(entry.number, entry)) for entry in folded)
                self._store.put(paths.checkpoint(branch, last), body)

    def fold(self, branch: str) -> int:
        """Fold every full block of entries that has no checkpoint yet into one file; returns how many were made.

        The entries stay. Reading history then costs one request per block. Which blocks there are is told by one
        listing; a checkpoint that this process found damaged is made again. A block with a stray in it has none.
        """
        head = self.head(branch)
        made = 0
        if head is None:
            return made
        block = limits.CHECKPOINT_ENTRIES
        kept = head.pruned.floor + block - 1  # of the blocks below, entries may be missing
        blocks = range(kept + -kept % block, head.number + 1, block)
        if blocks:
            listed = self._store.list(paths.checkpoint_folder(branch))
            there = {paths.entry_number(file.path) for file in listed} - self._damaged_blocks.get(branch, set())
            for last in (last for last in blocks if last not in there):
                try:
                    entries = self._read_many(branch, range(last - block + 1, last + 1))
                except FormatError:
                    if not self.is_stray(branch, last):
                        raise
                    continue
                if len(entries) < block:
                    continue
                body = b"\n".join(copy_bytes(entry) for entry in entries)
                self._store.put(paths.checkpoint(branch, last), body)
                self._damaged_blocks.get(branch, set()).discard(last)
                made += 1
        return made

    def folded(self, branch: str, last: int) -> list[Record] | None:
        """The entries of the checkpoint that ends with `last`; None where there is none that can be read."""
        return self._from_checkpoint(branch, last)

    def place_of(self, branch: str, number: int) -> str:
        """Where an entry lies, for those who tell of it."""
        return paths.entry(branch, number)

    def folded_entry(self, branch: str, number: int) -> Record | None:
        """An entry as a checkpoint holds it; None where none does."""
        block = limits.CHECKPOINT_ENTRIES
        folded = self._from_checkpoint(branch, number + -number % block)
        return None if folded is None else folded[(number - 1) % block]

    def hinted(self, branch: str) -> int | None:
        """The number that the hint of a branch names; None where it says nothing."""
        try:
            return int(self._store.get(paths.hint(branch)).decode("ascii"))
        except (StoreError, ValueError):
            return None

    def restore(self, record: Record, *, aside: str) -> str | None:
        """Put an entry in the place of one that is there and cannot be read, or is missing between others.

        For repair only: nobody may be writing to the branch.

        Args:
            record (Record): what to put; its checksum is the one by which its successor knows it.
            aside (str): the folder where what is there now is copied to.

        Returns:
            str | None: where it was copied to; None where nothing was there.

        Raises:
            AlreadyExistsError: the entry there can be read.
        """
        path = paths.entry(record.branch, record.number)
        kept: str | None = f"{aside}{path}"
        try:
            if self._look(record.branch, record.number) is not None:
                raise AlreadyExistsError(f"entry {record.number} of branch '{record.branch}' can be read")
            kept = None
        except FormatError:
            self._store.copy(path, f"{aside}{path}")
        self._store.put(path, copy_bytes(record))
        self.forget(record.branch)
        return kept

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
