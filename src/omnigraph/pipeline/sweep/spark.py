"""What a sweep reads, read on Spark: tasks list the folders of tables, and look through the versions that are kept.

Everything is judged, and deleted, by the process that sweeps. What a task cannot read, it says, and the sweep treats it
as if it had tried itself; a job that fails ends the sweep before anything is deleted.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.branch.sweep.files import Candidate, candidate
from omnigraph.branch.sweep.reading import Files, files_of
from omnigraph.errors import GraphError
from omnigraph.model.commit import Pin
from omnigraph.pipeline.aside import aside
from omnigraph.pipeline.jobs import job_group
from omnigraph.storage import paths
from omnigraph.storage.object_stores.open import open_store_of_tables
from omnigraph.storage.tables.location import TablesLocation, location_of, tables_at
from omnigraph.transaction.graph_context import GraphContext

_TABLES = (paths.EDGES, paths.NODES)


class ReadingOnSpark:
    """Reads a graph's tables in many tasks; what is not of tables is listed here."""

    def __init__(self, session: SparkSession, parts: GraphContext) -> None:
        self._context = session.sparkContext
        self._parts = parts
        self._place = location_of(parts.tables)

    @aside
    def listed(self) -> list[Candidate]:
        """Every file under the root, in order of their paths."""
        store, table_files = self._parts.store, self._parts.table_files
        others = [name for name in store.list_folders("") if f"{name}/" not in _TABLES]
        found = [candidate(each) for name in others for each in store.list(f"{name}/")]
        folders = [f"{kind}{name}/" for kind in _TABLES for name in table_files.list_folders(kind)]
        if folders:
            work = self._context.parallelize(folders, self._tasks(len(folders), 1))
            with job_group(self._context, self._parts.ids, what="sweep: listing"):
                listed = work.mapPartitions(partial(_listed, place=self._place)).collect()
            for each in listed:
                if isinstance(each, GraphError):
                    raise each
                found.append(each)
        return sorted(found, key=lambda each: each.path)

    @aside
    def files(self, pins: Sequence[Pin]) -> Iterable[Files]:
        """Which files versions refer to; of the versions of a task, a file is told of one."""
        # Versions of one table have most of their files in common: side by side, these are told once.
        order = sorted(range(len(pins)), key=lambda place: (pins[place].table, pins[place].version))
        told: list[Files] = [frozenset()] * len(pins)
        if pins:
            tasks = self._tasks(len(pins), limits.SWEEP_TASK_VERSIONS)
            work = self._context.parallelize([(place, pins[place]) for place in order], tasks)
            with job_group(self._context, self._parts.ids, what="sweep: looking through versions"):
                for place, each in work.mapPartitions(partial(_told, place=self._place)).collect():
                    told[place] = each
        return told

    def _tasks(self, count: int, each: int) -> int:
        """How many tasks so many things make."""
        return min(count, max(self._context.defaultParallelism * 4, -(-count // each)) if each > 1 else count)


def _listed(folders: Iterable[str], *, place: TablesLocation) -> Iterator[Candidate | GraphError]:
    store = open_store_of_tables(place.uri, dict(place.storage_options))
    try:
        for folder in folders:
            yield from map(candidate, store.list(folder))
    except GraphError as fault:
        # In Spark's own words it would lose what it is.
        yield fault


def _told(pins: Iterable[tuple[int, Pin]], *, place: TablesLocation) -> Iterator[tuple[int, Files]]:
    tables = tables_at(place)
    known: set[str] = set()
    for number, pin in pins:
        found = files_of(tables, pin)
        if isinstance(found, frozenset):
            found, known = found - known, known | found
        yield number, found
