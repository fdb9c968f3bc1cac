"""Comparisons, membership and tests of strings, whole columns at once.

Numbers of different widths meet in a type that holds both: whole numbers as whole numbers, whatever their signs, and
floats as 64-bit floats. But a literal or parameter takes the width of the floats it is compared with: 0.1 equals what a
column of 32 bits makes of 0.1. Strings are compared by their bytes. A comparison with null is unknown.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values, arrow, nulls_of, numpy, one_zero, pc, take
from omnigraph.execution.scope import Datum
from omnigraph.language.plan.expressions import CompareOp, StringOp

_COMPARE: dict[CompareOp, Callable[[Datum, Datum], Any]] = {
    CompareOp.EQUAL: pc.equal,
    CompareOp.NOT_EQUAL: pc.not_equal,
    CompareOp.LESS: pc.less,
    CompareOp.LESS_EQUAL: pc.less_equal,
    CompareOp.GREATER: pc.greater,
    CompareOp.GREATER_EQUAL: pc.greater_equal,
}


def compared(op: CompareOp, left: Datum, right: Datum) -> Datum:
    """Whether a comparison holds; unknown where an operand is null."""
    if left.type != right.type:
        if _signs_differ(left.type, right.type):
            return _compared_across_signs(op, left, right)
        left, right = together(left, right)
    return _COMPARE[op](left, right)


def together(left: Datum, right: Datum) -> tuple[Datum, Datum]:
    """Two values of comparable types as values of one type."""
    if left.type == right.type:
        return left, right
    if not isinstance(right, pa.Array) and _fits(right, left.type):
        return left, _as_type(right, left.type)
    if not isinstance(left, pa.Array) and _fits(left, right.type):
        return _as_type(left, right.type), right
    common = _common(left.type, right.type)
    # A float may stand for several large whole numbers: those are equal to it then.
    return left.cast(common, safe=False), right.cast(common, safe=False)


def is_member(item: Datum, items: Datum, *, size: int) -> Values:
    """Whether a list has an element equal to an item; unknown where one of the two is null.

    Args:
        item (Datum): one value per row, or one for all.
        items (Datum): one list per row, or one for all.
        size (int): how many rows.
    """
    if not isinstance(items, pa.Array):
        if not items.is_valid:
            return pa.nulls(size, pa.bool_())
        return _in_list(_per_row(item, size), items.values)
    return _in_lists(item, items)


def tested(op: StringOp, whole: Datum, part: Datum, *, size: int) -> Values:
    """Whether strings contain, or start with, others; unknown where one of the two is null."""
    if not isinstance(part, pa.Array):
        if not part.is_valid:
            return pa.nulls(size, pa.bool_())
        test = pc.match_substring if op is StringOp.CONTAINS else pc.starts_with
        return test(_per_row(whole, size), pattern=part.as_py())  # type: ignore[no-any-return]  # Arrow's kernels have no types
    # Both differ from row to row: no kernel does that.
    pairs = zip(_per_row(whole, size).to_pylist(), part.to_pylist(), strict=True)
    found = [
        None if one is None or other is None else (other in one if op is StringOp.CONTAINS else one.startswith(other))
        for one, other in pairs
    ]
    return pa.array(found, pa.bool_())


def _per_row(datum: Datum, size: int) -> Values:
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, size) if size else pa.nulls(0, datum.type)


def _in_list(item: Values, values: Values) -> Values:
    if not len(values) or pa.types.is_null(values.type):
        found: Any = pa.array(np.zeros(len(item), dtype=np.bool_))
    elif _signs_differ(item.type, values.type):
        found = pc.is_in(_decimals(item), value_set=_decimals(values))
    else:
        # The values are those of a literal or parameter, as in `together`.
        item, values = (item, values.cast(item.type, safe=False)) if _is_narrow(item) else together(item, values)
        found = pc.is_in(one_zero(item), value_set=one_zero(values))
    nulls = nulls_of(item)
    return found if nulls is None else arrow(numpy(found), nulls=nulls)


def _in_lists(item: Datum, items: Values) -> Values:
    elements = pc.list_flatten(items)
    rows = numpy(pc.list_parent_indices(items))
    nulls = nulls_of(items)
    if isinstance(item, pa.Array):
        wanted: Datum = take(item, rows)
        missing = nulls_of(item)
        nulls = missing if nulls is None else nulls if missing is None else nulls | missing
    else:
        wanted = item
        if not item.is_valid:
            return pa.nulls(len(items), pa.bool_())
    equal: Any = compared(CompareOp.EQUAL, elements, wanted)
    found = np.zeros(len(items), dtype=np.bool_)
    found[rows[numpy(equal.fill_null(False))]] = True  # noqa: FBT003  (Arrow's own)
    return arrow(found, nulls=nulls)


def _fits(scalar: "pa.Scalar[Any]", type_: pa.DataType) -> bool:
    """Whether a value for all rows, a literal or parameter, can take their type: floats always can."""
    if pa.types.is_integer(type_):
        if not pa.types.is_integer(scalar.type):
            return False
        value = scalar.as_py()
        return value is None or _bounds(type_)[0] <= value <= _bounds(type_)[1]
    if pa.types.is_floating(type_):
        return pa.types.is_floating(scalar.type) or pa.types.is_integer(scalar.type)
    return pa.types.is_large_string(type_) or pa.types.is_string(type_)


def _is_narrow(values: Values) -> bool:
    return bool(pa.types.is_float32(values.type))


def _as_type(scalar: "pa.Scalar[Any]", type_: pa.DataType) -> "pa.Scalar[Any]":
    """A value that fits as one of a type; for whole numbers without Arrow's cast, which takes longer than comparing."""
    if pa.types.is_integer(type_):
        return _whole(scalar.as_py(), type_)
    return scalar.cast(type_, safe=False)


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def _whole(value: int | None, type_: pa.DataType) -> "pa.Scalar[Any]":
    return pa.scalar(value, type_)


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    width = int(type_.bit_width)
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if pa.types.is_signed_integer(type_) else (0, 2**width - 1)


def _common(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(left) or pa.types.is_large_string(right):
        return pa.large_string()
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    if pa.types.is_unsigned_integer(left) and pa.types.is_unsigned_integer(right):
        return pa.uint64()
    return pa.int64()


def _signs_differ(left: pa.DataType, right: pa.DataType) -> bool:
    """Whether one is an unsigned number of 64 bits and the other a signed one: no plain type holds both."""
    return (pa.types.is_uint64(left) and pa.types.is_signed_integer(right)) or (
        pa.types.is_uint64(right) and pa.types.is_signed_integer(left)
    )


def _compared_across_signs(op: CompareOp, left: Datum, right: Datum) -> Datum:
    if not isinstance(right, pa.Array) and _fits(right, left.type):
        return _COMPARE[op](left, right.cast(left.type))
    if not isinstance(left, pa.Array) and _fits(left, right.type):
        return _COMPARE[op](left.cast(right.type), right)
    return _COMPARE[op](_decimals(left), _decimals(right))


def _decimals(datum: Datum) -> Datum:
    """Whole numbers as decimals, which hold those with and without a sign."""
    return datum.cast(pa.decimal128(20, 0)) if datum.type != pa.decimal128(20, 0) else datum
