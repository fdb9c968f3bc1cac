"""Heartbeats of the processes that hold or want the lock, and detection of dead ones.

A process writes its heartbeat before it acquires the lock. Ages are measured by the store's clock: the heartbeat that
the requester has just written supplies the current time.
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

# Locks held or wanted in this process: never considered stale here.
_live: set[str] = set()
_live_lock = threading.Lock()


class LockHeartbeats:
    """Heartbeat files, one per lock id."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def register(self, lock_id: str) -> None:
        """Write the first heartbeat of a lock.

        Raises:
            StoreError: the store refuses.
        """
        with _live_lock:
            _live.add(lock_id)
        self._beat(lock_id)

    @contextmanager
    def keep_alive(self, lock_id: str) -> Iterator[None]:
        """Repeat the heartbeat while the block runs."""
        heartbeat = Heartbeat(
            lambda: self._beat(lock_id), every_s=limits.CLUSTER_LOCK_HEARTBEAT_S, name="cluster-lock-heartbeat"
        )
        heartbeat.begin()
        try:
            yield
        finally:
            heartbeat.fall_silent()
            self.abandon(lock_id)

    def abandon(self, lock_id: str) -> None:
        """Stop tracking a lock in this process; its heartbeat expires by age."""
        with _live_lock:
            _live.discard(lock_id)

    def remove(self, lock_id: str) -> None:
        """Delete a heartbeat; if the store refuses, a later command deletes it."""
        self.abandon(lock_id)
        with suppress(StoreError):
            self._store.delete(layout.heartbeat(lock_id))

    def is_dead(self, lock_id: str, created_at: str, *, requester: str) -> bool:
        """True if the holder of a lock is dead.

        Args:
            lock_id: lock to check.
            created_at: when that lock was acquired.
            requester: id of the wanted lock, whose heartbeat has just been written.

        Raises:
            StoreError: the store cannot be read.
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
        modified = {listed.path: listed.modified_us for listed in self._store.list(layout.HOLDERS)}
        now_us, then_us = modified.get(layout.heartbeat(requester)), modified.get(layout.heartbeat(lock_id))
        if now_us is None or then_us is None:
            return False  # just released; the next attempt sees that
        return now_us - then_us >= limits.CLUSTER_LOCK_STALE_S * _MICROSECONDS

    def remove_stale(self, *, requester: str) -> None:
        """Delete heartbeats of processes that died waiting or could not delete them."""
        with suppress(StoreError):
            files = list(self._store.list(layout.HOLDERS))
            now_us = max((file.modified_us for file in files if file.path == layout.heartbeat(requester)), default=0)
            for file in files:
                if now_us - file.modified_us >= limits.CLUSTER_LOCK_SILENT_S * _MICROSECONDS:
                    self._store.delete(file.path)

    def _beat(self, lock_id: str) -> None:
        self._store.put(layout.heartbeat(lock_id), records.to_bytes(asdict(this_writer())))
