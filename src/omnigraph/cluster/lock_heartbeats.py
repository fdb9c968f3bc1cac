"""Who holds the lock or wants it, each with a sign of life; and which of them are dead.

Whoever takes the lock writes its sign first. Ages are told by the store's own clock: the sign that the asker has just
written says what time it is there.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.cluster import layout, records, timestamps
from omnigraph.model.intent import Writer
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer

_MICROSECONDS = 1_000_000
_REQUIRED = {"host": str, "pid": int, "started": str}
_OPTIONAL = {"boot": str, "namespace": str, "token": str}

# The locks that are held or wanted in this process: nobody here may take them for left behind.
_live: set[str] = set()
_live_lock = threading.Lock()


class LockHeartbeats:
    """Signs of life, one for each lock."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def register(self, lock_id: str) -> None:
        """Show that a lock's holder lives.

        Raises:
            StoreError: the store refuses.
        """
        with _live_lock:
            _live.add(lock_id)
        self._beat(lock_id)

    @contextmanager
    def keep_alive(self, lock_id: str) -> Iterator[None]:
        """Show it again and again while the block runs."""
        heart = Heartbeat(
            lambda: self._beat(lock_id), every_s=limits.CLUSTER_LOCK_HEARTBEAT_S, name="cluster-lock-heartbeat"
        )
        heart.begin()
        try:
            yield
        finally:
            heart.fall_silent()
            self.abandon(lock_id)

    def abandon(self, lock_id: str) -> None:
        """Have nothing to do with a lock any more, and let its sign tell so by its age."""
        with _live_lock:
            _live.discard(lock_id)

    def remove(self, lock_id: str) -> None:
        """Take the sign away; where the store refuses, somebody else does it some day."""
        self.abandon(lock_id)
        with suppress(StoreError):
            self._store.delete(layout.heartbeat(lock_id))

    def is_dead(self, lock_id: str, created_at: str, *, requester: str) -> bool:
        """Whether whoever holds a lock is gone.

        Args:
            lock_id: the lock.
            created_at: when it was taken.
            requester: the lock that is wanted, whose sign was written this moment.

        Raises:
            StoreError: it cannot be found out.
        """
        try:
            found = records.read(self._store.get(layout.heartbeat(lock_id)), required=_REQUIRED, optional=_OPTIONAL)
            writer = Writer(**{name: value for name, value in found.items() if value is not None})
        except (ObjectNotFound, records.RecordFaultError):
            age_s = timestamps.age_s(self._clock, created_at)
            return age_s is not None and age_s >= limits.CLUSTER_LOCK_SILENT_S
        here = this_writer()
        if writer == here:
            with _live_lock:
                return lock_id not in _live
        if has_ended(writer, here):
            return True
        shown = {listed.path: listed.modified_us for listed in self._store.list(layout.HOLDERS)}
        now_us, then_us = shown.get(layout.heartbeat(requester)), shown.get(layout.heartbeat(lock_id))
        if now_us is None or then_us is None:
            return False  # it was given back this moment; whoever looks again sees that
        return now_us - then_us >= limits.CLUSTER_LOCK_STALE_S * _MICROSECONDS

    def remove_stale(self, *, requester: str) -> None:
        """Delete what those left who died before they had the lock, or could not take their sign away."""
        with suppress(StoreError):
            shown = list(self._store.list(layout.HOLDERS))
            now_us = max((file.modified_us for file in shown if file.path == layout.heartbeat(requester)), default=0)
            for file in shown:
                if now_us - file.modified_us >= limits.CLUSTER_LOCK_SILENT_S * _MICROSECONDS:
                    self._store.delete(file.path)

    def _beat(self, lock_id: str) -> None:
        self._store.put(layout.heartbeat(lock_id), records.to_bytes(asdict(this_writer())))
