"""Faults that hit a chosen request of a store."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.failpoints import Crash
from omnigraph.storage.object_store import OutcomeUnknown, StoreRefused, StoreTransient
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T


class Fault(StrEnum):
    """What happens to a request that is hit."""

    FAIL_BEFORE = "fail_before"
    """Fails transiently; nothing was done."""
    FAIL_AFTER = "fail_after"
    """Fails transiently, although it was done."""
    LOSE_ANSWER = "lose_answer"
    """Done, but the caller gets `OutcomeUnknown`."""
    LOSE_REQUEST = "lose_request"
    """Not done, and the caller gets `OutcomeUnknown`."""
    CRASH_BEFORE = "crash_before"
    """The caller crashes before it is done."""
    CRASH_AFTER = "crash_after"
    """The caller crashes after it was done, before the answer arrives."""
    NO_SPACE = "no_space"
    """Refused for good, as on a full disk."""
    STALL = "stall"
    """Waits until the fault is released, then goes on."""


@dataclass(slots=True)
class ArmedFault:
    """One fault and the requests it hits.

    Attributes:
        fault: what happens.
        at: at which matching request from the arming on, counted from 1.
        times: how many matching requests in a row it hits.
        kind: requests of this kind match; None for every request that changes something.
        path_part: only paths that contain this match.
        seen: how many matching requests have arrived.
        hit: set when the fault has happened (or, for a stall, begun).
        released: set to let a stalled request go on.
    """

    fault: Fault
    at: int = 1
    times: int = 1
    kind: RequestKind | None = None
    path_part: str = ""
    seen: int = 0
    hit: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def matches(self, kind: RequestKind, path: str) -> bool:
        """Return True if a request is counted, however many have been seen."""
        of_kind = kind in DURABLE_REQUESTS if self.kind is None else kind is self.kind
        return of_kind and self.path_part in path


class Faults:
    """The armed faults of a store. Several stores can share them, and then count their requests together."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._armed: tuple[ArmedFault, ...] = ()
        self._happened: Counter[Fault] = Counter()

    def arm(
        self,
        fault: Fault,
        *,
        at: int = 1,
        times: int = 1,
        kind: RequestKind | None = None,
        path_part: str = "",
    ) -> ArmedFault:
        """Let a future request fail. Several faults can be armed; each counts for itself.

        Args:
            fault: what happens.
            at: hits the n-th matching request from now on, counted from 1.
            times: hits this many matching requests in a row.
            kind: matches requests of this kind; None matches every request that changes what a reader finds.
            path_part: matches only paths that contain it.

        Returns:
            To wait for the fault (`hit`), or to release a stall (`released`).
        """
        armed = ArmedFault(fault, at, times, kind, path_part)
        with self._lock:
            self._armed = (*self._armed, armed)
        return armed

    def disarm(self) -> None:
        """Let everything pass again, stalled requests included."""
        with self._lock:
            armed, self._armed = self._armed, ()
        for fault in armed:
            fault.released.set()

    def happened(self) -> Counter[Fault]:
        """Return how often each fault has happened."""
        with self._lock:
            return Counter(self._happened)

    def around(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send a request, unless a fault is armed for it."""
        armed = self._reached(kind, path)
        if armed is None:
            return send()
        where = f"injected at {kind} of {path!r}"
        match armed.fault:
            case Fault.FAIL_BEFORE:
                raise StoreTransient(f"failure {where}", path=path)
            case Fault.FAIL_AFTER:
                send()
                raise StoreTransient(f"failure {where}", path=path)
            case Fault.LOSE_ANSWER:
                send()
                raise OutcomeUnknown(f"lost answer {where}", path=path)
            case Fault.LOSE_REQUEST:
                raise OutcomeUnknown(f"lost request {where}", path=path)
            case Fault.CRASH_BEFORE:
                raise Crash(f"death {where}")
            case Fault.CRASH_AFTER:
                send()
                raise Crash(f"death {where}")
            case Fault.NO_SPACE:
                raise StoreRefused(f"no space left on device, {where}", path=path)
            case Fault.STALL:
                armed.released.wait()
                return send()

    def _reached(self, kind: RequestKind, path: str) -> ArmedFault | None:
        """Count the request for every armed fault, and return the first one that it sets off."""
        set_off: ArmedFault | None = None
        with self._lock:
            for armed in self._armed:
                if not armed.matches(kind, path):
                    continue
                armed.seen += 1
                if set_off is None and armed.at <= armed.seen < armed.at + armed.times:
                    set_off = armed
            if set_off is not None:
                self._happened[set_off.fault] += 1
        if set_off is not None:
            set_off.hit.set()
        return set_off
