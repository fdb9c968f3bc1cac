"""A store that is only looked at."""

from collections.abc import Callable

from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T

_READS = frozenset({RequestKind.GET, RequestKind.LIST})


class ReadOnlyStore(ForwardingStore):
    """Passes reads on and refuses every write before it reaches the store."""

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind not in _READS:
            raise StoreRefused(f"cannot {kind.replace('_', ' ')} {path!r}: {self.uri} was opened read-only", path=path)
        return send()
