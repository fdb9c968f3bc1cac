"""The ids of the nodes of a keyed type, a column at a time; the texts are those of `model.keys`."""

import json
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.errors import InvalidRequestError
from omnigraph.model.keys import canonical_text
from omnigraph.model.schema import NodeType, Property
from omnigraph.model.types import FLOAT_SCALARS, Scalar

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def derived_ids(node: NodeType, columns: "dict[str, pa.Array[Any]]") -> "pa.Array[Any]":
    """The ids that keys stand for.

    Args:
        node: the type; it has a key.
        columns: by property name, in the types of the table.

    Returns:
        As many ids as there are rows.

    Raises:
        InvalidRequestError: a key has no value.
    """
    texts = [_texts(node, each, columns[each.name]) for each in node.key]
    if len(texts) == 1:
        return texts[0]
    # JSON of each row's texts: there is no kernel for it, so rows are taken one by one.
    rows = zip(*(text.to_pylist() for text in texts), strict=True)
    return pa.array([json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in rows], pa.string())


def _texts(node: NodeType, key: Property, column: "pa.Array[Any]") -> "pa.Array[Any]":
    if column.null_count:
        raise InvalidRequestError(f"node {node.name} is missing a non-null @key value")
    match key.type.scalar:
        case Scalar.STRING:
            return column
        case Scalar.DATE:
            return column.cast(pa.int32()).cast(pa.string())
        case Scalar.DATETIME:
            return column.cast(pa.int64()).cast(pa.string())
        case scalar if scalar in FLOAT_SCALARS:
            # The fewest digits that read back the same, without an exponent: Arrow's own text may have one.
            distinct = pc.unique(column)
            texts = pa.array([canonical_text(each, key.type) for each in distinct.to_pylist()], pa.string())
            return texts.take(pc.index_in(column, value_set=distinct))
        case _:
            return column.cast(pa.string())
