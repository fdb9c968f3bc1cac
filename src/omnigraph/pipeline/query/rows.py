"""Rows of a plan as a DataFrame: which column holds which id, property, path or hidden value.

Columns have generated names that no two frames share: variables may differ in case only, which Spark's names may not,
and a frame can be joined with another that was made of it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import count
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)
from pyspark.sql.types import StructType

from omnigraph.pipeline.columns import spark_schema


class Kind(StrEnum):
    """What a column holds."""

    ID = "id"
    PROPERTY = "property"
    PATH = "path"
    HIDDEN = "hidden"
    OUTPUT = "output"


class Key(NamedTuple):
    """The meaning of a column: of which variable, and which property; hidden and result columns by name or number."""

    kind: Kind
    name: str
    property: str = ""


@dataclass(frozen=True, slots=True)
class Cell:
    """A column: its generated name, the Arrow type of its values in process, and whether they may be null."""

    column: str
    type: pa.DataType
    nullable: bool = True


class Names:
    """Generated column names."""

    def __init__(self) -> None:
        self._numbers = count()

    def new(self) -> str:
        """Make a name that no column has yet."""
        return f"c{next(self._numbers)}"


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of a plan.

    Attributes:
        frame: has at least one column.
        cells: the columns that mean something.
        is_start: True for the one empty row that a plan starts with.
    """

    frame: DataFrame
    cells: Mapping[Key, Cell]
    is_start: bool = False

    def column(self, key: Key) -> Column:
        """Return the column with this meaning."""
        return F.col(self.cells[key].column)

    def with_frame(self, frame: DataFrame) -> "Rows":
        """Return other rows with the same columns."""
        return Rows(frame, self.cells)

    def only(self, keys: Iterable[Key]) -> "Rows":
        """Keep the columns with these meanings; one of the others where there are none."""
        kept = {key: self.cells[key] for key in dict.fromkeys(keys) if key in self.cells}
        return Rows(self.frame.select(*(columns_of(kept) or self.frame.columns[:1])), kept)

    def renamed(self, names: Names) -> "Rows":
        """Return the rows under fresh column names, to join them with rows they were made of."""
        fresh = {column: names.new() for column in columns_of(self.cells)}
        columns = [F.col(column).alias(name) for column, name in fresh.items()]
        cells = {key: replace(cell, column=fresh[cell.column]) for key, cell in self.cells.items()}
        return Rows(self.frame.select(*(columns or [F.lit(1).alias(names.new())])), cells)

    def identity(self) -> list[Key]:
        """Return the columns that identify a row: properties follow from ids."""
        return [key for key in self.cells if key.kind is not Kind.PROPERTY]

    def distinct(self) -> "Rows":
        """Remove duplicate rows."""
        return self.with_frame(self.frame.dropDuplicates([self.cells[key].column for key in self.identity()]))


def columns_of(cells: Mapping[Key, Cell]) -> list[str]:
    """Return the names of columns; one may hold an id and the key that is equal to it."""
    return list(dict.fromkeys(cell.column for cell in cells.values()))


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Return a type that Spark has: nulls alone become texts."""
    return pa.string() if pa.types.is_null(type_) else type_


def struct_of(cells: Iterable[Cell]) -> StructType:
    """Return how Spark sees columns."""
    return spark_schema(pa.schema([pa.field(cell.column, plain_type(cell.type)) for cell in cells]))


def match(left: Rows, right: Rows, keys: Iterable[Key]) -> Column:
    """Return the condition that two rows agree on these columns; null equals null."""
    condition = F.lit(True)  # noqa: FBT003  (Spark's own)
    for number, key in enumerate(keys):
        one, other = left.column(key), right.column(key)
        nullable = left.cells[key].nullable and right.cells[key].nullable
        equal = one.eqNullSafe(other) if nullable else one == other
        condition = equal if number == 0 else condition & equal
    return condition
