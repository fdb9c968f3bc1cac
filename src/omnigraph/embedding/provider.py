"""What a provider of embeddings is."""

import math
from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol

import numpy as np

from omnigraph.errors import UnavailableError


class Purpose(StrEnum):
    """What a text is: some models embed questions otherwise than what is asked about."""

    QUERY = "RETRIEVAL_QUERY"
    DOCUMENT = "RETRIEVAL_DOCUMENT"


class Provider(Protocol):
    """Makes vectors of texts."""

    @property
    def model(self) -> str | None:
        """The model's name; None where there is none."""

    def embed(self, text: str, dimension: int, purpose: Purpose) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        """The vector of a text, of length one.

        Raises:
            UnavailableError: the provider does not answer, or with something that is no vector.
            InvalidRequestError: it refuses the request.
        """


def unit(values: Sequence[float], dimension: int, *, source: str) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
    """A provider's answer as a vector of length one.

    Raises:
        UnavailableError: it has another dimension, or is not finite, or has no direction.
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
    made: np.ndarray[tuple[int], np.dtype[np.float32]] = (vector / norm).astype(np.float32)
    return made
