"""Arithmetic and scalar functions on whole columns.

Integers are computed as signed 64-bit numbers, others as 64-bit floats; durations are whole milliseconds. A result that
does not exist (division by zero, overflow, a date out of range) is null, so that the result of a row does not depend on
when it is computed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.arrays import Mask, Numbers, Values, null_mask, pc, to_arrow, to_numpy
from omnigraph.execution.scope import Datum
from omnigraph.language.plan.expressions import ArithmeticOp, DurationValue, Function, ValueType
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar
from omnigraph.storage.instants import DAY_LEAST, DAY_MOST, MILLISECOND_LEAST, MILLISECOND_MOST
from omnigraph.storage.layout import INSTANT

_DAY_MS = 86_400_000
_I64_MIN, _I64_MAX = -(2**63), 2**63 - 1
_UNITS_MS = {Function.DAYS: _DAY_MS, Function.HOURS: 3_600_000, Function.MINUTES: 60_000, Function.SECONDS: 1_000}

Integers = npt.NDArray[np.int64]


def calculate(op: ArithmeticOp, left: Datum, right: Datum, types: tuple[ValueType, ValueType, ValueType]) -> Values:
    """Compute an arithmetic operator; `types` are those of the operands and the result.

    At least one of the two operands has a value per row.
    """
    size = len(left) if isinstance(left, pa.Array) else len(right)
    result = types[2]
    if isinstance(result, PropertyType) and result.scalar is Scalar.F64:
        return _calculate_floats(op, left, right, size)
    one, other = _to_int64(left, types[0], size), _to_int64(right, types[1], size)
    nulls = _or_masks(one.nulls, other.nulls)
    with np.errstate(all="ignore"):
        values, wrong = _WHOLE[op](one.numbers, other.numbers)
    if isinstance(result, DurationValue):
        return _to_arrow(values, _or_masks(nulls, wrong))
    return _to_result_type(values, _or_masks(nulls, wrong), result)


def negate(operand: Values, of: ValueType) -> Values:
    """Change the sign of numbers."""
    if isinstance(of, PropertyType) and of.scalar is Scalar.F64:
        return pc.negate(operand.cast(pa.float64()))  # type: ignore[no-any-return]  # Arrow's kernels have no types
    whole = _to_int64(operand, of, len(operand))
    return _to_arrow(-whole.numbers, _or_masks(whole.nulls, whole.numbers == _I64_MIN))


def call_function(function: Function, arguments: tuple[Values, ...], types: tuple[ValueType, ...]) -> Values:
    """Compute a scalar function."""
    first = arguments[0]
    match function:
        case Function.LOWER:
            return pc.utf8_lower(first)  # type: ignore[no-any-return]  # Arrow's kernels have no types
        case Function.UPPER:
            return pc.utf8_upper(first)  # type: ignore[no-any-return]  # Arrow's kernels have no types
        case Function.LENGTH:
            kind = types[0]
            is_list = isinstance(kind, PropertyType) and kind.list
            lengths = pc.list_value_length(first) if is_list else pc.utf8_length(first)
            return lengths.cast(pa.int64())  # type: ignore[no-any-return]  # Arrow's kernels have no types
        case Function.DAYS_BETWEEN:
            one, other = (_to_milliseconds(argument, of) for argument, of in zip(arguments, types, strict=True))
            span = other.numbers - one.numbers
            # Truncate towards zero.
            return _to_arrow(np.sign(span) * (np.abs(span) // _DAY_MS), _or_masks(one.nulls, other.nulls))
        case Function.DAYS | Function.HOURS | Function.MINUTES | Function.SECONDS:
            whole = _to_int64(first, types[0], len(first))
            values, wrong = _multiply(whole.numbers, np.full(1, _UNITS_MS[function], dtype=np.int64))
            return _to_arrow(values, _or_masks(whole.nulls, wrong))


class _NumberColumn:
    """Numbers and an optional null mask."""

    __slots__ = ("nulls", "numbers")

    def __init__(self, numbers: Numbers, nulls: Mask | None) -> None:
        self.numbers = numbers
        self.nulls = nulls


def _to_numbers(datum: Datum, size: int) -> _NumberColumn:
    if not isinstance(datum, pa.Array):
        datum = pa.repeat(datum, size) if size else pa.nulls(0, datum.type)
    nulls = null_mask(datum)
    zero: Any = pa.scalar(0).cast(datum.type) if nulls is not None and not pa.types.is_temporal(datum.type) else None
    if nulls is not None:
        datum = datum.fill_null(zero) if zero is not None else _fill_null_days(datum)
    return _NumberColumn(to_numpy(datum), nulls)


def _fill_null_days(datum: Values) -> Values:
    plain: Any = datum.view(pa.int32() if pa.types.is_date32(datum.type) else pa.int64())
    return plain.fill_null(0)  # type: ignore[no-any-return]  # Arrow's kernels have no types


def _to_int64(datum: Datum, of: ValueType, size: int) -> _NumberColumn:
    """Convert to 64-bit integers; dates and times to milliseconds."""
    if isinstance(of, PropertyType) and of.scalar in (Scalar.DATE, Scalar.DATETIME):
        return _to_milliseconds(datum, of, size)
    plain = _to_numbers(datum, size)
    if plain.numbers.dtype == np.uint64:
        too_large: Mask = plain.numbers > np.uint64(_I64_MAX)
        return _NumberColumn(plain.numbers.astype(np.int64), _or_masks(plain.nulls, too_large))
    return _NumberColumn(plain.numbers.astype(np.int64, copy=False), plain.nulls)


def _to_milliseconds(datum: Datum, of: ValueType, size: int | None = None) -> _NumberColumn:
    """Convert dates and times to milliseconds since 1970."""
    plain = _to_numbers(datum, len(datum) if size is None else size)
    numbers = plain.numbers.astype(np.int64, copy=False)
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATE:
        numbers = numbers * _DAY_MS
    return _NumberColumn(numbers, plain.nulls)


def _calculate_floats(op: ArithmeticOp, left: Datum, right: Datum, size: int) -> Values:
    one, other = _to_numbers(left, size), _to_numbers(right, size)
    first = one.numbers.astype(np.float64, copy=False)
    second = other.numbers.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        values = _FLOAT[op](first, second)
    return _to_arrow(values, _or_masks(_or_masks(one.nulls, other.nulls), ~np.isfinite(values)))


def _add(one: Integers, other: Integers) -> tuple[Integers, Mask | None]:
    values = one + other
    return values, (one ^ values) & (other ^ values) < 0


def _subtract(one: Integers, other: Integers) -> tuple[Integers, Mask | None]:
    values = one - other
    return values, (one ^ other) & (one ^ values) < 0


def _multiply(one: Integers, other: Integers) -> tuple[Integers, Mask | None]:
    values = one * other
    # Exact where it matters: floats only detect products near the bounds.
    near: Mask = np.abs(one.astype(np.float64) * other.astype(np.float64)) >= 2.0**62
    if not near.any():
        return values, None
    exact = one.astype(object) * other.astype(object)
    return values, np.array((exact < _I64_MIN) | (exact > _I64_MAX), dtype=np.bool_)


def _modulo(one: Integers, other: Integers) -> tuple[Integers, Mask | None]:
    zero: Mask = other == 0
    # The sign of the first operand, as in SQL.
    return np.fmod(one, np.where(zero, 1, other)), zero


# A quotient is always a float.
_WHOLE: dict[ArithmeticOp, Callable[[Integers, Integers], tuple[Integers, Mask | None]]] = {
    ArithmeticOp.ADD: _add,
    ArithmeticOp.SUBTRACT: _subtract,
    ArithmeticOp.MULTIPLY: _multiply,
    ArithmeticOp.MODULO: _modulo,
}
_FLOAT: dict[ArithmeticOp, Callable[[Numbers, Numbers], Numbers]] = {
    ArithmeticOp.ADD: np.add,
    ArithmeticOp.SUBTRACT: np.subtract,
    ArithmeticOp.MULTIPLY: np.multiply,
    ArithmeticOp.DIVIDE: np.divide,
    ArithmeticOp.MODULO: np.fmod,
}


def _to_result_type(values: Integers, nulls: Mask | None, of: ValueType) -> Values:
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATE:
        days = values // _DAY_MS
        wrong: Mask = (days < DAY_LEAST) | (days > DAY_MOST)
        days = np.where(wrong, 0, days).astype(np.int32)
        return _to_arrow(days, _or_masks(nulls, wrong)).cast(pa.date32())
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATETIME:
        wrong = (values < MILLISECOND_LEAST) | (values > MILLISECOND_MOST)
        return _to_arrow(values, _or_masks(nulls, wrong)).cast(INSTANT)
    assert isinstance(of, PropertyType)
    assert of.scalar in INTEGER_SCALARS
    return _to_arrow(values, nulls)


def _to_arrow(values: Numbers, nulls: Mask | None) -> Values:
    return to_arrow(values, nulls=nulls if nulls is not None and nulls.any() else None)


def _or_masks(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return one if other is None else other
    return one | other
