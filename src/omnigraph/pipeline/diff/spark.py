"""The rows of one type in which two states differ, told on Spark.

Tasks read the fragments that differ, each fragment once, and spread their rows by id; further tasks compare the rows of
their share, with the very functions that compare in one process. What did not change never leaves the tasks: across a
compaction the caller gets the changes, and not the table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.branch.row_changes import RowChanges, row_changes
from omnigraph.errors import GraphError, InternalError
from omnigraph.ids import IdSource
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.pipeline.aside import aside
from omnigraph.pipeline.jobs import job_group
from omnigraph.pipeline.shares import in_shares, packed, unpacked
from omnigraph.storage.tables.delta_pieces import DeltaPiece, delta_pieces, read_delta_piece
from omnigraph.storage.tables.location import TablesLocation, location_of, tables_at
from omnigraph.storage.tables.tables import Tables

# Rows on their way, of the older or of the newer state; or what went wrong.
_Sent = tuple[bool, bytes] | GraphError
# The four tables of changes, of one share; or what went wrong.
_Told = tuple[bytes, bytes, bytes, bytes] | GraphError


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of both states; those of the other where a type is in one only."""

    older: pa.Schema
    newer: pa.Schema


@aside
def changes_on_spark(
    session: SparkSession, tables: Tables, ids: IdSource, older: Pin | None, newer: Pin | None
) -> RowChanges:
    """What happened to the rows of a type between two versions.

    Args:
        session (SparkSession): where it is found out.
        tables (Tables): of the graph.
        ids (IdSource): names the jobs.
        older (Pin | None): one version; None where the type is not there.
        newer (Pin | None): another.

    Returns:
        RowChanges: the same as one process tells, in another order.

    Raises:
        FormatError: a version is not there any more, or damaged.
        UnavailableError: Spark failed.
    """
    columns = _columns(tables, older, newer)
    pieces = delta_pieces(tables, older, newer)
    if not pieces:
        return _together([], columns)
    context = session.sparkContext
    total = sum(piece.bytes for piece in pieces)
    shares = max(context.defaultParallelism, -(-total // limits.DIFF_SHARE_BYTES), 1)
    tasks = _tasks(pieces)
    told = (
        context.parallelize(tasks, len(tasks))
        .flatMap(partial(_sent, place=location_of(tables), shares=shares, block_rows=limits.DIFF_BLOCK_ROWS))
        .partitionBy(shares, int)
        .mapPartitions(partial(_compared, columns=columns))
        .persist(StorageLevel.DISK_ONLY)
    )
    try:
        with job_group(context, ids, what="diff"):
            told.count()
            # One share at a time: all of them at once may be more than Spark hands over in one piece.
            found = list(told.toLocalIterator(prefetchPartitions=True))
    finally:
        told.unpersist()
    for each in found:
        if isinstance(each, GraphError):
            raise each
    return _together([each for each in found if not isinstance(each, GraphError)], columns)


def _columns(tables: Tables, older: Pin | None, newer: Pin | None) -> _Columns:
    schemas = [None if pin is None else tables.open(pin).schema for pin in (older, newer)]
    before, after = schemas[0] or schemas[1], schemas[1] or schemas[0]
    if before is None or after is None:
        raise InternalError("a type that is in neither of two states was to be compared")
    return _Columns(before, after)


def _tasks(pieces: Sequence[DeltaPiece]) -> list[tuple[DeltaPiece, ...]]:
    """Pieces, in groups that one task reads."""
    groups: list[tuple[DeltaPiece, ...]] = []
    filled = 0
    for piece in pieces:
        if not groups or filled + piece.bytes > limits.DIFF_TASK_BYTES:
            groups.append(())
            filled = 0
        groups[-1] += (piece,)
        filled += piece.bytes
    return groups


def _sent(
    pieces: Iterable[DeltaPiece], *, place: TablesLocation, shares: int, block_rows: int
) -> Iterator[tuple[int, _Sent]]:
    tables = tables_at(place)
    try:
        for piece in pieces:
            for block in read_delta_piece(tables, piece, block_rows=block_rows):
                for share, rows in in_shares(block, ID, shares):
                    yield share, (piece.is_newer, packed(rows))
    except GraphError as fault:
        # In Spark's own words it would lose what it is.
        yield 0, fault


def _compared(sent: Iterable[tuple[int, _Sent]], *, columns: _Columns) -> Iterator[_Told]:
    removed, added = [columns.older.empty_table()], [columns.newer.empty_table()]
    for _, each in sent:
        if isinstance(each, GraphError):
            yield each
            return
        is_newer, body = each
        (added if is_newer else removed).append(unpacked(body))
    found = row_changes(pa.concat_tables(removed), pa.concat_tables(added))
    if found.count:
        yield packed(found.inserted), packed(found.before), packed(found.after), packed(found.deleted)


def _together(shares: Iterable[tuple[bytes, bytes, bytes, bytes]], columns: _Columns) -> RowChanges:
    older, newer = columns.older.empty_table(), columns.newer.empty_table()
    tables: tuple[list[pa.Table], ...] = ([newer], [older], [newer], [older])
    for bodies in shares:
        for some, body in zip(tables, bodies, strict=True):
            some.append(unpacked(body))
    inserted, before, after, deleted = (pa.concat_tables(some) for some in tables)
    return RowChanges(inserted, before, after, deleted)
