"""Requests to web servers that stay where they were sent.

A redirect could carry a key to whom it is not meant for, or lead to a place that nobody has allowed. So none is
followed, it is told as the answer it is. Proxies are those that the environment names when the request is made.
"""

import urllib.request
from typing import Any


class _StayingHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirect."""

    def redirect_request(self, *_: object) -> None:
        """Whatever it is, it is told as the answer."""


def opened(request: urllib.request.Request, *, timeout_s: float) -> Any:  # noqa: ANN401  (an answer has no type of its own)
    """The answer to a request, open for reading.

    Args:
        request (urllib.request.Request): to `http:` or `https:`.
        timeout_s (float): how long the server may be silent.

    Returns:
        Any: as `urllib.request.urlopen` returns it.

    Raises:
        urllib.error.HTTPError: the server refuses it, or sends it elsewhere.
        OSError: it does not answer.
    """
    return urllib.request.build_opener(_StayingHere).open(request, timeout=timeout_s)
