"""Ids of keyed nodes and edges: the canonical text of the key.

The text is part of the contract with everything that stores ids (edges, exports, other programs): it never changes.
"""

import json
import math
import struct
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import EdgeType, EntityType
from omnigraph.model.types import INTEGER_BOUNDS, PropertyType, Scalar

KeyValue = str | bool | int | float | date | datetime

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_DAY = _EPOCH.date().toordinal()
# Nine significant digits tell any two 32-bit floats apart.
_F32_DIGITS_MAX = 9


_END = PropertyType(Scalar.STRING)


def list_key_columns(entity: EntityType) -> tuple[tuple[str, PropertyType], ...]:
    """Return names and types of the key columns in id order; empty if ids are not derived."""
    if not isinstance(entity, EdgeType):
        return tuple((property_.name, property_.type) for property_ in entity.key)
    found = ((name, entity.property_named(name)) for name in entity.key_names)
    return tuple((name, _END if property_ is None else property_.type) for name, property_ in found)


def derive_id(entity: EntityType, values: Mapping[str, KeyValue | None]) -> str:
    """Derive the id of an entity of a keyed type.

    Args:
        entity: a type with a key.
        values: property values by name, of an edge `src` and `dst` as well; values outside the key are ignored.

    Returns:
        The canonical text of a single key value, or a compact JSON array of several in key order.

    Raises:
        InvalidRequestError: a key value is absent, of another type, out of range or not finite.
    """
    texts = []
    for name, type_ in list_key_columns(entity):
        value = values.get(name)
        if value is None:
            raise InvalidRequestError(explain_missing_key(entity))
        try:
            texts.append(canonicalize(value, type_))
        except ValueError as mistake:
            raise InvalidRequestError(f"@key property {entity.name}.{name} {mistake}") from None
    if len(texts) == 1:
        return texts[0]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def explain_missing_key(entity: EntityType) -> str:
    """Return the message for an entity without a key value."""
    return f"{entity.kind} {entity.name} is missing a non-null @key value"


def canonicalize(value: KeyValue, type_: PropertyType) -> str:
    """Format a key value as its one canonical text.

    Args:
        value: a Python value; dates may be given as days or milliseconds since 1970.
        type_: neither list, vector nor blob.

    Returns:
        Strings as they are, whole numbers in decimal, `true` or `false`, days or milliseconds since 1970, and floats in
        the fewest digits that read back the same at their width, without an exponent; both zeros are `0`.

    Raises:
        ValueError: the value is not of that type; the message names its actual type.
    """
    match type_.scalar:
        case Scalar.STRING if isinstance(value, str):
            return value
        case Scalar.BOOL if isinstance(value, bool):
            return "true" if value else "false"
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64 if isinstance(value, int) and not isinstance(
            value, bool
        ):
            least, most = INTEGER_BOUNDS[type_.scalar]
            if not least <= value <= most:
                raise ValueError(f"value {value} exceeds {type_.scalar} range")
            return str(value)
        case Scalar.F32 | Scalar.F64 if isinstance(value, int | float) and not isinstance(value, bool):
            return _format_float(float(value), type_.scalar)
        case Scalar.DATE if not isinstance(value, bool | str | float | datetime):
            return str(value.toordinal() - _EPOCH_DAY if isinstance(value, date) else value)
        case Scalar.DATETIME if isinstance(value, datetime):
            aware = value if value.tzinfo else value.replace(tzinfo=UTC)
            return str((aware - _EPOCH) // timedelta(milliseconds=1))
        case Scalar.DATETIME if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        case _:
            raise ValueError(f"expects {type_}, got {value!r}")


def _format_float(value: float, scalar: Scalar) -> str:
    if not math.isfinite(value):
        raise ValueError("must be finite")
    if value == 0:
        return "0"
    text = format(Decimal(_format_f32(value) if scalar is Scalar.F32 else repr(value)), "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def _format_f32(value: float) -> str:
    """Return the fewest digits that read back as the 32-bit float nearest to `value`."""
    try:
        stored = _round_to_f32(value)
    except OverflowError:
        raise ValueError(f"value {value!r} exceeds F32 range") from None
    if stored == 0:
        return "0"
    for digits in range(_F32_DIGITS_MAX - 1):
        nearest = f"{stored:.{digits}e}"
        # At a power of two the floats above lie twice as far apart as those below, so the next decimal away from zero
        # may read back where the nearest one does not.
        for candidate in (nearest, _increment_last_digit(nearest)):
            if _reads_back(candidate, stored):
                return candidate
    return f"{stored:.{_F32_DIGITS_MAX - 1}e}"


def _round_to_f32(value: float) -> float:
    stored: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return stored


def _reads_back(text: str, stored: float) -> bool:
    try:
        return _round_to_f32(float(text)) == stored
    except OverflowError:
        return False


def _increment_last_digit(text: str) -> str:
    mantissa, _, exponent = text.partition("e")
    step = Decimal(1).scaleb(Decimal(mantissa).as_tuple().exponent)  # type: ignore[arg-type]  # a finite number's is an int
    return f"{Decimal(mantissa) + step.copy_sign(Decimal(mantissa))}e{exponent}"
