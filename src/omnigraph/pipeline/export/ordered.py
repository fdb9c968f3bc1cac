"""The rows of a table in the order of their ids, some at a time."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import limits
from omnigraph.storage.tables.table import ADDRESS, ID, Table


def rows_in_order(table: Table, *, sort_bytes_max: int = limits.EXPORT_SORT_BYTES_MAX) -> Iterator[pa.RecordBatch]:
    """Every row, by ascending id.

    A small table is sorted whole. Of a large one only ids and addresses are, so that memory follows the number of
    rows and not their width; the rows are then fetched in that order.

    Args:
        table: the version to read.
        sort_bytes_max: what counts as small.

    Yields:
        pa.RecordBatch: rows; never more than a moderate number of bytes.
    """
    if table.pin.bytes <= sort_bytes_max and table.count() <= limits.ID_PASS_ROWS_MAX:
        yield from moderate(table.scan().sort_by(ID))
        return
    placed = table.scan(columns=[ID], with_addresses=True)
    order = pc.sort_indices(placed, sort_keys=[(ID, "ascending")])
    addresses: Any = placed.column(ADDRESS).take(order).combine_chunks()
    del placed, order
    for start in range(0, len(addresses), limits.EXPORT_BATCH_ROWS_MAX):
        here = np.sort(addresses.slice(start, limits.EXPORT_BATCH_ROWS_MAX).to_numpy())
        yield from moderate(table.rows_at(here.tolist()).sort_by(ID))


def moderate(rows: pa.Table) -> Iterator[pa.RecordBatch]:
    """Rows cut into batches that are neither long nor heavy.

    Args:
        rows: any number of rows.

    Yields:
        pa.RecordBatch: each in one piece, whatever the pieces of the table were.
    """
    if not len(rows):
        return
    fits = limits.EXPORT_BATCH_BYTES * len(rows) // max(1, rows.nbytes)
    step = max(1, min(limits.EXPORT_BATCH_ROWS_MAX, fits))
    for start in range(0, len(rows), step):
        yield rows.slice(start, step).combine_chunks().to_batches()[0]
