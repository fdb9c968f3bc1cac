"""Sums, products and functions of single values, whole columns at once.

Whole numbers are computed with 64 bits and a sign, others as 64-bit floats; durations are whole milliseconds. What has
no such result (a division by zero, a number or a day out of range) is null: what a row gives does not depend on when
it is computed.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.execution.arrays import Mask, Numbers, Values, arrow, nulls_of, numpy, pc
from omnigraph.execution.scope import Datum
from omnigraph.language.plan.expressions import ArithmeticOp, DurationValue, Function, ValueType
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar
from omnigraph.storage.instants import DAY_LEAST, DAY_MOST, MILLISECOND_LEAST, MILLISECOND_MOST
from omnigraph.storage.layout import INSTANT

_DAY_MS = 86_400_000
_I64_MIN, _I64_MAX = -(2**63), 2**63 - 1
_UNITS_MS = {Function.DAYS: _DAY_MS, Function.HOURS: 3_600_000, Function.MINUTES: 60_000, Function.SECONDS: 1_000}

Whole = npt.NDArray[np.int64]


def calculated(op: ArithmeticOp, left: Datum, right: Datum, types: tuple[ValueType, ValueType, ValueType]) -> Values:
    """The result of an operator.

    Args:
        op (ArithmeticOp): which.
        left (Datum): the first operand; at least one of the two has a value per row.
        right (Datum): the second.
        types (tuple[ValueType, ValueType, ValueType]): of the operands and the result.

    Returns:
        Values: of the result's type.
    """
    size = len(left) if isinstance(left, pa.Array) else len(right)
    result = types[2]
    if isinstance(result, PropertyType) and result.scalar is Scalar.F64:
        return _floats(op, left, right, size)
    one, other = _whole(left, types[0], size), _whole(right, types[1], size)
    nulls = _either(one.nulls, other.nulls)
    with np.errstate(all="ignore"):
        values, wrong = _WHOLE[op](one.numbers, other.numbers)
    if isinstance(result, DurationValue):
        return _arrow(values, _either(nulls, wrong))
    return _typed(values, _either(nulls, wrong), result)


def negated(operand: Values, of: ValueType) -> Values:
    """The number with its sign changed."""
    if isinstance(of, PropertyType) and of.scalar is Scalar.F64:
        return pc.negate(operand.cast(pa.float64()))  # type: ignore[no-any-return]  # Arrow's kernels have no types
    whole = _whole(operand, of, len(operand))
    return _arrow(-whole.numbers, _either(whole.nulls, whole.numbers == _I64_MIN))


def called(function: Function, arguments: tuple[Values, ...], types: tuple[ValueType, ...]) -> Values:
    """The result of a function of single values."""
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
            one, other = (_instants(each, of) for each, of in zip(arguments, types, strict=True))
            span = other.numbers - one.numbers
            # Towards zero, as people count whole days.
            return _arrow(np.sign(span) * (np.abs(span) // _DAY_MS), _either(one.nulls, other.nulls))
        case Function.DAYS | Function.HOURS | Function.MINUTES | Function.SECONDS:
            whole = _whole(first, types[0], len(first))
            values, wrong = _multiplied(whole.numbers, np.full(1, _UNITS_MS[function], dtype=np.int64))
            return _arrow(values, _either(whole.nulls, wrong))


class _Plain:
    """Numbers, and where there are none."""

    __slots__ = ("nulls", "numbers")

    def __init__(self, numbers: Numbers, nulls: Mask | None) -> None:
        self.numbers = numbers
        self.nulls = nulls


def _plain(datum: Datum, size: int) -> _Plain:
    if not isinstance(datum, pa.Array):
        datum = pa.repeat(datum, size) if size else pa.nulls(0, datum.type)
    nulls = nulls_of(datum)
    zero: Any = pa.scalar(0).cast(datum.type) if nulls is not None and not pa.types.is_temporal(datum.type) else None
    if nulls is not None:
        datum = datum.fill_null(zero) if zero is not None else _days_filled(datum)
    return _Plain(numpy(datum), nulls)


def _days_filled(datum: Values) -> Values:
    plain: Any = datum.view(pa.int32() if pa.types.is_date32(datum.type) else pa.int64())
    return plain.fill_null(0)  # type: ignore[no-any-return]  # Arrow's kernels have no types


def _whole(datum: Datum, of: ValueType, size: int) -> _Plain:
    """Whole numbers of 64 bits; days in milliseconds."""
    if isinstance(of, PropertyType) and of.scalar in (Scalar.DATE, Scalar.DATETIME):
        return _instants(datum, of, size)
    plain = _plain(datum, size)
    if plain.numbers.dtype == np.uint64:
        too_large: Mask = plain.numbers > np.uint64(_I64_MAX)
        return _Plain(plain.numbers.astype(np.int64), _either(plain.nulls, too_large))
    return _Plain(plain.numbers.astype(np.int64, copy=False), plain.nulls)


def _instants(datum: Datum, of: ValueType, size: int | None = None) -> _Plain:
    """Dates and times in milliseconds since 1970."""
    plain = _plain(datum, len(datum) if size is None else size)
    numbers = plain.numbers.astype(np.int64, copy=False)
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATE:
        numbers = numbers * _DAY_MS
    return _Plain(numbers, plain.nulls)


def _floats(op: ArithmeticOp, left: Datum, right: Datum, size: int) -> Values:
    one, other = _plain(left, size), _plain(right, size)
    first = one.numbers.astype(np.float64, copy=False)
    second = other.numbers.astype(np.float64, copy=False)
    with np.errstate(all="ignore"):
        values = _FLOAT[op](first, second)
    return _arrow(values, _either(_either(one.nulls, other.nulls), ~np.isfinite(values)))


def _added(one: Whole, other: Whole) -> tuple[Whole, Mask | None]:
    values = one + other
    return values, (one ^ values) & (other ^ values) < 0


def _subtracted(one: Whole, other: Whole) -> tuple[Whole, Mask | None]:
    values = one - other
    return values, (one ^ other) & (one ^ values) < 0


def _multiplied(one: Whole, other: Whole) -> tuple[Whole, Mask | None]:
    values = one * other
    # Exact where it matters: floats are only asked whether the product comes near the bounds at all.
    near: Mask = np.abs(one.astype(np.float64) * other.astype(np.float64)) >= 2.0**62
    if not near.any():
        return values, None
    exact = one.astype(object) * other.astype(object)
    return values, np.array((exact < _I64_MIN) | (exact > _I64_MAX), dtype=np.bool_)


def _remainder(one: Whole, other: Whole) -> tuple[Whole, Mask | None]:
    zero: Mask = other == 0
    # The sign of the first operand, as in most languages of databases.
    return np.fmod(one, np.where(zero, 1, other)), zero


# A quotient is always a float.
_WHOLE: dict[ArithmeticOp, Callable[[Whole, Whole], tuple[Whole, Mask | None]]] = {
    ArithmeticOp.ADD: _added,
    ArithmeticOp.SUBTRACT: _subtracted,
    ArithmeticOp.MULTIPLY: _multiplied,
    ArithmeticOp.MODULO: _remainder,
}
_FLOAT: dict[ArithmeticOp, Callable[[Numbers, Numbers], Numbers]] = {
    ArithmeticOp.ADD: np.add,
    ArithmeticOp.SUBTRACT: np.subtract,
    ArithmeticOp.MULTIPLY: np.multiply,
    ArithmeticOp.DIVIDE: np.divide,
    ArithmeticOp.MODULO: np.fmod,
}


def _typed(values: Whole, nulls: Mask | None, of: ValueType) -> Values:
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATE:
        days = values // _DAY_MS
        wrong: Mask = (days < DAY_LEAST) | (days > DAY_MOST)
        days = np.where(wrong, 0, days).astype(np.int32)
        return _arrow(days, _either(nulls, wrong)).cast(pa.date32())
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATETIME:
        wrong = (values < MILLISECOND_LEAST) | (values > MILLISECOND_MOST)
        return _arrow(values, _either(nulls, wrong)).cast(INSTANT)
    assert isinstance(of, PropertyType)
    assert of.scalar in INTEGER_SCALARS
    return _arrow(values, nulls)


def _arrow(values: Numbers, nulls: Mask | None) -> Values:
    return arrow(values, nulls=nulls if nulls is not None and nulls.any() else None)


def _either(one: Mask | None, other: Mask | None) -> Mask | None:
    if one is None or other is None:
        return one if other is None else other
    return one | other
