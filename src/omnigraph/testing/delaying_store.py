"""A store that is far away."""

from collections.abc import Callable, Mapping

from omnigraph.clock import Clock, SystemClock
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import RequestKind, T
from omnigraph.testing.paging import PagingStore


class DelayingStore(PagingStore):
    """Waits before every request, as long as its kind takes."""

    def __init__(
        self,
        inner: ObjectStore,
        *,
        seconds: float = 0.0,
        by_kind: Mapping[RequestKind, float] | None = None,
        clock: Clock | None = None,
    ) -> None:
        """A store before `inner`.

        Args:
            inner (ObjectStore): does the work.
            seconds (float): how long a request takes on top.
            by_kind (Mapping[RequestKind, float] | None): other times for some kinds.
            clock (Clock | None): does the waiting.
        """
        super().__init__(inner)
        self._seconds = seconds
        self._by_kind = dict(by_kind or {})
        self._clock = clock or SystemClock()

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:  # noqa: ARG002  (the port's signature; this one does not need it)
        self._clock.sleep(self._by_kind.get(kind, self._seconds))
        return send()
