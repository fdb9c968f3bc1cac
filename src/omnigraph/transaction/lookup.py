"""Looking rows up by the values of one column."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import limits
from omnigraph.storage.instants import milliseconds
from omnigraph.storage.tables.table import ADDRESS, quoted
from omnigraph.storage.tables.tables import Table


def rows_with(
    table: Table,
    column: str,
    values: "pa.Array[Any]",
    *,
    columns: Sequence[str] | None = None,
    with_addresses: bool = False,
) -> pa.Table:
    """The rows that have one of these values in a column; null is no value, and both zeros are one.

    Few values are looked up, through the index where there is one; many are found in one pass over the table.

    `values`: of the column's own type.
    `columns`: which columns to return; all by default.
    `with_addresses`: add the column `_rowaddr`.

    Returns:
        The rows, in no promised order.
    """
    wanted = pc.drop_null(pc.unique(values))
    if pa.types.is_floating(wanted.type):
        wanted = pa.concat_arrays([wanted, pc.negate(wanted.filter(pc.equal(wanted, pa.scalar(0.0, wanted.type))))])
    if len(wanted) <= limits.ID_FILTER_IDS_MAX:
        literals = [literal(value) for value in wanted.to_pylist()]
        if all(text is not None for text in literals):
            listed = ", ".join(text for text in literals if text is not None)
            condition = f"{identifier(column)} IN ({listed})" if listed else "false"
            return table.scan(columns=columns, filter=condition, with_addresses=with_addresses)
    names = table.schema.names if columns is None else list(columns)
    read = names if column in names else [*names, column]
    returned = [*names, ADDRESS] if with_addresses else names
    found = [
        batch.filter(pc.is_in(batch.column(column), value_set=wanted)).select(returned)
        for batch in table.batches(columns=read, with_addresses=with_addresses)
    ]
    if found:
        return pa.Table.from_batches(found)
    return table.scan(columns=names, filter="false", with_addresses=with_addresses)


def identifier(column: str) -> str:
    """A column's name in the filter language, whatever its letters."""
    return f"`{column}`"


def literal(value: object) -> str | None:
    """A value in the filter language; None where it has no spelling that means exactly this value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Others would be read as floats.
            return str(value) if abs(value) < 2**63 else None
        case str():
            return quoted(value)
        case datetime():
            # A literal of that type counts nanoseconds and ends in the year 2262.
            return f"to_timestamp_millis({milliseconds(value)})"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return None
