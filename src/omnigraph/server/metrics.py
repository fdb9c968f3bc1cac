"""What can be counted from outside, as Prometheus reads it.

With several workers each keeps its numbers in files of a common folder (`PROMETHEUS_MULTIPROC_DIR`), and whichever
worker is asked answers for all of them. The library decides that when it is imported.
"""

import os
from collections.abc import Collection, Iterator

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

from omnigraph.server.graphs import Graphs

SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"
CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)

REQUESTS = Counter("omnigraph_requests", "Requests answered.", ["method", "route", "status"])
REQUEST_SECONDS = Histogram(
    "omnigraph_request_seconds", "From a request's first byte to its answer's last.", ["route"], buckets=_SECONDS
)
UNDER_WAY = Gauge("omnigraph_requests_under_way", "Requests being answered.", multiprocess_mode="livesum")
COMMITS = Counter("omnigraph_commits", "Log entries published, those of upkeep included.", ["graph"])
REBASES = Counter(
    "omnigraph_rebases",
    "Entries that another writer had put first: the write was moved on top of it, run again, or refused.",
    ["graph"],
)
REDOS = Counter("omnigraph_redos", "Writes that ran again because what they had read was changed.", ["graph"])
CONFLICTS = Counter("omnigraph_conflicts", "Writes refused because of somebody else's change.", ["graph", "reason"])
INTENTS_NOTED = Counter("omnigraph_intents_noted", "Parts of intents written before large writes.", ["graph"])
INTENTS_CLEARED = Counter("omnigraph_intents_cleared", "Intents cleared after large writes.", ["graph"])
STORE_REQUESTS = Counter("omnigraph_store_requests", "Requests to the object store.", ["graph", "kind", "outcome"])
STORE_SECONDS = Histogram(
    "omnigraph_store_request_seconds", "How long the object store took.", ["graph", "kind"], buckets=_SECONDS
)
CACHE_BYTES = Gauge("omnigraph_cache_bytes", "Bytes kept for reads.", ["graph"], multiprocess_mode="livesum")
CACHE_HITS = Gauge("omnigraph_cache_hits", "Values found in memory.", ["graph"], multiprocess_mode="livesum")
CACHE_MISSES = Gauge("omnigraph_cache_misses", "Values read anew.", ["graph"], multiprocess_mode="livesum")
CACHE_EVICTIONS = Gauge("omnigraph_cache_evictions", "Values that had to go.", ["graph"], multiprocess_mode="livesum")
MAINTENANCE = Counter("omnigraph_maintenance_passes", "Passes of maintenance.", ["graph"])
MAINTENANCE_FAILURES = Counter("omnigraph_maintenance_failures", "Steps that could not be done.", ["graph"])
MAINTENANCE_VERIFIED = Counter("omnigraph_maintenance_verified_files", "Files found whole or damaged.", ["graph"])
MAINTENANCE_DAMAGED = Counter("omnigraph_maintenance_damaged", "Things found damaged.", ["graph"])
SWEPT_FILES = Counter("omnigraph_swept_files", "Files deleted by sweeps.", ["graph"])
SWEPT_BYTES = Counter("omnigraph_swept_bytes", "Bytes given back by sweeps.", ["graph"])


class _Shown:
    """Numbers without those of graphs that are not to be named."""

    def __init__(self, registry: CollectorRegistry, graphs: Collection[str]) -> None:
        self._registry = registry
        self._graphs = graphs

    def collect(self) -> Iterator[Metric]:
        """Every family of numbers, as far as it is shown."""
        for family in self._registry.collect():
            family.samples = [each for each in family.samples if each.labels.get("graph", "") in self._graphs]
            yield family


def exposition(graphs: Graphs, named: Collection[str]) -> bytes:
    """Numbers as Prometheus reads them.

    Args:
        graphs (Graphs): what is served; their caches are looked at now.
        named (Collection[str]): the ids of those graphs whose numbers are shown, beside those of the process.

    Returns:
        bytes: the text.
    """
    for served in graphs:
        cache = served.graph.stats().cache
        CACHE_BYTES.labels(served.id).set(cache.bytes)
        CACHE_HITS.labels(served.id).set(cache.hits)
        CACHE_MISSES.labels(served.id).set(cache.misses)
        CACHE_EVICTIONS.labels(served.id).set(cache.evictions)
    registry = REGISTRY
    if SHARED_FOLDER in os.environ:
        registry = CollectorRegistry()
        MultiProcessCollector(registry)  # type: ignore[no-untyped-call]  # the library leaves it so
    return generate_latest(_Shown(registry, {"", *named}))
