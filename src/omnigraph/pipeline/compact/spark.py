"""Fragments of a table written again by Spark's workers, each group of them by one task.

The order of rows is kept: within a group by the task, among groups by who asks. A task that runs twice leaves files
that no version names, for the next sweep.
"""

from functools import partial

from pyspark.sql import SparkSession

from omnigraph.errors import GraphError
from omnigraph.ids import IdSource
from omnigraph.model.commit import Pin
from omnigraph.pipeline.aside import aside
from omnigraph.pipeline.jobs import job_group
from omnigraph.storage.tables.compact import Groups
from omnigraph.storage.tables.distributed_write import rewrite_files
from omnigraph.storage.tables.location import TablesLocation, location_of, tables_at
from omnigraph.storage.tables.tables import Tables


@aside
def rewritten_on_spark(session: SparkSession, tables: Tables, ids: IdSource, pin: Pin, groups: Groups) -> list[str]:
    """Write the rows of fragments again.

    Args:
        session (SparkSession): where.
        tables (Tables): of the graph.
        ids (IdSource): names the jobs.
        pin (Pin): the version that has the fragments.
        groups (Groups): their numbers; a task for each group.

    Returns:
        list[str]: the new fragments as JSON, in the order of the groups.

    Raises:
        FormatError: the version is not there any more, or damaged.
        UnavailableError: Spark failed; nothing was changed.
    """
    context = session.sparkContext
    work = context.parallelize(list(groups), len(groups))
    with job_group(context, ids, what="compaction"):
        told = work.map(partial(_rewritten, place=location_of(tables), pin=pin)).collect()
    found: list[str] = []
    for each in told:
        if isinstance(each, GraphError):
            raise each
        found += each
    return found


def _rewritten(numbers: tuple[int, ...], *, place: TablesLocation, pin: Pin) -> list[str] | GraphError:
    try:
        return rewrite_files(tables_at(place), pin, numbers)
    except GraphError as fault:
        # In Spark's own words it would lose what it is.
        return fault
