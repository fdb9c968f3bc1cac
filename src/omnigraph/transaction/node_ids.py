"""The ids of the nodes or edges of a keyed type, a column at a time; the texts are those of `model.keys`."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import InvalidRequestError
from omnigraph.model.keys import canonicalize, explain_missing_key, list_key_columns
from omnigraph.model.schema import EntityType
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_CONTROL = "[\\x00-\\x1f]"


def derived_ids(entity: EntityType, columns: "dict[str, pa.Array[Any]]") -> "pa.Array[Any]":
    """The ids that keys stand for.

    Args:
        entity: the type; it has a key.
        columns: by property name, of edges `src` and `dst` as well, in the types of the table.

    Returns:
        As many ids as there are rows.

    Raises:
        InvalidRequestError: a key has no value.
    """
    texts = []
    for name, of in list_key_columns(entity):
        if columns[name].null_count:
            raise InvalidRequestError(explain_missing_key(entity))
        texts.append(_texts(of, columns[name]))
    if len(texts) == 1:
        return texts[0]
    if any(pc.any(pc.match_substring_regex(text, _CONTROL)).as_py() for text in texts):
        # JSON has spellings of its own for these: rows are taken one by one.
        rows = zip(*(text.to_pylist() for text in texts), strict=True)
        return pa.array([json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows], pa.string())
    quoted = [pc.replace_substring(pc.replace_substring(text, "\\", "\\\\"), '"', '\\"') for text in texts]
    joined = pc.binary_join_element_wise(*quoted, '","')
    listed: pa.Array[Any] = pc.binary_join_element_wise('["', joined, '"]', "")
    return listed


def _texts(of: PropertyType, column: "pa.Array[Any]") -> "pa.Array[Any]":
    match of.scalar:
        case Scalar.STRING:
            return column
        case Scalar.DATE:
            return column.cast(pa.int32()).cast(pa.string())
        case Scalar.DATETIME:
            return column.cast(pa.int64()).cast(pa.string())
        case scalar if scalar in FLOAT_SCALARS:
            # The fewest digits that read back the same, without an exponent: Arrow's own text may have one.
            distinct = pc.unique(column)
            texts = pa.array([canonicalize(value, of) for value in distinct.to_pylist()], pa.string())
            return texts.take(pc.index_in(column, value_set=distinct))
        case _:
            return column.cast(pa.string())
