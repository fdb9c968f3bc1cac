"""Whether two columns, or the rows of two tables, hold the same values, a column at a time.

Null equals null and NaN equals NaN, at any depth; a null differs from an empty text and from an empty list.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

Mask = npt.NDArray[np.bool_]


def same_rows(one: pa.Table, other: pa.Table, columns: Iterable[str]) -> Mask:
    """Which rows of two tables of one length are the same in these columns, place by place."""
    same = np.ones(one.num_rows, np.bool_)
    for name in columns:
        if not same.any():
            break
        same &= same_values(one.column(name), other.column(name))
    return same


def same_values(one: "pa.Array[Any] | pa.ChunkedArray[Any]", other: "pa.Array[Any] | pa.ChunkedArray[Any]") -> Mask:
    """Which values of two columns of one type and length are the same, place by place."""
    left, right = _whole(one), _whole(other)
    without = _mask(pc.is_null(left)), _mask(pc.is_null(right))
    if not len(left):
        return np.zeros(0, np.bool_)
    kind = left.type
    if pa.types.is_struct(kind):
        there = np.ones(len(left), np.bool_)
        for field in kind:
            there &= same_values(pc.struct_field(left, field.name), pc.struct_field(right, field.name))
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        there = _same_lists(left, right)
    else:
        there = _mask(pc.fill_null(pc.equal(left, right), pa.scalar(value=False)))
        if pa.types.is_floating(kind):
            there |= _mask(pc.fill_null(pc.and_(pc.is_nan(left), pc.is_nan(right)), pa.scalar(value=False)))
    return (without[0] & without[1]) | (there & ~without[0] & ~without[1])


def _same_lists(left: Any, right: Any) -> Mask:  # noqa: ANN401  (arrays of lists, of whichever sort)
    lengths, others = (_numbers(pc.fill_null(pc.list_value_length(lists), -1)) for lists in (left, right))
    same: Mask = lengths == others
    # Lists of one length are compared item by item: laid end to end, they have their items at the same places.
    places = np.flatnonzero(same & (lengths > 0))
    if not len(places):
        return same
    rows = pa.array(places)
    items = same_values(pc.list_flatten(left.take(rows)), pc.list_flatten(right.take(rows)))
    starts = np.concatenate(([0], np.cumsum(lengths[places])[:-1]))
    same[places] = np.logical_and.reduceat(items, starts)
    return same


def _whole(column: Any) -> Any:  # noqa: ANN401  (of any type)
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _mask(values: Any) -> Mask:  # noqa: ANN401  (booleans without nulls)
    return np.array(values.to_numpy(zero_copy_only=False), np.bool_)


def _numbers(values: Any) -> npt.NDArray[np.int64]:  # noqa: ANN401  (numbers without nulls)
    return np.array(values.to_numpy(zero_copy_only=False), np.int64)
