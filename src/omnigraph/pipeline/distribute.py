"""Run a function on many tasks in Spark's workers, over the public DataFrame API."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from omnigraph.errors import GraphError
from omnigraph.ids import IdSource
from omnigraph.pipeline.jobs import job_group

Task = TypeVar("Task")
Result = TypeVar("Result")


def scan(
    session: SparkSession, tasks: Sequence[Task], run: Callable[[Task], Iterator[pa.RecordBatch]], schema: str
) -> DataFrame:
    """Return a frame of the batches that a function yields for each of some tasks, each in a partition of its own."""
    if not tasks:
        return session.createDataFrame([], schema)
    all_tasks = tuple(tasks)

    def run_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for row in batch.to_pylist():
                yield from run(all_tasks[row["id"]])

    return session.range(0, len(all_tasks), 1, len(all_tasks)).mapInArrow(run_all, schema)


def map_tasks(
    session: SparkSession, ids: IdSource, tasks: Sequence[Task], run: Callable[[Task], Result], *, what: str
) -> list[Result]:
    """Return what a function returns for each of some tasks, in their order.

    Args:
        run: a `GraphError` that it raises is raised here as it is.
        what: a few words for the UI.

    Raises:
        UnavailableError: Spark failed.
    """

    def run_numbered(task: tuple[int, Task]) -> Iterator[pa.RecordBatch]:
        number, given = task
        try:
            result: Any = run(given)
        except GraphError as fault:
            result = fault
        yield pa.RecordBatch.from_pydict({"number": [number], "result": [pickle.dumps(result)]})

    frame = scan(session, list(enumerate(tasks)), run_numbered, "number bigint, result binary")
    with job_group(session, ids, what=what):
        rows = frame.toArrow().to_pylist()
    found = [pickle.loads(row["result"]) for row in sorted(rows, key=lambda row: int(row["number"]))]
    for result in found:
        if isinstance(result, GraphError):
            raise result
    return found
