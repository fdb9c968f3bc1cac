"""A branch's log: the one place where graph commits become visible.

Invariants:
    Entries are immutable, numbered without gaps, and numbers are never reused, not even by a re-created branch.
    From the floor on none is missing; below it, nothing that is found means anything (see floor.py).
    An entry is put only if absent; whoever puts it has published.
    The hint and the checkpoints are conveniences: every answer is the same without them.

This module is the only one that puts log entries; a test on the source keeps it so.
"""

import contextlib
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

from omnigraph import limits
from omnigraph.clock import Clock, backoff_s
from omnigraph.errors import AlreadyExistsError, FormatError, NotFoundError, OutcomeUnknownError
from omnigraph.model.commit import Pin, Record
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
from omnigraph.storage.records.read import read_record, record_bytes
from omnigraph.transaction.floor import Floors
from omnigraph.transaction.identity import Identity

_READ_THREADS = 8


@dataclass(frozen=True, slots=True)
class Done:
    """The entry is ours: visible and durable."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Somebody else's entry has that number."""

    winner: Record


PutOutcome = Done | Refused


class Log:
    """The logs of all branches of one graph."""

    def __init__(
        self, store: ObjectStore, *, clock: Clock, read_only: bool = False, cut_s: float = limits.LOG_CUT_S
    ) -> None:
        self._store = store
        self._clock = clock
        self.floors = Floors(store, clock=clock, cut_s=cut_s)
        self.identity = Identity(store, clock=clock)
        self._read_only = read_only
        self._heads: dict[str, Record] = {}
        self._whole_maps: dict[str, tuple[int, dict[str, Pin]]] = {}
        self._damaged_blocks: dict[str, set[int | None]] = {}
        self._lock = threading.Lock()

    # -- reading ------------------------------------------------------------------------------------------------------

    def head(self, branch: str) -> Record | None:
        """The newest entry, fresh from the store; None where there never was such a branch.

        With a cached number one request answers; without, the hint or a listing gives a number to start from.

        Raises:
            NotFoundError: another graph has taken the place of this one, or none.
        """
        self.identity.confirm()
        known = self._heads.get(branch)
        asked_at = self._clock.monotonic()
        if known is not None:
            newest = self._newest_from(branch, known)
            if self.floors.is_yet_to_come(branch, newest.number + 1):
                self.floors.note_newest(branch, newest.number, at=asked_at)
                return known if newest is known else self._remember(newest)
        return self._head_above_the_floor(branch, known or self._from_hint(branch))

    def _head_above_the_floor(self, branch: str, known: Record | None) -> Record | None:
        """The newest entry, where what is known of the log may have been cut away meanwhile."""
        for _ in range(limits.HEAD_LOOKS_MAX):
            asked_at = self._clock.monotonic()
            is_listed = known is None
            known = known or self._from_listing(branch)
            if known is None:
                return None
            newest = self._newest_from(branch, known)
            if is_listed:
                self.floors.note_newest(branch, known.number, at=asked_at)  # as the listing said
            fresh = is_listed and self.floors.is_yet_to_come(branch, newest.number + 1)
            if fresh or newest.number >= self.floors.highest(branch):
                self.floors.note_newest(branch, newest.number, at=asked_at)
                return self._remember(newest)
            self._forget(branch)
            known = None
        raise StoreTransient(f"the log of branch '{branch}' is cut as fast as it can be read", path=branch)

    def _newest_from(self, branch: str, known: Record) -> Record:
        """The last entry at or after a known one: doubling steps up, then halving, since there are no gaps.

        One request when nothing is newer; otherwise a number that grows with the logarithm of how much is.
        """
        step, missing = 1, 0
        damaged: dict[int, FormatError] = {}
        while not missing:
            found = self._read_or_note(branch, known.number + step, damaged)
            if found is None:
                missing = known.number + step
            else:
                known, step = found, step * 2
        while missing - known.number > 1:
            middle = (known.number + missing) // 2
            found = self._read_or_note(branch, middle, damaged)
            if found is None:
                missing = middle
            else:
                known = found
        if missing in damaged:
            raise damaged[missing]  # the next entry is there, and cannot be read
        return known

    def _read_or_note(self, branch: str, number: int, damaged: dict[int, FormatError]) -> Record | None:
        """One entry; what is no entry counts as none, unless it turns out to be the next one."""
        try:
            return self.read(branch, number)
        except FormatError as fault:
            damaged[number] = fault
            return None

    def live_head(self, branch: str) -> Record:
        """The newest entry of a branch that exists.

        Raises:
            NotFoundError: there is no such branch, or it was deleted.
        """
        head = self.head(branch)
        if head is None or not head.is_live:
            raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
        return head

    def read(self, branch: str, number: int) -> Record | None:
        """One entry; None where there is none yet.

        Raises:
            FormatError: what lies there is damaged, newer than this release, or belongs elsewhere.
        """
        path = paths.entry(branch, number)
        try:
            body = self._store.get(path)
        except ObjectNotFound:
            return None
        found = read_record(
            body, path=paths.absolute(self._store, path), whole_map=lambda since: self._whole_map(branch, since)
        )
        return self._checked(found, branch, number, path)

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
        return [*self.between(branch, max(number + 1, head.pruned.floor), head.number - 1), head]

    def between(self, branch: str, first: int, last: int) -> list[Record]:
        """The entries from `first` to `last`, both included, oldest first; whole blocks come from checkpoints."""
        return list(reversed(list(self._backwards(branch, first, last))))

    def backwards(self, branch: str, *, start: int, first: int = 1, step: int | None = None) -> Iterator[Record]:
        """The entries from `start` down to `first`, newest first, read as they are asked for.

        With `step`, at most so many are read ahead, unless a checkpoint gives more in one request.
        """
        return self._backwards(branch, first, start, step)

    def _backwards(self, branch: str, first: int, last: int, step: int | None = None) -> Iterator[Record]:
        block = limits.CHECKPOINT_ENTRIES
        while last >= first:
            if last % block == 0 and last - block + 1 >= first:
                folded = self._from_checkpoint(branch, last)
                if folded is not None:
                    yield from reversed(folded)
                    last -= block
                    continue
            # Down to the next block boundary, so that the block after it can come from its checkpoint.
            lowest = max(first, last - (last - 1) % block, 0 if step is None else last - step + 1)
            yield from reversed(self._read_many(branch, range(lowest, last + 1)))
            last = lowest - 1

    def _read_many(self, branch: str, numbers: Sequence[int]) -> list[Record]:
        if len(numbers) <= 1 or self._store.is_near:
            found = [self.read(branch, number) for number in numbers]
        else:
            with ThreadPoolExecutor(min(_READ_THREADS, len(numbers))) as pool:
                found = list(pool.map(lambda number: self.read(branch, number), numbers))
        for number, record in zip(numbers, found, strict=True):
            if record is None:
                where = paths.absolute(self._store, paths.entry(branch, number))
                raise FormatError(
                    f"entry {number} of branch '{branch}' is missing from its log: {where}",
                    code="entry_missing",
                    branch=branch,
                    number=number,
                )
        return [record for record in found if record is not None]

    def _from_hint(self, branch: str) -> Record | None:
        try:
            return self.read(branch, int(self._store.get(paths.hint(branch)).decode("ascii")))
        except (StoreError, ValueError, FormatError):
            return None  # absent, out of reach, scribbled over or led astray: the listing knows

    def _from_listing(self, branch: str) -> Record | None:
        # Names that are no entries (a file somebody left in the folder) may sort first: look past them.
        for limit in (limits.HEAD_LISTED_FIRST, None):
            listed = [paths.entry_number(file.path) for file in self._store.list(paths.log_folder(branch), limit=limit)]
            numbers = [number for number in listed if number is not None]
            for number, below in pairwise(numbers):
                # There are no gaps, so a file far above the others only looks like an entry.
                if number == below + 1:
                    return self.read(branch, number)
            if limit is None or len(listed) < limit:
                return self.read(branch, numbers[-1]) if numbers else None
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

    def _forget(self, branch: str) -> None:
        with self._lock:
            self._heads.pop(branch, None)
        self.floors.forget(branch)

    def _remember(self, head: Record) -> Record:
        with self._lock:
            known = self._heads.get(head.branch)
            if known is None or known.number < head.number:
                self._heads[head.branch] = head
        return head

    # -- writing ------------------------------------------------------------------------------------------------------

    def put(self, record: Record) -> PutOutcome:
        """Put an entry at its number if that is free. This is the fence: the one commit point there is.

        Raises:
            NotFoundError: another graph has taken the place of this one, or none.
            OutcomeUnknownError: the store never said, and does not answer when asked.
            UnavailableError: the store does not take it, and certainly has not.
        """
        path = paths.entry(record.branch, record.number)
        sent_at = self._clock.monotonic()
        self.identity.confirm()
        if not self._may_be_put(record):
            return self._refused_by_the_floor(record)
        since = self._map_to_count_from(record)
        body = record_bytes(record, since=since)
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
                return self._published(record, whole=since is None, sent_at=sent_at)
            try:
                found = self.read(record.branch, record.number)
            except StoreError:
                certain = False
                continue
            if found is None:
                continue  # the store answered and it is not there: put it again
            if found.commit == record.commit:
                # There, but perhaps not yet safe: what failed may have been the sync of its name.
                self._store.make_durable([path])
                return self._published(record, whole=since is None, sent_at=sent_at)
            self._remember(found)
            return Refused(found)
        if certain and failed is not None:
            raise failed
        raise OutcomeUnknownError(
            f"the store did not say whether entry {record.number} of branch '{record.branch}' was written; "
            f"look for commit {record.commit} in the log before trying again",
            commit=record.commit,
            branch=record.branch,
            number=record.number,
        )

    def _map_to_count_from(self, record: Record) -> tuple[int, dict[str, Pin]] | None:
        """For a graph of very many types: the last whole map, so that this entry need only name what changed since."""
        if len(record.tables) <= limits.WHOLE_MAP_TYPES_MAX:
            return None
        with self._lock:
            known = self._whole_maps.get(record.branch)
        return known if known is not None and record.number - known[0] < limits.WHOLE_MAP_EVERY_ENTRIES else None

    def _may_be_put(self, record: Record) -> bool:
        """Whether the entry's place is above the floor. The first entry of a log is never cut, and needs no look."""
        if record.number == 1 or self.floors.is_yet_to_come(record.branch, record.number):
            return True
        return record.number >= self.floors.highest(record.branch)

    def _published(self, record: Record, *, whole: bool, sent_at: float) -> PutOutcome:
        try:
            self.identity.confirm()
        except NotFoundError:
            # It stands in the log of another graph, behind a hole: whoever comes there must not meet it.
            with contextlib.suppress(StoreError):
                self._store.delete(paths.entry(record.branch, record.number))
            raise
        if not self._may_be_put(record):
            # Its place may have been somebody else's before, and cut away; or it was ours, and others have been quick.
            after = self.read(record.branch, record.number + 1)
            if after is None or after.parent != record.head_commit:
                return self._taken_back(record, is_certain=after is not None)
        self.floors.note_newest(record.branch, record.number, at=sent_at)
        self._remember(record)
        if whole and len(record.tables) > limits.WHOLE_MAP_TYPES_MAX:
            with self._lock:
                self._whole_maps[record.branch] = (record.number, record.tables)
        if record.number % limits.HINT_EVERY_ENTRIES == 0:
            with contextlib.suppress(StoreError):  # only a hint; the next one will do
                self._store.put(paths.hint(record.branch), str(record.number).encode())
        return Done()

    def _refused_by_the_floor(self, record: Record) -> PutOutcome:
        self._forget(record.branch)
        head = self.head(record.branch)
        if head is None or head.number < record.number:
            raise StoreTransient(f"the log of branch '{record.branch}' is cut beyond its head", path=record.branch)
        return Refused(head)

    def _taken_back(self, record: Record, *, is_certain: bool) -> PutOutcome:
        """Delete an entry that stands where another's was cut away. Nobody reads there; it is only litter."""
        with contextlib.suppress(StoreError):
            self._store.delete(paths.entry(record.branch, record.number))
        refused = self._refused_by_the_floor(record)
        if not is_certain:
            raise OutcomeUnknownError(
                f"entry {record.number} of branch '{record.branch}' was put, and pruned before that could be told; "
                f"look whether what commit {record.commit} did is there before trying again",
                commit=record.commit,
                branch=record.branch,
                number=record.number,
            )
        return refused

    # -- housekeeping -------------------------------------------------------------------------------------------------

    def branch_names(self) -> list[str]:
        """Every branch that ever was, in order; those deleted since are among them."""
        self.identity.confirm()
        folders = self._store.list_folders(paths.LOGS)
        # A folder whose name is not how a branch is spelled there was left by somebody else.
        return sorted(paths.unsegment(folder) for folder in folders if paths.segment(paths.unsegment(folder)) == folder)

    def fold(self, branch: str) -> int:
        """Fold every full block of entries that has no checkpoint yet into one file; returns how many were made.

        The entries stay. Reading history then costs one request per block. Which blocks there are is told by one
        listing; a checkpoint that this process found damaged is made again.
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
                entries = self._read_many(branch, range(last - block + 1, last + 1))
                body = b"\n".join(record_bytes(entry) for entry in entries)
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
            record (Record): what to put.
            aside (str): the folder where what is there now is copied to.

        Returns:
            str | None: where it was copied to; None where nothing was there.

        Raises:
            AlreadyExistsError: the entry there can be read.
        """
        path = paths.entry(record.branch, record.number)
        kept: str | None = f"{aside}{path}"
        try:
            if self.read(record.branch, record.number) is not None:
                raise AlreadyExistsError(f"entry {record.number} of branch '{record.branch}' can be read")
            kept = None
        except FormatError:
            self._store.copy(path, f"{aside}{path}")
        self._store.put(path, record_bytes(record))
        self.forget(record.branch)
        return kept

    def forget(self, branch: str) -> None:
        """Know nothing of a branch: the next look at its head begins at the store."""
        with self._lock:
            self._heads.pop(branch, None)
            self._whole_maps.pop(branch, None)

    def _from_checkpoint(self, branch: str, last: int) -> list[Record] | None:
        path = paths.checkpoint(branch, last)
        try:
            lines = self._store.get(path).split(b"\n")
        except StoreError:
            return None  # none there, or out of reach
        first = last - limits.CHECKPOINT_ENTRIES + 1
        where = paths.absolute(self._store, path)
        try:
            if len(lines) == limits.CHECKPOINT_ENTRIES:
                return [
                    self._checked(read_record(line, path=where), branch, number, path)
                    for number, line in enumerate(lines, first)
                ]
        except FormatError:
            pass
        self._damaged_blocks.setdefault(branch, set()).add(last)  # the entries themselves are the truth
        return None
