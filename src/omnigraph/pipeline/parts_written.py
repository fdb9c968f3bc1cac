"""Partitions of frames, written down by the tasks that have them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
from pyspark import TaskContext


def write_part(batches: Iterator[pa.RecordBatch], stem: str, columns: pa.Schema | None) -> str | None:
    """Write one partition down.

    Args:
        batches (Iterator[pa.RecordBatch]): its rows.
        stem (str): how the file's name begins.
        columns (pa.Schema | None): in which types; None for lines of text.

    Returns:
        str | None: the file; None where there are no rows.
    """
    first = next((batch for batch in batches if batch.num_rows), None)
    if first is None:
        return None
    context = TaskContext.get()
    # The attempt is part of the name: of two that run beside each other, only one is ever named.
    part, attempt = (0, 0) if context is None else (context.partitionId(), context.taskAttemptId())
    path = Path(f"{stem}-{part:05}-{attempt}{'.jsonl' if columns is None else '.parquet'}")
    if columns is None:
        with path.open("wb") as file:
            for lines in _with_first(first, batches):
                file.write("".join(f"{line}\n" for line in lines.column(0).to_pylist()).encode())
        return str(path)
    with pyarrow.parquet.ParquetWriter(path, columns, compression="lz4") as writer:
        for batch in _with_first(first, batches):
            writer.write_batch(_in_types(batch, columns))
    return str(path)


def _with_first(first: pa.RecordBatch, rest: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield first
    yield from rest


def _in_types(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    arrays: list[Any] = [batch.column(field.name).cast(field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)
