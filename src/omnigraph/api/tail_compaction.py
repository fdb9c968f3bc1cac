"""Compacting the newest fragments of hot tables beside the writers, so that many small commits stay cheap to read.

Every small write leaves a fragment, and every lookup and manifest grows with their number. Once a write has left many,
a thread of the open graph makes few of them, as a commit of its own. It is no part of the write: that is acknowledged
before, waits for nothing, and never fails for it. The same thread folds a block of log entries once it is full: merges
and histories of a branch that nobody optimizes then do not read its entries one by one.

The thread ends when there is nothing left to do; the graph waits for it when it is closed. The end of a process that
did not close its graph waits for the thread as well; but by then no work can be given to other threads, so a compaction
that needs them is given up: nothing of it was visible.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage.tables.upkeep import settled_fragments
from omnigraph.transaction.optimize import SchemaOf, compact_tail
from omnigraph.transaction.parts import Parts

_Table = tuple[str, str]  # a branch and a type key
_Due = tuple[str, str | None]  # a branch, and a type key or None for its log


def _process_is_ending() -> bool:
    """Whether Python takes on no more work for threads."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(int).result()
        except RuntimeError:
            return True
    return False


class TailCompaction:
    """The tails of one open graph. Safe to use from several threads."""

    def __init__(self, parts: Parts, schema_of: SchemaOf) -> None:
        self._parts = parts
        self._schema_of = schema_of
        self._most = parts.settings.tail_fragments_max
        self._lock = threading.Lock()
        self._due: set[_Due] = set()
        self._newest: dict[str, int] = {}
        self._settled: dict[_Table, int] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._last_failure: GraphError | None = None

    @property
    def last_failure(self) -> GraphError | None:
        """Why the last compaction came to nothing, if it did; writers are never told."""
        return self._last_failure

    def noticed(self, entry: Record) -> None:
        """Look at what a write has left; costs a few microseconds and no request.

        Args:
            entry (Record): the commit it made.
        """
        block = limits.CHECKPOINT_ENTRIES
        newest = self._newest.get(entry.branch, entry.number - 1)
        self._newest[entry.branch] = max(newest, entry.number)
        if newest // block < entry.number // block:
            self._begin((entry.branch, None))
        if entry.kind in (CommitKind.COMPACT, CommitKind.INDEX):
            return
        for type_key in entry.changes.types:
            pin = entry.tables.get(type_key)
            if pin is None:
                continue
            # Besides the large ones that the last compaction has left as they were.
            settled = self._settled.get((entry.branch, type_key), 0)
            if self._parts.tables.fragments_known(pin) - settled >= self._most:
                self._begin((entry.branch, type_key))

    def drain(self) -> None:
        """Wait until nothing is due."""
        while (thread := self._thread) is not None:
            thread.join()

    def close(self) -> None:
        """Wait for what is due, and take on nothing more: a process that writes once does its share as well."""
        with self._lock:
            self._closed = True
        self.drain()

    def _begin(self, due: _Due) -> None:
        with self._lock:
            if self._closed:
                return
            self._due.add(due)
            if self._thread is None:
                # No daemon: the process ends after it.
                self._thread = threading.Thread(target=self._run, name="omnigraph-tail-compaction")
                self._thread.start()

    def _run(self) -> None:
        try:
            while (due := self._next()) is not None:
                branch, type_key = due
                if type_key is None:
                    self._fold(branch)
                else:
                    self._compact(branch, type_key)
        except BaseException as fault:
            with self._lock:
                self._due.clear()
                self._thread = None  # nobody waits for a thread that is dead
            if not (isinstance(fault, RuntimeError) and _process_is_ending()):
                raise

    def _next(self) -> _Due | None:
        with self._lock:
            if not self._due:
                self._thread = None
                return None
            return self._due.pop()

    def _fold(self, branch: str) -> None:
        try:
            self._parts.log.fold(branch)
        except GraphError as fault:
            self._last_failure = fault

    def _compact(self, branch: str, type_key: str) -> None:
        try:
            settled, tail = self._tail(self._parts.log.live_head(branch), type_key)
            if tail >= self._most:  # otherwise others have done it
                entry = compact_tail(self._parts, branch, frozenset({type_key}), self._schema_of)
                if entry is not None:
                    settled, _ = self._tail(entry, type_key)
        except GraphError as fault:
            # It is nobody's loss: the next write that leaves a fragment tries again, a while later.
            self._last_failure = fault
            settled = self._settled.get((branch, type_key), 0) + self._most
        self._settled[branch, type_key] = settled

    def _tail(self, head: Record, type_key: str) -> tuple[int, int]:
        """How many fragments of a table a compaction would leave as they are, and of how many it would make one."""
        pin = head.tables.get(type_key)
        if pin is None:
            return 0, 0
        settled = settled_fragments(self._parts.tables.open(pin))
        return settled, self._parts.tables.fragments_known(pin) - settled
