"""Entities as tables: Parquet with the types of the columns, CSV with texts. Edges have their ends in `src`, `dst`."""

from collections.abc import Iterable
from typing import IO, Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

from omnigraph.pipeline.export.json_text import plain_texts
from omnigraph.storage.blob_values import outward


def write_parquet(batches: Iterable[pa.RecordBatch], schema: pa.Schema, to: IO[bytes]) -> None:
    """Rows as one Parquet file.

    Args:
        batches: the rows.
        schema: their columns.
    """
    with pyarrow.parquet.ParquetWriter(to, schema.remove_metadata(), compression="zstd") as writer:
        for batch in batches:
            writer.write_batch(outward(batch).cast(schema))


def write_csv(batches: Iterable[pa.RecordBatch], schema: pa.Schema, to: IO[bytes]) -> None:
    """Rows as one CSV file with a line of names; absent values are empty, empty texts are `""`, lists are JSON.

    Args:
        batches: the rows.
        schema: their columns.
    """
    texts = pa.schema([pa.field(field.name, _csv_type(field.type)) for field in schema])
    with pyarrow.csv.CSVWriter(to, texts) as writer:
        for batch in batches:
            columns: list[Any] = [
                batch.column(field.name) if field.type == as_it_is.type else plain_texts(batch.column(field.name))
                for field, as_it_is in zip(texts, schema, strict=True)
            ]
            writer.write_batch(pa.RecordBatch.from_arrays([*map(_short, columns)], schema=texts))


def _csv_type(of: pa.DataType) -> pa.DataType:
    is_number = pa.types.is_integer(of) or pa.types.is_boolean(of)
    return of if is_number else pa.string()


def _short(column: "pa.Array[Any]") -> "pa.Array[Any]":
    return column.cast(pa.string()) if column.type == pa.large_string() else column
