"""Background compaction of the newest fragments, so that reads stay fast after many small commits.

Every small write adds a fragment, and lookups and manifests grow with their number. After a write that leaves many, a
background thread of the open graph compacts them, in a separate commit. The write is acknowledged before, does not wait
for it, and never fails because of it. The same thread writes a checkpoint for each full block of log entries, so that
merges and histories do not read the entries one by one even if the branch is never optimized.

The thread ends when nothing is due, and closing the graph waits for it. The exit of a process that did not close its
graph also waits; but then Python accepts no tasks for other threads, so a compaction that needs them is abandoned,
before any of it is visible.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.commit import CommitKind, Record
from omnigraph.storage.tables.upkeep import settled_fragments
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.optimize import SchemaOf, compact_tail

_Table = tuple[str, str]  # a branch and a type key
_Due = tuple[str, str | None]  # a branch, and a type key or None for its log


def _process_is_ending() -> bool:
    """True if Python accepts no new tasks for threads."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(int).result()
        except RuntimeError:
            return True
    return False


class TailCompaction:
    """Background compaction of one open graph. Safe to use from several threads."""

    def __init__(self, parts: GraphContext, schema_of: SchemaOf) -> None:
        self._parts = parts
        self._schema_of = schema_of
        self._threshold = parts.settings.tail_fragments_max
        self._lock = threading.Lock()
        self._due: set[_Due] = set()
        self._newest: dict[str, int] = {}
        self._settled: dict[_Table, int] = {}
        self._thread: threading.Thread | None = None
        self._closed = False
        self._last_failure: GraphError | None = None

    @property
    def last_failure(self) -> GraphError | None:
        """The error of the last failed compaction; writers never get it."""
        return self._last_failure

    def schedule_after(self, entry: Record) -> None:
        """Schedule work that is due after a commit; costs a few microseconds and no request."""
        block = limits.CHECKPOINT_ENTRIES
        newest = self._newest.get(entry.branch, entry.number - 1)
        self._newest[entry.branch] = max(newest, entry.number)
        if newest // block < entry.number // block:
            self._schedule((entry.branch, None))
        if entry.kind in (CommitKind.COMPACT, CommitKind.INDEX):
            return
        for type_key in entry.changes.types:
            pin = entry.tables.get(type_key)
            if pin is None:
                continue
            # Large fragments that the last compaction left unchanged do not count.
            settled = self._settled.get((entry.branch, type_key), 0)
            if self._parts.tables.fragments_known(pin) - settled >= self._threshold:
                self._schedule((entry.branch, type_key))

    def drain(self) -> None:
        """Wait until no work is left."""
        while (thread := self._thread) is not None:
            thread.join()

    def close(self) -> None:
        """Stop accepting work and wait for what is due, so that a process that writes once also compacts."""
        with self._lock:
            self._closed = True
        self.drain()

    def _schedule(self, due: _Due) -> None:
        with self._lock:
            if self._closed:
                return
            self._due.add(due)
            if self._thread is None:
                # Not a daemon: the process waits for it.
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
                self._thread = None  # so that `drain` does not wait for it
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
            if tail >= self._threshold:  # else another process compacted it
                entry = compact_tail(self._parts, branch, frozenset({type_key}), self._schema_of)
                if entry is not None:
                    settled, _ = self._tail(entry, type_key)
        except GraphError as fault:
            # Harmless: retried after as many further fragments.
            self._last_failure = fault
            settled = self._settled.get((branch, type_key), 0) + self._threshold
        self._settled[branch, type_key] = settled

    def _tail(self, head: Record, type_key: str) -> tuple[int, int]:
        """Return how many fragments a compaction would leave unchanged, and how many it would merge."""
        pin = head.tables.get(type_key)
        if pin is None:
            return 0, 0
        settled = settled_fragments(self._parts.tables.open(pin))
        return settled, self._parts.tables.fragments_known(pin) - settled
