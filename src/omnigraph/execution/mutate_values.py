"""Values that statements assign, as columns of the table."""

import math
import struct
from typing import Any

import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.arrays import Values, pc
from omnigraph.language.plan.expressions import Value
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_BOUNDS, PropertyType, Scalar
from omnigraph.storage.conform import from_arrow
from omnigraph.storage.external_blobs import BlobIngress
from omnigraph.storage.layout import arrow_name, arrow_type


def plain_column(value: Value, of: PropertyType) -> "pa.Array[Any] | None":
    """One value that is of its property's type without any doubt, as a column; None for every other.

    The same as `assigned_column` gives, without asking a kernel.
    """
    if of.list:
        return None
    match of.scalar, value:
        case Scalar.STRING, str():
            return one_text(value)
        case Scalar.BOOL, bool():
            pass
        case Scalar.F64, float() if math.isfinite(value):
            pass
        case ((Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64), int()) if not isinstance(value, bool):
            least, most = INTEGER_BOUNDS[of.scalar]
            if not least <= value <= most:
                return None
        case _:
            return None
    return _one_number(value, of)


def one_text(text: str) -> "pa.Array[Any]":
    """A column of one text; a tenth of the time of Arrow's own call, which looks into a list of anything."""
    try:
        raw = text.encode()
    except UnicodeEncodeError:
        return pa.array([text], pa.string())  # half of a surrogate pair: Arrow says what is wrong
    ends = pa.py_buffer(_TEXT_ENDS.pack(0, len(raw)))
    return pa.Array.from_buffers(pa.string(), 1, [None, ends, pa.py_buffer(raw)])


def _one_number(value: float, of: PropertyType) -> "pa.Array[Any]":
    return pa.Array.from_buffers(arrow_type(of), 1, [None, pa.py_buffer(_PACKED[of.scalar].pack(value))])


_TEXT_ENDS = struct.Struct("=ii")
# Eight bytes each, as much as Arrow reads at once.
_PACKED = {
    Scalar.BOOL: struct.Struct("=?7x"),
    Scalar.I32: struct.Struct("=i4x"),
    Scalar.U32: struct.Struct("=I4x"),
    Scalar.I64: struct.Struct("=q"),
    Scalar.U64: struct.Struct("=Q"),
    Scalar.F64: struct.Struct("=d"),
}


def assigned_column(values: Values, of: PropertyType, name: str, blobs: BlobIngress | None = None) -> "pa.Array[Any]":
    """Computed values in the type their property has in the table.

    Args:
        values: one per row.
        of: the property's type.
        name: its name.
        blobs: what becomes of addresses of blobs; none is allowed by default.

    Returns:
        As many values.

    Raises:
        InvalidRequestError: a value does not fit.
    """
    if of.scalar in INTEGER_BOUNDS and pa.types.is_integer(values.type):
        _refuse_outside(values, of)
    if of.is_vector and not pa.types.is_null(values.type):
        for length in pc.list_value_length(values).to_pylist():
            if length not in (None, of.vector_dim):
                raise InvalidRequestError(f"vector property expects {of.vector_dim} dimensions, got {length}")
    if of.scalar in FLOAT_SCALARS and pa.types.is_floating(values.type):
        wrong = values.filter(pc.invert(pc.is_finite(values)))
        if len(wrong):
            raise InvalidRequestError(f"value {wrong[0].as_py()} for property '{name}' must be finite")
    return from_arrow(values, of, name, blobs)


def _refuse_outside(values: Values, of: PropertyType) -> None:
    least, most = INTEGER_BOUNDS[of.scalar]
    for extreme in (pc.min(values).as_py(), pc.max(values).as_py()):
        if extreme is not None and not least <= extreme <= most:
            raise InvalidRequestError(f"integer value {extreme} exceeds {arrow_name(of.scalar)} range")
