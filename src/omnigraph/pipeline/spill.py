"""Spill rows of the data source: tasks write them to files, and a load reads them.

They go through the port that everything else of a graph goes through, as files that fit into memory one at a time. So
whoever reaches the graph reaches them, and Spark needs nothing of its own for any kind of object store.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark import TaskContext

from omnigraph import limits
from omnigraph.ids import IdSource
from omnigraph.pipeline.load.sources import Format, Source
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore, StoreError
from omnigraph.storage.object_stores.local import Durability
from omnigraph.storage.object_stores.open import open_store
from omnigraph.storage.object_stores.s3 import S3Options
from omnigraph.storage.tables.location import TablesLocation


@dataclass(frozen=True, slots=True)
class SpilledFile:
    """A file that a task wrote.

    Attributes:
        name: in the folder of its spill.
        size: how many bytes it has.
    """

    name: str
    size: int


@dataclass(frozen=True, slots=True)
class Spill:
    """A folder for the rows of one write, in plain values: it can be sent to any process.

    Attributes:
        place: a store that every worker reaches.
        folder: below its root, with `/` at its end.
    """

    place: TablesLocation
    folder: str

    def write(self, name: str, body: bytes) -> SpilledFile:
        """Write a file.

        Args:
            name: what it is called here.
            body: what is in it.

        Returns:
            SpilledFile: the file.

        Raises:
            StoreError: the store does not take it.
        """
        self._store().put(f"{self.folder}{name}", body)
        return SpilledFile(name, len(body))

    def empty_table(self, name: str, columns: pa.Schema) -> SpilledFile:
        """Write a file of no rows: a frame without any is of its type, too.

        Args:
            name: what the file is called here.
            columns: the columns.

        Returns:
            SpilledFile: the file.
        """
        out = pa.BufferOutputStream()
        pyarrow.parquet.write_table(columns.empty_table(), out)
        return self.write(name, out.getvalue().to_pybytes())

    def source(self, index: int, file: SpilledFile, *, called: str, format: Format) -> Source:
        """A file as one that a load reads.

        Args:
            index: its number among those of the load.
            file: the file.
            called: what messages call it.
            format: what is in it.

        Returns:
            Source: it can be read wherever the folder is reached.
        """
        uri = f"{self.place.uri.rstrip('/')}/{self.folder}{file.name}"
        return Source(index, called, uri, file.size, format, storage_options=self.place.storage_options)

    def forget(self) -> None:
        """Delete everything in the folder; what cannot be deleted, or comes later, is left to the next sweep."""
        try:
            self._store().delete_prefix(self.folder)
        except StoreError:
            return

    def _store(self) -> ObjectStore:
        options = dict(self.place.storage_options)
        # What is lost with the power is lost with the load that would have read it.
        return open_store(
            self.place.uri,
            durability=Durability.PROCESS,
            s3=S3Options.from_storage_options(options) if options else None,
        )


def spill_beside(place: TablesLocation, ids: IdSource) -> Spill:
    """A folder beside the tables of a graph, where a sweep finds what a dead write left.

    Args:
        place: where the tables are.
        ids: names it.

    Returns:
        Spill: of nobody else's.
    """
    return Spill(place, f"{paths.SPILL}{ids.new()}/")


def write_part(
    batches: Iterator[pa.RecordBatch], spill: Spill, stem: str, columns: pa.Schema | None
) -> list[SpilledFile]:
    """Write one partition down.

    Args:
        batches: its rows.
        stem: how the names of its files begin.
        columns: in which types; None for lines of text.

    Returns:
        list[SpilledFile]: the files; none where there are no rows.
    """
    context = TaskContext.get()
    # The attempt is part of the name: of two that run beside each other, only one is ever named.
    part, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    begin, rows = f"{stem}-{part:05}-{attempt}", (batch for batch in batches if batch.num_rows)
    if columns is None:
        return [spill.write(f"{begin}-{number:05}.jsonl", body) for number, body in enumerate(_lines(rows))]
    return [spill.write(f"{begin}-{number:05}.parquet", body) for number, body in enumerate(_tables(rows, columns))]


def _tables(batches: Iterator[pa.RecordBatch], columns: pa.Schema) -> Iterator[bytes]:
    first = next(batches, None)
    while first is not None:
        out = pa.BufferOutputStream()
        with pyarrow.parquet.ParquetWriter(out, columns, compression="lz4") as writer:
            writer.write_batch(_in_types(first, columns))
            first = None
            for batch in batches:
                if out.tell() >= limits.SPILL_FILE_BYTES:
                    first = batch
                    break
                writer.write_batch(_in_types(batch, columns))
        yield out.getvalue().to_pybytes()


def _lines(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    held = bytearray()
    for batch in batches:
        held += "".join(f"{line}\n" for line in batch.column(0).to_pylist()).encode()
        if len(held) >= limits.SPILL_FILE_BYTES:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def _in_types(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    arrays: list[Any] = [batch.column(field.name).cast(field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
