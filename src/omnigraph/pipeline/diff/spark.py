"""Compare two versions of a type on Spark.

Tasks read the fragments that differ, each fragment once, and spread their rows by id; further tasks compare the rows of
their partition, with the functions that compare in one process. What did not change never leaves the tasks: across a
compaction the caller gets the changes, and not the table.
"""

import pickle
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.branch.row_changes import RowChanges, row_changes
from omnigraph.errors import GraphError, InternalError
from omnigraph.ids import IdSource
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.pipeline.distribute import scan
from omnigraph.pipeline.interruptible import interruptible
from omnigraph.pipeline.jobs import job_group
from omnigraph.storage.tables.delta_pieces import DeltaPiece, delta_pieces, read_delta_piece
from omnigraph.storage.tables.location import location_of, tables_at
from omnigraph.storage.tables.tables import Tables

_SPREAD = "share int, is_newer boolean, rows binary"
_CHANGES = ("inserted", "before", "after", "deleted")
_SHARES_MIN = 8


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of both states; those of the other where a type is in one only."""

    older: pa.Schema
    newer: pa.Schema


@interruptible
def changes_on_spark(
    session: SparkSession, tables: Tables, ids: IdSource, older: Pin | None, newer: Pin | None
) -> RowChanges:
    """Return the changes of the rows of a type between two versions: the same as in one process, in another order.

    Args:
        older: None if the type is not there.
        newer: likewise.

    Raises:
        FormatError: a version does not exist any more, or is damaged.
        UnavailableError: Spark failed.
    """
    columns = _columns(tables, older, newer)
    pieces = delta_pieces(tables, older, newer)
    if not pieces:
        return _together([], columns)
    shares = max(_SHARES_MIN, -(-sum(piece.bytes for piece in pieces) // limits.DIFF_SHARE_BYTES))
    place, block_rows = location_of(tables), limits.DIFF_BLOCK_ROWS

    def spread(some: Sequence[DeltaPiece]) -> Iterator[pa.RecordBatch]:
        try:
            for piece in some:
                for block in read_delta_piece(tables_at(place), piece, block_rows=block_rows):
                    for share, rows in _hash_partition(block, shares):
                        yield _sent(share, _packed(rows), is_newer=piece.is_newer)
        except GraphError as fault:  # as an exception, Spark would turn it into text
            yield _sent(0, pickle.dumps(fault), is_newer=None)

    def compare(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        removed, added = [columns.older.empty_table()], [columns.newer.empty_table()]
        for batch in batches:
            for row in batch.to_pylist():
                if row["is_newer"] is None:
                    yield _changes_batch({"inserted": row["rows"]})
                    return
                (added if row["is_newer"] else removed).append(_unpacked(row["rows"]))
        found = row_changes(pa.concat_tables(removed), pa.concat_tables(added))
        if found.count:
            yield _changes_batch({name: _packed(getattr(found, name)) for name in _CHANGES})

    changes = (
        scan(session, _tasks(pieces), spread, _SPREAD)
        .repartition(shares, "share")
        .mapInArrow(compare, ", ".join(f"{name} binary" for name in _CHANGES))
        .persist(StorageLevel.DISK_ONLY)
    )
    try:
        with job_group(session, ids, what="diff"):
            changes.count()
            # One partition at a time: all of them at once may be more than Spark hands over in one piece.
            found = list(changes.toLocalIterator(prefetchPartitions=True))
    finally:
        changes.unpersist()
    for row in found:
        if row["before"] is None:
            raise pickle.loads(row["inserted"])
    return _together(found, columns)


def _sent(share: int, body: bytes, *, is_newer: bool | None) -> pa.RecordBatch:
    """Return rows on their way to the task of their share; without `is_newer`, a pickled error."""
    return pa.RecordBatch.from_pydict(
        {"share": pa.array([share], pa.int32()), "is_newer": pa.array([is_newer], pa.bool_()), "rows": [body]}
    )


def _changes_batch(changes: Mapping[str, bytes]) -> pa.RecordBatch:
    """Return the tables of changes of a partition; with `inserted` alone, a pickled error."""
    return pa.RecordBatch.from_pydict({name: pa.array([changes.get(name)], pa.binary()) for name in _CHANGES})


def _columns(tables: Tables, older: Pin | None, newer: Pin | None) -> _Columns:
    schemas = [None if pin is None else tables.open(pin).schema for pin in (older, newer)]
    before, after = schemas[0] or schemas[1], schemas[1] or schemas[0]
    if before is None or after is None:
        raise InternalError("a type that is in neither of two states was to be compared")
    return _Columns(before, after)


def _tasks(pieces: Sequence[DeltaPiece]) -> list[tuple[DeltaPiece, ...]]:
    """Return pieces in groups that one task reads."""
    groups: list[tuple[DeltaPiece, ...]] = []
    filled = 0
    for piece in pieces:
        if not groups or filled + piece.bytes > limits.DIFF_TASK_BYTES:
            groups.append(())
            filled = 0
        groups[-1] += (piece,)
        filled += piece.bytes
    return groups


def _hash_partition(rows: pa.Table, shares: int) -> Iterator[tuple[int, pa.Table]]:
    """Yield the rows of each share, by the checksum of their ids.

    Rows travel as Arrow's own bytes, because Spark has no unsigned numbers, vectors or finer instants.
    """
    ids: list[Any] = rows.column(ID).cast(pa.binary()).to_pylist()
    share = np.fromiter(map(zlib.crc32, ids), np.int64, len(ids)) % shares
    order = np.argsort(share, kind="stable")
    ordered = rows.take(order)
    ends = np.searchsorted(share[order], np.arange(shares + 1))
    for number in range(shares):
        if ends[number] < ends[number + 1]:
            yield number, ordered.slice(int(ends[number]), int(ends[number + 1] - ends[number]))


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def _unpacked(body: bytes) -> pa.Table:
    return pa.ipc.open_stream(body).read_all()


def _together(partitions: Iterable[Any], columns: _Columns) -> RowChanges:
    older, newer = columns.older.empty_table(), columns.newer.empty_table()
    tables = {"inserted": [newer], "before": [older], "after": [newer], "deleted": [older]}
    for row in partitions:
        for name, some in tables.items():
            some.append(_unpacked(row[name]))
    return RowChanges(*(pa.concat_tables(tables[name]) for name in _CHANGES))
