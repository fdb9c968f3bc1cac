"""Choose the embedding provider from environment variables."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.clock import Clock, SystemClock
from omnigraph.embedding.local import LocalProvider
from omnigraph.embedding.provider import MockProvider, Provider
from omnigraph.embedding.services import GeminiProvider, OpenAiProvider, RetryPolicy
from omnigraph.errors import InvalidRequestError

_PREFIX = "OMNIGRAPH_EMBED_"


@dataclass(frozen=True, slots=True)
class _Service:
    base_url: str
    model: str
    keys: tuple[str, ...]
    make: type[OpenAiProvider] | type[GeminiProvider]


_SERVICES = {
    "openai-compatible": _Service(
        "https://openrouter.ai/api/v1",
        "openai/text-embedding-3-large",
        ("OPENROUTER_API_KEY", "OPENAI_API_KEY"),
        OpenAiProvider,
    ),
    "openai": _Service("https://api.openai.com/v1", "text-embedding-3-large", ("OPENAI_API_KEY",), OpenAiProvider),
    "gemini": _Service(
        "https://generativelanguage.googleapis.com/v1beta", "gemini-embedding-2", ("GEMINI_API_KEY",), GeminiProvider
    ),
}
_DEFAULT = "openai-compatible"


def choose_provider(environment: Mapping[str, str] | None = None, *, clock: Clock | None = None) -> Provider:
    """Return the provider that environment variables configure.

    Args:
        environment: the variables; those of the process by default.
        clock: measures and waits between retries.

    Raises:
        InvalidRequestError: the provider is unknown, its key is missing, or a setting is not a number.
    """
    variables = os.environ if environment is None else environment
    if variables.get("OMNIGRAPH_EMBEDDINGS_MOCK", "").lower() in ("1", "true", "yes", "on"):
        return MockProvider()
    name = variables.get(f"{_PREFIX}PROVIDER") or _DEFAULT
    if name == "mock":
        return MockProvider()
    if name == "local":
        return LocalProvider()
    service = _SERVICES.get(name)
    if service is None:
        raise InvalidRequestError(
            f"unknown embedding provider '{name}' (expected openai-compatible|openai|gemini|mock|local)"
        )
    key = next((variables[name] for name in service.keys if variables.get(name)), None)
    if key is None:
        raise InvalidRequestError(f"{' or '.join(service.keys)} is required for the {name} embedding provider")
    return service.make(
        variables.get(f"{_PREFIX}BASE_URL") or service.base_url,
        variables.get(f"{_PREFIX}MODEL") or service.model,
        key,
        retry=_retry_policy(variables),
        clock=clock or SystemClock(),
    )


def _retry_policy(variables: Mapping[str, str]) -> RetryPolicy:
    default = RetryPolicy()
    return RetryPolicy(
        deadline_s=_number(variables, "DEADLINE_MS", default.deadline_s * 1_000) / 1_000,
        timeout_s=_number(variables, "TIMEOUT_MS", default.timeout_s * 1_000) / 1_000,
        attempts=max(1, int(_number(variables, "RETRY_ATTEMPTS", default.attempts))),
        backoff_s=_number(variables, "RETRY_BACKOFF_MS", default.backoff_s * 1_000) / 1_000,
    )


def _number(variables: Mapping[str, str], name: str, default: float) -> float:
    text = variables.get(_PREFIX + name)
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise InvalidRequestError(f"{_PREFIX}{name} must be a whole number that is not negative, not '{text}'")
    return number
