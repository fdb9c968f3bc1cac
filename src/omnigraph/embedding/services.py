"""Embedding services over HTTP: OpenAI and compatible ones, and Gemini; with timeouts, a deadline and retries."""

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.clock import Clock
from omnigraph.embedding.provider import Purpose, Vector, unit_vector
from omnigraph.errors import InvalidRequestError, UnavailableError

_RESPONSE_BYTES_MAX = 32 * 1024 * 1024
_RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504, 529})
_SHOWN_BYTES_MAX = 300


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Limits of a request.

    Attributes:
        deadline_s: the largest duration of all attempts for one text.
        timeout_s: the largest duration of one attempt.
        attempts: the largest number of attempts.
        backoff_s: the wait after the first failed attempt; doubled after each further one.
    """

    deadline_s: float = 60.0
    timeout_s: float = 30.0
    attempts: int = 4
    backoff_s: float = 0.2


class OpenAiProvider:
    """Embeds with `POST {base}/embeddings`, as OpenAI and compatible services have it."""

    def __init__(self, base_url: str, model: str, key: str, *, retry: RetryPolicy, clock: Clock) -> None:
        self.model = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._retry = retry
        self._clock = clock

    def embed(self, text: str, dimension: int, purpose: Purpose) -> Vector:  # noqa: ARG002  (the same for all purposes)
        """Return the embedding of a text, of length one."""
        source = f"the embedding provider at {self._url}"
        body = {"model": self.model, "input": [text], "dimensions": dimension}
        document = _post(self._url, self._headers, body, retry=self._retry, clock=self._clock, source=source)
        return unit_vector(_numbers_at(document, "data", 0, "embedding", source=source), dimension, source=source)


class GeminiProvider:
    """Embeds with `POST {base}/models/{model}:embedContent`, as Gemini has it."""

    def __init__(self, base_url: str, model: str, key: str, *, retry: RetryPolicy, clock: Clock) -> None:
        self.model = model
        self._url = f"{base_url.rstrip('/')}/models/{model}:embedContent"
        self._headers = {"x-goog-api-key": key}
        self._retry = retry
        self._clock = clock

    def embed(self, text: str, dimension: int, purpose: Purpose) -> Vector:
        """Return the embedding of a text, of length one."""
        source = f"the embedding provider at {self._url}"
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": purpose.value,
            "outputDimensionality": dimension,
        }
        document = _post(self._url, self._headers, body, retry=self._retry, clock=self._clock, source=source)
        return unit_vector(_numbers_at(document, "embedding", "values", source=source), dimension, source=source)


class _TransientError(Exception):
    """A failed attempt that may be retried, after `wait_s` if the provider asks for that."""

    def __init__(self, reason: str, wait_s: float = 0.0) -> None:
        super().__init__(reason)
        self.wait_s = wait_s


def _post(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, retry: RetryPolicy, clock: Clock, source: str
) -> Any:  # noqa: ANN401  (any JSON)
    """Send a JSON document and return the document of the response.

    Args:
        url: the endpoint of the provider.
        headers: additional headers; they carry the API key, and never appear in a message.
        body: the document to send.
        retry: timeouts and retries.
        clock: measures and waits.
        source: the name of the provider in messages.

    Raises:
        UnavailableError: there is no response in time, or it is not JSON.
        InvalidRequestError: the provider refuses the request.
    """
    deadline = clock.monotonic() + retry.deadline_s
    reason = "no attempt was made"
    for attempt in range(retry.attempts):
        left = deadline - clock.monotonic()
        if left <= 0:
            break
        try:
            return _attempt(url, headers, body, timeout_s=min(retry.timeout_s, left), clock=clock, source=source)
        except _TransientError as error:
            reason = str(error)
            wait = max(retry.backoff_s * 2**attempt, error.wait_s)
            if error.wait_s and clock.monotonic() + error.wait_s >= deadline:
                break  # an earlier attempt would get the same response
        if attempt + 1 < retry.attempts and clock.monotonic() + wait < deadline:
            clock.sleep(wait)
    raise UnavailableError(
        f"{source} does not answer: {reason} (up to {retry.attempts} attempts within {retry.deadline_s:g} s)",
        code="embedding_failed",
    )


def _attempt(
    url: str, headers: Mapping[str, str], body: Mapping[str, Any], *, timeout_s: float, clock: Clock, source: str
) -> Any:  # noqa: ANN401  (any JSON)
    import httpx  # noqa: PLC0415  (heavy: only when a text is embedded)

    deadline = clock.monotonic() + timeout_s
    try:
        # A redirect could lead the API key to another host, so none is followed.
        with (
            httpx.Client(timeout=timeout_s, follow_redirects=False, verify=ssl.create_default_context()) as client,
            client.stream("POST", url, headers=dict(headers), json=body) as response,
        ):
            limit = _RESPONSE_BYTES_MAX if response.is_success else _SHOWN_BYTES_MAX
            content = bytearray()
            for chunk in response.iter_bytes():
                content += chunk
                if len(content) > limit:
                    break
                if clock.monotonic() > deadline:
                    raise _TransientError(f"no complete answer within {timeout_s:g} s")
    except httpx.TimeoutException:
        raise _TransientError(f"no answer within {timeout_s:g} s") from None
    except (httpx.TransportError, httpx.InvalidURL) as error:
        cause = error.__context__
        while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
            cause = cause.__context__
        if cause is not None:
            raise InvalidRequestError(
                f"the certificate of {source} is not trusted: {cause}", code="embedding_refused"
            ) from None
        raise _TransientError(str(error) or type(error).__name__) from None
    if response.status_code in _RETRIED_STATUSES:
        wait_s = _retry_after_s(response.headers.get("Retry-After"))
        wish = f", and asks for {wait_s:g} s" if wait_s else ""
        raise _TransientError(f"status {response.status_code}{wish}", wait_s)
    if not response.is_success:
        text = content[:_SHOWN_BYTES_MAX].decode("utf-8", "replace").strip()
        raise InvalidRequestError(
            f"{source} refused the request with status {response.status_code}: {text}", code="embedding_refused"
        )
    if len(content) > _RESPONSE_BYTES_MAX:
        raise UnavailableError(f"{source} answered with more than {_RESPONSE_BYTES_MAX} bytes", code="embedding_failed")
    try:
        return json.loads(content)
    except ValueError:
        raise UnavailableError(f"{source} answered with something that is not JSON", code="embedding_failed") from None


def _retry_after_s(text: str | None) -> float:
    """Return the seconds of a `Retry-After` header; 0 for a date or anything else."""
    return float(text) if text is not None and text.isascii() and text.isdigit() else 0.0


def _numbers_at(document: Any, *path: str | int, source: str) -> list[float]:  # noqa: ANN401  (any JSON)
    """Return the list of numbers at a path of a JSON document.

    Raises:
        UnavailableError: there is none.
    """
    value = document
    try:
        for step in path:
            value = value[step]
        return [float(number) for number in value if not isinstance(number, str | bool)]
    except (KeyError, IndexError, TypeError, ValueError):
        raise UnavailableError(f"{source} answered with no vector", code="embedding_failed") from None
