"""Columns as JSON shows them: dates and instants as texts, numbers that are none as words, blobs in base64."""

import math
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.storage.blob_values import as_text

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_INSTANT_TEXT = "%Y-%m-%dT%H:%M:%SZ"
_DAY_TEXT = "%Y-%m-%d"


def to_json(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[Any]:
    """The values of a column as plain JSON values, null as None.

    Args:
        column: of any type a property or a result can have.

    Returns:
        Instants like `2024-01-31T10:00:00.000Z`, days like `2024-01-31`, `"NaN"`, `"Infinity"` and `"-Infinity"` for
        floats that JSON cannot write, bytes as `base64:…`, lists as lists, and everything else as it is.
    """
    kind = column.type
    if pa.types.is_timestamp(kind):
        # In milliseconds, so that the seconds are written with exactly three places.
        return _texts(column.cast(pa.timestamp("ms", tz="UTC"), safe=False), _INSTANT_TEXT)
    if pa.types.is_date(kind):
        return _texts(column, _DAY_TEXT)
    if pa.types.is_floating(kind):
        return _floats(column)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return [None if cell is None else as_text(cell) for cell in column.to_pylist()]
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return _lists(column)
    if pa.types.is_struct(kind):
        return _structs(column)
    return column.to_pylist()


def _texts(column: "pa.Array[Any] | pa.ChunkedArray[Any]", layout: str) -> list[Any]:
    return list(pc.strftime(column, format=layout).to_pylist())


def _floats(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[Any]:
    values = column.to_pylist()
    if pc.all(pc.is_finite(column)).as_py() is not False:
        return values
    return [value if value is None or math.isfinite(value) else _word(value) for value in values]


def _word(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _lists(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[Any]:
    lengths = pc.list_value_length(column).to_pylist()
    items = iter(to_json(pc.list_flatten(column)))
    return [None if length is None else [next(items) for _ in range(length)] for length in lengths]


def _structs(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> list[Any]:
    names = [field.name for field in column.type]
    fields = [to_json(pc.struct_field(column, name)) for name in names]
    there = pc.is_valid(column).to_pylist()
    rows = zip(*fields, strict=True) if fields else (() for _ in there)
    return [dict(zip(names, row, strict=True)) if valid else None for valid, row in zip(there, rows, strict=True)]
