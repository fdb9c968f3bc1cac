"""Batches of result rows: values by column, fetched lazily where possible."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import Mask, Positions, Values, concat, take
from omnigraph.execution.frame import Binding, QueryContext
from omnigraph.execution.search.query_text import TextQuery
from omnigraph.language.plan.expressions import End, Value


class LazyColumn:
    """Result column that is a column of a table: fetched on demand."""

    __slots__ = ("_bound", "_name")

    def __init__(self, bound: Binding, name: str) -> None:
        self._bound = bound
        self._name = name

    def take(self, rows: Positions) -> "LazyColumn":
        """Select rows."""
        return LazyColumn(self._bound.take(rows), self._name)

    def values(self) -> Values:
        """Fetch the values."""
        return self._bound.values(self._name)

    @property
    def nbytes(self) -> int:
        """Size in bytes before it is fetched."""
        return self._bound.ordinals.nbytes


class DictionaryColumn:
    """Dictionary-encoded result column: decoded on demand."""

    __slots__ = ("_places", "_values")

    def __init__(self, values: Values, places: Positions) -> None:
        self._values = values
        self._places = places

    def take(self, rows: Positions) -> "DictionaryColumn":
        """Select rows."""
        return DictionaryColumn(self._values, self._places[rows])

    def values(self) -> Values:
        """Decode the values; null where the code is `NONE`."""
        return take(self._values, self._places, absent=True)

    @property
    def nbytes(self) -> int:
        """Size in bytes before it is decoded."""
        return self._places.nbytes


OutputColumn: TypeAlias = "Values | LazyColumn | DictionaryColumn"


class Results:
    """Batch of result rows."""

    __slots__ = ("_context", "_fetched", "columns", "size")

    def __init__(self, context: QueryContext, size: int, columns: Sequence[OutputColumn]) -> None:
        self._context = context
        self.size = size
        self.columns = columns
        self._fetched: dict[int, Values] = {}

    @property
    def now_ms(self) -> int:
        """Start of the query, milliseconds since 1970."""
        return self._context.now_ms

    def parameter(self, name: str) -> Value:
        """Return the value of a parameter."""
        return self._context.parameter(name)

    def output(self, position: int) -> Values:
        """Return a column's values."""
        column = self.columns[position]
        if isinstance(column, pa.Array):
            return column
        found = self._fetched.get(position)
        if found is None:
            found = self._fetched[position] = column.values()
        return found

    def take(self, rows: Positions) -> "Results":
        """Select rows by position."""
        return Results(
            self._context,
            len(rows),
            [take(column, rows) if isinstance(column, pa.Array) else column.take(rows) for column in self.columns],
        )

    def where(self, mask: Mask) -> "Results":
        """Select rows by a mask."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    @property
    def nbytes(self) -> int:
        """Size of the rows in bytes."""
        return sum(column.nbytes for column in self.columns)

    def property_of(self, variable: str, name: str) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no property ${variable}.{name}")

    def id_of(self, variable: str) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no variable ${variable}")

    def endpoint_of(self, variable: str, end: End) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no endpoint '{end}' of ${variable}")

    def is_absent(self, variable: str) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no variable ${variable}")

    def path_lengths(self, variable: str) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no path ${variable}")

    def path_nodes(self, variable: str) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results have no path ${variable}")

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Fail: results have no variables."""
        raise InternalError(f"results cannot be searched: {query.function}() of ${variable}.{name}")

    def computed(self, name: str) -> Values:
        """Fail: results have no hidden columns."""
        raise InternalError(f"results have no hidden column {name}")


def concat_results(batches: Sequence[Results]) -> Results:
    """Concatenate batches (at least one)."""
    first = batches[0]
    if len(batches) == 1:
        return first
    columns = [concat([batch.output(position) for batch in batches]) for position in range(len(first.columns))]
    return Results(first._context, sum(batch.size for batch in batches), columns)
