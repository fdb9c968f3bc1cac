"""How many entities of a type differ between two versions, at the cost of what it takes to know.

Rows that lie apart are dear to fetch, each column of each row by itself. To count them, their ids are fetched, and then
one column after the other only of those that are not known to differ yet.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.branch.row_changes import differing
from omnigraph.branch.told import DiffStats
from omnigraph.model.commit import Pin
from omnigraph.model.schema import ID
from omnigraph.storage.tables.addresses import Addresses
from omnigraph.storage.tables.difference import Apart
from omnigraph.storage.tables.tables import Tables

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def counted_here(tables: Tables, older: Pin | None, newer: Pin | None) -> DiffStats | None:
    """How many entities differ.

    Args:
        tables (Tables): of the graph.
        older (Pin | None): one version; None where the type is not there.
        newer (Pin | None): another.

    Returns:
        DiffStats | None: None where so many may have been updated that it is better to read them whole.
    """
    if older is None or newer is None:
        there = newer if newer is not None else older
        assert there is not None, "a type is in one of both states"
        count = tables.open(there).count()
        return DiffStats(inserted=count) if older is None else DiffStats(deleted=count)
    apart = tables.apart(older, newer)
    removed, added = len(apart.removed_at), apart.added_rows
    if not removed or not added:
        return DiffStats(inserted=added, deleted=removed)
    if max(removed, added) > limits.COUNTED_ROWS_MAX:
        return None
    rows = apart.added()
    ids = apart.taken(apart.removed_at, [ID]).column(ID).combine_chunks()
    place = pc.index_in(rows.column(ID).combine_chunks(), value_set=ids)
    addresses = apart.removed_at[np.asarray(pc.drop_null(place))]
    updated = _updated(apart, addresses, rows.filter(pc.is_valid(place)))
    return DiffStats(added - len(addresses), updated, removed - len(addresses))


def _updated(apart: Apart, addresses: Addresses, after: pa.Table) -> int:
    """How many rows are not as they were where they lay before."""
    order = np.argsort(addresses)
    addresses, after = addresses[order], after.take(order)
    same = np.arange(len(addresses))
    for name in sorted(after.column_names, key=lambda each: _cost(after.schema.field(each).type)):
        if not len(same) or name == ID:
            continue
        if name in apart.older.schema.names:
            was = apart.taken(addresses[same], [name])
        else:
            was = pa.table({ID: pa.nulls(len(same), pa.string())})
        same = same[~differing(was, after.select([name]).take(same))]
    return len(addresses) - len(same)


def _cost(type_: "pa.DataType") -> int:
    """How dear a value of a type is to fetch, against others."""
    if pa.types.is_primitive(type_):
        return 0
    return 1 if pa.types.is_string(type_) else 2
