"""Maintenance of what is served, in the background, pass after pass."""

import logging
import threading

from omnigraph.api.maintenance import Maintenance, MaintenanceReport
from omnigraph.errors import GraphError
from omnigraph.server import metrics
from omnigraph.server.graphs import Graphs, ServedGraph
from omnigraph.server.logs import log

_STOP_S = 30.0


class Upkeep:
    """A thread per graph that optimizes, prunes, sweeps and verifies it every so often."""

    def __init__(self, graphs: Graphs, *, every_s: float, policy: Maintenance) -> None:
        self._every_s = every_s
        self.policy = policy
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(served,), name=f"upkeep-{served.id}", daemon=True)
            for served in graphs
            if not served.graph.read_only
        ]

    def start(self) -> None:
        """Begin."""
        for each in self._threads:
            each.start()

    def stop(self) -> None:
        """End after the pass under way; what it has done is done, and the rest is for the next server."""
        self._stop.set()
        for each in self._threads:
            each.join(_STOP_S)

    def _run(self, served: ServedGraph) -> None:
        try:
            for report in served.graph.maintain(self._every_s, self.policy, stop=self._stop):
                noted(served.id, report)
        except GraphError as ended:
            if not self._stop.is_set():
                log("maintenance ended", level=logging.ERROR, graph=served.id, reason=str(ended))


def noted(graph_id: str, report: MaintenanceReport) -> None:
    """Count and log what a pass did."""
    metrics.MAINTENANCE.labels(graph_id).inc()
    metrics.MAINTENANCE_FAILURES.labels(graph_id).inc(len(report.failures))
    if report.verified is not None:
        metrics.MAINTENANCE_VERIFIED.labels(graph_id).inc(report.verified.found.files)
        metrics.MAINTENANCE_DAMAGED.labels(graph_id).inc(report.damaged)
    swept = report.swept
    if swept is not None:
        metrics.SWEPT_FILES.labels(graph_id).inc(swept.deleted_files)
        metrics.SWEPT_BYTES.labels(graph_id).inc(swept.deleted_bytes)
    log(
        "maintained",
        level=logging.ERROR if report.damaged else logging.WARNING if report.failures else logging.INFO,
        graph=graph_id,
        seconds=round(report.seconds, 3),
        swept_files=0 if swept is None else swept.deleted_files,
        swept_bytes=0 if swept is None else swept.deleted_bytes,
        verified_files=0 if report.verified is None else report.verified.found.files,
        damaged=report.damaged,
        failures=report.failures,
        left=report.left,
    )
