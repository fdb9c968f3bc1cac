"""The base of the testing stores: a listing is as many requests as it has pages."""

from collections.abc import Iterator

from omnigraph import limits
from omnigraph.storage.object_store import Listed
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind


class PagingStore(ForwardingStore):
    """Passes every page of a listing through `_forward`, as a remote store would ask for it."""

    def list(self, prefix: str, *, limit: int | None = None) -> Iterator[Listed]:
        """The objects below a folder, recursively, in order of their paths."""
        # Asked for at once, so that a wrong prefix is refused here and not where somebody reads the answer.
        return self._paged(self._inner.list(prefix, limit=limit), prefix)

    def _paged(self, found: Iterator[Listed], prefix: str) -> Iterator[Listed]:
        listed = self._forward(RequestKind.LIST, prefix, lambda: next(found, None))
        given = 0
        while listed is not None:
            yield listed
            given += 1
            listed = next(found, None)
            if listed is not None and given % limits.STORE_LIST_PAGE_KEYS_MAX == 0:
                self._forward(RequestKind.LIST, prefix, lambda: None)
