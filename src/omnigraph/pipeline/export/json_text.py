"""Columns as JSON texts, whole columns at once: what `storage.json_values` makes of a value, written down."""

from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.storage.blob_values import as_text

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_SHORT_ESCAPES = {"\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_CONTROLS = {chr(code): _SHORT_ESCAPES.get(chr(code), f"\\u{code:04x}") for code in range(0x20)}
NULL = "null"


def json_texts(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """A column as JSON.

    Args:
        column: of any type a property can have.

    Returns:
        pa.Array[Any]: of the same length, texts without a null among them.
    """
    texts: pa.Array[Any] = pc.fill_null(_texts(column), NULL)
    return texts


def quoted_texts(texts: "pa.Array[Any]") -> "pa.Array[Any]":
    """Strings as JSON strings; null stays null.

    Args:
        texts: strings.

    Returns:
        pa.Array[Any]: each in quotes, with what may not stand there escaped.
    """
    for character, escape in (("\\", "\\\\"), ('"', '\\"')):
        if _any(pc.match_substring(texts, character)):
            texts = pc.replace_substring(texts, pattern=character, replacement=escape)
    if _any(pc.match_substring_regex(texts, r"[\x00-\x1f]")):
        for character, escape in _CONTROLS.items():
            if _any(pc.match_substring(texts, character)):
                texts = pc.replace_substring(texts, pattern=character, replacement=escape)
    return _around('"', texts, '"')


def plain_texts(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """A column as texts without JSON's quotes, for formats that know no types; null stays null.

    Args:
        column: of any type a property can have; lists are written as JSON.

    Returns:
        pa.Array[Any]: texts.
    """
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column
    if _is_list(kind):
        return _texts(column)
    if pa.types.is_floating(kind):
        return _unquoted_floats(column)
    bare = _bare_texts(column)
    return bare if bare is not None else column.cast(pa.string())


def _texts(column: "pa.Array[Any]") -> "pa.Array[Any]":
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return quoted_texts(column)
    if pa.types.is_floating(kind):
        return _floats(column)
    if _is_list(kind):
        return _lists(column)
    bare = _bare_texts(column)
    return _around('"', bare, '"') if bare is not None else column.cast(pa.string())


def _bare_texts(column: "pa.Array[Any]") -> "pa.Array[Any] | None":
    """Values that JSON has no form for, as texts in which nothing needs an escape; None for numbers and truths."""
    kind = column.type
    texts: pa.Array[Any]
    if pa.types.is_timestamp(kind):
        # Without a zone the cast is thirty times as fast, and the numbers are the same.
        naive = column.cast(pa.timestamp("ms", tz="UTC"), safe=False).cast(pa.int64()).view(pa.timestamp("ms"))
        texts = pc.replace_substring(naive.cast(pa.string()), pattern=" ", replacement="T")
        return _around("", texts, "Z")
    if pa.types.is_date(kind):
        return column.cast(pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        # Arrow has no base64; each value is one call into C, whatever its size.
        return pa.array([None if item is None else as_text(item) for item in column.to_pylist()], pa.large_string())
    return None


def _floats(column: "pa.Array[Any]") -> "pa.Array[Any]":
    texts = _unquoted_floats(column)
    if not _any(pc.invert(pc.is_finite(column))):
        return texts
    chosen: pa.Array[Any] = pc.if_else(pc.is_finite(column), texts, _around('"', texts, '"'))
    return chosen


def _unquoted_floats(column: "pa.Array[Any]") -> "pa.Array[Any]":
    """The shortest texts that mean these numbers; a whole number keeps its point, so that it stays a float."""
    wide = column.cast(pa.float64())
    texts: pa.Array[Any] = wide.cast(pa.string())
    whole = pc.match_substring_regex(texts, r"^-?\d+$")
    if _any(whole):
        texts = pc.if_else(whole, pc.binary_join_element_wise(texts, ".0", ""), texts)
    if _any(pc.invert(pc.is_finite(wide))):
        words = pc.if_else(pc.is_nan(wide), "NaN", pc.if_else(pc.greater(wide, 0), "Infinity", "-Infinity"))
        texts = pc.if_else(pc.is_finite(wide), texts, words)
    return texts


def _lists(column: "pa.Array[Any]") -> "pa.Array[Any]":
    items = json_texts(pc.list_flatten(column))
    lengths = pc.fill_null(pc.list_value_length(column), 0).cast(pa.int32())
    offsets = pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(lengths)])
    joined = pc.binary_join(pa.ListArray.from_arrays(offsets, items), pa.scalar(",", items.type))
    texts: pa.Array[Any] = pc.if_else(pc.is_valid(column), _around("[", joined, "]"), None)
    return texts


def _is_list(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind)


def _around(before: str, texts: "pa.Array[Any]", after: str) -> "pa.Array[Any]":
    kind = texts.type
    joined: pa.Array[Any] = pc.binary_join_element_wise(
        pa.scalar(before, kind), texts, pa.scalar(after, kind), pa.scalar("", kind)
    )
    return joined


def _any(mask: "pa.Array[Any]") -> bool:
    return bool(pc.any(mask).as_py())
