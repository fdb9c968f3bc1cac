"""Ids of nodes and edges, a column at a time: derived from keys, or new ones."""

import hashlib
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import InvalidRequestError
from omnigraph.ids import ULID_LENGTH, IdSource
from omnigraph.model.keys import canonicalize, explain_missing_key, list_key_columns
from omnigraph.model.schema import EntityType
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_CONTROL = "[\\x00-\\x1f]"
_LETTERS = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", dtype=np.uint8)
_TIME_LENGTH = 10
_CHANCE_BYTES = 10
_PLACES = np.array([16, 8, 4, 2, 1], dtype=np.uint8)
_ONE_BY_ONE_MAX = 8


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


def fresh_ids(source: IdSource, count: int) -> "pa.Array[Any]":
    """New ids, in rising order.

    Few come from the source one by one. Many share the time of one id of the source, and their 80 bits of chance are
    spread out of that id's own: what is certain of the source's ids is then as certain of these.

    Args:
        source: where ids come from.
        count: how many.

    Returns:
        Strings, no two equal.
    """
    if count <= _ONE_BY_ONE_MAX:
        return pa.array([source.new() for _ in range(count)], pa.string())
    seed = source.new().encode("ascii")
    chance = np.frombuffer(hashlib.shake_256(seed).digest(_CHANCE_BYTES * count), dtype=np.uint8)
    fives = np.unpackbits(chance.reshape(count, _CHANCE_BYTES), axis=1).reshape(count, -1, len(_PLACES)) @ _PLACES
    letters = np.empty((count, ULID_LENGTH), dtype=np.uint8)
    letters[:, :_TIME_LENGTH] = np.frombuffer(seed[:_TIME_LENGTH], dtype=np.uint8)
    letters[:, _TIME_LENGTH:] = _LETTERS[fives]
    rising = np.sort(letters.view(f"S{ULID_LENGTH}").ravel())
    ends = np.arange(0, ULID_LENGTH * (count + 1), ULID_LENGTH, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(ends), pa.py_buffer(rising))  # type: ignore[arg-type]  # any buffer will do
