"""OpenAI, and whatever speaks its protocol."""

import numpy as np

from omnigraph.clock import Clock
from omnigraph.embedding.http import Patience, post, taken
from omnigraph.embedding.provider import Purpose, unit


class OpenAiProvider:
    """Vectors from `POST {base}/embeddings`."""

    def __init__(self, base_url: str, model: str, key: str, *, patience: Patience, clock: Clock) -> None:
        self.model = model
        self._url = f"{base_url.rstrip('/')}/embeddings"
        self._headers = {"Authorization": f"Bearer {key}"}
        self._patience = patience
        self._clock = clock

    def embed(self, text: str, dimension: int, purpose: Purpose) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":  # noqa: ARG002  (this one embeds all texts alike)
        """The vector of a text, of length one."""
        source = f"the embedding provider at {self._url}"
        body = {"model": self.model, "input": [text], "dimensions": dimension}
        answer = post(self._url, self._headers, body, patience=self._patience, clock=self._clock, source=source)
        return unit(taken(answer, "data", 0, "embedding", source=source), dimension, source=source)
