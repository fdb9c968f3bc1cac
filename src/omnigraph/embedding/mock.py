"""Vectors from a hash of the text: the same text has the same vector on every machine. They mean nothing."""

import numpy as np

from omnigraph.embedding.provider import Purpose, unit

_FNV_OFFSET, _FNV_PRIME = 14_695_981_039_346_656_037, 1_099_511_628_211
_WORD = 2**64 - 1


class MockProvider:
    """For tests and for trying things out without a key."""

    model = None

    def embed(self, text: str, dimension: int, purpose: Purpose) -> "np.ndarray[tuple[int], np.dtype[np.float32]]":  # noqa: ARG002  (this one embeds all texts alike)
        """The vector of a text, of length one."""
        state = _FNV_OFFSET
        for byte in text.encode():
            state = (state ^ byte) * _FNV_PRIME & _WORD
        values = []
        for _ in range(dimension):
            state ^= state << 13 & _WORD
            state ^= state >> 7
            state ^= state << 17 & _WORD
            values.append(float(np.float32(state / _WORD * 2 - 1)))
        return unit(values, dimension, source="the mock provider")
