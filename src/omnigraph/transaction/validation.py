"""Validate arguments before a call does any work."""

import math
from collections.abc import Iterable, Mapping, Sequence

from omnigraph.errors import InvalidRequestError


def require_optional_text(value: str | None, what: str) -> str | None:
    """Return the value if it is None or a text that can be encoded."""
    return None if value is None else require_text(value, what)


def require_text(value: str, what: str) -> str:
    """The value itself; see `require_optional_text`."""
    if not isinstance(value, str):
        raise InvalidRequestError(f"{what} must be a text, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{what} {value!r} holds half of a surrogate pair") from None
    return value


def require_schema_text(value: object) -> None:
    """Refuse a schema that is no text: what is stored of it is the text as it was given."""
    if not isinstance(value, str):
        raise InvalidRequestError(f"schema.pg must be a text, got {type(value).__name__}")


def require_schema_request(value: object, *, allow_data_loss: object, validated: object) -> None:
    """Refuse to plan or apply what is of the wrong kind."""
    require_schema_text(value)
    require_flag(allow_data_loss, "allow_data_loss")
    require_flag(validated, "validated")


def require_flag(value: object, what: str) -> None:
    """Refuse what is neither true nor false: a text that says "false" would be taken for true."""
    if not isinstance(value, bool):
        raise InvalidRequestError(f"{what} must be true or false, got {value!r}")


def require_whole_number(value: int, what: str) -> int:
    """The value itself; see `require_optional_whole_number`."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise InvalidRequestError(f"{what} must be a whole number, got {value!r}")
    return value


def require_optional_whole_number(value: int | None, what: str) -> int | None:
    """The value itself, where it is one to count with: NaN is below and above nothing, and would pass every check."""
    return None if value is None else require_whole_number(value, what)


def require_texts(values: Sequence[str], what: str) -> list[str]:
    """The values themselves; one text is not several of one letter each."""
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidRequestError(f"{what} must be a list of texts, got {values!r}")
    return [require_text(value, f"one of {what}") for value in values]


def require_seconds(value: float, what: str) -> float:
    """The value itself; see `require_optional_seconds`."""
    if require_optional_seconds(value, what) is None:
        raise InvalidRequestError(f"{what} must be a number of seconds, got None")
    return value


def require_optional_seconds(value: float | None, what: str) -> float | None:
    """The value itself, where it is a number of seconds."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRequestError(f"{what} must be a number of seconds, got {value!r}")
    if value < 0:
        raise InvalidRequestError(f"{what} cannot be {value} seconds")
    return value


def require_table_versions(expected: object) -> None:
    """Validate expected table versions: numbers by type key."""
    if expected is None:
        return
    if not isinstance(expected, Mapping):
        raise InvalidRequestError(
            f"expected table versions are numbers by type key, like {{'node:Person': 3}}, got {type(expected).__name__}"
        )
    for key, version in expected.items():
        if not isinstance(key, str) or key.partition(":")[0] not in ("node", "edge"):
            raise InvalidRequestError(f"the expected version of {key!r}: a type key is like 'node:Person'")
        if not isinstance(version, int) or isinstance(version, bool):
            raise InvalidRequestError(f"the expected version of {key} must be a number, got {type(version).__name__}")
