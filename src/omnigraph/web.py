"""HTTP requests that never follow a redirect.

A redirect could leak an API key to another host, or lead to an address that is not allowed, so it is returned as the
response. Proxies are taken from the environment when the request is made.
"""

import urllib.request
from typing import Any


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Redirect handler that follows none."""

    def redirect_request(self, *_: object) -> None:
        """Return no new request, so that the redirect itself is the response."""


def opened(request: urllib.request.Request, *, timeout_s: float) -> Any:  # noqa: ANN401  (urllib gives responses no public type)
    """Send a request and return the response, open for reading.

    Raises:
        urllib.error.HTTPError: the status is not 2xx; redirects included.
        OSError: the server does not respond for `timeout_s`.
    """
    return urllib.request.build_opener(_NoRedirects).open(request, timeout=timeout_s)
