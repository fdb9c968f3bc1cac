"""Conversions between Arrow and numpy arrays, the two forms in which the engine holds values."""

from typing import Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

# The stubs require statically known Arrow types, and there are none here.
pc: Any = pyarrow.compute

Values: TypeAlias = "pa.Array[Any]"
Ordinals = npt.NDArray[np.int32]
Positions = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Codes = npt.NDArray[np.int32]
Numbers = npt.NDArray[Any]
NumberArray = TypeVar("NumberArray", Ordinals, Positions)

NONE = -1  # the ordinal of an absent variable; the code of null
NO_ORDINALS: Ordinals = np.empty(0, dtype=np.int32)
NO_POSITIONS: Positions = np.empty(0, dtype=np.int64)


def to_arrow(numbers: Numbers, *, nulls: Mask | None = None) -> Values:
    """Convert a numpy array to Arrow; null where `nulls` is true."""
    made: Any = pa.array(numbers, mask=nulls) if nulls is not None else pa.array(numbers)
    return made  # type: ignore[no-any-return]  # Arrow's kernels have no types


def to_numpy(values: Values) -> Numbers:
    """Convert an Arrow array of numbers, dates or booleans without nulls to numpy."""
    plain = _PLAIN.get(values.type)
    whole: Any = values if plain is None else values.view(plain)
    return whole.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # Arrow's kernels have no types


_PLAIN: dict[pa.DataType, pa.DataType] = {
    pa.date32(): pa.int32(),
    pa.timestamp("ms", tz="UTC"): pa.int64(),
    pa.duration("ms"): pa.int64(),
}


def make_nulls(size: int, type_: pa.DataType) -> Values:
    """Make an array of nulls."""
    return pa.nulls(size, type_)  # type: ignore[no-any-return, call-overload]  # the stubs name every type apart


def null_mask(values: Values) -> Mask | None:
    """Return the null mask; None if there are no nulls."""
    if not values.null_count:
        return None
    found: Mask = pc.is_null(values).to_numpy(zero_copy_only=False)
    return found


def take(values: Values, places: Numbers, *, absent: bool = False) -> Values:
    """Take values by position; with `absent`, null where the position is `NONE`."""
    if absent:
        nowhere = places == NONE
        if nowhere.any():
            return values.take(to_arrow(places, nulls=nowhere))
    return take_fast(values, places)


def take_fast(values: Values, places: Numbers) -> Values:
    """Take values by position; for few values twice as fast as Arrow's own call."""
    plain = _INDEX_TYPES.get(places.dtype)
    if plain is None or not places.flags.c_contiguous:
        return values.take(to_arrow(places))
    wrapped = pa.Array.from_buffers(plain, len(places), [None, pa.py_buffer(places.data)])
    return _TAKE.call([values, wrapped], _CHECKED)  # type: ignore[no-any-return]  # Arrow's kernels have no types


_TAKE = pc.get_function("array_take")
_CHECKED = pc.TakeOptions(boundscheck=True)  # a position out of bounds is an error
_INDEX_TYPES: dict[Any, Any] = {np.dtype(np.int32): pa.int32(), np.dtype(np.int64): pa.int64()}


def select(values: Values, mask: Mask) -> Values:
    """Select the values where the mask is true."""
    return values.filter(to_arrow(mask))


def true_mask(condition: Values) -> Mask:
    """Return the mask of rows where a condition is true, neither false nor null."""
    known: Any = condition.fill_null(False) if condition.null_count else condition  # noqa: FBT003  (Arrow's own)
    return known.to_numpy(zero_copy_only=False)  # type: ignore[no-any-return]  # Arrow's kernels have no types


def make_lists(starts: Positions, values: Values, *, nulls: Mask | None = None) -> Values:
    """Make a list array from offsets and values; null where `nulls` is true."""
    make: Any = pa.ListArray.from_arrays if len(values) < 2**31 else pa.LargeListArray.from_arrays
    offsets = to_arrow(starts.astype(np.int32 if len(values) < 2**31 else np.int64))
    return make(offsets, values, mask=None if nulls is None else to_arrow(nulls))  # type: ignore[no-any-return]  # Arrow's kernels have no types


def sorted_unique(numbers: NumberArray) -> NumberArray:
    """Return the distinct numbers, ascending; several times faster than `np.unique` for few of them."""
    if len(numbers) < 2:
        return numbers
    ordered = numbers
    if not (numbers[1:] > numbers[:-1]).all():
        ordered = np.sort(numbers)
        kept = np.empty(len(ordered), dtype=np.bool_)
        kept[0] = True
        np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
        ordered = ordered[kept]
    return ordered


def normalize_zeros(values: Values) -> Values:
    """Replace -0.0 with 0.0: hash tables distinguish the two, queries do not."""
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def positions_in(values: "Values | pa.ChunkedArray[Any]", known: Values) -> Codes:
    """Return the position of each value among the known ones, `NONE` where it is not one of them."""
    found = pc.index_in(values, value_set=known)
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    places: Codes = found.fill_null(NONE).to_numpy(zero_copy_only=False)
    return places.astype(np.int32, copy=False)


def concat(pieces: "list[Values]") -> Values:
    """Concatenate arrays (at least one), widening the type if a plain one cannot hold that much."""
    full = [piece for piece in pieces if len(piece)] or pieces[:1]
    if len(full) == 1:
        return full[0]
    types = {piece.type for piece in full}
    if len(types) > 1 or sum(piece.nbytes for piece in full) > _PLAIN_BYTES_MAX:
        full = [piece.cast(_wide(piece.type)) for piece in full]
    return pa.concat_arrays(full)


# Arrow's plain strings and lists hold at most this many bytes or elements in one piece.
_PLAIN_BYTES_MAX = 2**31 - 1


def _wide(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_string(type_):
        return pa.large_string()
    if pa.types.is_list(type_):
        return pa.large_list(type_.value_field)
    return type_
