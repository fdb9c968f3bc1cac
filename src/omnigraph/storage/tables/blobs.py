"""Blob columns: large values that a scan of other columns never touches, and of which a part can be read.

To the rest of the house such a column is one of bytes, marked in its field's metadata. Lance keeps small values inside
the data file and large ones in files beside it, in a folder named after it; a row holds no more than where they lie.
Tables made before there were marks have plain columns of bytes: those are read and written as they are, and a part of
a value costs the whole of it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.blob import BlobFile, BlobType
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph import limits
from omnigraph.storage.layout import BLOB_MARK
from omnigraph.storage.tables.addresses import key_of

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
        rows: in the table's own columns, whatever marks these carry.
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


_ADDRESS = "_rowaddr"


def rows_at(dataset: LanceDataset, schema: pa.Schema, addresses: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Rows by address, in their order, blobs as bytes; addresses of deleted rows are passed over."""
    blobs = [name for name in columns if is_blob(schema.field(name))]
    plain = [name for name in columns if name not in blobs]
    if not blobs:
        return dataset._take_rows(list(addresses), columns=list(columns))
    taken = dataset._take_rows(list(addresses), columns=[*plain, _ADDRESS])
    step = limits.ID_FILTER_IDS_MAX
    read = pa.concat_tables(
        dataset.scanner(
            columns=blobs,
            filter=f"{_ADDRESS} IN ({','.join(map(str, addresses[start : start + step])) or '0'})",
            with_row_address=True,
            blob_handling="all_binary",
        ).to_table()
        for start in range(0, max(1, len(addresses)), step)
    )
    places = pc.index_in(taken.column(_ADDRESS), value_set=read.column(_ADDRESS).combine_chunks())
    values = {name: read.column(name).take(places) for name in blobs}
    return pa.Table.from_arrays(
        [values[name] if name in values else taken.column(name) for name in columns],
        schema=pa.schema([schema.field(name) for name in columns]),
    )


@dataclass(frozen=True, slots=True)
class StoredBlob:
    """The bytes of one cell, which never change.

    Attributes:
        size: how many.
        identity: of these very bytes where they lie, as hexadecimal digits: the same identity means the same bytes.
        file: what reads parts of them; None where `whole` has all.
        whole: all of them, in tables without blob columns.
    """

    size: int
    identity: str
    file: BlobFile | None = None
    whole: bytes = b""

    def read(self, offset: int, length: int) -> bytes:
        """A part."""
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        if self.file is None:
            return self.whole[offset : offset + length]
        return bytes(self.file.read_range(offset, length))

    def chunks(self, offset: int, length: int) -> Iterator[bytes]:
        """Read the same part in pieces, each when the caller takes it."""
        step = limits.BLOB_RANGE_BYTES_MAX
        end = min(self.size, offset + length)
        for start in range(offset, end, step):
            yield self.read(start, min(step, end - start))


def blob_at(dataset: LanceDataset, schema: pa.Schema, address: int, column: str, number: int) -> StoredBlob | None:
    """The blob in one cell."""
    fragment = dataset.get_fragment(address >> 32)
    lies_in = "" if fragment is None else "/".join(key_of(fragment.metadata))
    place = f"{lies_in} {address & 0xFFFF_FFFF} {number}"
    identity = blake2b(place.encode(), digest_size=16).hexdigest()
    if is_blob(schema.field(column)):
        file = dataset.take_blobs(column, addresses=[address])[0]
        return None if file is None else StoredBlob(int(file.size()), identity, file)
    value = dataset._take_rows([address], columns=[column]).column(column)[0].as_py()
    return None if value is None else StoredBlob(len(value), identity, whole=value)
