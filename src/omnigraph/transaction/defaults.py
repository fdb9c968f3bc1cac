"""What entities that were there before a required property have for it: the value of its `@default`."""

import json
import math
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import Property
from omnigraph.storage.conform import from_python
from omnigraph.storage.layout import arrow_type


def default_value(each: Property, text: str) -> object:
    """The value that a default's text stands for.

    `text`: as its `@default` says it.

    Raises:
        InvalidRequestError: it is none of the property's.
    """
    if each.type.list or each.type.is_vector:
        return _several(each, text)
    values = each.type.enum_values
    if values is not None and text not in values:
        raise InvalidRequestError(f"the @default of '{each.name}' is not among {', '.join(values)}")
    try:
        value: object = pa.array([text], pa.string()).cast(arrow_type(each.type))[0].as_py()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as wrong:
        raise InvalidRequestError(f"the @default of '{each.name}' is no {each.type}: {wrong}") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidRequestError(f"the @default of '{each.name}' is no {each.type}: {text} is not finite")
    return value


def _several(each: Property, text: str) -> object:
    """The list or vector that a default says as JSON does."""
    problem = f"the @default of '{each.name}' is no {each.type}"
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise InvalidRequestError(f"{problem}: it is not JSON: {wrong}") from None
    if not isinstance(given, list):
        raise InvalidRequestError(f"{problem}: it must be a list, like [1, 2]")
    try:
        found: object = from_python([given], each.type, each.name)[0].as_py()
    except InvalidRequestError as wrong:
        raise InvalidRequestError(f"{problem}: {wrong.message}") from None
    return found


def repeated(value: object, of: "pa.DataType", rows: int) -> "pa.Array[Any]":
    """A column with the same value, or with nothing, in every row.

    Args:
        value: None for nothing.
        of: the type of the column.
        rows: how many.

    Returns:
        The column.
    """
    column: pa.Array[Any] = pa.array([value], of).take(np.zeros(rows, np.int64))
    return column
