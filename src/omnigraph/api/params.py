"""Arguments of calls: query parameters as JSON values, and rows by type."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.errors import InvalidRequestError


def json_params(params: Mapping[str, object] | None) -> dict[str, Any] | None:
    """Convert query parameters to JSON values.

    Dates and times become ISO texts, times without a zone in UTC; arrays with `tolist` become lists.

    Raises:
        InvalidRequestError: they are not a mapping.
    """
    if params is None:
        return None
    if not isinstance(params, Mapping):
        raise InvalidRequestError("params must be a JSON object")
    return {name: value if type(value) in _PLAIN else _json(value) for name, value in params.items()}


def require_rows_by_type(nodes: object, edges: object) -> None:
    """Refuse rows that are not given by type.

    Raises:
        InvalidRequestError: one of them is not a mapping.
    """
    for what, rows in (("nodes", nodes), ("edges", edges)):
        if not isinstance(rows, Mapping):
            raise InvalidRequestError(
                f"{what} must be rows by type, like {{'Person': rows}}, got {type(rows).__name__}"
            )


# The types of most values, which JSON has as they are; checked first.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _json(value: object) -> object:
    match value:
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_json(item) for item in value]
        case _ if hasattr(value, "tolist"):
            return value.tolist()
        case _:
            return value
