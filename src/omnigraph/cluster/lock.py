"""Who is at work on a cluster: it keeps people out of each other's way. What keeps the ledger right is a fence.

Nobody dead keeps it: its holder shows that it lives, and whoever comes after a death takes it over.
"""

import os
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any

from omnigraph import limits
from omnigraph.clock import Clock
from omnigraph.cluster import layout, moments, records
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.holders import Holders
from omnigraph.errors import GraphError
from omnigraph.ids import IdSource
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, OutcomeUnknown

_VERSION = 1
_REQUIRED = {"version": int, "lock_id": str, "operation": str, "created_at": str, "pid": int}


@dataclass(frozen=True, slots=True)
class Held:
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
        self._holders = Holders(store, clock=clock)

    def read(self) -> Held | None:
        """Who holds it.

        Raises:
            LockFaultError: it cannot be read.
        """
        return self._held(layout.LOCK)

    def _held(self, path: str) -> Held | None:
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
        return Held(**found)

    @property
    def path(self) -> str:
        """Where it lies."""
        return layout.storage_path(self._store.uri, layout.LOCK)

    def take(self, operation: str, said: Diagnostics | None = None) -> Held:
        """Take it; from somebody dead, too.

        Args:
            operation: what for.
            said: is told that it was taken from somebody.

        Raises:
            LockFaultError: somebody alive holds it, or the store refuses.
        """
        own = Held(self._ids.new(), operation, moments.now(self._clock), os.getpid())
        try:
            self._holders.enter(own.lock_id)
            self._put(own, said or Diagnostics())
        except BaseException as fault:
            if isinstance(fault, LockFaultError) and fault.code == "state_lock_held":
                self._holders.leave(own.lock_id)
            else:
                self._holders.abandon(own.lock_id)  # it may be ours for all we know: then the sign tells that we left
            if isinstance(fault, GraphError):
                raise LockFaultError("state_lock_error", f"the lock cannot be taken: {fault}") from fault
            raise
        self._holders.clear_away(asker=own.lock_id)
        return own

    def living(self, own: Held) -> AbstractContextManager[None]:
        """Show meanwhile that whoever holds it lives."""
        return self._holders.living(own.lock_id)

    def check(self, own: Held) -> None:
        """See that it is still ours: a process that stood still for long is taken for dead.

        Raises:
            LockFaultError: it is not, or cannot be read.
        """
        there = self.read()
        if there != own:
            now = "nobody holds it now" if there is None else f"the lock that is held is {there.lock_id}"
            message = f"the lock {own.lock_id} was taken away, so nothing more is done: {now}"
            raise LockFaultError("state_lock_id_mismatch", message)

    def _put(self, own: Held, said: Diagnostics) -> None:
        for _ in range(limits.CLUSTER_PUT_ATTEMPTS_MAX):
            try:
                self._store.put_if_absent(layout.LOCK, own.to_bytes())
            except ObjectExists:
                there = self.read()
                if there is None:
                    continue  # it was given back this moment
                if there == own:
                    return  # from a try whose answer was lost
                if not self._inherited(there, own, said):
                    raise LockFaultError("state_lock_held", self.told(there)) from None
            except OutcomeUnknown:
                continue
            else:
                return
        raise LockFaultError("state_lock_error", "the lock cannot be taken: the store gives no answer")

    def _inherited(self, there: Held, own: Held, said: Diagnostics) -> bool:
        """Take the lock away from somebody, if that one is dead. Of several who want to, one does.

        Whoever puts the claim to what a dead one had is its only heir. That one may die, too, and then has an heir of
        its own; a claim is taken away by nobody but whoever is the last in that line.
        """
        dead, claims = there, list[str]()
        while self._holders.is_dead(dead.lock_id, dead.created_at, asker=own.lock_id):
            claim = layout.inheritor(dead.lock_id)
            if claim in claims:
                self._store.delete(claim)  # two who were each taken for dead by the other: there is no last one
                return True
            claims.append(claim)
            try:
                self._store.put_if_absent(claim, own.to_bytes())
            except ObjectExists:
                other = self._held(claim)
                if other is None:
                    return True  # done with this moment: look again
                if other != own:
                    dead = other
                    continue
            # Only the one heir comes here, and looks again: the dead may have been buried meanwhile.
            if self.read() == there:
                self._store.delete(layout.LOCK)
                self._holders.leave(there.lock_id)
                message = f"cluster {there.operation} of process {there.pid} died with the lock {there.lock_id}"
                said.warning("state_lock_inherited", layout.LOCK, f"{message}; it was taken over")
            for each in claims:
                self._store.delete(each)
            return True
        return False

    def give_back(self, own: Held, said: Diagnostics) -> None:
        """Give it back, if it is still ours."""
        try:
            if self.read() == own:
                self._store.delete(layout.LOCK)
        except (LockFaultError, GraphError) as fault:
            message = (
                f"the lock {own.lock_id} could not be given back: {fault}; the next command takes it over, or run: "
                f"omnigraph cluster force-unlock {own.lock_id}"
            )
            said.warning("state_lock_error", layout.LOCK, message)
            self._holders.abandon(own.lock_id)
        else:
            self._holders.leave(own.lock_id)

    def break_open(self, lock_id: str) -> None:
        """Take it away from whoever holds it.

        Raises:
            LockFaultError: there is none, another one, or the store refuses.
        """
        there = self.read()
        if there is None:
            raise LockFaultError("state_lock_missing", "nobody holds the lock")
        if there.lock_id != lock_id:
            raise LockFaultError("state_lock_id_mismatch", f"the lock that is held is {there.lock_id}")
        try:
            self._store.delete(layout.LOCK)
        except GraphError as fault:
            raise LockFaultError("state_lock_error", f"the lock cannot be removed: {fault}") from fault
        self._holders.leave(lock_id)

    def told(self, there: Held) -> str:
        """Who holds it, for people, and what to do."""
        age = moments.age_s(self._clock, there.created_at)
        since = "" if age is None else f", {age} s ago"
        return (
            f"cluster {there.operation} of process {there.pid} holds the lock {there.lock_id} since {there.created_at}"
            f"{since}; if it is dead, try again in {limits.CLUSTER_LOCK_STALE_S:.0f} s, or at once after: "
            f"omnigraph cluster force-unlock {there.lock_id}"
        )

    def observed(self, there: Held) -> dict[str, Any]:
        """Who holds it, for programs."""
        found: dict[str, Any] = {
            "lock_id": there.lock_id,
            "lock_operation": there.operation,
            "lock_created_at": there.created_at,
            "lock_pid": there.pid,
        }
        age = moments.age_s(self._clock, there.created_at)
        return found if age is None else {**found, "lock_age_seconds": age}
