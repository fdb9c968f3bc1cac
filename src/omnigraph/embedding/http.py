"""Requests to a provider over HTTP: bounded in time, tried again where that can help."""

import http.client
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.clock import Clock
from omnigraph.errors import InvalidRequestError, UnavailableError
from omnigraph.web import opened

_ANSWER_BYTES_MAX = 32 * 1024 * 1024
_TRY_AGAIN = frozenset({408, 429, 500, 502, 503, 504, 529})
_SHOWN_MAX = 300


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a provider may take.

    Attributes:
        deadline_s: for one text, all attempts together.
        timeout_s: for one attempt.
        attempts: how many there are at most.
        backoff_s: how long to wait after the first; twice as long after each further one.
    """

    deadline_s: float = 60.0
    timeout_s: float = 30.0
    attempts: int = 4
    backoff_s: float = 0.2


class _Passing(Exception):  # noqa: N818  (never leaves this module)
    """An attempt failed in a way that another may not; not before `wait_s`, if the provider says so."""

    def __init__(self, why: str, wait_s: float = 0.0) -> None:
        super().__init__(why)
        self.wait_s = wait_s


def post(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, patience: Patience, clock: Clock, source: str
) -> Any:  # noqa: ANN401  (whatever JSON says)
    """Send a JSON document and return the answer's.

    Args:
        url: where.
        headers: beside those of JSON; they carry the key, and never appear in a message.
        body: the document.
        patience: how long it may take.
        clock: the source of time.
        source: what to call the provider in messages.

    Raises:
        UnavailableError: it did not answer in time, or not with JSON.
        InvalidRequestError: it refused the request.
    """
    ends = clock.monotonic() + patience.deadline_s
    last = "it was not tried"
    for attempt in range(patience.attempts):
        left = ends - clock.monotonic()
        if left <= 0:
            break
        try:
            return _once(url, headers, body, timeout_s=min(patience.timeout_s, left), source=source)
        except _Passing as failed:
            last = str(failed)
            wait = max(patience.backoff_s * 2**attempt, failed.wait_s)
            if failed.wait_s and clock.monotonic() + failed.wait_s >= ends:
                break  # whoever comes back too early is told the same again
        if attempt + 1 < patience.attempts and clock.monotonic() + wait < ends:
            clock.sleep(wait)
    raise UnavailableError(
        f"{source} does not answer: {last} (up to {patience.attempts} attempts within {patience.deadline_s:g} s)",
        code="embedding_failed",
    )


def _once(url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, timeout_s: float, source: str) -> Any:  # noqa: ANN401  (whatever JSON says)
    request = urllib.request.Request(
        url,
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", **headers},
        method="POST",
    )
    try:
        with opened(request, timeout_s=timeout_s) as answer:
            text = answer.read(_ANSWER_BYTES_MAX + 1)
            if answer.length and len(text) <= _ANSWER_BYTES_MAX:
                raise _Passing(f"it broke off, {answer.length} bytes before the end of its answer")
    except urllib.error.HTTPError as refused:
        with refused:
            said = refused.read(_SHOWN_MAX).decode("utf-8", "replace").strip()
        if refused.code in _TRY_AGAIN:
            wait_s = _seconds(refused.headers.get("Retry-After"))
            later = f", and asks for {wait_s:g} s" if wait_s else ""
            raise _Passing(f"status {refused.code}{later}", wait_s) from None
        raise InvalidRequestError(
            f"{source} refused the request with status {refused.code}: {said}", code="embedding_refused"
        ) from None
    except (OSError, http.client.HTTPException) as failed:
        cause = getattr(failed, "reason", failed)
        if isinstance(cause, ssl.SSLCertVerificationError):
            raise InvalidRequestError(f"{source} is not who it says: {cause}", code="embedding_refused") from None
        if isinstance(cause, TimeoutError):
            raise _Passing(f"no answer within {timeout_s:g} s") from None
        raise _Passing(str(cause) or type(cause).__name__) from None
    if len(text) > _ANSWER_BYTES_MAX:
        raise UnavailableError(f"{source} answered with more than {_ANSWER_BYTES_MAX} bytes", code="embedding_failed")
    try:
        return json.loads(text)
    except ValueError:
        raise UnavailableError(f"{source} answered with something that is not JSON", code="embedding_failed") from None


def _seconds(text: str | None) -> float:
    """What a `Retry-After` asks for; nothing where it names a date, or something else."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0


def taken(answer: Any, *path: str | int, source: str) -> list[float]:  # noqa: ANN401  (whatever JSON says)
    """The list of numbers at a place of an answer.

    Raises:
        UnavailableError: there is none.
    """
    found = answer
    try:
        for step in path:
            found = found[step]
        return [float(each) for each in found if not isinstance(each, str | bool)]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnavailableError(f"{source} answered with no vector", code="embedding_failed") from None
