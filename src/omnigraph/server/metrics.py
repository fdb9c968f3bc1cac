"""Prometheus metrics, and an object store that records them.

Several workers keep their metrics in files of a common folder (`PROMETHEUS_MULTIPROC_DIR`), and any of them can report
all. The library reads that variable when it is imported.
"""

import os
from collections.abc import Callable, Collection, Iterator
from functools import lru_cache

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    REGISTRY,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

from omnigraph.clock import Clock
from omnigraph.server.graphs import Graphs
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectExists, ObjectNotFound, ObjectStore, StoreError
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

REQUESTS = Counter("omnigraph_requests", "Requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "omnigraph_request_seconds",
    "Time from the first byte of a request to the last byte of its response.",
    ["route"],
    buckets=_SECONDS,
)
IN_FLIGHT = Gauge("omnigraph_requests_under_way", "Requests in flight.", multiprocess_mode="livesum")
COMMITS = Counter("omnigraph_commits", "Log entries published, maintenance included.", ["graph"])
REBASES = Counter(
    "omnigraph_rebases",
    "Lost races for a log entry: the write was rebased, retried or refused.",
    ["graph"],
)
RETRIES = Counter("omnigraph_redos", "Retries of writes whose read set had changed.", ["graph"])
CONFLICTS = Counter("omnigraph_conflicts", "Writes refused because of a conflicting change.", ["graph", "reason"])
INTENTS_NOTED = Counter("omnigraph_intents_noted", "Intent files written before large writes.", ["graph"])
INTENTS_CLEARED = Counter("omnigraph_intents_cleared", "Intents cleared after large writes.", ["graph"])
STORE_REQUESTS = Counter("omnigraph_store_requests", "Requests to the object store.", ["graph", "kind", "outcome"])
STORE_SECONDS = Histogram(
    "omnigraph_store_request_seconds", "Duration of requests to the object store.", ["graph", "kind"], buckets=_SECONDS
)
CACHE_BYTES = Gauge("omnigraph_cache_bytes", "Bytes cached for reads.", ["graph"], multiprocess_mode="livesum")
CACHE_HITS = Gauge("omnigraph_cache_hits", "Cache hits.", ["graph"], multiprocess_mode="livesum")
CACHE_MISSES = Gauge("omnigraph_cache_misses", "Cache misses.", ["graph"], multiprocess_mode="livesum")
CACHE_EVICTIONS = Gauge("omnigraph_cache_evictions", "Cache evictions.", ["graph"], multiprocess_mode="livesum")
MAINTENANCE = Counter("omnigraph_maintenance_passes", "Maintenance passes.", ["graph"])
MAINTENANCE_FAILURES = Counter("omnigraph_maintenance_failures", "Maintenance steps that failed.", ["graph"])
MAINTENANCE_VERIFIED = Counter("omnigraph_maintenance_verified_files", "Files verified.", ["graph"])
MAINTENANCE_DAMAGED = Counter("omnigraph_maintenance_damaged", "Damaged items found.", ["graph"])
SWEPT_FILES = Counter("omnigraph_swept_files", "Files deleted by sweeps.", ["graph"])
SWEPT_BYTES = Counter("omnigraph_swept_bytes", "Bytes freed by sweeps.", ["graph"])


class _VisibleMetrics:
    """Metrics without those of graphs that the caller may not know of."""

    def __init__(self, registry: CollectorRegistry, graphs: Collection[str]) -> None:
        self._registry = registry
        self._graphs = graphs

    def collect(self) -> Iterator[Metric]:
        """Yield every metric family with its visible samples."""
        for family in self._registry.collect():
            family.samples = [sample for sample in family.samples if sample.labels.get("graph", "") in self._graphs]
            yield family


def render(graphs: Graphs, visible: Collection[str]) -> bytes:
    """Return the metrics of the process and of the visible graphs in Prometheus' text format."""
    for served in graphs:
        cache = served.graph.stats().cache
        CACHE_BYTES.labels(served.id).set(cache.bytes)
        CACHE_HITS.labels(served.id).set(cache.hits)
        CACHE_MISSES.labels(served.id).set(cache.misses)
        CACHE_EVICTIONS.labels(served.id).set(cache.evictions)
    registry = REGISTRY
    if SHARED_FOLDER in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library has no types
    return generate_latest(_VisibleMetrics(registry, {"", *visible}))


def count_request(method: str, route: str, status: int, seconds: float) -> None:
    """Count a request that was answered."""
    count, duration = _request_series(method, route, status)
    count.inc()
    duration.observe(seconds)


@lru_cache(maxsize=2_048)
def _request_series(method: str, route: str, status: int) -> tuple[Counter, Histogram]:
    return REQUESTS.labels(method, route, str(status)), REQUEST_SECONDS.labels(route)


class MeteredStore(ForwardingStore):
    """Count and time requests to the inner store. A new log entry is a commit; an existing one, a lost race."""

    def __init__(self, inner: ObjectStore, graph_id: str, clock: Clock) -> None:
        super().__init__(inner)
        self._graph = graph_id
        self._clock = clock
        # Found once: `labels` takes as long as a look into a cached log.
        self._series: dict[tuple[RequestKind, str], tuple[Counter, Histogram]] = {}

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        start = self._clock.monotonic()
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
            series = self._series.get((kind, outcome))
            if series is None:
                count = STORE_REQUESTS.labels(self._graph, kind.value, outcome)
                series = self._series[kind, outcome] = (count, STORE_SECONDS.labels(self._graph, kind.value))
            series[0].inc()
            series[1].observe(self._clock.monotonic() - start)
            self._count_commits_and_intents(kind, path, outcome)

    def _count_commits_and_intents(self, kind: RequestKind, path: str, outcome: str) -> None:
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(paths.LOGS):
            if outcome == "ok":
                COMMITS.labels(self._graph).inc()
            elif outcome == "taken":
                REBASES.labels(self._graph).inc()
        elif path.startswith(paths.RECOVERY) and outcome == "ok":
            if kind in (RequestKind.PUT, RequestKind.PUT_IF_ABSENT):
                INTENTS_NOTED.labels(self._graph).inc()
            elif kind in (RequestKind.DELETE, RequestKind.DELETE_PREFIX):
                INTENTS_CLEARED.labels(self._graph).inc()
