"""The filter language of table scans, applied to rows that are in no table yet.

Rows pending in a write must be judged by exactly the rules that judge committed rows, so the same engine evaluates
both: the rows become a table in memory that nobody else can see.
"""

from collections.abc import Sequence

import lance
import pyarrow as pa

from omnigraph.storage.tables.errors import mapped


def filter_rows(rows: pa.Table, filter: str | None, *, columns: Sequence[str] | None = None) -> pa.Table:
    """The rows that match `filter`, with the columns asked for."""
    if filter is not None and rows.num_rows:
        with mapped("pending rows"):
            rows = lance.write_dataset(rows, "memory://").scanner(filter=filter, blob_handling="all_binary").to_table()
    return rows if columns is None else rows.select(list(columns))
