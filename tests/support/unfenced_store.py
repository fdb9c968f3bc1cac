"""A store of the kind that needs an external one."""

from collections.abc import Callable

from omnigraph.storage.object_store import StoreRefused
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T


class UnfencedStore(ForwardingStore):
    """Passes everything on but conditional puts, which it does not have."""

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind in {RequestKind.PUT_IF_ABSENT, RequestKind.PROVE}:
            raise StoreRefused(f"{self.uri} has no conditional puts", path=path)
        return send()
