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
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph import limits
from omnigraph.errors import AlreadyExistsError, FormatError, OutcomeUnknownError
from omnigraph.model import times
from omnigraph.model.commit import Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.conditional_put import create
from omnigraph.storage.object_store import OutcomeUnknown, StoreError
from omnigraph.storage.records.read import CUT_MARK, checksum_of, copy_bytes, record_bytes
from omnigraph.transaction.log_reader import Head, LogReader, Stray

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


class Log(LogReader):
    """The logs of all branches of one graph."""

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
            if found is Stray.CUT or (after is not None and not self.is_there(after)):
                return self._refuse_baseless(record.branch)
            head = self.head(record.branch) if after is None else None
            if head is not None:
                return Refused(head)
            number += 1
        if after is not None and not self.is_there(after):
            return self._judge_baseless(entry, after)
        return self._published(entry, whole=since is None)

    def _put_or_find(self, entry: Record, body: bytes) -> Record | Stray | None:
        """Put an entry; None once it is known to be there and durable, else what has its place."""
        path = paths.entry(entry.branch, entry.number)
        try:
            found = create(
                lambda: self._store.put_if_absent(path, body),
                partial(self._look, entry.branch, entry.number),
                clock=self._clock,
            )
        except OutcomeUnknown as fault:
            why = "the store did not say whether it was written; look for that commit in the log"
            raise self._unknown(entry, why) from fault
        if isinstance(found, Record) and found.commit == entry.commit:
            self._store.make_durable([path])
            return None
        return found

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
        self._remember(Head(entry, entry.number + 1))
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
        if following is not Stray.CUT and self.is_there(entry):
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
        it gone, or, after one that stays, a mark in the place of the next. `listed` are the sizes of all entries.
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

    def location_of(self, branch: str, number: int) -> str:
        """Where an entry lies, for those who tell of it."""
        return paths.entry(branch, number)

    def folded_entry(self, branch: str, number: int) -> Record | None:
        """An entry as a checkpoint holds it; None where none does."""
        block = limits.CHECKPOINT_ENTRIES
        folded = self._from_checkpoint(branch, number + -number % block)
        return None if folded is None else folded[(number - 1) % block]

    def restore(self, record: Record, *, aside: str) -> str | None:
        """Put an entry in the place of one that cannot be read or is missing; returns where what was there is kept.

        For repair only: nobody may be writing to the branch. Its checksum is the one by which its successor knows it.
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
