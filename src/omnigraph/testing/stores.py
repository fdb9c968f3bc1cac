"""Object stores that count, delay or fail requests before they pass them on."""

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock
from omnigraph.storage.external_store import ExternalEntry, ExternalStore
from omnigraph.storage.object_store import Listed, ObjectStore
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, ForwardingStore, RequestKind, T
from omnigraph.testing.faults import ArmedFault, Fault, Faults


class PagingStore(ForwardingStore):
    """Base of the stores below: one request per page of a listing, as a remote store would answer it."""

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """List the objects below a folder, recursively, in order of their paths."""
        # Called at once, so that a wrong prefix is refused here and not where the result is read.
        return self._paged(self._inner.list(prefix, limit=limit), prefix)

    def _paged(self, found: Iterator[Listed], prefix: str) -> Iterator[Listed]:
        listed = self._forward(RequestKind.LIST, prefix, lambda: next(found, None))
        count = 0
        while listed is not None:
            yield listed
            count += 1
            listed = next(found, None)
            if listed is not None and count % limits.STORE_LIST_PAGE_KEYS_MAX == 0:
                self._forward(RequestKind.LIST, prefix, lambda: None)


class CountingStore(PagingStore):
    """Counts every request by kind, whether it succeeds or not. Listings count by pages, not by objects."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._counts: Counter[RequestKind] = Counter()
        self._paths: list[tuple[RequestKind, str]] = []

    def counts(self) -> Counter[RequestKind]:
        """Return a copy of the counts since the last reset."""
        with self._lock:
            return Counter(self._counts)

    @property
    def total(self) -> int:
        """The number of requests of any kind since the last reset."""
        return self.counts().total()

    @property
    def durable(self) -> int:
        """The number of requests since the last reset that change what a reader finds."""
        return sum(count for kind, count in self.counts().items() if kind in DURABLE_REQUESTS)

    def requests(self) -> tuple[tuple[RequestKind, str], ...]:
        """Return every request since the last reset with its path, in order of arrival."""
        with self._lock:
            return tuple(self._paths)

    def reset(self) -> Counter[RequestKind]:
        """Start again from zero and return what had been counted."""
        with self._lock:
            counted, self._counts = self._counts, Counter()
            self._paths = []
            return counted

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        with self._lock:
            self._counts[kind] += 1
            self._paths.append((kind, path))
        return send()


class DelayingStore(PagingStore):
    """Waits before every request, like a store that is far away."""

    def __init__(
        self,
        inner: ObjectStore,
        *,
        seconds: float = 0.0,
        by_kind: Mapping[RequestKind, float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """Wrap a store.

        Args:
            inner: does the work.
            seconds: added to every request.
            by_kind: used instead of `seconds` for some kinds of requests.
            clock: does the waiting; a `ManualClock` waits in no time.
        """
        super().__init__(inner)
        self._seconds = seconds
        self._by_kind = dict(by_kind or {})
        self._clock = clock or SystemClock()

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:  # noqa: ARG002  (the port's signature)
        self._clock.sleep(self._by_kind.get(kind, self._seconds))
        return send()


class FaultyStore(PagingStore):
    """Passes requests on until one matches an armed fault."""

    def __init__(self, inner: ObjectStore, faults: Faults | None = None) -> None:
        """Wrap a store.

        Args:
            inner: does the work.
            faults: several stores that share one count their requests together; by default each has its own.
        """
        super().__init__(inner)
        self._faults = faults or Faults()

    @property
    def faults(self) -> Faults:
        """The armed faults."""
        return self._faults

    def arm(
        self, fault: Fault, *, at: int = 1, times: int = 1, kind: RequestKind | None = None, path_part: str = ""
    ) -> ArmedFault:
        """Let a future request fail; see `Faults.arm`."""
        return self._faults.arm(fault, at=at, times=times, kind=kind, path_part=path_part)

    def disarm(self) -> None:
        """Let everything pass again, stalled requests included."""
        self._faults.disarm()

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects one by one, so that a fault can hit any of them."""
        for path in paths:
            self.delete(path)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        return self._faults.around(kind, path, send)


class FaultyExternalStore:
    """The same for external stores; a `replace` counts as a put."""

    def __init__(self, inner: ExternalStore, faults: Faults | None = None) -> None:
        """Wrap an external store; arguments as of `FaultyStore`."""
        self._inner = inner
        self._faults = faults or Faults()

    @property
    def faults(self) -> Faults:
        """The armed faults."""
        return self._faults

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """Return the entry of an object, or None."""
        return self._faults.around(RequestKind.GET, path, lambda: self._inner.get(root, path))

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object; of several writers exactly one succeeds."""
        self._faults.around(RequestKind.PUT_IF_ABSENT, path, lambda: self._inner.put_if_absent(root, path, staged))

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Point an entry to another location if it still names the expected one; return whether it did."""
        return self._faults.around(
            RequestKind.PUT, path, lambda: self._inner.replace(root, path, expected=expected, location=location)
        )

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """List the entries below a folder that still name a staged object, in order of their paths."""
        return self._faults.around(RequestKind.LIST, prefix, lambda: self._inner.unfinished(root, prefix))

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if given only while it names the expected location; return what was removed."""
        return self._faults.around(RequestKind.DELETE, path, lambda: self._inner.delete(root, path, expected=expected))

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        self._faults.around(RequestKind.DELETE_PREFIX, prefix, lambda: self._inner.delete_prefix(root, prefix))

    def close(self) -> None:
        """Release what the store holds open."""
        self._inner.close()
