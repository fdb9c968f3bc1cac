"""Who is at work on a cluster: it keeps people out of each other's way. What keeps the ledger right is a fence.

Nobody dead keeps it: its holder shows that it lives, and whoever comes after a death takes it over.
"""

import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.cluster import layout, records, timestamps
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.lock_heartbeats import LockHeartbeats
from omnigraph.errors import GraphError
from omnigraph.ids import IdSource
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, OutcomeUnknown

_VERSION = 1
_REQUIRED = {"version": int, "lock_id": str, "operation": str, "created_at": str, "pid": int}


@dataclass(frozen=True, slots=True)
class LockRecord:
    """A lock somebody holds."""

    lock_id: str
    operation: str
    created_at: str
    pid: int

    def to_bytes(self) -> bytes:
        """As it is stored."""
        return records.to_bytes({"version": _VERSION, **asdict(self)})


class LockFaultError(Exception):
    """The lock cannot be read or is no lock; the code is that of a diagnostic."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class Lock:
    """The lock of one cluster."""

    def __init__(self, store: ObjectStore, *, clock: Clock, ids: IdSource) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._heartbeats = LockHeartbeats(store, clock=clock)

    def read(self) -> LockRecord | None:
        """Who holds it.

        Raises:
            LockFaultError: it cannot be read.
        """
        return self._read_record(layout.LOCK)

    def _read_record(self, path: str) -> LockRecord | None:
        try:
            body = self._store.get(path)
        except ObjectNotFound:
            return None
        except GraphError as fault:
            raise LockFaultError("state_lock_read_error", f"the lock cannot be read: {fault}") from fault
        try:
            found = records.read(body, required=_REQUIRED, optional={})
        except records.RecordFaultError as fault:
            message = f"the lock is damaged: {fault}; see that nobody is at work, then delete {self.path}"
            raise LockFaultError("invalid_state_lock", message) from None
        if found.pop("version") != _VERSION:
            raise LockFaultError("unsupported_state_lock_version", "the lock was taken by a newer release")
        return LockRecord(**found)

    @property
    def path(self) -> str:
        """Where it lies."""
        return layout.storage_path(self._store.uri, layout.LOCK)

    def acquire(self, operation: str, diagnostics: Diagnostics | None = None) -> LockRecord:
        """Take it; from somebody dead, too.

        Args:
            operation: what for.
            diagnostics: is told that it was taken from somebody.

        Raises:
            LockFaultError: somebody alive holds it, or the store refuses.
        """
        own = LockRecord(self._ids.new(), operation, timestamps.now(self._clock), os.getpid())
        try:
            self._heartbeats.register(own.lock_id)
            self._put(own, diagnostics or Diagnostics())
        except BaseException as fault:
            if isinstance(fault, LockFaultError) and fault.code == "state_lock_held":
                self._heartbeats.remove(own.lock_id)
            else:
                self._heartbeats.abandon(
                    own.lock_id
                )  # it may be ours for all we know: then the sign tells that we left
            if isinstance(fault, GraphError):
                raise LockFaultError("state_lock_error", f"the lock cannot be taken: {fault}") from fault
            raise
        self._heartbeats.remove_stale(requester=own.lock_id)
        return own

    def keep_alive(self, own: LockRecord) -> AbstractContextManager[None]:
        """Show meanwhile that whoever holds it lives."""
        return self._heartbeats.keep_alive(own.lock_id)

    def check(self, own: LockRecord) -> None:
        """See that it is still ours: a process that stood still for long is taken for dead.

        Raises:
            LockFaultError: it is not, or cannot be read.
        """
        current = self.read()
        if current != own:
            now = "nobody holds it now" if current is None else f"the lock that is held is {current.lock_id}"
            message = f"the lock {own.lock_id} was taken away, so nothing more is done: {now}"
            raise LockFaultError("state_lock_id_mismatch", message)

    def _put(self, own: LockRecord, diagnostics: Diagnostics) -> None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            try:
                self._store.put_if_absent(layout.LOCK, own.to_bytes())
            except ObjectExists:
                current = self.read()
                if current is None:
                    continue  # it was given back this moment
                if current == own:
                    return  # from a try whose answer was lost
                if not self._take_over(current, own, diagnostics):
                    raise LockFaultError("state_lock_held", self.describe(current)) from None
            except OutcomeUnknown:
                continue
            else:
                return
        raise LockFaultError("state_lock_error", "the lock cannot be taken: the store gives no answer")

    def _take_over(self, current: LockRecord, own: LockRecord, diagnostics: Diagnostics) -> bool:
        """Take the lock away from somebody, if that one is dead. Of several who want to, one does.

        Whoever puts the claim to what a dead one had is its only heir. That one may die, too, and then has an heir of
        its own; a claim is taken away by nobody but whoever is the last in that line.
        """
        dead, claims = current, list[str]()
        while self._heartbeats.is_dead(dead.lock_id, dead.created_at, requester=own.lock_id):
            claim = layout.takeover_claim(dead.lock_id)
            if claim in claims:
                self._store.delete(claim)  # two who were each taken for dead by the other: there is no last one
                return True
            claims.append(claim)
            try:
                self._store.put_if_absent(claim, own.to_bytes())
            except ObjectExists:
                other = self._read_record(claim)
                if other is None:
                    return True  # done with this moment: look again
                if other != own:
                    dead = other
                    continue
            # Only the one heir comes here, and looks again: the dead may have been buried meanwhile.
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
        """Give it back, if it is still ours."""
        try:
            if self.read() == own:
                self._store.delete(layout.LOCK)
        except (LockFaultError, GraphError) as fault:
            message = (
                f"the lock {own.lock_id} could not be given back: {fault}; the next command takes it over, or run: "
                f"omnigraph cluster force-unlock {own.lock_id}"
            )
            diagnostics.warning("state_lock_error", layout.LOCK, message)
            self._heartbeats.abandon(own.lock_id)
        else:
            self._heartbeats.remove(own.lock_id)

    def force_unlock(self, lock_id: str) -> None:
        """Take it away from whoever holds it.

        Raises:
            LockFaultError: there is none, another one, or the store refuses.
        """
        current = self.read()
        if current is None:
            raise LockFaultError("state_lock_missing", "nobody holds the lock")
        if current.lock_id != lock_id:
            raise LockFaultError("state_lock_id_mismatch", f"the lock that is held is {current.lock_id}")
        try:
            self._store.delete(layout.LOCK)
        except GraphError as fault:
            raise LockFaultError("state_lock_error", f"the lock cannot be removed: {fault}") from fault
        self._heartbeats.remove(lock_id)

    def describe(self, current: LockRecord) -> str:
        """Who holds it, for people, and what to do."""
        age = timestamps.age_s(self._clock, current.created_at)
        since = "" if age is None else f", {age} s ago"
        return (
            f"cluster {current.operation} of process {current.pid} holds the lock {current.lock_id} "
            f"since {current.created_at}{since}; if it is dead, try again in {limits.CLUSTER_LOCK_STALE_S:.0f} s, "
            f"or at once after: omnigraph cluster force-unlock {current.lock_id}"
        )

    def to_observation(self, current: LockRecord) -> dict[str, Any]:
        """Who holds it, for programs."""
        found: dict[str, Any] = {
            "lock_id": current.lock_id,
            "lock_operation": current.operation,
            "lock_created_at": current.created_at,
            "lock_pid": current.pid,
        }
        age = timestamps.age_s(self._clock, current.created_at)
        return found if age is None else {**found, "lock_age_seconds": age}
