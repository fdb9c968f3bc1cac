"""Reading blobs: whole ones with the rows they are in, and parts of single ones."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceDataset
from lance.blob import BlobFile

from omnigraph import limits
from omnigraph.storage.tables.blob_columns import is_blob
from omnigraph.storage.tables.effect import key_of

_ADDRESS = "_rowaddr"


def rows_at(dataset: LanceDataset, schema: pa.Schema, addresses: Sequence[int], columns: Sequence[str]) -> pa.Table:
    """Rows by address, in their order, blobs as bytes; addresses of deleted rows are passed over.

    Args:
        dataset (LanceDataset): the version.
        schema (pa.Schema): its columns, as the house knows them.
        addresses (Sequence[int]): where the rows lie.
        columns (Sequence[str]): which columns.

    Returns:
        pa.Table: the rows.
    """
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
        """A part.

        Args:
            offset (int): where it begins; not after the end.
            length (int): how many bytes at most.

        Returns:
            bytes: fewer than `length` only at the end.
        """
        length = min(length, self.size - offset)
        if length <= 0:
            return b""
        if self.file is None:
            return self.whole[offset : offset + length]
        return bytes(self.file.read_range(offset, length))

    def chunks(self, offset: int, length: int) -> Iterator[bytes]:
        """The same part in pieces, each read when it is asked for."""
        step = limits.BLOB_RANGE_BYTES_MAX
        end = min(self.size, offset + length)
        for start in range(offset, end, step):
            yield self.read(start, min(step, end - start))


def blob_at(dataset: LanceDataset, schema: pa.Schema, address: int, column: str, number: int) -> StoredBlob | None:
    """The blob in one cell.

    Args:
        dataset (LanceDataset): the version.
        schema (pa.Schema): its columns, as the house knows them.
        address (int): of a living row.
        column (str): a column of bytes.
        number (int): by which data files know the column.

    Returns:
        StoredBlob | None: None where the cell has no value.
    """
    fragment = dataset.get_fragment(address >> 32)
    lies_in = "" if fragment is None else "/".join(key_of(fragment.metadata))
    place = f"{lies_in} {address & 0xFFFF_FFFF} {number}"
    identity = blake2b(place.encode(), digest_size=16).hexdigest()
    if is_blob(schema.field(column)):
        file = dataset.take_blobs(column, addresses=[address])[0]
        return None if file is None else StoredBlob(int(file.size()), identity, file)
    value = dataset._take_rows([address], columns=[column]).column(column)[0].as_py()
    return None if value is None else StoredBlob(len(value), identity, whole=value)
