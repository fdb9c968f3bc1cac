"""Jobs on Spark: run to their end, watched, cancelled when nobody waits any more, and their faults in words."""

from collections.abc import Callable
from typing import Any, Protocol

from pyspark import RDD, SparkContext

from omnigraph.errors import GraphError, LimitError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.pipeline.jobs import job_group, reason_in
from omnigraph.pipeline.load.how_far import LoadProgress
from omnigraph.pipeline.load.request import LoadRequest
from omnigraph.pipeline.load.watching import watched

_FULL = ("No space left on device", "os error 28", "Disk quota exceeded", "File too large")


class Collects(Protocol):
    """Work whose outcome can be collected, as an RDD's can."""

    def collect(self) -> list[Any]:
        """All of it, here."""
        ...


class Kept:
    """Work that Spark was told to keep, worked out.

    A job on top of work that is not kept yet needs two Python processes for every task, one above the other, and each
    new one has to import everything first. Counting in Java needs one.
    """

    def __init__(self, work: "RDD[Any]") -> None:
        self._work = work

    def collect(self) -> list[Any]:
        """Nothing comes here: how many batches there are."""
        return [self._work._jrdd.count()]


class Jobs:
    """The jobs of one load."""

    def __init__(self, context: SparkContext, request: LoadRequest, ids: IdSource) -> None:
        self.context = context
        self._request = request
        self._ids = ids

    def run(self, stage: str, work: Collects, *, rows: Callable[[], int] | None = None) -> list[Any]:
        """Run a job to its end; one that is not waited for any more is cancelled.

        Args:
            stage (str): what it does, in one word.
            work (Collects): what to collect.
            rows (Callable[[], int] | None): how many records there are so far.

        Returns:
            list[Any]: what came of it, once for each task.

        Raises:
            UnavailableError: it failed.
            LimitError: a disk is full.
        """
        total = LoadProgress(stage, bytes_total=self._request.bytes)
        with (
            job_group(self.context, self._ids, what=f"load: {stage}", fault=spark_fault) as group,
            watched(self._request.watch, total, self.context, group, rows),
        ):
            return work.collect()


def spark_fault(said: str) -> GraphError:
    """What to say when a job failed.

    Args:
        said (str): what Spark says.

    Returns:
        GraphError: what it means, and what to do.
    """
    return fault_of(said) or UnavailableError(
        f"Spark could not finish the load, so nothing was loaded; load again: {reason_in(said)}",
        code="spark_job_failed",
    )


def fault_of(said: str) -> GraphError | None:
    """What a fault means that is not the load's own; None for one that is not known.

    Args:
        said (str): what the system says.

    Returns:
        GraphError | None: what it means, and what to do.
    """
    if not any(words in said for words in _FULL):
        return None
    return LimitError(
        "the disk is full, so nothing was loaded: make room where the graph is and where Spark keeps its temporary "
        "files (spark.local.dir), then load again",
        code="disk_full",
    )
