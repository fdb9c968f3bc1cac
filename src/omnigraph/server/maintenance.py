"""Background maintenance of the served graphs."""

import logging
import threading

from omnigraph import limits
from omnigraph.api.maintenance import Maintenance, MaintenanceReport
from omnigraph.errors import GraphError
from omnigraph.server import metrics
from omnigraph.server.graphs import Graphs, ServedGraph
from omnigraph.server.logs import log
from omnigraph.server.settings import ServerSettings

_STOP_S = 30.0


class MaintenanceThreads:
    """One thread per graph that optimizes, prunes, sweeps and verifies it at an interval."""

    def __init__(self, graphs: Graphs, *, every_s: float, policy: Maintenance) -> None:
        self._every_s = every_s
        self.policy = policy
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._run, args=(served,), name=f"maintenance-{served.id}", daemon=True)
            for served in graphs
            if not served.graph.read_only
        ]

    def start(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stop after the current step; the next server continues."""
        self._stop.set()
        for thread in self._threads:
            thread.join(_STOP_S)

    def _run(self, served: ServedGraph) -> None:
        try:
            for report in served.graph.maintain(self._every_s, self.policy, stop=self._stop):
                record_pass(served.id, report)
        except GraphError as ended:
            if not self._stop.is_set():
                log("maintenance ended", level=logging.ERROR, graph=served.id, reason=str(ended))


def record_pass(graph_id: str, report: MaintenanceReport) -> None:
    """Add the results of a maintenance pass to metrics and log."""
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


def create_maintenance(settings: ServerSettings, graphs: Graphs) -> MaintenanceThreads:
    """Create the maintenance threads; none if maintenance is off or another process does it."""
    if settings.maintain_every_s is None or settings.is_worker:
        graphs = Graphs({}, authority=graphs.authority)
    policy = Maintenance(
        keep=settings.maintain_keep,
        older_than=settings.maintain_older_than_s,
        verify=settings.maintain_verify != "none",
        verify_reads_max=None if settings.maintain_verify == "all" else limits.MAINTAIN_VERIFY_READS_MAX,
        seconds_max=settings.maintain_s_max,
        bytes_max=settings.maintain_bytes_max,
    )
    return MaintenanceThreads(graphs, every_s=settings.maintain_every_s or 0.0, policy=policy)
