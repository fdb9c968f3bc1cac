"""Stores that fail where a test says."""

from collections.abc import Callable, Sequence

from omnigraph.storage.external_store import ExternalEntry, ExternalStore
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import RequestKind, T
from omnigraph.testing.faults import ArmedFault, Fault, Faults
from omnigraph.testing.paging import PagingStore


class FaultyStore(PagingStore):
    """Passes requests on until one is reached for which a fault is armed."""

    def __init__(self, inner: ObjectStore, faults: Faults | None = None) -> None:
        """A store before `inner`.

        Args:
            inner (ObjectStore): does the work.
            faults (Faults | None): shared with other stores; by default its own.
        """
        super().__init__(inner)
        self._faults = faults or Faults()

    @property
    def faults(self) -> Faults:
        """What is armed."""
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
        """Delete objects, one after the other: a fault may be armed for any of them."""
        for path in paths:
            self.delete(path)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        return self._faults.around(kind, path, send)


class FaultyExternalStore:
    """Passes requests on until one is reached for which a fault is armed; a `replace` counts as a put."""

    def __init__(self, inner: ExternalStore, faults: Faults | None = None) -> None:
        """A store before `inner`.

        Args:
            inner (ExternalStore): does the work.
            faults (Faults | None): shared with other stores; by default its own.
        """
        self._inner = inner
        self._faults = faults or Faults()

    @property
    def faults(self) -> Faults:
        """What is armed."""
        return self._faults

    def get(self, root: str, path: str) -> ExternalEntry | None:
        """The entry of an object, or None."""
        return self._faults.around(RequestKind.GET, path, lambda: self._inner.get(root, path))

    def put_if_absent(self, root: str, path: str, staged: str) -> None:
        """Create an entry that names a staged object; of several writers exactly one succeeds."""
        self._faults.around(RequestKind.PUT_IF_ABSENT, path, lambda: self._inner.put_if_absent(root, path, staged))

    def replace(self, root: str, path: str, *, expected: str, location: str) -> bool:
        """Let an entry name another location, if it still names the expected one; whether it did."""
        return self._faults.around(
            RequestKind.PUT, path, lambda: self._inner.replace(root, path, expected=expected, location=location)
        )

    def unfinished(self, root: str, prefix: str) -> Sequence[ExternalEntry]:
        """The entries below a folder that still name a staged object, in order of their paths."""
        return self._faults.around(RequestKind.LIST, prefix, lambda: self._inner.unfinished(root, prefix))

    def delete(self, root: str, path: str, *, expected: str | None = None) -> ExternalEntry | None:
        """Remove an entry, if given only while it names the expected location; the entry that was removed."""
        return self._faults.around(RequestKind.DELETE, path, lambda: self._inner.delete(root, path, expected=expected))

    def delete_prefix(self, root: str, prefix: str) -> None:
        """Remove every entry below a folder."""
        self._faults.around(RequestKind.DELETE_PREFIX, prefix, lambda: self._inner.delete_prefix(root, prefix))

    def close(self) -> None:
        """Give back what the store holds open."""
        self._inner.close()
