"""Jobs on Spark: run to their end, watched, cancelled when nobody waits any more, and their faults in words."""

import re
from collections.abc import Callable
from typing import Any, Protocol

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import RDD, SparkContext
from pyspark.errors import PySparkException

from omnigraph.errors import GraphError, LimitError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.pipeline.load.request import LoadProgress, LoadRequest
from omnigraph.pipeline.load.watching import watched

_FULL = ("No space left on device", "os error 28", "Disk quota exceeded", "File too large")
_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt|Exit)\b.*")


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
        group = self._ids.new()
        self.context.setJobGroup(group, f"omnigraph load: {stage}", interruptOnCancel=True)
        total = LoadProgress(stage, bytes_total=self._request.bytes)
        try:
            with watched(self._request.watch, total, self.context, group, rows):
                return work.collect()
        except (Py4JError, PySparkException) as fault:
            raise spark_fault(str(fault)) from fault
        except BaseException:
            self.context.cancelJobGroup(group)
            raise
        finally:
            self.context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]


def spark_fault(said: str) -> GraphError:
    """What to say when a job failed.

    Args:
        said (str): what Spark says.

    Returns:
        GraphError: what it means, and what to do.
    """
    lines = [line.strip() for line in said.splitlines()]
    # Python's own words come last of all; without any, Spark's come first.
    reason = next((line for line in reversed(lines) if _PYTHON_ERROR.match(line)), lines[0] if lines else "")
    return fault_of(said) or UnavailableError(
        f"Spark could not finish the load, so nothing was loaded; load again: {reason}", code="spark_job_failed"
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
