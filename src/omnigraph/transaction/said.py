"""What callers say, before anything is done about it: of the right kind, and such that a record can hold it."""

import math

from omnigraph.errors import InvalidRequestError


def text_or_nothing(value: str | None, what: str) -> str | None:
    """The value itself, where a record can hold it and every reader can be told it.

    Args:
        value (str | None): as the caller gave it.
        what (str): what it is, for the message.

    Returns:
        str | None: the same.

    Raises:
        InvalidRequestError: it is no text, or holds half of a surrogate pair, which no answer could be written with.
    """
    return None if value is None else text(value, what)


def text(value: str, what: str) -> str:
    """The value itself; see `text_or_nothing`.

    Raises:
        InvalidRequestError: it is no text, or none that can be written.
    """
    if not isinstance(value, str):
        raise InvalidRequestError(f"{what} must be a text, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{what} {value!r} holds half of a surrogate pair") from None
    return value


def whole_number_or_nothing(value: int | None, what: str) -> int | None:
    """The value itself, where it is one to count with: NaN is below and above nothing, and would pass every check.

    Raises:
        InvalidRequestError: it is no whole number.
    """
    if value is not None and (isinstance(value, bool) or not isinstance(value, int)):
        raise InvalidRequestError(f"{what} must be a whole number, got {value!r}")
    return value


def seconds_or_nothing(value: float | None, what: str) -> float | None:
    """The value itself, where it is a number of seconds.

    Raises:
        InvalidRequestError: it is no number, below zero, or has no end.
    """
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise InvalidRequestError(f"{what} must be a number of seconds, got {value!r}")
    if value < 0:
        raise InvalidRequestError(f"{what} cannot be {value} seconds")
    return value
