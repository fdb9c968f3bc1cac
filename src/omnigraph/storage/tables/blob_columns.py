"""Blob columns: large values that a scan of other columns never touches, and of which a part can be read.

To the rest of the house such a column is one of bytes, marked in its field's metadata. Lance keeps small values inside
the data file and large ones in files beside it, in a folder named after it; a row holds no more than where they lie.
Tables made before there were marks have plain columns of bytes: those are read and written as they are, and a part of
a value costs the whole of it.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
from lance import LanceDataset
from lance.blob import BlobType
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.storage.layout import BLOB_MARK

_MARK = {BLOB_MARK: b"true"}
_DATA = "data/"
_DATA_FILE = ".lance"


def plain_schema(stored: pa.Schema) -> pa.Schema:
    """The columns of a stored table as the house knows them: blobs are bytes with a mark."""
    return pa.schema([_plain(field) for field in stored])


def has_blobs(schema: pa.Schema) -> bool:
    """Whether a column, as the house knows it, is one of blobs."""
    return any(is_blob(field) for field in schema)


def is_blob(field: "pa.Field[Any]") -> bool:
    """Whether a column, as the house knows it, is one of blobs."""
    return BLOB_MARK in (field.metadata or {})


def stored_field(field: "pa.Field[Any]") -> "pa.Field[Any]":
    """A column to be added to a table that is there, as Lance keeps it."""
    if not is_blob(field):
        return field
    others = {key: value for key, value in (field.metadata or {}).items() if key != BLOB_MARK}
    made: pa.Field[Any] = pa.field(field.name, BlobType(), nullable=field.nullable, metadata=others)
    return made


def write_rows(
    rows: pa.Table | Iterable[pa.RecordBatch], dataset: LanceDataset, schema: pa.Schema
) -> list[FragmentMetadata]:
    """Write rows as fragments that no version has numbered yet.

    Args:
        rows (pa.Table | Iterable[pa.RecordBatch]): in the table's own columns, whatever marks these carry.
        dataset (LanceDataset): the version they are for.
        schema (pa.Schema): its columns, as the house knows them.

    Returns:
        list[FragmentMetadata]: in the order of the rows.
    """
    if isinstance(rows, pa.Table):
        # Lance tells a column of blobs by its mark, so the mark must be that of the table, not of where rows came from.
        if any(pa.types.is_large_binary(kind) for kind in schema.types):
            rows = pa.Table.from_arrays([rows.column(name) for name in schema.names], schema=schema)
        return list(write_fragments(rows, dataset))
    marked = (pa.RecordBatch.from_arrays(batch.columns, schema=schema) for batch in rows)
    return list(write_fragments(pa.RecordBatchReader.from_batches(schema, marked), dataset))


def folders_beside(files: Iterable[str]) -> set[str]:
    """The folders of large values that data files may have beside them, under their table's folder."""
    return {
        f"{file.removesuffix(_DATA_FILE)}/" for file in files if file.startswith(_DATA) and file.endswith(_DATA_FILE)
    }


def folders_made(table_folder: str, files: Iterable[str]) -> set[str]:
    """Those of `folders_beside` that are there, on local disk."""
    return {folder for folder in folders_beside(files) if Path(table_folder, folder).is_dir()}


def _plain(field: "pa.Field[Any]") -> "pa.Field[Any]":
    if not isinstance(field.type, BlobType):
        return field
    metadata = {**(field.metadata or {}), **_MARK}
    made: pa.Field[Any] = pa.field(field.name, pa.large_binary(), nullable=field.nullable, metadata=metadata)
    return made
