"""Read on Spark what a sweep needs: tasks list the folders of tables, and read the versions that are kept.

The process that sweeps decides and deletes. What a task cannot read, it returns, and the sweep treats it as if it had
tried itself; a job that fails ends the sweep before anything is deleted.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.branch.sweep.files import Candidate, candidate
from omnigraph.branch.sweep.reading import Files, files_of
from omnigraph.model.commit import Pin
from omnigraph.pipeline.distribute import map_tasks
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.storage import paths
from omnigraph.storage.object_stores.open import open_store_of_tables
from omnigraph.storage.tables.location import location_of, tables_at
from omnigraph.transaction.graph_context import GraphContext

_TABLES = (paths.EDGES, paths.NODES)
_TASKS = 16

Item = TypeVar("Item")


class ReadingOnSpark:
    """Read a graph's tables in many tasks; files that are not of tables are listed here."""

    def __init__(self, session: SparkSession, parts: GraphContext) -> None:
        self._session = session
        self._parts = parts
        self._place = location_of(parts.tables)

    @interruptible
    def listed(self) -> list[Candidate]:
        """Return every file under the root, in order of their paths."""
        store, table_files, place = self._parts.store, self._parts.table_files, self._place
        others = [name for name in store.list_folders("") if f"{name}/" not in _TABLES]
        found = [candidate(file) for name in others for file in store.list(f"{name}/")]
        folders = [f"{kind}{name}/" for kind in _TABLES for name in table_files.list_folders(kind)]

        def list_folder(folder: str) -> list[Candidate]:
            return list(map(candidate, open_store_of_tables(place.uri, dict(place.storage_options)).list(folder)))

        for files in map_tasks(self._session, self._parts.ids, folders, list_folder, what="sweep: listing"):
            found += files
        return sorted(found, key=lambda file: file.path)

    @interruptible
    def files(self, pins: Sequence[Pin]) -> Iterable[Files]:
        """Return the files that versions refer to; of the versions of a task, a file is in one answer."""
        place = self._place

        def read(numbered: Sequence[tuple[int, Pin]]) -> list[tuple[int, Files]]:
            tables, known, answers = tables_at(place), set[str](), list[tuple[int, Files]]()
            for number, pin in numbered:
                files = files_of(tables, pin)
                if isinstance(files, frozenset):
                    files, known = files - known, known | files
                answers.append((number, files))
            return answers

        # Versions of one table have most of their files in common: side by side, these are returned once.
        ordered = sorted(enumerate(pins), key=lambda numbered: (numbered[1].table, numbered[1].version))
        size = min(limits.SWEEP_TASK_VERSIONS, max(-(-len(ordered) // _TASKS), 1))
        answers: list[Files] = [frozenset()] * len(pins)
        what = "sweep: reading versions"
        for some in map_tasks(self._session, self._parts.ids, _chunks(ordered, size), read, what=what):
            for number, files in some:
                answers[number] = files
        return answers


def _chunks(items: Sequence[Item], size: int) -> list[Sequence[Item]]:
    return [items[start : start + size] for start in range(0, len(items), size)]
