"""Cluster-wide lock: keeps commands from interfering. Correctness of the ledger rests on compare-and-swap, not on it.

The holder sends heartbeats, the first before it acquires the lock; the next command takes the lock over from a holder
that died. Ages are measured by the store's clock: the heartbeat that the requester has just written supplies the time.
"""

import os
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.cluster import layout, records, timestamps
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.errors import GraphError
from omnigraph.ids import IdSource
from omnigraph.model.intent import Writer
from omnigraph.storage.conditional_put import put_or_read
from omnigraph.storage.object_store import ObjectNotFound, ObjectStore, StoreError
from omnigraph.transaction.liveness import Heartbeat, has_ended, this_writer

_MICROSECONDS = 1_000_000
_HEARTBEAT_REQUIRED = {"host": str, "pid": int, "started": str}
_HEARTBEAT_OPTIONAL = {"boot": str, "namespace": str, "token": str}

# Locks held or wanted in this process: never considered stale here.
_live: set[str] = set()
_live_lock = threading.Lock()
_VERSION = 1
_REQUIRED = {"version": int, "lock_id": str, "operation": str, "created_at": str, "pid": int}


class LockHeartbeats:
    """Heartbeat files, one per lock id."""

    def __init__(self, store: ObjectStore, *, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    def register(self, lock_id: str) -> None:
        """Write the first heartbeat of a lock."""
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
        """True if the holder of a lock is dead."""
        try:
            found = records.read(
                self._store.get(layout.heartbeat(lock_id)), required=_HEARTBEAT_REQUIRED, optional=_HEARTBEAT_OPTIONAL
            )
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


@dataclass(frozen=True, slots=True)
class LockRecord:
    """Contents of the lock file."""

    lock_id: str
    operation: str
    created_at: str
    pid: int

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        return records.to_bytes({"version": _VERSION, **asdict(self)})


class LockFaultError(Exception):
    """Lock is held, unreadable or invalid; the code is that of a diagnostic."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Lock:
    """Lock of one cluster."""

    def __init__(self, store: ObjectStore, *, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._heartbeats = LockHeartbeats(store, clock=clock)

    def read(self) -> LockRecord | None:
        """Return the current holder's record."""
        try:
            return self._parse(self._store.get(layout.LOCK))
        except ObjectNotFound:
            return None
        except GraphError as fault:
            raise LockFaultError("state_lock_read_error", f"the lock cannot be read: {fault}") from fault

    def _parse(self, body: bytes) -> LockRecord:
        try:
            found = records.read(body, required=_REQUIRED, optional={})
        except records.RecordFaultError as fault:
            message = f"the lock is damaged: {fault}; make sure that no command runs, then delete {self.path}"
            raise LockFaultError("invalid_state_lock", message) from None
        if found.pop("version") != _VERSION:
            raise LockFaultError("unsupported_state_lock_version", "the lock was acquired by a newer release")
        return LockRecord(**found)

    @property
    def path(self) -> str:
        """Full address of the lock file."""
        return layout.storage_path(self._store.uri, layout.LOCK)

    def acquire(self, operation: str, diagnostics: Diagnostics | None = None) -> LockRecord:
        """Acquire the lock, taking it over from a dead holder."""
        own = LockRecord(self._ids.new(), operation, timestamps.now(self._clock), os.getpid())
        try:
            self._heartbeats.register(own.lock_id)
            self._put(own, diagnostics or Diagnostics())
        except BaseException as fault:
            if isinstance(fault, LockFaultError) and fault.code == "state_lock_held":
                self._heartbeats.remove(own.lock_id)
            else:
                self._heartbeats.abandon(own.lock_id)  # the lock may be ours after all: its heartbeat then expires
            if isinstance(fault, GraphError):
                raise LockFaultError("state_lock_error", f"the lock cannot be acquired: {fault}") from fault
            raise
        self._heartbeats.remove_stale(requester=own.lock_id)
        return own

    def keep_alive(self, own: LockRecord) -> AbstractContextManager[None]:
        """Send heartbeats while the block runs."""
        return self._heartbeats.keep_alive(own.lock_id)

    def check(self, own: LockRecord) -> None:
        """Check that the lock is still ours: a process that pauses for too long is considered dead."""
        current = self.read()
        if current != own:
            now = "it is free now" if current is None else f"the current lock is {current.lock_id}"
            message = f"the lock {own.lock_id} was lost, so the command stops: {now}"
            raise LockFaultError("state_lock_id_mismatch", message)

    def _put(self, own: LockRecord, diagnostics: Diagnostics) -> None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            current = self._put_or_read(layout.LOCK, own)
            if current == own:
                return
            if not self._take_over(current, own, diagnostics):
                raise LockFaultError("state_lock_held", self.describe(current))
        raise LockFaultError("state_lock_error", "the lock cannot be acquired: other commands take it first")

    def _put_or_read(self, path: str, own: LockRecord) -> LockRecord:
        return self._parse(put_or_read(self._store, path, own.to_bytes(), clock=self._clock))

    def _take_over(self, current: LockRecord, own: LockRecord, diagnostics: Diagnostics) -> bool:
        """Remove the lock of a dead holder; True if the caller may try again to acquire it.

        Of several candidates, the one that puts the claim to a dead holder's lock wins. A winner may die too and then
        has a successor itself; only the last live one in that chain removes the claims.
        """
        dead, claims = current, list[str]()
        while self._heartbeats.is_dead(dead.lock_id, dead.created_at, requester=own.lock_id):
            claim = layout.takeover_claim(dead.lock_id)
            if claim in claims:
                self._store.delete(claim)  # a cycle of processes that considered each other dead
                return True
            claims.append(claim)
            other = self._put_or_read(claim, own)
            if other != own:
                dead = other
                continue
            # Only the one winner gets here, and checks again: the lock may have been removed meanwhile.
            if self.read() == current:
                self._store.delete(layout.LOCK)
                self._heartbeats.remove(current.lock_id)
                message = f"cluster {current.operation} of process {current.pid} died with the lock {current.lock_id}"
                diagnostics.warning("state_lock_inherited", layout.LOCK, f"{message}; it was taken over")
            for path in claims:
                self._store.delete(path)
            return True
        return False

    def release(self, own: LockRecord, diagnostics: Diagnostics) -> None:
        """Release the lock if it is still ours."""
        try:
            if self.read() == own:
                self._store.delete(layout.LOCK)
        except (LockFaultError, GraphError) as fault:
            message = (
                f"the lock {own.lock_id} could not be released: {fault}; the next command takes it over, or run: "
                f"omnigraph cluster force-unlock {own.lock_id}"
            )
            diagnostics.warning("state_lock_error", layout.LOCK, message)
            self._heartbeats.abandon(own.lock_id)
        else:
            self._heartbeats.remove(own.lock_id)

    def force_unlock(self, lock_id: str) -> None:
        """Remove the lock, whether or not its holder is alive."""
        current = self.read()
        if current is None:
            raise LockFaultError("state_lock_missing", "the lock is not held")
        if current.lock_id != lock_id:
            raise LockFaultError("state_lock_id_mismatch", f"the current lock is {current.lock_id}")
        try:
            self._store.delete(layout.LOCK)
        except GraphError as fault:
            raise LockFaultError("state_lock_error", f"the lock cannot be removed: {fault}") from fault
        self._heartbeats.remove(lock_id)

    def describe(self, current: LockRecord) -> str:
        """Return the message for someone who finds the lock held."""
        age = timestamps.age_s(self._clock, current.created_at)
        since = "" if age is None else f", {age} s ago"
        return (
            f"cluster {current.operation} of process {current.pid} holds the lock {current.lock_id} "
            f"since {current.created_at}{since}; if it is dead, try again in {limits.CLUSTER_LOCK_STALE_S:.0f} s, "
            f"or at once after: omnigraph cluster force-unlock {current.lock_id}"
        )

    def to_observation(self, current: LockRecord) -> dict[str, Any]:
        """Return the holder in the JSON form of `state_observations`."""
        found: dict[str, Any] = {
            "lock_id": current.lock_id,
            "lock_operation": current.operation,
            "lock_created_at": current.created_at,
            "lock_pid": current.pid,
        }
        age = timestamps.age_s(self._clock, current.created_at)
        return found if age is None else {**found, "lock_age_seconds": age}
