"""Bringing values into the one type their property has in the table, or saying which one does not fit.

    from_arrow    a column of any Arrow type, such as a data frame has; whole columns, no value is touched by itself
    from_python   Python or JSON values, which have to be looked at one by one

Only the failing path looks for the first value that does not fit, so that the message can name it.
"""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError, beyond_limit
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar
from omnigraph.storage import instants
from omnigraph.storage.blob_values import BASE64, managed_column
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, BlobIngress
from omnigraph.storage.layout import arrow_name, arrow_type
from omnigraph.storage.single_values import misfit, shown, stored

# The stubs know what a kernel takes only where the Arrow type is known; here no type is.
pc: Any = pyarrow.compute

_NUMERIC = PropertyType(Scalar.F32)


def from_arrow(
    column: "pa.Array[Any] | pa.ChunkedArray[Any]", of: PropertyType, name: str, blobs: BlobIngress | None = None
) -> "pa.Array[Any]":
    """A column in the type its property has in the table.

    Args:
        blobs: what becomes of addresses; none is allowed by default.

    Raises:
        InvalidRequestError: a value does not fit, or one is missing that the schema requires.
        LimitError: there is more than one column of one write may hold.
    """
    whole = _whole(column)
    if whole.null_count and not of.nullable:
        raise InvalidRequestError(missing(of, name))
    if pa.types.is_null(whole.type):
        return nulls(len(whole), of)
    if of.is_vector:
        return _vectors(whole, of, name)
    if of.is_blob and _is_text(whole.type):
        return _blobs(whole.to_pylist(), name, blobs)
    return _lists(whole, of, name) if of.list else _scalars(whole, of.scalar, name, inside=False)


def from_python(
    values: Sequence[object], of: PropertyType, name: str, blobs: BlobIngress | None = None
) -> "pa.Array[Any]":
    """Python or JSON values as a column of the table.

    Args:
        values: None for an absent one; dates as `date`, ISO text or days since 1970, instants as `datetime`, ISO text
            or milliseconds since 1970, blobs as bytes, `base64:…` or an address, lists and vectors as sequences.
        blobs: what becomes of addresses; none is allowed by default.

    Raises:
        InvalidRequestError: a value does not fit, or one is missing that the schema requires.
        LimitError: there is more than one column of one write may hold.
    """
    if not of.nullable and any(value is None for value in values):
        raise InvalidRequestError(missing(of, name))
    if of.list or of.is_vector:
        return _nested(values, of, name)
    if of.is_blob:
        return _blobs(values, name, blobs)
    return _singles(values, of.scalar, name, inside=False)


def missing(of: PropertyType, name: str) -> str:
    """The sentence about a required property without a value."""
    if of.is_vector:
        return f"non-nullable vector property '{name}' has null values"
    if of.is_blob:
        return f"non-nullable blob property '{name}' has null values"
    return f"non-nullable property '{name}' has null or invalid values"


def nulls(count: int, of: PropertyType) -> "pa.Array[Any]":
    """A column without a value."""
    make: Any = pa.nulls
    column: pa.Array[Any] = make(count, arrow_type(of))
    return column


# -- whole columns ----------------------------------------------------------------------------------------------------


def _whole(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    flat: Any = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(flat, pa.ChunkedArray):  # what does not fit into one array stays in several
        raise LimitError("a column of one write holds more than one Arrow array can", code="column_too_large")
    if pa.types.is_dictionary(flat.type):
        # Views have to be plain strings first: no kernel takes them out of a dictionary.
        values = flat.dictionary.cast(pa.string()) if pa.types.is_string_view(flat.type.value_type) else flat.dictionary
        flat = values.take(flat.indices)
    whole: pa.Array[Any] = flat
    return whole


def _scalars(whole: "pa.Array[Any]", scalar: Scalar, name: str, *, inside: bool) -> "pa.Array[Any]":
    try:
        found = _cast(whole, scalar)
    except (pa.ArrowException, OverflowError):
        found = None
    if found is None or (scalar in FLOAT_SCALARS and pc.all(pc.is_finite(found)).as_py() is False):
        raise InvalidRequestError(_first_misfit(whole, scalar, name, inside=inside))
    return found


def _cast(whole: "pa.Array[Any]", scalar: Scalar) -> "pa.Array[Any] | None":
    """The column in a scalar's type; None where no value of its own type is one of the scalar's.

    Raises:
        pa.ArrowInvalid: some value does not fit.
    """
    kind = whole.type
    is_text = _is_text(kind)
    target = arrow_type(PropertyType(scalar))
    match scalar:
        case Scalar.STRING if is_text:
            return whole.cast(target)
        case Scalar.BOOL if pa.types.is_boolean(kind):
            return whole
        case Scalar.I32 | Scalar.I64 | Scalar.U32 | Scalar.U64 if _is_number(kind):
            return whole.cast(target)
        case Scalar.F32 | Scalar.F64 if _is_number(kind):
            return whole.cast(target, safe=False)
        case Scalar.DATE if is_text:
            return instants.days_of_texts(whole.cast(pa.string()))
        case Scalar.DATE if pa.types.is_integer(kind):
            return instants.days_of_numbers(whole)
        case Scalar.DATE if pa.types.is_date(kind):
            return instants.days_of_numbers(whole.cast(pa.date32()).cast(pa.int32()))
        case Scalar.DATE if pa.types.is_timestamp(kind):
            return _days_of_midnights(whole)
        case Scalar.DATETIME if is_text:
            return instants.instants_of_texts(whole.cast(pa.string()))
        case Scalar.DATETIME if pa.types.is_integer(kind):
            return instants.instants_of_numbers(whole)
        case Scalar.DATETIME if pa.types.is_timestamp(kind):
            return instants.instants_of(whole)
        case Scalar.DATETIME if pa.types.is_date(kind):
            return instants.instants_of(whole.cast(pa.timestamp("ms")))
        case Scalar.BLOB if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
            return managed_column(_bounded(whole.cast(target)))
        case _:
            return None


def _days_of_midnights(moments: "pa.Array[Any]") -> "pa.Array[Any]":
    """Timestamps as days, where each is the first moment of one."""
    found = instants.instants_of(moments)
    days = found.cast(pa.date32())
    if pc.all(pc.equal(days.cast(found.type), found)).as_py() is False:
        raise pa.ArrowInvalid("a moment within a day is no day")
    return days


def _lists(whole: "pa.Array[Any]", of: PropertyType, name: str) -> "pa.Array[Any]":
    if not _is_list(whole.type):
        raise InvalidRequestError(f"list property '{name}' expects a JSON array, got {shown(_first(whole))}")
    items = _whole(pc.list_flatten(whole))
    if items.null_count:
        raise InvalidRequestError(f"strict list property '{name}' contains a null or invalid item")
    if not len(items):
        return _relisted(whole, nulls(0, of.element), of)
    return _relisted(whole, _scalars(items, of.scalar, name, inside=True), of)


def _relisted(whole: "pa.Array[Any]", items: "pa.Array[Any]", of: PropertyType) -> "pa.Array[Any]":
    """Lists of the same lengths as those of `whole`, and null where they are, with other items."""
    lengths = pc.fill_null(pc.list_value_length(whole), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths).cast(pa.int32())])
    kind: Any = arrow_type(of)
    return pa.ListArray.from_arrays(offsets, items, type=kind, mask=whole.is_null() if whole.null_count else None)


def _vectors(whole: "pa.Array[Any]", of: PropertyType, name: str) -> "pa.Array[Any]":
    if not _is_list(whole.type):
        raise InvalidRequestError(f"vector property '{name}' expects a JSON array, got {shown(_first(whole))}")
    lengths = pc.drop_null(pc.list_value_length(whole))
    wrong = lengths.filter(pc.not_equal(lengths, of.vector_dim))
    if len(wrong):
        raise InvalidRequestError(
            f"vector property '{name}' expects {of.vector_dim} dimensions, got {wrong[0].as_py()}"
        )
    items = _whole(pc.list_flatten(whole))
    if len(items) and (items.null_count or not _is_number(items.type)):
        got = "null" if items.null_count else shown(_first(items))
        raise InvalidRequestError(f"vector property '{name}' elements must be numeric, got {got}")
    numbers = _scalars(items, Scalar.F32, name, inside=False) if len(items) else nulls(0, _NUMERIC)
    kind: Any = arrow_type(of)
    fixed: Any = pa.FixedSizeListArray
    vectors: pa.Array[Any] = fixed.from_arrays(numbers, type=kind)
    if not whole.null_count:
        return vectors
    # A null takes no numbers of the flattened ones: put the vectors there are at their rows.
    places = pc.subtract(pc.cumulative_sum(whole.is_valid().cast(pa.int64())), 1)
    return vectors.take(pc.if_else(whole.is_valid(), places, pa.scalar(None, pa.int64())))


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind)


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)


def _first(whole: "pa.Array[Any]") -> object:
    there = pc.drop_null(whole)
    return there[0].as_py() if len(there) else None


def _first_misfit(whole: "pa.Array[Any]", scalar: Scalar, name: str, *, inside: bool) -> str:
    for value in whole.to_pylist():
        if value is not None and stored(value, scalar) is None:
            return misfit(value, scalar, name, inside=inside)
    return f"property '{name}' holds {whole.type} values, of which not all are {arrow_name(scalar)}"


def _bounded(blobs: "pa.Array[Any]") -> "pa.Array[Any]":
    size = pc.sum(pc.binary_length(blobs)).as_py() or 0
    if size > limits.BLOB_INPUT_BYTES_MAX:
        raise beyond_limit("decoded blob input bytes", actual=size, limit=limits.BLOB_INPUT_BYTES_MAX)
    return blobs


# -- single values ----------------------------------------------------------------------------------------------------


def _singles(values: Sequence[object], scalar: Scalar, name: str, *, inside: bool) -> "pa.Array[Any]":
    found = [None if value is None else stored(value, scalar) for value in values]
    if any(was is not None and fits is None for was, fits in zip(values, found, strict=True)):
        wrong = next(was for was, fits in zip(values, found, strict=True) if was is not None and fits is None)
        raise InvalidRequestError(misfit(wrong, scalar, name, inside=inside))
    target = arrow_type(PropertyType(scalar))
    # Days and milliseconds are numbers here already; Arrow would take only `date` and `datetime` for them.
    number = {Scalar.DATE: pa.int32(), Scalar.DATETIME: pa.int64()}.get(scalar)
    column: pa.Array[Any] = pa.array(found, target if number is None else number)
    return column if number is None else column.view(target)


def _blobs(values: Sequence[object], name: str, ingress: BlobIngress | None) -> "pa.Array[Any]":
    """Blobs as cells; those that lie elsewhere all at once."""
    elsewhere = [value for value in values if isinstance(value, str) and not value.startswith(BASE64)]
    within = [None if isinstance(value, str) and not value.startswith(BASE64) else value for value in values]
    found = [None if value is None else stored(value, Scalar.BLOB) for value in within]
    for was, fits in zip(within, found, strict=True):
        if was is not None and fits is None:
            raise InvalidRequestError(misfit(was, Scalar.BLOB, name))
    if elsewhere:
        cells = iter((ingress or BlobIngress(NO_EXTERNAL_BLOBS)).cells(elsewhere))
        found = [
            next(cells) if fits is None and was is not None else fits for was, fits in zip(values, found, strict=True)
        ]
    return _bounded(pa.array(found, arrow_type(PropertyType(Scalar.BLOB))))


def _nested(values: Sequence[object], of: PropertyType, name: str) -> "pa.Array[Any]":
    lists: list[list[object] | None] = []
    for value in values:
        if value is None or (isinstance(value, Sequence) and not isinstance(value, str | bytes)):
            lists.append(None if value is None else list(value))
        else:
            what = "vector" if of.is_vector else "list"
            raise InvalidRequestError(f"{what} property '{name}' expects a JSON array, got {shown(value)}")
    items = [item for value in lists if value is not None for item in value]
    if of.is_vector:
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int | float):
                raise InvalidRequestError(f"vector property '{name}' elements must be numeric, got {shown(item)}")
        return _vectors(pa.array(lists, pa.list_(pa.float64())), of, name)
    if any(item is None for item in items):
        raise InvalidRequestError(f"strict list property '{name}' contains a null or invalid item")
    shape = pa.array([None if value is None else [None] * len(value) for value in lists], pa.list_(pa.null()))
    return _relisted(shape, _singles(items, of.scalar, name, inside=True), of)
