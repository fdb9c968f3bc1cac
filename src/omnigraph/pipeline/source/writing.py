"""`df.write.format("omnigraph")`: rows of one type, as one commit.

Tasks write their rows down; when all of them are done, whoever commits loads those files, under all the rules of the
schema. That is a process of its own, without the session that the frame is of: it loads little by itself, and starts a
Spark of its own, on its machine, for much. For several types in one commit there is `graph.spark.write`.
"""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

import omnigraph
from omnigraph import limits
from omnigraph.model.schema import TypeKind
from omnigraph.pipeline.parts_written import write_part
from omnigraph.pipeline.session import stop_spark_session


@dataclass
class PartWritten(WriterCommitMessage):
    """What one task wrote down: a file, or nothing where it had no rows."""

    path: str | None


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go, as the options say.

    Attributes:
        graph: address of the graph.
        type_key: the type.
        branch: the branch.
        mode: append, merge or overwrite.
        actor: who.
        message: why.
        idempotency_key: the same key again does nothing.
        prune_previous: show earlier commits of the branch no more.
        engine: where the rows are loaded; by how many there are, where nothing is said.
    """

    graph: str
    type_key: str
    branch: str
    mode: str
    actor: str | None = None
    message: str | None = None
    idempotency_key: str | None = None
    prune_previous: bool = False
    engine: str | None = None


class RowsWriter(DataSourceArrowWriter):
    """Writes rows down in tasks, and loads them when all tasks are done."""

    def __init__(self, target: Target, folder: Path, columns: pa.Schema) -> None:
        self._target = target
        self._folder = folder
        self._columns = columns
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark types rows, and gives batches to this kind of writer
        """Write the rows of a task down."""
        return PartWritten(write_part(iterator, str(self._folder / "part"), self._columns))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load what all tasks wrote, as one commit."""
        files = [message.path for message in messages if isinstance(message, PartWritten) and message.path is not None]
        try:
            self._load(sorted(files))
        finally:
            stop_spark_session()
            shutil.rmtree(self._folder, ignore_errors=True)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  (Spark's own)
        """Forget what was written down."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _load(self, files: list[str]) -> None:
        size = sum(Path(file).stat().st_size for file in files)
        engine = self._target.engine or ("spark" if size > limits.FORMAT_WRITE_LOCAL_BYTES_MAX else "local")
        kind, _, name = self._target.type_key.partition(":")
        none = self._folder / "none.parquet"
        pyarrow.parquet.write_table(self._columns.empty_table(), none)
        # This process is nobody's session: it opens the graph as any other program would.
        with omnigraph.open(self._target.graph) as graph:
            graph.load(
                [str(none), *files],
                mode=self._target.mode,
                branch=self._target.branch,
                type_name=name if kind == TypeKind.NODE else None,
                edge=name if kind == TypeKind.EDGE else None,
                engine=engine,
                actor=self._target.actor,
                message=self._target.message,
                idempotency_key=self._target.idempotency_key,
                prune_previous=self._target.prune_previous,
            )
