"""Faults that happen at a chosen request, to whatever store they are given to."""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from omnigraph.failpoints import Crash
from omnigraph.storage.object_store import OutcomeUnknown, StoreRefused, StoreTransient
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T


class Fault(StrEnum):
    """What happens to the chosen request."""

    FAIL_BEFORE = "fail_before"
    """It fails transiently and was not done."""
    FAIL_AFTER = "fail_after"
    """It fails transiently and was done all the same."""
    LOSE_ANSWER = "lose_answer"
    """It was done, and the caller is told that nobody knows."""
    LOSE_REQUEST = "lose_request"
    """It was not done, and the caller is told that nobody knows."""
    CRASH_BEFORE = "crash_before"
    """The caller dies, and it was not done."""
    CRASH_AFTER = "crash_after"
    """It was done, and the caller dies before it learns of it."""
    NO_SPACE = "no_space"
    """It is refused for good, as on a full disk."""
    STALL = "stall"
    """It waits until the fault is released, then goes on as if nothing had been."""


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
        """Whether a request is one of those counted.

        Args:
            kind (RequestKind): of the request.
            path (str): of the request.

        Returns:
            bool: regardless of how many have been seen.
        """
        of_kind = kind in DURABLE_REQUESTS if self.kind is None else kind is self.kind
        return of_kind and self.path_part in path


class Faults:
    """What is armed. Several stores can share one, and then count their requests together."""

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
            fault (Fault): what shall happen.
            at (int): at which matching request from now on, counted from 1.
            times (int): to how many matching requests in a row.
            kind (RequestKind | None): which kind of request; None for any that changes what a reader finds.
            path_part (str): only requests about paths that contain this.

        Returns:
            ArmedFault: to wait for it, or to release a stall.
        """
        armed = ArmedFault(fault, at, times, kind, path_part)
        with self._lock:
            self._armed = (*self._armed, armed)
        return armed

    def disarm(self) -> None:
        """Let everything pass again, stalled requests included."""
        with self._lock:
            armed, self._armed = self._armed, ()
        for each in armed:
            each.released.set()

    def happened(self) -> Counter[Fault]:
        """How often each fault has happened.

        Returns:
            Counter[Fault]: a copy.
        """
        with self._lock:
            return Counter(self._happened)

    def around(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        """Send a request, unless a fault is armed for it.

        Args:
            kind (RequestKind): of the request.
            path (str): of the request.
            send (Callable[[], T]): does it.

        Returns:
            T: the answer.
        """
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
        """Count the request for every armed fault; the first one it sets off."""
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
