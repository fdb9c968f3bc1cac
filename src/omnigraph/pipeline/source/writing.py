"""`df.write.format("omnigraph")`: rows of one type, as one commit.

Tasks write their rows down; when all of them are done, whoever commits loads those files, under all the rules of the
schema. That is a process of its own, without the session that the frame is of: it loads little by itself, and starts a
Spark of its own, on its machine, for much. For several types in one commit there is `graph.spark.write`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

import omnigraph
from omnigraph import limits
from omnigraph.model.schema import TypeKind
from omnigraph.pipeline.load.sources import Format
from omnigraph.pipeline.session import stop_spark_session
from omnigraph.pipeline.spill import Spill, SpilledFile, write_part
from omnigraph.transaction.options import WriteOptions


@dataclass
class PartWritten(WriterCommitMessage):
    """What one task wrote down: files, or nothing where it had no rows."""

    files: list[SpilledFile]


@dataclass(frozen=True, slots=True)
class Target:
    """Where rows go, as the options say.

    Attributes:
        graph: address of the graph.
        mode: append, merge or overwrite.
        engine: where the rows are loaded; by how many there are, where nothing is said.
    """

    graph: str
    type_key: str
    branch: str
    mode: str
    write: WriteOptions
    engine: str | None = None


class RowsWriter(DataSourceArrowWriter):
    """Writes rows down in tasks, and loads them when all tasks are done."""

    def __init__(self, target: Target, spill: Spill, columns: pa.Schema) -> None:
        self._target = target
        self._spill = spill
        self._columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:  # type: ignore[override]  # Spark types rows, and gives batches to this kind of writer
        """Write the rows of a task down."""
        return PartWritten(write_part(iterator, self._spill, "part", self._columns))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Load what all tasks wrote, as one commit."""
        written = [file for message in messages if isinstance(message, PartWritten) for file in message.files]
        try:
            self._load(sorted(written, key=lambda file: file.name))
        finally:
            stop_spark_session()
            self._spill.forget()

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:  # noqa: ARG002  (Spark's own)
        """Forget what was written down."""
        self._spill.forget()

    def _load(self, written: list[SpilledFile]) -> None:
        size = sum(file.size for file in written)
        engine = self._target.engine or ("spark" if size > limits.FORMAT_WRITE_LOCAL_BYTES_MAX else "local")
        kind, _, name = self._target.type_key.partition(":")
        files = [self._spill.empty_table("none.parquet", self._columns), *written]
        sources = [
            self._spill.source(number, file, called=f"the frame for {name}, file {number}", format=Format.PARQUET)
            for number, file in enumerate(files)
        ]
        # This process is nobody's session: it opens the graph as any other program would.
        with omnigraph.open(self._target.graph) as graph:
            graph.load(
                sources,
                mode=self._target.mode,
                branch=self._target.branch,
                type_name=name if kind == TypeKind.NODE else None,
                edge=name if kind == TypeKind.EDGE else None,
                engine=engine,
                write=self._target.write,
            )
