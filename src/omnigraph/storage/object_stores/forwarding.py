"""Stores that wrap another one: forward every request, refuse writes, retry transient failures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

from omnigraph import limits
from omnigraph.clock import Clock, SystemClock, backoff_s
from omnigraph.storage.object_store import Listed, ObjectStore, StoreRefused, StoreTransient

T = TypeVar("T")


class RequestKind(StrEnum):
    """Kinds of store requests."""

    GET = "get"
    LIST = "list"
    PUT = "put"
    PUT_IF_ABSENT = "put_if_absent"
    COPY = "copy"
    DELETE = "delete"
    DELETE_PREFIX = "delete_prefix"
    MAKE_DURABLE = "make_durable"
    PROVE = "prove"


DURABLE_REQUESTS = frozenset(
    {RequestKind.PUT, RequestKind.PUT_IF_ABSENT, RequestKind.COPY, RequestKind.DELETE, RequestKind.DELETE_PREFIX}
)
"""The requests that change what a reader finds."""


class ForwardingStore:
    """Passes every request on. Subclasses say in `_forward` what happens around it, and in `_pages` around listings."""

    def __init__(self, inner: ObjectStore) -> None:
        self._inner = inner

    @property
    def uri(self) -> str:
        """Where the root is."""
        return self._inner.uri

    @property
    def is_fenced_outside(self) -> bool:
        """As the store behind this one."""
        return self._inner.is_fenced_outside

    def fence_id(self) -> str | None:
        """As the store behind this one."""
        return self._inner.fence_id()

    @property
    def is_near(self) -> bool:
        """As the store behind this one."""
        return self._inner.is_near

    @property
    def table_options(self) -> Mapping[str, str]:
        """With which options the table library opens the same place."""
        return self._inner.table_options

    def get(self, path: str) -> bytes:
        """The object's bytes."""
        return self._forward(RequestKind.GET, path, lambda: self._inner.get(path))

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        return self._forward(RequestKind.LIST, prefix, lambda: self._inner.list(prefix, limit=limit))

    def list_folders(self, prefix: str) -> Iterator[str]:
        """The names of the folders directly below `prefix`, in order."""
        return self._forward(RequestKind.LIST, prefix, lambda: iter(tuple(self._inner.list_folders(prefix))))

    def put(self, path: str, body: bytes) -> None:
        """Create or replace an object."""
        self._forward(RequestKind.PUT, path, lambda: self._inner.put(path, body))

    def put_if_absent(self, path: str, body: bytes) -> None:
        """Create an object; of several writers exactly one succeeds."""
        self._forward(RequestKind.PUT_IF_ABSENT, path, lambda: self._inner.put_if_absent(path, body))

    def copy(self, source: str, target: str) -> None:
        """Copy an object, replacing the target."""
        self._forward(RequestKind.COPY, target, lambda: self._inner.copy(source, target))

    def delete(self, path: str) -> None:
        """Delete an object; deleting what is not there is no error."""
        self._forward(RequestKind.DELETE, path, lambda: self._inner.delete(path))

    def delete_many(self, paths: Sequence[str]) -> None:
        """Delete objects in as few requests as the store allows."""
        if paths:
            self._forward(RequestKind.DELETE, paths[0], lambda: self._inner.delete_many(paths))

    def delete_prefix(self, prefix: str) -> None:
        """Delete every object below a folder, recursively; doing it twice is no error."""
        self._forward(RequestKind.DELETE_PREFIX, prefix, lambda: self._inner.delete_prefix(prefix))

    def leftovers(self, *, before_us: int, delete: bool) -> Sequence[Listed]:
        """Temporary files whose writers died; with `delete`, deleted."""
        kind = RequestKind.DELETE_PREFIX if delete else RequestKind.LIST
        return self._forward(kind, "", lambda: self._inner.leftovers(before_us=before_us, delete=delete))

    def identity(self, path: str) -> tuple[int, ...] | None:
        """As the store behind this one knows it; no request, so nothing happens around it."""
        return self._inner.identity(path)

    def make_durable(self, paths: Sequence[str]) -> None:
        """Return only when these files would survive losing power."""
        self._forward(RequestKind.MAKE_DURABLE, paths[0] if paths else "", lambda: self._inner.make_durable(paths))

    def sync_always(self) -> None:
        """As the store behind this one; no request."""
        self._inner.sync_always()

    def prove_put_if_absent(self) -> int:
        """Show that of two conditional puts of one path the second is refused; returns the store's time."""
        return self._forward(RequestKind.PROVE, "", self._inner.prove_put_if_absent)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:  # noqa: ARG002  (the port's signature; this one does not need it)
        return send()


_READS = frozenset({RequestKind.GET, RequestKind.LIST})


class ReadOnlyStore(ForwardingStore):
    """Passes reads on and refuses every write before it reaches the store."""

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind not in _READS:
            raise StoreRefused(f"cannot {kind.replace('_', ' ')} {path!r}: {self.uri} was opened read-only", path=path)
        return send()


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
