"""Run the Spark jobs of a load: with progress, cancellation, and failures as one sentence."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.sql import DataFrame, SparkSession

from omnigraph import limits
from omnigraph.errors import GraphError, LimitError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.pipeline.jobs import job_group, reason_in
from omnigraph.pipeline.load.how_far import LoadProgress, Watch, ignore_progress
from omnigraph.pipeline.load.request import LoadRequest
from omnigraph.pipeline.session import TaskProgress

_FULL = ("No space left on device", "os error 28", "Disk quota exceeded", "File too large")
# Raised by a question to a session that was stopped meanwhile.
_GONE = (Py4JError, OSError, AttributeError)


class Jobs:
    """The jobs of one load."""

    def __init__(self, session: SparkSession, request: LoadRequest, ids: IdSource) -> None:
        self.session = session
        self._request = request
        self._ids = ids

    def run(self, stage: str, frame: DataFrame) -> pa.Table:
        """Return the rows of a frame.

        Raises:
            UnavailableError: the job failed.
            LimitError: a disk is full.
        """
        started = LoadProgress(stage, bytes_total=self._request.bytes)
        with (
            job_group(self.session, self._ids, what=f"load: {stage}", fault=spark_fault) as tag,
            _reported(self._request.watch, started, self.session, tag),
        ):
            return frame.toArrow()


@contextmanager
def _reported(watch: Watch, started: LoadProgress, session: SparkSession, tag: str) -> Iterator[None]:
    """Report the share of completed tasks until the block ends."""
    if watch is ignore_progress:
        yield
        return
    over, tasks = threading.Event(), TaskProgress(session, tag)

    def report() -> None:
        while not over.wait(limits.LOAD_PROGRESS_S):
            try:
                share = tasks.share()
            except _GONE:
                return  # the session was stopped, by Ctrl-C for one; the job itself fails with it
            watch(replace(started, bytes=int(started.bytes_total * share)))

    watch(started)
    reporter = threading.Thread(target=report, name="load-progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        over.set()
        reporter.join()
        tasks.close()
    watch(replace(started, bytes=started.bytes_total))


def spark_fault(message: str) -> GraphError:
    """Return the error for a job that failed with a message of Spark."""
    return fault_of(message) or UnavailableError(
        f"Spark could not finish the load, so nothing was loaded; load again: {reason_in(message)}",
        code="spark_job_failed",
    )


def fault_of(message: str) -> GraphError | None:
    """Return the error for a full disk; None if the message is about something else."""
    if not any(words in message for words in _FULL):
        return None
    return LimitError(
        "the disk is full, so nothing was loaded: make room where the graph is and where Spark keeps its temporary "
        "files (spark.local.dir), then load again",
        code="disk_full",
    )
