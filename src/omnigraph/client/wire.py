"""Requests to one graph of a server, and what is sent again when an answer does not come.

Reads are sent again. So are writes that carry an idempotency key: done twice, they are done once. Anything else is sent
again only where it surely did not arrive; if an answer is lost then, nobody knows, and the caller is told so.
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
from omnigraph.client.failures import failure, foreign
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
# The request did not leave: whatever it asks for, it may be sent again.
_UNSENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, httpx.UnsupportedProtocol)
_PASSING = frozenset({502, 503, 504})
_TOO_MANY = 429


class Again(Enum):
    """When a request may be sent again."""

    SAFELY = "it reads, or carries a key"
    UNSENT = "only if it did not arrive"


@dataclass(frozen=True, slots=True)
class Ask:
    """One request.

    Attributes:
        method: of HTTP.
        path: below the graph's address.
        params: of the address; those that are None are left out.
        json: the body, as a document.
        content: the body, as bytes.
        headers: besides those of every request.
        again: when it may be sent again.
        is_stream: the body of the answer is read as it comes, and what is lost of it is not asked for again.
        media: what the answer is: its media type; None for any.
    """

    method: str
    path: str
    params: Params | None = None
    json: object = None
    content: bytes | None = None
    headers: Mapping[str, str] | None = None
    again: Again = Again.SAFELY
    is_stream: bool = False
    media: str | None = None


class _Document(dict[str, Any]):
    """A document of a server; what it lacks, the server that sent it is none of ours."""

    def __missing__(self, name: str) -> object:
        """Refuse it.

        Raises:
            InvalidRequestError: always.
        """
        raise InvalidRequestError(
            f"the answer has no '{name}' and is none of an omnigraph server of this release", code="no_server"
        )


class Wire:
    """The way to one graph. Safe to share between threads."""

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

    # -- asking -------------------------------------------------------------------------------------------------------

    def get(self, path: str, **params: str | int | bool | Sequence[str] | None) -> Any:  # noqa: ANN401  (a document)
        """The document of a read."""
        return self.document(Ask("GET", path, params=params))

    def post(self, path: str, body: Mapping[str, object]) -> Any:  # noqa: ANN401  (a document)
        """The document of a read that needs a body."""
        return self.document(Ask("POST", path, json=present(body)))

    def write(self, path: str, body: Mapping[str, object], key: str | None, headers: Mapping[str, str] = {}) -> Any:  # noqa: ANN401  (a document; never changed)
        """The document of a write under a key: the caller's, or one of our own."""
        return self.document(Ask("POST", path, json=present(body), headers={**headers, KEY: key or self.ids.new()}))

    def act(
        self, method: str, path: str, body: Mapping[str, object] | None = None, *, params: Params | None = None
    ) -> Any:  # noqa: ANN401  (a document)
        """The document of a write that no key can be given to."""
        said = None if body is None else present(body)
        return self.document(Ask(method, path, params=params, json=said, again=Again.UNSENT))

    def document(self, ask: Ask) -> Any:  # noqa: ANN401  (a document)
        """The document of any request.

        Raises:
            GraphError: what the server answered with, or that it did not answer.
        """
        answer = self.whole(ask)
        try:
            found = answer.json()
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise foreign(answer.status_code, answer.content)
        return _Document(found)

    def whole(self, ask: Ask) -> httpx.Response:
        """An answer with all of its body.

        Raises:
            GraphError: what the server answered with, or that it did not answer.
        """
        deadline = self._clock.monotonic() + self._patience_s
        attempt = 1
        while True:
            answer, wait_s = self._tried(ask, attempt)
            if isinstance(answer, httpx.Response):
                return answer
            if wait_s is None or self._clock.monotonic() + wait_s > deadline:
                raise answer
            self._clock.sleep(wait_s)
            attempt += 1

    @contextmanager
    def streamed(self, ask: Ask) -> Iterator[httpx.Response]:
        """An answer that began well; its body is still to be read, and must be thrown away if it breaks off.

        Raises:
            GraphError: what the server answered with, or that it did not answer, or not to the end.
        """
        answer = self.whole(replace(ask, is_stream=True))
        try:
            yield answer
        except httpx.TransportError as lost:
            raise self._lost(ask, lost) from lost
        finally:
            answer.close()

    def pieces(self, ask: Ask) -> Iterator[bytes]:
        """Send a request when the first piece is asked for, and yield the body of its answer piece by piece.

        Raises:
            GraphError: what the server answered with, or that it did not answer, or not to the end.
        """
        with self.streamed(ask) as answer:
            yield from answer.iter_bytes()

    # -- again and again ----------------------------------------------------------------------------------------------

    def _tried(self, ask: Ask, attempt: int) -> tuple[httpx.Response | GraphError, float | None]:
        """The answer; or the error, and after how long to try again, None for never."""
        pause_s = backoff_s(attempt, first_ms=limits.CLIENT_BACKOFF_MS_MIN, most_ms=limits.CLIENT_BACKOFF_MS_MAX)
        try:
            answer = self._client.send(self._request(ask), stream=True)
            said = answer.headers.get(ACTOR)
            self.actor = None if said is None else unquote(said)
            if _is_ours(answer, ask) and ask.is_stream:
                return answer, None
            content = answer.read()
        except _UNSENT as down:
            if isinstance(wrong := _root_of(down), ssl.SSLError):
                return _untrusted(self.base, wrong), None
            return UnavailableError(f"there is no answer at {self.base}: {down}", code="no_answer"), pause_s
        except httpx.TransportError as lost:
            return self._lost(ask, lost), pause_s if ask.again is Again.SAFELY else None
        if _is_ours(answer, ask):
            return answer, None
        if answer.status_code < 400:
            return foreign(answer.status_code, content), None
        refused = failure(answer.status_code, content)
        if answer.status_code == _TOO_MANY:
            later = answer.headers.get("Retry-After", "")
            return refused, float(later) if later.isdigit() else pause_s
        return refused, pause_s if answer.status_code in _PASSING and ask.again is Again.SAFELY else None

    def _lost(self, ask: Ask, lost: httpx.TransportError) -> GraphError:
        if ask.again is Again.SAFELY and (ask.headers is None or KEY not in ask.headers):
            return UnavailableError(f"the answer of {self.base} was lost: {_told(lost)}", code="answer_lost")
        return OutcomeUnknownError(
            f"the answer of {self.base} was lost, so nobody here knows whether it was done: {_told(lost)}",
            code="answer_lost",
        )

    def _request(self, ask: Ask) -> httpx.Request:
        params = {name: _param(value) for name, value in (ask.params or {}).items() if value not in (None, ())}
        return self._client.build_request(
            ask.method,
            f"{self.base}/{ask.path}",
            params=params,
            json=ask.json,
            content=ask.content,
            headers=ask.headers,
        )

    # -- its end ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End all connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_ours(answer: httpx.Response, ask: Ask) -> bool:
    """Whether it is an answer to what was asked: done, and in the form that was asked for."""
    if answer.has_redirect_location:
        return SNAPSHOT in answer.headers  # a blob that lies elsewhere; nobody else of ours sends anybody on
    media = answer.headers.get("Content-Type", "").partition(";")[0].strip()
    return answer.is_success and ask.media in (None, media)


def _root_of(fault: BaseException) -> BaseException:
    """What a fault of a library began with."""
    while fault.__cause__ is not None or fault.__context__ is not None:
        fault = fault.__cause__ or fault.__context__ or fault
    return fault


def _untrusted(base: str, fault: ssl.SSLError) -> UnavailableError:
    """That two cannot speak in private: asking again would not help."""
    if isinstance(fault, ssl.SSLCertVerificationError):
        advice = "trust its authority by naming the authority's certificate in SSL_CERT_FILE"
        return UnavailableError(
            f"the certificate of {base} is not trusted: {fault.verify_message}; {advice}", code="tls"
        )
    reason = (fault.reason or str(fault)).replace("_", " ").lower()
    return UnavailableError(f"{base} does not speak TLS as we do ({reason}): is it http:// there?", code="tls")


def http_client(token: str | None, *, timeout_s: float) -> httpx.Client:
    """Connections to a server.

    Args:
        token (str | None): who asks.
        timeout_s (float): how long a server may be silent within one answer.

    Raises:
        InvalidRequestError: no request can carry the token, or nobody can be silent for so long.
    """
    seconds(timeout_s, "timeout_s")
    headers = {"User-Agent": f"omnigraph/{VERSION}"}
    if token is not None:
        check_token(token)
        headers["Authorization"] = f"Bearer {token}"
    return httpx.Client(
        headers=headers,
        timeout=httpx.Timeout(timeout_s, connect=limits.CLIENT_CONNECT_S_MAX),
        # Given up before servers usually do: a request must not meet a connection that is just being closed.
        limits=httpx.Limits(keepalive_expiry=limits.CLIENT_KEEPALIVE_S),
    )


def seconds(value: float, what: str) -> float:
    """A time that somebody may take.

    Raises:
        InvalidRequestError: it is no number, or below nothing.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
        raise InvalidRequestError(f"{what} must be a number of seconds, not {value!r}")
    return value


def present(body: Mapping[str, object]) -> dict[str, object]:
    """The members that say something."""
    return {name: value for name, value in body.items() if value is not None}


def segment(name: str) -> str:
    """A name as one part of a path; names of dots alone are no steps through it."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


def _param(value: object) -> Any:  # noqa: ANN401  (as httpx has them)
    return str(value).lower() if isinstance(value, bool) else value


def _told(lost: httpx.TransportError) -> str:
    return str(lost) or type(lost).__name__
