"""Rewrite fragments of a table in Spark's workers, one task for each group of them.

The order of rows is kept: within a group by the task, among groups by the caller. A task that runs twice leaves files
that no version names, for the next sweep.
"""

from pyspark.sql import SparkSession

from omnigraph.ids import IdSource
from omnigraph.model.commit import Pin
from omnigraph.pipeline.distribute import map_tasks
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.storage.tables.compact import Groups
from omnigraph.storage.tables.distributed_write import rewrite_files
from omnigraph.storage.tables.location import location_of, tables_at
from omnigraph.storage.tables.tables import Tables


@interruptible
def rewritten_on_spark(session: SparkSession, tables: Tables, ids: IdSource, pin: Pin, groups: Groups) -> list[str]:
    """Return the new fragments as JSON, in the order of the groups.

    Args:
        pin: the version that has the fragments.
        groups: numbers of fragments; a task for each group.

    Raises:
        FormatError: the version does not exist any more, or is damaged.
        UnavailableError: Spark failed; nothing was changed.
    """
    place = location_of(tables)

    def rewrite(numbers: tuple[int, ...]) -> list[str]:
        return rewrite_files(tables_at(place), pin, numbers)

    written = map_tasks(session, ids, list(groups), rewrite, what="compaction")
    return [fragment for group in written for fragment in group]
