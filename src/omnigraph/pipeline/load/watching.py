"""Telling how far a job is, while it runs."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace

from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # py4j has no types
from pyspark import SparkContext

from omnigraph import limits
from omnigraph.pipeline.load.how_far import LoadProgress, Watch, ignore_progress

# What a question to a session that was stopped meanwhile ends in; a stopped context has lost its other half.
_GONE = (Py4JError, OSError, AttributeError)


@contextmanager
def watched(
    watch: Watch, begun: LoadProgress, context: SparkContext, group: str, rows: Callable[[], int] | None
) -> Iterator[None]:
    """Tell how far the jobs of a group are, until the block ends.

    Args:
        watch (Watch): whom to tell.
        begun (LoadProgress): what is being done.
        context (SparkContext): where the jobs run.
        group (str): their group.
        rows (Callable[[], int] | None): how many records there are so far; tasks that have ended count.

    Yields:
        None: while the jobs run.
    """
    if watch is ignore_progress:
        yield
        return
    over = threading.Event()

    def now() -> LoadProgress:
        done, tasks = _tasks(context, group)
        share = done / tasks if tasks else 0.0
        return replace(begun, rows=rows() if rows is not None else 0, bytes=int(begun.bytes_total * share))

    def tell() -> None:
        while not over.wait(limits.LOAD_PROGRESS_S):
            try:
                watch(now())
            except _GONE:
                return  # Spark was stopped, by Ctrl-C for one; the job itself tells of it

    watch(begun)
    teller = threading.Thread(target=tell, name="load-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
    watch(replace(begun, rows=rows() if rows is not None else 0, bytes=begun.bytes_total))


def _tasks(context: SparkContext, group: str) -> tuple[int, int]:
    """How many tasks of a group's jobs have ended, and how many there are."""
    status = context.statusTracker()
    done = tasks = 0
    for job in status.getJobIdsForGroup(group):
        found = status.getJobInfo(job)
        for stage in found.stageIds if found is not None else ():
            known = status.getStageInfo(stage)
            if known is not None:
                done += known.numCompletedTasks
                tasks += known.numTasks
    return done, tasks
