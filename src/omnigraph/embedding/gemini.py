"""Gemini."""

import numpy as np

from omnigraph.clock import Clock
from omnigraph.embedding.http import Patience, post, taken
from omnigraph.embedding.provider import Purpose, unit


class GeminiProvider:
    """Vectors from `POST {base}/models/{model}:embedContent`."""

    def __init__(self, base_url: str, model: str, key: str, *, patience: Patience, clock: Clock) -> None:
        self.model = model
        self._url = f"{base_url.rstrip('/')}/models/{model}:embedContent"
        self._headers = {"x-goog-api-key": key}
        self._patience = patience
        self._clock = clock

    def embed(self, text: str, dimension: int, purpose: Purpose) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":
        """The vector of a text, of length one."""
        source = f"the embedding provider at {self._url}"
        body = {
            "model": f"models/{self.model}",
            "content": {"parts": [{"text": text}]},
            "taskType": purpose.value,
            "outputDimensionality": dimension,
        }
        answer = post(self._url, self._headers, body, patience=self._patience, clock=self._clock, source=source)
        return unit(taken(answer, "embedding", "values", source=source), dimension, source=source)
