"""What one task reads: a piece of a file, as rows of tables, a block at a time."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.ids import decode, encode
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.blocks import Piece, blocks_of, unpacked
from omnigraph.pipeline.load.columnar import LineReader
from omnigraph.pipeline.load.permissive import permissive_records
from omnigraph.pipeline.load.problems import Problem
from omnigraph.pipeline.load.tabular import Columns, tabular_records
from omnigraph.pipeline.load.typed import TypedRows, Typing
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, BlobIngress, ExternalBlobPolicy
from omnigraph.transaction.accepted import Accepted

_CHANCE_BITS = 80


@dataclass(frozen=True, slots=True)
class Reading:
    """How every piece of a load is read.

    Attributes:
        accepted: the schema.
        load: a fresh id of the load; ids of entities follow from it, so that a piece read twice gives the same rows.
        columns: whose rows files with columns hold.
        tables: the same of each file by itself, where they hold rows of several types.
        block_bytes: about how much is read at once.
        external_blobs: which places blobs may lie at.
        keeps_references: whether blobs that lie elsewhere stay there.
    """

    accepted: Accepted
    load: str
    columns: Columns | None = None
    tables: tuple[Columns, ...] = ()
    block_bytes: int = limits.LOAD_BLOCK_BYTES
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS
    keeps_references: bool = False


class PieceIds:
    """Ids that follow from a load, a piece of it, and how many were asked for before."""

    def __init__(self, load: str, piece: int) -> None:
        self._time = decode(load) >> _CHANCE_BITS << _CHANCE_BITS
        self._seed = f"{load}/{piece}/"
        self._count = 0

    def new(self) -> str:
        """The next one."""
        self._count += 1
        chance = hashlib.blake2b(f"{self._seed}{self._count}".encode(), digest_size=_CHANCE_BITS // 8).digest()
        return encode(self._time | int.from_bytes(chance, "big"))


def rows_of(piece: Piece, reading: Reading) -> Iterator[list[TypedRows | Problem]]:
    """The rows of a piece.

    Args:
        piece (Piece): what to read.
        reading (Reading): how.

    Yields:
        list[TypedRows | Problem]: of each block, rows by type, and what to say of records that are none.
    """
    blobs = BlobIngress(reading.external_blobs, keeps_references=reading.keeps_references)
    typing = Typing(reading.accepted, PieceIds(reading.load, piece.index), piece.source.index, blobs)
    for found in _records(piece, reading):
        batches = [each for each in found if isinstance(each, Batch)]
        problems: list[TypedRows | Problem] = [each for each in found if isinstance(each, Problem)]
        yield problems + list(typing.typed(batches))


def _records(piece: Piece, reading: Reading) -> Iterator[list[Batch | Problem]]:
    source, schema = piece.source, reading.accepted.schema
    columns = reading.tables[source.index] if reading.tables else reading.columns
    if columns is not None:
        for batch in tabular_records(piece, columns):
            yield [batch]
    elif source.is_lines:
        reader = LineReader(schema, source.index)
        for block in blocks_of(piece, block_bytes=reading.block_bytes):
            yield list(reader.read(block))
    else:
        with unpacked(source) as file:
            body = file.read(-1)
        yield list(permissive_records(body, schema, source.index))
