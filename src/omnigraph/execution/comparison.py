"""Comparison, membership and string tests on whole columns.

Numbers of different widths are cast to a type that holds both: integers of any sign as integers, floats as 64-bit
floats. A literal or parameter takes the width of the floats it is compared with: 0.1 equals what a 32-bit column makes
of 0.1. Strings are compared by bytes. A comparison with null is null.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values, normalize_zeros, null_mask, pc, take, to_arrow, to_numpy
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


def compare(op: CompareOp, left: Datum, right: Datum) -> Datum:
    """Compare two values; null where an operand is null."""
    if left.type != right.type:
        if _signs_differ(left.type, right.type):
            return _compare_across_signs(op, left, right)
        left, right = cast_to_common(left, right)
    return _COMPARE[op](left, right)


def cast_to_common(left: Datum, right: Datum) -> tuple[Datum, Datum]:
    """Cast two values of comparable types to one type."""
    if left.type == right.type:
        return left, right
    if not isinstance(right, pa.Array) and _can_cast(right, left.type):
        return left, _as_type(right, left.type)
    if not isinstance(left, pa.Array) and _can_cast(left, right.type):
        return _as_type(left, right.type), right
    common = _common_type(left.type, right.type)
    # A float may equal several large integers.
    return left.cast(common, safe=False), right.cast(common, safe=False)


def is_member(item: Datum, items: Datum, *, size: int) -> Values:
    """Return whether lists contain items, each one per row or one for all; null where either is null."""
    if not isinstance(items, pa.Array):
        if not items.is_valid:
            return pa.nulls(size, pa.bool_())
        return _in_list(_to_array(item, size), items.values)
    return _in_lists(item, items)


def match_string(op: StringOp, whole: Datum, part: Datum, *, size: int) -> Values:
    """Return whether strings contain, or start with, others; null where either is null."""
    if not isinstance(part, pa.Array):
        if not part.is_valid:
            return pa.nulls(size, pa.bool_())
        test = pc.match_substring if op is StringOp.CONTAINS else pc.starts_with
        return test(_to_array(whole, size), pattern=part.as_py())  # type: ignore[no-any-return]  # Arrow's kernels have no types
    # Both differ from row to row: Arrow has no kernel for that.
    pairs = zip(_to_array(whole, size).to_pylist(), part.to_pylist(), strict=True)
    found = [
        None if one is None or other is None else (other in one if op is StringOp.CONTAINS else one.startswith(other))
        for one, other in pairs
    ]
    return pa.array(found, pa.bool_())


def _to_array(datum: Datum, size: int) -> Values:
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, size) if size else pa.nulls(0, datum.type)


def _in_list(item: Values, values: Values) -> Values:
    if not len(values) or pa.types.is_null(values.type):
        found: Any = pa.array(np.zeros(len(item), dtype=np.bool_))
    elif _signs_differ(item.type, values.type):
        found = pc.is_in(_to_decimals(item), value_set=_to_decimals(values))
    else:
        # The values are those of a literal or parameter, as in `cast_to_common`.
        item, values = (item, values.cast(item.type, safe=False)) if _is_float32(item) else cast_to_common(item, values)
        found = pc.is_in(normalize_zeros(item), value_set=normalize_zeros(values))
    nulls = null_mask(item)
    return found if nulls is None else to_arrow(to_numpy(found), nulls=nulls)


def _in_lists(item: Datum, items: Values) -> Values:
    elements = pc.list_flatten(items)
    rows = to_numpy(pc.list_parent_indices(items))
    nulls = null_mask(items)
    if isinstance(item, pa.Array):
        wanted: Datum = take(item, rows)
        missing = null_mask(item)
        nulls = missing if nulls is None else nulls if missing is None else nulls | missing
    else:
        wanted = item
        if not item.is_valid:
            return pa.nulls(len(items), pa.bool_())
    equal: Any = compare(CompareOp.EQUAL, elements, wanted)
    found = np.zeros(len(items), dtype=np.bool_)
    found[rows[to_numpy(equal.fill_null(False))]] = True  # noqa: FBT003  (Arrow's own)
    return to_arrow(found, nulls=nulls)


def _can_cast(scalar: "pa.Scalar[Any]", type_: pa.DataType) -> bool:
    """Return whether a literal or parameter can take the type of a column: floats always can."""
    if pa.types.is_integer(type_):
        if not pa.types.is_integer(scalar.type):
            return False
        value = scalar.as_py()
        return value is None or _bounds(type_)[0] <= value <= _bounds(type_)[1]
    if pa.types.is_floating(type_):
        return pa.types.is_floating(scalar.type) or pa.types.is_integer(scalar.type)
    return pa.types.is_large_string(type_) or pa.types.is_string(type_)


def _is_float32(values: Values) -> bool:
    return bool(pa.types.is_float32(values.type))


def _as_type(scalar: "pa.Scalar[Any]", type_: pa.DataType) -> "pa.Scalar[Any]":
    """Cast a scalar that fits; for integers without Arrow's cast, which takes longer than the comparison."""
    if pa.types.is_integer(type_):
        return _integer_scalar(scalar.as_py(), type_)
    return scalar.cast(type_, safe=False)


@lru_cache(maxsize=limits.NAMES_REMEMBERED_MAX)
def _integer_scalar(value: int | None, type_: pa.DataType) -> "pa.Scalar[Any]":
    return pa.scalar(value, type_)


def _bounds(type_: pa.DataType) -> tuple[int, int]:
    width = int(type_.bit_width)
    return (-(2 ** (width - 1)), 2 ** (width - 1) - 1) if pa.types.is_signed_integer(type_) else (0, 2**width - 1)


def _common_type(left: pa.DataType, right: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(left) or pa.types.is_large_string(right):
        return pa.large_string()
    if pa.types.is_floating(left) or pa.types.is_floating(right):
        return pa.float64()
    if pa.types.is_unsigned_integer(left) and pa.types.is_unsigned_integer(right):
        return pa.uint64()
    return pa.int64()


def _signs_differ(left: pa.DataType, right: pa.DataType) -> bool:
    """Return whether one is uint64 and the other signed: no plain type holds both."""
    return (pa.types.is_uint64(left) and pa.types.is_signed_integer(right)) or (
        pa.types.is_uint64(right) and pa.types.is_signed_integer(left)
    )


def _compare_across_signs(op: CompareOp, left: Datum, right: Datum) -> Datum:
    if not isinstance(right, pa.Array) and _can_cast(right, left.type):
        return _COMPARE[op](left, right.cast(left.type))
    if not isinstance(left, pa.Array) and _can_cast(left, right.type):
        return _COMPARE[op](left.cast(right.type), right)
    return _COMPARE[op](_to_decimals(left), _to_decimals(right))


def _to_decimals(datum: Datum) -> Datum:
    """Cast integers to decimals, which hold signed and unsigned ones."""
    return datum.cast(pa.decimal128(20, 0)) if datum.type != pa.decimal128(20, 0) else datum
