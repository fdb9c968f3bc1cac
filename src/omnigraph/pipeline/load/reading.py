"""What one task reads: a piece of a file, as rows of tables, a block at a time."""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.ids import decode, encode
from omnigraph.pipeline.load.batches import Batch
from omnigraph.pipeline.load.blocks import Block, Piece, blocks_of, unpacked
from omnigraph.pipeline.load.columnar import LineReader
from omnigraph.pipeline.load.permissive import permissive_records
from omnigraph.pipeline.load.problems import Problem
from omnigraph.pipeline.load.tabular import Columns, frame_records, tabular_records
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
        block_bytes: about how much is read at once.
        external_blobs: which places blobs may lie at.
        keeps_references: whether blobs that lie elsewhere stay there.
    """

    accepted: Accepted
    load: str
    columns: Columns | None = None
    block_bytes: int = limits.LOAD_BLOCK_BYTES
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS
    keeps_references: bool = False


class PieceIds:
    """Generate ids from a load, a piece of it, and a counter, so that a piece read twice has the same ids."""

    def __init__(self, load: str, piece: int | str) -> None:
        self._time = decode(load) >> _CHANCE_BITS << _CHANCE_BITS
        self._seed = f"{load}/{piece}/"
        self._count = 0

    def new(self) -> str:
        """The next one."""
        self._count += 1
        chance = hashlib.blake2b(f"{self._seed}{self._count}".encode(), digest_size=_CHANCE_BITS // 8).digest()
        return encode(self._time | int.from_bytes(chance, "big"))


def rows_of(piece: Piece, reading: Reading) -> Iterator[list[TypedRows | Problem]]:
    """Yield the rows of a piece of a file: for each block, rows by type, and the problems of records."""
    return _typed(_records(piece, reading), reading, piece.index, piece.source.index)


def frame_rows(
    batches: Iterator[pa.RecordBatch], columns: Columns, reading: Reading, part: str, *, types: pa.Schema, name: str
) -> Iterator[list[TypedRows | Problem]]:
    """Yield the rows of a partition of a frame; records are numbered from one."""
    return _typed(([batch] for batch in frame_records(batches, columns, types, name)), reading, part, 0)


def line_rows(batches: Iterator[pa.RecordBatch], reading: Reading, part: str) -> Iterator[list[TypedRows | Problem]]:
    """Yield the rows of a partition of a frame of JSON lines; lines are numbered from one."""
    reader = LineReader(reading.accepted.schema, 0)

    def records() -> Iterator[list[Batch | Problem]]:
        before = 0
        for batch in batches:
            lines = [line.encode() + b"\n" for line in batch.column(0).to_pylist() if line is not None]
            ends = np.cumsum([len(line) for line in lines])
            found: list[Batch | Problem] = []
            for record in reader.read(Block(0, b"".join(lines))) if lines else ():
                if isinstance(record, Problem):
                    number = before + 1 + int(np.searchsorted(ends, record.position, "right"))
                    found.append(replace(record, position=number))
                else:
                    numbers = before + 1 + np.searchsorted(ends, record.positions, "right")
                    found.append(replace(record, positions=numbers))
            before += len(lines)
            yield found

    return _typed(records(), reading, part, 0)


def _typed(
    records: Iterable[Sequence[Batch | Problem]], reading: Reading, part: int | str, source: int
) -> Iterator[list[TypedRows | Problem]]:
    blobs = BlobIngress(reading.external_blobs, keeps_references=reading.keeps_references)
    typing = Typing(reading.accepted, PieceIds(reading.load, part), source, blobs)
    for found in records:
        batches = [record for record in found if isinstance(record, Batch)]
        problems: list[TypedRows | Problem] = [record for record in found if isinstance(record, Problem)]
        yield problems + list(typing.typed(batches))


def _records(piece: Piece, reading: Reading) -> Iterator[list[Batch | Problem]]:
    source, schema = piece.source, reading.accepted.schema
    columns = reading.columns
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
