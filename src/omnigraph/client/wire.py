"""HTTP requests to one graph of a server, with retries and backoff.

Reads are retried, and writes that carry an idempotency key: the server applies them once. Any other request is retried
only if it certainly did not arrive; if its answer is lost, the caller gets an `OutcomeUnknownError`.
"""

import math
import ssl
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Self
from urllib.parse import quote, unquote

import httpx

from omnigraph import limits
from omnigraph.client.failures import error_of_answer, unexpected_answer
from omnigraph.client.tokens import check_token
from omnigraph.clock import Clock, backoff_s
from omnigraph.errors import GraphError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from omnigraph.ids import IdSource
from omnigraph.version import VERSION

Params = Mapping[str, str | int | bool | Sequence[str] | None]
KEY = "Idempotency-Key"
ACTOR = "Omnigraph-Actor"
SNAPSHOT = "Omnigraph-Snapshot-Id"
NDJSON = "application/x-ndjson"
# The request was not sent: any request may be retried.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_PASSING = frozenset({502, 503, 504})
_TOO_MANY = 429


class Retry(Enum):
    """When a request may be retried."""

    ALWAYS = "it reads, or carries an idempotency key"
    IF_UNSENT = "only if it did not arrive"


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """One HTTP request to a graph.

    Attributes:
        method: an HTTP method.
        path: below the address of the graph.
        params: query parameters; None values are left out.
        json: the body, as a document.
        content: the body, as bytes.
        headers: in addition to those of every request.
        retry: when it may be retried.
        is_stream: the body of the answer is read as it arrives; a lost one is not retried.
        media: the expected media type of the answer; None for any.
    """

    method: str
    path: str
    params: Params | None = None
    json: object = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    retry: Retry = Retry.ALWAYS
    is_stream: bool = False
    media: str | None = None


class _Document(dict[str, Any]):
    """A document of a server. A missing field means that the server is not omnigraph, or of another release."""

    def __missing__(self, name: str) -> object:
        """Raise an `InvalidRequestError`."""
        raise InvalidRequestError(
            f"the answer has no '{name}' and is not from an omnigraph server of this release", code="no_server"
        )


class Wire:
    """A client of one graph on a server. Safe to share between threads."""

    def __init__(
        self,
        client: httpx.Client,
        base: str,
        *,
        clock: Clock,
        ids: IdSource,
        patience_s: float = limits.CLIENT_PATIENCE_S,
    ) -> None:
        self._client = client
        self.base = base
        self._clock = clock
        self.ids = ids
        self._patience_s = patience_s
        self.actor: str | None = None

    # -- requests -----------------------------------------------------------------------------------------------------

    def get(self, path: str, **params: str | int | bool | Sequence[str] | None) -> Any:  # noqa: ANN401  (a document)
        """Read a document."""
        return self.document(ServerRequest("GET", path, params=params))

    def post(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401  (a document)
        """Read a document with a request that has a body."""
        return self.document(ServerRequest("POST", path, json=without_nones(body)))

    def write(self, path: str, body: Mapping[str, object], key: str | None, headers: Mapping[str, str] = {}) -> Any:  # noqa: ANN401  (a document; never changed)
        """Write under an idempotency key, by default a new one, and return the document of the answer."""
        return self.document(
            ServerRequest("POST", path, json=without_nones(body), headers={**headers, KEY: key or self.ids.new()})
        )

    def act(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, params: Params | None = None
    ) -> Any:  # noqa: ANN401  (a document)
        """Write without an idempotency key, and return the document of the answer."""
        json = None if body is None else without_nones(body)
        return self.document(ServerRequest(method, path, params=params, json=json, retry=Retry.IF_UNSENT))

    def document(self, request: ServerRequest) -> Any:  # noqa: ANN401  (a document)
        """Send a request and return the document of the answer.

        Raises:
            GraphError: the server refused, or did not answer.
        """
        answer = self.send(request)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise unexpected_answer(answer.status_code, answer.content)
        return _Document(found)

    def send(self, request: ServerRequest) -> httpx.Response:
        """Send a request, retry it if possible, and return the answer with its body.

        Raises:
            GraphError: the server refused, or did not answer.
        """
        deadline = self._clock.monotonic() + self._patience_s
        attempt = 1
        while True:
            answer, wait_s = self._attempt(request, attempt)
            if isinstance(answer, httpx.Response):
                return answer
            if wait_s is None or self._clock.monotonic() + wait_s > deadline:
                raise answer
            self._clock.sleep(wait_s)
            attempt += 1

    @contextmanager
    def open_stream(self, request: ServerRequest) -> Iterator[httpx.Response]:
        """Send a request and yield a successful answer whose body is still to be read.

        Raises:
            GraphError: the server refused, did not answer, or broke off the answer.
        """
        answer = self.send(replace(request, is_stream=True))
        try:
            yield answer
        except httpx.TransportError as lost:
            raise self._lost_answer_error(request, lost) from lost
        finally:
            answer.close()

    def stream(self, request: ServerRequest) -> Iterator[bytes]:
        """Yield the body of an answer in pieces; the request is sent for the first one.

        Raises:
            GraphError: the server refused, did not answer, or broke off the answer.
        """
        with self.open_stream(request) as answer:
            yield from answer.iter_bytes()

    # -- retries ------------------------------------------------------------------------------------------------------

    def _attempt(self, request: ServerRequest, attempt: int) -> tuple[httpx.Response | GraphError, float | None]:
        """Return the answer; or the error and the seconds until the next attempt, None for no retry."""
        pause_s = backoff_s(attempt, first_ms=limits.CLIENT_BACKOFF_MS_MIN, most_ms=limits.CLIENT_BACKOFF_MS_MAX)
        try:
            answer = self._client.send(self._request(request), stream=True)
            actor = answer.headers.get(ACTOR)
            self.actor = None if actor is None else unquote(actor)
            if _is_expected(answer, request) and request.is_stream:
                return answer, None
            content = answer.read()
        except _UNSENT as down:
            if isinstance(wrong := _root_cause(down), ssl.SSLError):
                return _tls_error(self.base, wrong), None
            return UnavailableError(f"there is no answer at {self.base}: {down}", code="no_answer"), pause_s
        except httpx.TransportError as lost:
            return self._lost_answer_error(request, lost), pause_s if request.retry is Retry.ALWAYS else None
        if _is_expected(answer, request):
            return answer, None
        if answer.status_code < 400:
            return unexpected_answer(answer.status_code, content), None
        refused = error_of_answer(answer.status_code, content)
        if answer.status_code == _TOO_MANY:
            later = answer.headers.get("Retry-After", "")
            return refused, float(later) if later.isdigit() else pause_s
        return refused, pause_s if answer.status_code in _PASSING and request.retry is Retry.ALWAYS else None

    def _lost_answer_error(self, request: ServerRequest, lost: httpx.TransportError) -> GraphError:
        if request.retry is Retry.ALWAYS and (request.headers is None or KEY not in request.headers):
            return UnavailableError(f"the answer of {self.base} was lost: {_reason(lost)}", code="answer_lost")
        return OutcomeUnknownError(
            f"the answer of {self.base} was lost, so it is unknown whether the write was done: {_reason(lost)}",
            code="answer_lost",
        )

    def _request(self, request: ServerRequest) -> httpx.Request:
        params = {name: _param(value) for name, value in (request.params or {}).items() if value not in (None, ())}
        return self._client.build_request(
            request.method,
            f"{self.base}/{request.path}",
            params=params,
            json=request.json,
            content=request.content,
            headers=request.headers,
        )

    # -- closing ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_expected(answer: httpx.Response, request: ServerRequest) -> bool:
    """True if the answer is a success with the expected media type."""
    if answer.has_redirect_location:
        return SNAPSHOT in answer.headers  # an external blob; the server sends no other redirects
    media = answer.headers.get("Content-Type", "").partition(";")[0].strip()
    return answer.is_success and request.media in (None, media)


def _root_cause(fault: BaseException) -> BaseException:
    """Return the first exception of a chain."""
    while fault.__cause__ is not None or fault.__context__ is not None:
        fault = fault.__cause__ or fault.__context__ or fault
    return fault


def _tls_error(base: str, fault: ssl.SSLError) -> UnavailableError:
    """Return the error for a failed TLS handshake, which is not retried."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        advice = "trust its authority by naming the authority's certificate in SSL_CERT_FILE"
        return UnavailableError(
            f"the certificate of {base} is not trusted: {fault.verify_message}; {advice}", code="tls"
        )
    reason = (fault.reason or str(fault)).replace("_", " ").lower()
    return UnavailableError(f"{base} does not speak TLS as we do ({reason}): is it http:// there?", code="tls")


def http_client(token: str | None, *, timeout_s: float) -> httpx.Client:
    """Create an HTTP client.

    Args:
        token: the bearer token of the actor.
        timeout_s: how long a server may be silent within one answer.

    Raises:
        InvalidRequestError: the token or the timeout is not valid.
    """
    require_seconds(timeout_s, "timeout_s")
    headers = {"User-Agent": f"omnigraph/{VERSION}"}
    if token is not None:
        check_token(token)
        headers["Authorization"] = f"Bearer {token}"
    return httpx.Client(
        headers=headers,
        timeout=httpx.Timeout(timeout_s, connect=limits.CLIENT_CONNECT_S_MAX),
        # Shorter than that of most servers, so that no request uses a connection that the server is closing.
        limits=httpx.Limits(keepalive_expiry=limits.CLIENT_KEEPALIVE_S),
    )


def require_seconds(value: float, what: str) -> float:
    """Require a finite number of seconds, not negative; raise an `InvalidRequestError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidRequestError(f"{what} must be a number of seconds, not {value!r}")
    return value


def without_nones(body: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are not None."""
    return {name: value for name, value in body.items() if value is not None}


def quote_segment(name: str) -> str:
    """Quote a name as one path segment, also a name of only dots."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _param(value: object) -> Any:  # noqa: ANN401  (a parameter of httpx)
    return str(value).lower() if isinstance(value, bool) else value


def _reason(lost: httpx.TransportError) -> str:
    return str(lost) or type(lost).__name__
