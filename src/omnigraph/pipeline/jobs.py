"""Spark jobs: tagged, cancelled when the caller is interrupted, and their failures as one sentence."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from omnigraph.errors import GraphError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.pipeline.interruptible import cancellable
from omnigraph.pipeline.session import tagged

_PYTHON_ERROR = re.compile(r"[A-Za-z_.]*(Error|Exception|Interrupt|Exit)\b.*")


@contextmanager
def job_group(
    session: SparkSession, ids: IdSource, *, what: str, fault: Callable[[str], GraphError] | None = None
) -> Iterator[str]:
    """Tag the jobs of a block, and cancel them when it ends early.

    Args:
        what: what the jobs do, in a few words.
        fault: makes the error to raise from the message of Spark.

    Yields:
        str: the tag.

    Raises:
        GraphError: a job failed; by default an `UnavailableError` (`spark_job_failed`).
    """
    tag = f"omnigraph-{ids.new()}"
    with tagged(session, tag, f"omnigraph {what}"):

        def cancel() -> None:
            session.interruptTag(tag)

        try:
            with cancellable(cancel):
                yield tag
        except (Py4JError, PySparkException) as failed:
            raise (fault(str(failed)) if fault is not None else _failed(what, str(failed))) from failed
        except BaseException:
            cancel()
            raise


def reason_in(message: str) -> str:
    """Return the line of a Spark error that says why: the last Python exception, else the first line."""
    lines = [line.strip() for line in message.splitlines()]
    return next((line for line in reversed(lines) if _PYTHON_ERROR.match(line)), lines[0] if lines else "")


def _failed(what: str, message: str) -> GraphError:
    return UnavailableError(
        f"Spark could not finish ({what}); try again: {reason_in(message)}", code="spark_job_failed"
    )
