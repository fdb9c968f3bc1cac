"""What callers say about a write, before it goes into a record that stays for ever."""

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
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidRequestError(f"{what} must be a text, got {type(value).__name__}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{what} {value!r} holds half of a surrogate pair") from None
    return value
