"""Parameters of a call, from Python to JSON."""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.errors import InvalidRequestError


def json_params(params: Mapping[str, object] | None) -> dict[str, Any] | None:
    """Parameters as JSON has them.

    Args:
        params: by name; besides JSON values, dates, times, and arrays that have `tolist`.

    Returns:
        JSON values; dates and times as ISO texts, times without a zone in UTC.

    Raises:
        InvalidRequestError: they are no mapping.
    """
    if params is None:
        return None
    if not isinstance(params, Mapping):
        raise InvalidRequestError("params must be a JSON object")
    return {name: value if type(value) in _PLAIN else _json(value) for name, value in params.items()}


# What JSON has as it is; looked at first, because nearly everything is one of these.
_PLAIN = frozenset({str, int, float, bool, type(None)})


def _json(value: object) -> object:
    match value:
        case datetime():
            aware = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
            return aware.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case list() | tuple():
            return [_json(each) for each in value]
        case _ if hasattr(value, "tolist"):
            return value.tolist()
        case _:
            return value
