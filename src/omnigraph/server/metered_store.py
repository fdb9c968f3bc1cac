"""A store that tells how often it is asked, how long it takes, and what that means for writers."""

from collections.abc import Callable

from omnigraph.clock import Clock
from omnigraph.server import metrics
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T


class MeteredStore(ForwardingStore):
    """Counts requests and passes them on. A log entry that is put is a commit; one that is taken, a lost race."""

    def __init__(self, inner: ObjectStore, graph_id: str, clock: Clock) -> None:
        super().__init__(inner)
        self._graph = graph_id
        self._clock = clock

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        began = self._clock.monotonic()
        outcome = "ok"
        try:
            return send()
        except ObjectNotFound:
            outcome = "absent"
            raise
        except ObjectExists:
            outcome = "taken"
            raise
        except StoreError:
            outcome = "failed"
            raise
        finally:
            metrics.STORE_REQUESTS.labels(self._graph, kind.value, outcome).inc()
            metrics.STORE_SECONDS.labels(self._graph, kind.value).observe(self._clock.monotonic() - began)
            self._note(kind, path, outcome)

    def _note(self, kind: RequestKind, path: str, outcome: str) -> None:
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(paths.LOGS):
            if outcome == "ok":
                metrics.COMMITS.labels(self._graph).inc()
            elif outcome == "taken":
                metrics.REBASES.labels(self._graph).inc()
        elif path.startswith(paths.RECOVERY) and outcome == "ok":
            if kind in (RequestKind.PUT, RequestKind.PUT_IF_ABSENT):
                metrics.INTENTS_NOTED.labels(self._graph).inc()
            elif kind in (RequestKind.DELETE, RequestKind.DELETE_PREFIX):
                metrics.INTENTS_CLEARED.labels(self._graph).inc()
