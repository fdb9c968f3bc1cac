"""The interface of embedding providers, the checks of their vectors, and a mock provider."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import numpy as np

from omnigraph.errors import UnavailableError

Vector = np.ndarray[tuple[int], np.dtype[np.float32]]
_FNV_OFFSET, _FNV_PRIME = 14_695_981_039_346_656_037, 1_099_511_628_211
_WORD = 2**64 - 1


class Purpose(StrEnum):
    """What a text is used for: some models embed queries differently from documents."""

    QUERY = "RETRIEVAL_QUERY"
    DOCUMENT = "RETRIEVAL_DOCUMENT"


class Provider(Protocol):
    """Embeds texts."""

    @property
    def model(self) -> str | None:
        """The name of the model, if it has one."""

    def embed(self, text: str, dimension: int, purpose: Purpose) -> Vector:
        """Return the embedding of a text, of length one.

        Raises:
            UnavailableError: the provider does not answer, or not with a vector.
            InvalidRequestError: the provider refuses the request.
        """


class MockProvider:
    """Makes vectors from a hash of the text, the same on every machine: for tests and trials without an API key."""

    model = None

    def embed(self, text: str, dimension: int, purpose: Purpose) -> Vector:  # noqa: ARG002  (the same for all purposes)
        """Return a vector of length one that depends only on the text."""
        state = _FNV_OFFSET
        for byte in text.encode():
            state = (state ^ byte) * _FNV_PRIME & _WORD
        values = []
        for _ in range(dimension):
            state ^= state << 13 & _WORD
            state ^= state >> 7
            state ^= state << 17 & _WORD
            values.append(float(np.float32(state / _WORD * 2 - 1)))
        return unit_vector(values, dimension, source="the mock provider")


def unit_vector(values: Sequence[float], dimension: int, *, source: str) -> Vector:
    """Scale a provider's vector to length one.

    Raises:
        UnavailableError: it has another dimension, is not finite, or is zero.
    """
    if len(values) != dimension:
        raise UnavailableError(
            f"{source} answered with {len(values)} dimensions instead of {dimension}; choose a model that can make "
            f"{dimension}, or change the property's dimension",
            code="embedding_failed",
        )
    vector = np.asarray(values, dtype=np.float64)
    norm = math.sqrt(float(vector @ vector))
    if not math.isfinite(norm) or norm == 0:
        raise UnavailableError(f"{source} answered with a vector that has no direction", code="embedding_failed")
    unit: Vector = (vector / norm).astype(np.float32)
    return unit
