"""Convert single Python or JSON values to stored values, and explain why a value does not fit its type.

stored      the value a table holds, or None where there is none
misfit      the sentence about a value that has none
"""

import base64
import json
import math
import struct
from collections.abc import Callable
from datetime import date, datetime

import pyarrow as pa

from omnigraph.model.types import INTEGER_BOUNDS, INTEGER_SCALARS, Scalar
from omnigraph.storage import instants
from omnigraph.storage.blob_values import BASE64, managed
from omnigraph.storage.layout import arrow_name

_DAY_MS = 86_400_000

Stored = str | bytes | bool | int | float


def stored(value: object, scalar: Scalar) -> Stored | None:
    """What a table holds for a value.

    Returns:
        Days or milliseconds since 1970 for dates, bytes for blobs, else the value; None if it is none of the type.
    """
    return _STORED[scalar](value)


def misfit(value: object, scalar: Scalar, name: str, *, inside: bool = False) -> str:
    """The reason why a value does not fit a property.

    Args:
        scalar: the type of the property, or of the elements of its list.
    """
    what = arrow_name(scalar)
    whose, which = ("list value", f" (property '{name}')") if inside else (f"property '{name}' value", "")
    number = value if isinstance(value, int | float) and not isinstance(value, bool) else None
    match scalar:
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64 if isinstance(number, int):
            return f"{whose} {number} exceeds {what} range{which}"
        case Scalar.F32 | Scalar.F64 if number is not None:
            finite = isinstance(number, int) or math.isfinite(number)
            fault = f"exceeds {what} range" if finite else f"must be finite for {what}"
            return f"{whose} {number} {fault}{which}"
        case Scalar.DATE if isinstance(value, str):
            return f"invalid Date literal '{value}' for property '{name}'; write it like 2024-01-31"
        case Scalar.DATETIME if isinstance(value, str):
            return f"invalid DateTime literal '{value}' for property '{name}'; write it like 2024-01-31T10:00:00Z"
        case Scalar.DATE | Scalar.DATETIME if isinstance(number, int):
            return f"{scalar} value out of range: {number} (property '{name}')"
        case Scalar.BLOB if isinstance(value, str) and (wrong := _base64_fault(value)):
            return f"invalid base64 blob data: {wrong} (property '{name}')"
        case Scalar.BLOB:
            return f"blob property '{name}' must be a URI string or base64: prefixed data"
        case _ if inside:
            return f"strict list property '{name}' contains a null or invalid item"
        case _:
            return f"strict property '{name}' expects {what}, got {shown(value)}"


def shown(value: object) -> str:
    """A value as JSON writes it, or as Python does where JSON cannot."""
    try:
        # Half of a surrogate pair can be in no message.
        return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace").decode()
    except (TypeError, ValueError):
        return repr(value)


def _blob_cell(text: str) -> bytes | None:
    """The cell for the bytes that a text like `base64:…` stands for; None for every other text."""
    if not text.startswith(BASE64):
        return None
    try:
        return managed(_decoded(text))
    except ValueError:  # not base64, or not even ASCII
        return None


def _base64_fault(text: str) -> str | None:
    """What is wrong with a text like `base64:…`; None for every other text."""
    try:
        _decoded(text)
    except ValueError as fault:
        return str(fault) if text.startswith(BASE64) else None
    return None


def _decoded(text: str) -> bytes:
    return base64.b64decode(text.removeprefix(BASE64), validate=True)


def _text(value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:  # half of a surrogate pair, which no column of text can hold
        return None
    return str(value)


def _bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def _integer(scalar: Scalar) -> Callable[[object], int | None]:
    least, most = INTEGER_BOUNDS[scalar]

    def fits(value: object) -> int | None:
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return int(value) if least <= value <= most else None

    return fits


def _f64(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _f32(value: object) -> float | None:
    number = _f64(value)
    if number is None:
        return None
    try:
        struct.pack("<f", number)
    except OverflowError:
        return None
    return number


def _days(value: object) -> int | None:
    match value:
        case bool() | datetime():
            return None
        case date():
            return instants.days(value)
        case int():
            return value if instants.DAY_LEAST <= value <= instants.DAY_MOST else None
        case str():
            try:
                return int(instants.days_of_texts(pa.array([value], pa.string())).cast(pa.int32())[0].as_py())
            except pa.ArrowInvalid:
                return None
        case _:
            return None


def _milliseconds(value: object) -> int | None:
    match value:
        case bool():
            return None
        case datetime():
            counted = instants.milliseconds(value)
            return counted if instants.MILLISECOND_LEAST <= counted <= instants.MILLISECOND_MOST else None
        case date():
            return instants.days(value) * _DAY_MS
        case int():
            return value if instants.MILLISECOND_LEAST <= value <= instants.MILLISECOND_MOST else None
        case str():
            try:
                return int(instants.instants_of_texts(pa.array([value], pa.string())).cast(pa.int64())[0].as_py())
            except pa.ArrowInvalid:
                return None
        case _:
            return None


def _bytes(value: object) -> bytes | None:
    if isinstance(value, bytes | bytearray | memoryview):
        return managed(bytes(value))
    return _blob_cell(value) if isinstance(value, str) else None


_STORED: dict[Scalar, Callable[[object], Stored | None]] = {
    Scalar.STRING: _text,
    Scalar.BLOB: _bytes,
    Scalar.BOOL: _bool,
    **{scalar: _integer(scalar) for scalar in INTEGER_SCALARS},
    Scalar.F32: _f32,
    Scalar.F64: _f64,
    Scalar.DATE: _days,
    Scalar.DATETIME: _milliseconds,
}
