"""Which texts can be tokens."""

from omnigraph.errors import InvalidRequestError


def check_token(token: str) -> None:
    """Stop what no request can carry.

    Args:
        token (str): who asks, as a header would say it.

    Raises:
        InvalidRequestError: it is not one word of printable ASCII. The token itself is not told.
    """
    if not isinstance(token, str) or not token or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidRequestError("a token is one word of printable ASCII; this one is not")
