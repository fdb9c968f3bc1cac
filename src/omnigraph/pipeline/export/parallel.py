"""An export on Spark: several files for each type, written at once by as many tasks.

Every file holds a range of ids, in order, and files are named in the order of types and ranges: JSON lines of all of
them, one after the other, are the bytes that an export to one stream has.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession

from omnigraph.errors import InvalidRequestError
from omnigraph.ids import UlidSource
from omnigraph.model.schema import ID, EntityType
from omnigraph.pipeline.columns import cast_batch
from omnigraph.pipeline.export.destination import local_destination, new_folder
from omnigraph.pipeline.export.formats import PER_TYPE, Destination, Exported, ExportFormat
from omnigraph.pipeline.export.json_lines import json_lines
from omnigraph.pipeline.export.ordered import moderate
from omnigraph.pipeline.export.run import WRITERS
from omnigraph.pipeline.frames import read_frame
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.pipeline.jobs import job_group
from omnigraph.storage.tables.location import TablesLocation
from omnigraph.transaction.snapshot import Snapshot


@interruptible
def export_parallel(
    spark: SparkSession,
    place: TablesLocation,
    snapshot: Snapshot,
    entities: Sequence[EntityType],
    to: Destination,
    *,
    format: ExportFormat,
    files: int,
) -> Exported:
    """Write types of a commit into a folder of many files.

    Args:
        place: where the graph's tables are.
        snapshot: the commit.
        entities: the types, in order.
        to: the path of a folder that every worker reaches.
        format: JSON lines, Parquet or CSV.
        files: up to how many files each type has.

    Returns:
        Exported: what was written.

    Raises:
        InvalidRequestError: the place is no path, or the format knows one file only.
        AlreadyExistsError: the folder is there already.
    """
    if not isinstance(to, str | Path):
        raise InvalidRequestError("several files need a folder to be in")
    if format not in PER_TYPE and format is not ExportFormat.JSONL:
        raise InvalidRequestError(f"{format} is one file; leave out the number of files")
    if not isinstance(files, int) or files < 1:
        raise InvalidRequestError(f"an export has one file or more of each type, not {files!r}")
    written: list[str] = []
    target = local_destination(to).absolute()
    with new_folder(target) as folder:
        for number, entity in enumerate(entities):
            frame = read_frame(spark, place, snapshot.record, entity.type_key)
            ranged = frame.repartitionByRange(files, ID).sortWithinPartitions(ID)
            task = _Task(str(folder), entity, format, snapshot.table(entity.type_key).schema)
            with job_group(spark, UlidSource(), what="export"):
                rows = ranged.mapInArrow(task, "part bigint, path string").collect()
            for part, row in enumerate(sorted(rows, key=lambda row: int(row["part"]))):
                name = f"{number:03}-{entity.kind}-{entity.name}-{part:05}.{format}"
                _take(Path(row["path"]), folder / name)
                written.append(str(target / name))
        # What tasks left that ran twice.
        for leftover in folder.glob("*.attempt"):
            leftover.unlink()
    counts = {entity.type_key: snapshot.count(entity.type_key) for entity in entities}
    return Exported(snapshot.commit, format.value, counts, tuple(written))


def _take(written: Path, name: Path) -> None:
    try:
        written.replace(name)
    except FileNotFoundError as fault:
        raise InvalidRequestError(
            f"what a worker wrote is not in {written.parent}: export to a folder that all workers share"
        ) from fault


class _Task:
    """Writes the rows of one partition into a file."""

    def __init__(self, folder: str, entity: EntityType, format: ExportFormat, columns: pa.Schema) -> None:
        self._folder = folder
        self._entity = entity
        self._format = format
        self._columns = columns

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write, and tell where."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return
        context = TaskContext.get()
        part, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
        path = Path(self._folder) / f"{self._entity.type_key.replace(':', '-')}-{part}-{attempt}.attempt"
        rows = self._rows(first, batches)
        with path.open("wb") as file:
            if self._format is ExportFormat.JSONL:
                for rows_part in rows:
                    file.write(json_lines(self._entity, rows_part))
            else:
                WRITERS[self._format](rows, self._columns, file)
        yield pa.RecordBatch.from_pydict({"part": [part], "path": [str(path)]})

    def _rows(self, first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from moderate(pa.Table.from_batches([cast_batch(first, self._columns)]))
        for batch in rest:
            yield from moderate(pa.Table.from_batches([cast_batch(batch, self._columns)]))
