"""Opaque texts in which a client carries a place: JSON and its SHA-256, in base64url without padding.

The checksum finds texts that were cut or mistyped. It is no secret: whatever a text says is checked against the graph.
"""

import base64
import binascii
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

from omnigraph import limits
from omnigraph.errors import InvalidRequestError

_CHECKSUM_BYTES = hashlib.sha256().digest_size


class Carried(StrEnum):
    """What a text is for."""

    FEED_CURSOR = "change feed cursor"
    FEED_PAGE = "change feed page token"
    COMMIT_PAGE = "commit changes page token"
    COMMITS_PAGE = "commit list page token"
    NAMES_PAGE = "name list page token"


def rejected(reason: str) -> InvalidRequestError:
    """The error of a text that cannot be used; the reason is part of what clients see."""
    return InvalidRequestError(f"change cursor rejected: {reason}", code="change_cursor_rejected", reason=reason)


def encode(what: Carried, payload: Mapping[str, Any]) -> str:
    """The text for a place."""
    body = json.dumps({"for": what, **payload}, separators=(",", ":"), sort_keys=True).encode()
    return _text(body + hashlib.sha256(body).digest())


def decode(what: Carried, text: str, *, refuse: Callable[[str], InvalidRequestError] = rejected) -> dict[str, Any]:
    """The place in a text.

    Raises:
        InvalidRequestError: it is too long, damaged, or for something else.
    """
    if len(text) > limits.CHANGE_TOKEN_CHARACTERS_MAX:
        raise refuse(f"{what} is longer than {limits.CHANGE_TOKEN_CHARACTERS_MAX} characters")
    try:
        whole = base64.b64decode(text.encode("ascii") + b"=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        raise refuse(f"invalid {what} encoding") from None
    if _text(whole) != text:
        raise refuse(f"invalid {what} encoding")  # some of its last bits mean nothing, and are not as we write them
    body, checksum = whole[:-_CHECKSUM_BYTES], whole[-_CHECKSUM_BYTES:]
    if hashlib.sha256(body).digest() != checksum:
        raise refuse(f"invalid {what} checksum")
    try:
        payload = json.loads(body)
        found = Carried(payload.pop("for"))
    except (ValueError, KeyError, AttributeError, TypeError):
        raise refuse(f"invalid {what} payload") from None
    if found is not what:
        raise refuse(f"a {found} cannot be used as a {what}")
    return dict(payload)


@contextmanager
def sound_payload(what: Carried, *, refuse: Callable[[str], InvalidRequestError] = rejected) -> Iterator[None]:
    """Reject a payload without the expected fields; its checksum does not prove that we made it."""
    try:
        yield
    except (KeyError, TypeError) as fault:
        raise refuse(f"invalid {what} payload") from fault
    except ValueError as fault:
        if isinstance(fault, InvalidRequestError):
            raise
        raise refuse(f"invalid {what} payload") from fault


def _text(whole: bytes) -> str:
    return base64.urlsafe_b64encode(whole).decode().rstrip("=")
