"""Rows of the result: values by column, fetched late where they can be."""

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.arrays import Mask, Positions, Values, joined, take
from omnigraph.execution.frame import Bound, Setting
from omnigraph.execution.search.asked import TextQuery
from omnigraph.language.plan.expressions import End, Value


class Late:
    """A column of the result that is a column of a table: fetched when its values are asked for."""

    __slots__ = ("_bound", "_name")

    def __init__(self, bound: Bound, name: str) -> None:
        self._bound = bound
        self._name = name

    def take(self, rows: Positions) -> "Late":
        """Of some rows."""
        return Late(self._bound.take(rows), self._name)

    def values(self) -> Values:
        """The values themselves."""
        return self._bound.values(self._name)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes before it is fetched."""
        return self._bound.ordinals.nbytes


class Picked:
    """A column of the result whose values are some of a few: fetched when asked for."""

    __slots__ = ("_places", "_values")

    def __init__(self, values: Values, places: Positions) -> None:
        self._values = values
        self._places = places

    def take(self, rows: Positions) -> "Picked":
        """Of some rows."""
        return Picked(self._values, self._places[rows])

    def values(self) -> Values:
        """The values themselves; null where the place is `NONE`."""
        return take(self._values, self._places, absent=True)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes before it is fetched."""
        return self._places.nbytes


OutputColumn: TypeAlias = "Values | Late | Picked"


class Results:
    """A batch of rows of the result."""

    __slots__ = ("_fetched", "_setting", "columns", "size")

    def __init__(self, setting: Setting, size: int, columns: Sequence[OutputColumn]) -> None:
        self._setting = setting
        self.size = size
        self.columns = columns
        self._fetched: dict[int, Values] = {}

    @property
    def now_ms(self) -> int:
        """When the query began."""
        return self._setting.now_ms

    def parameter(self, name: str) -> Value:
        """The value of a parameter."""
        return self._setting.parameter(name)

    def output(self, position: int) -> Values:
        """A column's values."""
        column = self.columns[position]
        if isinstance(column, pa.Array):
            return column
        found = self._fetched.get(position)
        if found is None:
            found = self._fetched[position] = column.values()
        return found

    def take(self, rows: Positions) -> "Results":
        """Some of its rows, in any order."""
        return Results(
            self._setting,
            len(rows),
            [take(each, rows) if isinstance(each, pa.Array) else each.take(rows) for each in self.columns],
        )

    def where(self, mask: Mask) -> "Results":
        """The rows where the mask is true."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    @property
    def nbytes(self) -> int:
        """How many bytes its rows take."""
        return sum(each.nbytes for each in self.columns)

    def property_of(self, variable: str, name: str) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"${variable}.{name} was asked of a result")

    def id_of(self, variable: str) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"${variable} was asked of a result")

    def endpoint_of(self, variable: str, end: End) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"the end '{end}' of ${variable} was asked of a result")

    def is_absent(self, variable: str) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"${variable} was asked of a result")

    def path_lengths(self, variable: str) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"the length of ${variable} was asked of a result")

    def path_nodes(self, variable: str) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"the nodes of ${variable} were asked of a result")

    def text_matches(self, variable: str, name: str, query: TextQuery) -> Values:
        """Nothing: results have no variables."""
        raise InternalError(f"{query.function}() of ${variable}.{name} was asked of a result")

    def computed(self, name: str) -> Values:
        """Nothing: results have no hidden columns."""
        raise InternalError(f"{name} was asked of a result")


def all_results(batches: Sequence[Results]) -> Results:
    """The rows of several batches, one after the other; at least one batch."""
    first = batches[0]
    if len(batches) == 1:
        return first
    columns = [joined([batch.output(position) for batch in batches]) for position in range(len(first.columns))]
    return Results(first._setting, sum(batch.size for batch in batches), columns)
