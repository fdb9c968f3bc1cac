"""A table read in the columns that a change of schema will give it: what a write sees of it before it is staged."""

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import ID, Property
from omnigraph.storage.conform import from_python
from omnigraph.storage.layout import arrow_type
from omnigraph.storage.tables.table import ADDRESS, Table, filter_rows

# What the addresses of rows are called while a filter judges them.
_PLACE = "__place"
# Texts in single quotes, and names in backticks outside of them.
_PARTS = re.compile(r"('(?:[^']|'')*')|`([^`]*)`")


def default_value(each: Property, text: str) -> object:
    """The value that a default's text stands for."""
    if each.type.list or each.type.is_vector:
        return _several(each, text)
    values = each.type.enum_values
    if values is not None and text not in values:
        raise InvalidRequestError(f"the @default of '{each.name}' is not among {', '.join(values)}")
    try:
        value: object = pa.array([text], pa.string()).cast(arrow_type(each.type))[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        raise InvalidRequestError(f"the @default of '{each.name}' is no {each.type}: {wrong}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequestError(f"the @default of '{each.name}' is no {each.type}: {text} is not finite")
    return value


def _several(each: Property, text: str) -> object:
    """The list or vector that a default says as JSON does."""
    problem = f"the @default of '{each.name}' is no {each.type}"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise InvalidRequestError(f"{problem}: it is not JSON: {wrong}") from None
    if not isinstance(given, list):
        raise InvalidRequestError(f"{problem}: it must be a list, like [1, 2]")
    try:
        found: object = from_python([given], each.type, each.name)[0].as_py()
    except InvalidRequestError as wrong:
        raise InvalidRequestError(f"{problem}: {wrong.message}") from None
    return found


def repeated(value: object, of: "pa.DataType", rows: int) -> "pa.Array[Any]":
    """A column with the same value, or with nothing, in every row."""
    column: pa.Array[Any] = pa.array([value], of).take(np.zeros(rows, np.int64))
    return column


@dataclass(frozen=True, slots=True)
class Reshape:
    """How the rows of a table look in other columns."""

    layout: pa.Schema  # the columns they get
    columns: Mapping[str, str]  # of those that are there, the name to the name in the table
    # of those that are not, the value that every row has; nothing by default
    values: Mapping[str, object] = field(default_factory=dict)

    def rows(self, rows: pa.Table, names: Sequence[str] | None = None) -> pa.Table:
        """Rows in the new columns."""
        fields = [self.layout.field(name) for name in self.layout.names if names is None or name in names]
        columns: list[Any] = []
        for column in fields:
            old = self.columns.get(column.name)
            if old in rows.column_names:
                columns.append(_cast(rows.column(old), column))
            else:
                columns.append(pa.chunked_array([repeated(self.values.get(column.name), column.type, rows.num_rows)]))
        made = pa.Table.from_arrays(columns, schema=pa.schema(fields))
        return made if names is None else made.select(list(names))

    def filter(self, text: str | None) -> str | None:
        """A filter over the new columns as one over the old ones; None where it is about a column that is not there."""
        if text is None:
            return None
        wanted = {found[2] for found in _PARTS.finditer(text) if found[2] is not None}
        if not wanted <= self.columns.keys():
            return None
        return _PARTS.sub(lambda found: found[1] or f"`{self.columns[found[2]]}`", text)


def _cast(column: "pa.ChunkedArray[Any]", to: "pa.Field[Any]") -> "pa.ChunkedArray[Any]":
    try:
        return column.cast(to.type)
    except pa.ArrowInvalid as fault:
        raise InvalidRequestError(
            f"a value of '{to.name}' does not fit the type {to.type} that it would get: {fault}"
        ) from fault


class ReshapedTable(Table):
    """A version in other columns. System columns are the same in both."""

    __slots__ = ("_reshape", "_table")

    def __init__(self, table: Table, reshape: Reshape) -> None:
        super().__init__(table._handle, table.pin)
        self._table = table
        self._reshape = reshape

    @property
    def schema(self) -> pa.Schema:
        """The columns it gets."""
        return self._reshape.layout

    def scan(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        limit: int | None = None,
        with_addresses: bool = False,
    ) -> pa.Table:
        """The rows in the new columns; see `Table.scan`."""
        names = self.schema.names if columns is None else list(columns)
        condition = self._reshape.filter(filter)
        if filter is not None and condition is None:
            # It is about values that no file has yet.
            rows = self._table.scan(with_addresses=True)
            whole = self._reshape.rows(rows).append_column(_PLACE, rows.column(ADDRESS))
            found = filter_rows(whole, filter, columns=[*names, _PLACE]).slice(0, limit)
            shown = found.select(names)
            return shown.append_column(ADDRESS, found.column(_PLACE)) if with_addresses else shown
        rows = self._table.scan(columns=self._old(names), filter=condition, limit=limit, with_addresses=with_addresses)
        return self._shaped(rows, names, with_addresses=with_addresses)

    def batches(
        self,
        *,
        columns: Sequence[str] | None = None,
        filter: str | None = None,
        limit: int | None = None,
        with_addresses: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The rows in the new columns, a batch at a time; see `Table.batches`."""
        names = self.schema.names if columns is None else list(columns)
        condition = self._reshape.filter(filter)
        if filter is not None and condition is None:
            rows = self.scan(columns=names, filter=filter, limit=limit, with_addresses=with_addresses)
            yield from rows.to_batches()
            return
        found = self._table.batches(
            columns=self._old(names), filter=condition, limit=limit, with_addresses=with_addresses
        )
        for batch in found:
            yield from self._shaped(pa.Table.from_batches([batch]), names, with_addresses=with_addresses).to_batches()

    def rows_at(self, addresses: Sequence[int], *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows at these addresses; see `Table.rows_at`."""
        names = self.schema.names if columns is None else list(columns)
        return self._reshape.rows(self._table.rows_at(addresses, columns=self._old(names)), names)

    def _old(self, names: Sequence[str]) -> list[str]:
        # With a column at least: rows without any have no number.
        found = [self._reshape.columns[name] for name in names if name in self._reshape.columns]
        return list(dict.fromkeys([*found, *([] if found else [ID])]))

    def _shaped(self, rows: pa.Table, names: Sequence[str], *, with_addresses: bool) -> pa.Table:
        if not names:
            return rows.select([ADDRESS] if with_addresses else [])
        shown = self._reshape.rows(rows, names)
        return shown.append_column(ADDRESS, rows.column(ADDRESS)) if with_addresses else shown
