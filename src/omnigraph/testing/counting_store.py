"""How many requests something takes."""

import threading
from collections import Counter
from collections.abc import Callable

from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS, RequestKind, T
from omnigraph.testing.paging import PagingStore


class CountingStore(PagingStore):
    """Counts every request by its kind, whether it succeeds or not. Listings count by pages, not by objects."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self._lock = threading.Lock()
        self._counts: Counter[RequestKind] = Counter()
        self._paths: list[tuple[RequestKind, str]] = []

    def counts(self) -> Counter[RequestKind]:
        """How many of each kind since the last reset.

        Returns:
            Counter[RequestKind]: a copy, equal to a plain dictionary that names the same kinds.
        """
        with self._lock:
            return Counter(self._counts)

    @property
    def total(self) -> int:
        """How many requests of any kind since the last reset."""
        return self.counts().total()

    @property
    def durable(self) -> int:
        """How many requests that change what a reader finds since the last reset."""
        return sum(count for kind, count in self.counts().items() if kind in DURABLE_REQUESTS)

    def requests(self) -> tuple[tuple[RequestKind, str], ...]:
        """Every request since the last reset with its path, in order of arrival.

        Returns:
            tuple[tuple[RequestKind, str], ...]: a copy.
        """
        with self._lock:
            return tuple(self._paths)

    def reset(self) -> Counter[RequestKind]:
        """Start again from zero.

        Returns:
            Counter[RequestKind]: what had been counted.
        """
        with self._lock:
            counted, self._counts = self._counts, Counter()
            self._paths = []
            return counted

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        with self._lock:
            self._counts[kind] += 1
            self._paths.append((kind, path))
        return send()
