"""Jobs on Spark: cancelled when nobody waits any more, and their faults in words."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext
from pyspark.errors import PySparkException

from omnigraph.errors import GraphError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.pipeline.aside import cancellable

_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt|Exit)\b.*")


@contextmanager
def job_group(
    context: SparkContext, ids: IdSource, *, what: str, fault: Callable[[str], GraphError] | None = None
) -> Iterator[str]:
    """The jobs that the block runs; those that are not waited for any more are cancelled.

    Args:
        context (SparkContext): where they run.
        ids (IdSource): names them.
        what (str): what they do, in a few words.
        fault (Callable[[str], GraphError] | None): what to raise, told from what Spark says.

    Yields:
        str: the name of the group.

    Raises:
        GraphError: a job failed; by default an `UnavailableError` (`spark_job_failed`).
    """
    group = ids.new()
    context.setJobGroup(group, f"omnigraph {what}", interruptOnCancel=True)
    try:
        with cancellable(lambda: context.cancelJobGroup(group)):
            yield group
    except (Py4JError, PySparkException) as failed:
        raise (fault(str(failed)) if fault is not None else _failed(what, str(failed))) from failed
    except BaseException:
        context.cancelJobGroup(group)
        raise
    finally:
        context.setLocalProperty("spark.jobGroup.id", None)  # type: ignore[arg-type]  # None takes the property away


def reason_in(said: str) -> str:
    """The line that tells why a job failed.

    Args:
        said (str): all that Spark says.

    Returns:
        str: Python's own words, which come last of all; without any, Spark's first.
    """
    lines = [line.strip() for line in said.splitlines()]
    return next((line for line in reversed(lines) if _PYTHON_ERROR.match(line)), lines[0] if lines else "")


def _failed(what: str, said: str) -> GraphError:
    return UnavailableError(f"Spark could not finish ({what}); try again: {reason_in(said)}", code="spark_job_failed")
