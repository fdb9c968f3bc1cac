"""Columns on their way between tables and Spark, which has no unsigned numbers, no vectors and finer instants.

table                         Spark
UInt32, UInt64                bigint, decimal(20)
fixed-size list of floats     array of floats
instant in milliseconds       timestamp, in microseconds
LargeBinary                   binary
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_fixed_size_lists: Any = pa.FixedSizeListArray.from_arrays
_DECIMAL_U64 = pa.decimal128(20, 0)


def spark_schema(columns: pa.Schema, names: Sequence[str] | None = None) -> StructType:
    """How Spark sees columns of a table.

    Args:
        columns: the table's.
        names: which of them, in which order; all by default.

    Returns:
        StructType: the same names; what a table never leaves out is never null.
    """
    chosen = columns.names if names is None else names
    plain = [pa.field(name, _plain(columns.field(name).type), columns.field(name).nullable) for name in chosen]
    return from_arrow_schema(pa.schema(plain), prefer_timestamp_ntz=False)


def arrow_schema(columns: StructType) -> pa.Schema:
    """The Arrow columns that Spark wants for columns of its own.

    Args:
        columns: Spark's.

    Returns:
        pa.Schema: instants in UTC.
    """
    return to_arrow_schema(columns, timezone="UTC")


def cast_batch(rows: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    """Rows in exactly these columns.

    Args:
        rows: has columns of these names, perhaps of other types, perhaps more.
        columns: what is wanted.

    Returns:
        pa.RecordBatch: the same values.

    Raises:
        pa.ArrowInvalid: a value has no place in its new type.
    """
    arrays: list[Any] = [cast_array(rows.column(field.name), field.type) for field in columns]
    return pa.RecordBatch.from_arrays(arrays, schema=columns)


def table_columns(columns: pa.Schema, table: pa.Schema) -> pa.Schema:
    """Columns that came from Spark, in the types of a table where Spark has none like them.

    Args:
        columns: as Spark has them.
        table: the table's.

    Returns:
        pa.Schema: the same names; everything but decimals of whole numbers is left to whoever checks the rows.
    """
    return pa.schema([pa.field(field.name, _of_table(field, table)) for field in columns])


def _of_table(field: "pa.Field[Any]", table: pa.Schema) -> pa.DataType:
    known = table.field(field.name).type if field.name in table.names else None
    whole = pa.types.is_decimal(field.type) and field.type.scale == 0
    return known if known is not None and whole and pa.types.is_integer(known) else field.type


def cast_array(column: "pa.Array[Any]", to: pa.DataType) -> "pa.Array[Any]":
    """Values in another type."""
    if column.type == to:
        return column
    if pa.types.is_fixed_size_list(column.type) and not pa.types.is_fixed_size_list(to):
        # Directly, a null of a fixed size would keep its places in the list of floats.
        return column.cast(pa.list_(pa.field("item", column.type.value_type))).cast(to)
    if pa.types.is_fixed_size_list(to):
        return _vectors(column, to)
    # Spark's instants are finer than ours; what is finer than a millisecond is cut, as everywhere.
    return column.cast(to, safe=not pa.types.is_timestamp(to))


def _vectors(column: "pa.Array[Any]", to: pa.DataType) -> "pa.Array[Any]":
    """Lists as lists of a fixed size. By hand: Arrow's own cast dies of a column that has nulls and no values."""
    kind: Any = to  # the stubs know sizes only of types that are written out
    size, there = kind.list_size, column.is_valid().to_numpy(zero_copy_only=False)
    found = pc.list_flatten(column).cast(kind.value_type).to_numpy(zero_copy_only=False)
    if len(found) != size * int(there.sum()):
        raise pa.ArrowInvalid(f"a vector does not have {size} dimensions")
    values = np.zeros(size * len(column), found.dtype)
    values[np.repeat(there, size)] = found
    made: pa.Array[Any] = _fixed_size_lists(pa.array(values, kind.value_type), type=to, mask=pa.array(~there))
    return made


def _plain(of: pa.DataType) -> pa.DataType:
    if pa.types.is_uint32(of):
        return pa.int64()
    if pa.types.is_uint64(of):
        return _DECIMAL_U64
    if pa.types.is_large_binary(of):
        return pa.binary()
    if pa.types.is_fixed_size_list(of) or pa.types.is_list(of):
        return pa.list_(_plain(of.value_type))
    return of
