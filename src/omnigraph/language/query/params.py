"""Validate query parameters: JSON to typed values."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from omnigraph.errors import InvalidRequestError
from omnigraph.language.plan.expressions import Parameter, SingleValue, Value
from omnigraph.language.query.dates import parse_date, parse_datetime
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_BOUNDS, INTEGER_SCALARS, PropertyType, Scalar

_I64_MIN, _I64_MAX = INTEGER_BOUNDS[Scalar.I64]
_UNSIGNED = (Scalar.U32, Scalar.U64)
# No number we take has more digits; longer strings are not even tried.
_DIGITS_MAX = 20


@dataclass(frozen=True, slots=True)
class Params:
    """Parameter values of one call, including every declared parameter; omitted ones are None."""

    values: Mapping[str, Value]

    def __getitem__(self, name: str) -> Value:
        return self.values[name]


def bind_values(parameters: Iterable[Parameter], given: object, *, counts: frozenset[str] = frozenset()) -> Params:
    """Validate the parameter values of a call.

    Args:
        parameters: declared parameters.
        given: a JSON object, or None for an empty one.
        counts: parameters used as limit or offset, which must not be negative.

    Returns:
        A value for every declared parameter, and for every other key a value of the inferred type.

    Raises:
        InvalidRequestError: a value is missing, or not of its parameter's type.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidRequestError("params must be a JSON object")
    values: dict[str, Value] = {}
    for parameter in parameters:
        name = parameter.name
        if name in given:
            values[name] = _convert_declared(name, parameter.type, given[name])
        elif parameter.type.nullable:
            values[name] = None
        else:
            raise InvalidRequestError(f"parameter '{name}' not provided")
        value = values[name]
        if name in counts and isinstance(value, int) and value < 0:
            raise _wrong(name, f"a number of rows cannot be negative, got {value}")
    for name, extra in given.items():
        if name not in values:
            values[str(name)] = _infer(str(name), extra)
    return Params(values)


def _wrong(name: str, message: str) -> InvalidRequestError:
    return InvalidRequestError(f"param '{name}': {message}")


def _convert_declared(name: str, type_: PropertyType, value: object) -> Value:
    if value is None:
        if type_.nullable:
            return None
        raise _wrong(name, "null is not accepted for non-nullable parameter")
    if type_.is_vector:
        return _convert_vector(name, type_, value)
    if type_.list:
        if not isinstance(value, list | tuple):
            raise _wrong(name, f"expected array for {type_.as_required()}")
        return tuple(_convert_single(name, type_.scalar, item) for item in value)
    return _convert_single(name, type_.scalar, value)


def _convert_single(name: str, scalar: Scalar, value: object) -> SingleValue:
    match scalar:
        case Scalar.STRING:
            if isinstance(value, str):
                return _convert_text(name, value)
            raise _wrong(name, f"expected string, got {_json_type(value)}")
        case Scalar.BLOB:
            if isinstance(value, str):
                return _convert_text(name, value)
            raise _wrong(name, f"expected blob URI string, got {_json_type(value)}")
        case Scalar.BOOL:
            if isinstance(value, bool):
                return value
            raise _wrong(name, "expected boolean")
        case Scalar.DATE:
            return _convert_date(name, value)
        case Scalar.DATETIME:
            return _convert_datetime(name, value)
        case _ if scalar in FLOAT_SCALARS:
            return _convert_float(name, value)
        case _ if scalar in INTEGER_SCALARS:
            return _convert_integer(name, scalar, value)
        case _:
            raise _wrong(name, f"{scalar} cannot be given")


def _convert_text(name: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise _wrong(name, "the string holds half of a surrogate pair") from None
    return value


def _convert_date(name: str, value: object) -> SingleValue:
    if not isinstance(value, str):
        raise _wrong(name, "expected date string")
    parsed = parse_date(value)
    if parsed is None:
        raise _wrong(name, f"invalid Date literal '{value}'")
    return parsed


def _convert_datetime(name: str, value: object) -> SingleValue:
    if not isinstance(value, str):
        raise _wrong(name, "expected datetime string")
    parsed = parse_datetime(value)
    if parsed is None:
        raise _wrong(name, f"invalid DateTime literal '{value}'")
    return parsed


def _convert_float(name: str, value: object) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool):
        raise _wrong(name, "expected float")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _wrong(name, "expected float")
    return number


def _convert_integer(name: str, scalar: Scalar, value: object) -> int:
    number = _convert_whole(name, value)
    least, most = INTEGER_BOUNDS[scalar]
    if scalar is Scalar.U64 and number > _I64_MAX:
        raise _wrong(name, f"value {number} exceeds current engine range for U64 (max {_I64_MAX})")
    if scalar in _UNSIGNED and number < 0:
        raise _wrong(name, f"expected non-negative integer, got {number}")
    if not least <= number <= most:
        raise _wrong(name, f"value {number} exceeds {scalar}")
    return number


def _convert_whole(name: str, value: object) -> int:
    if isinstance(value, str):
        digits = value.removeprefix("-").removeprefix("+")
        if not (digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= _DIGITS_MAX) or len(value) > 100:
            raise _wrong(name, f"expected integer string, got '{value[:100]}'")
        return int(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, "expected integer")
    # JSON knows one kind of number, but 1.0 is not written as a whole one; nor are numbers beyond all our integers.
    if isinstance(value, float) or not _I64_MIN <= value < 2**64:
        raise _wrong(name, "expected integer number")
    return value


def _convert_vector(name: str, type_: PropertyType, value: object) -> tuple[float, ...]:
    shown = type_.as_required()
    if not isinstance(value, list | tuple):
        raise _wrong(name, f"expected array for {shown}")
    if len(value) != type_.vector_dim:
        raise _wrong(name, f"expected {type_.vector_dim} values for {shown}, got {len(value)}")
    numbers = []
    for item in value:
        if not isinstance(item, int | float) or isinstance(item, bool):
            raise _wrong(name, "vector element is not numeric")
        numbers.append(_convert_float(name, item))
    return tuple(numbers)


def _infer(name: str, value: object) -> Value:
    """Infer the value of an undeclared key, which no query refers to."""
    if isinstance(value, list | tuple):
        return tuple(_infer_single(name, item) for item in value)
    return _infer_single(name, value)


def _infer_single(name: str, value: object) -> SingleValue:
    if isinstance(value, Mapping):
        raise _wrong(name, "object is not supported")
    if isinstance(value, list | tuple):
        raise _wrong(name, "nested array is not supported")
    if value is None or isinstance(value, str | int | float):
        return value
    raise _wrong(name, f"{_json_type(value)} is not supported")


def _json_type(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return type(value).__name__
