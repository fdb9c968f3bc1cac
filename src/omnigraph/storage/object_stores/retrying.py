"""Trying again, a bounded number of times, what was certainly not done or does no harm when done twice."""

from collections.abc import Callable, Iterator

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock, backoff_s
from omnigraph.storage.object_store import Listed, ObjectStore, StoreTransient
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T


class RetryingStore(ForwardingStore):
    """Repeats requests that failed transiently.

    A conditional put whose answer was lost is OutcomeUnknown, not transient, and so is never sent twice: the second
    could be refused because of the first.
    """

    def __init__(
        self, inner: ObjectStore, *, attempts: int = limits.STORE_RETRY_ATTEMPTS_MAX, clock: Clock | None = None
    ) -> None:
        super().__init__(inner)
        self._attempts = attempts
        self._clock = clock or SystemClock()

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder; a listing that breaks off is taken up again behind the last object it gave."""
        # Asked for at once, so that a wrong prefix is refused here and not where somebody reads the answer.
        return self._resumed(super().list(prefix, limit=limit), prefix, limit)

    def _resumed(self, found: Iterator[Listed], prefix: str, limit: int | None) -> Iterator[Listed]:
        last: str | None = None
        given = 0
        attempt = 1
        while True:
            try:
                for listed in found:
                    if last is not None and listed.path <= last:
                        continue
                    yield listed
                    last, given, attempt = listed.path, given + 1, 1
                    if given == limit:
                        return
            except StoreTransient:
                if attempt == self._attempts:
                    raise
            else:
                return
            self._wait(attempt)
            attempt += 1
            # What was given already comes again and is skipped, so the limit cannot be passed on.
            found = super().list(prefix, limit=limit if last is None else None)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:  # noqa: ARG002  (the port's signature; this one does not need it)
        attempt = 1
        while True:
            try:
                return send()
            except StoreTransient:
                if attempt == self._attempts:
                    raise
            self._wait(attempt)
            attempt += 1

    def _wait(self, attempt: int) -> None:
        self._clock.sleep(
            backoff_s(attempt, first_ms=limits.STORE_RETRY_BACKOFF_MS_MIN, most_ms=limits.STORE_RETRY_BACKOFF_MS_MAX)
        )
