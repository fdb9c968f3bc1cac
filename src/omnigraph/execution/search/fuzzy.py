"""Fuzzy matching: words within a Levenshtein distance of another."""

from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask, Values, pc, take, to_numpy

Letters = npt.NDArray[np.uint32]


def within_edits(words: Values, word: str, edits: int) -> Mask:
    """Return the mask of words within an edit distance of a word.

    Args:
        words: strings without nulls.
        word: what they are compared with.
        edits: maximum number of letters added, removed or replaced.
    """
    found = np.zeros(len(words), dtype=np.bool_)
    if not len(words):
        return found
    lengths = to_numpy(pc.utf8_length(words))
    wanted = _letters([word], len(word))[0]
    for length in range(max(len(word) - edits, 1), len(word) + edits + 1):
        of_length = np.flatnonzero(lengths == length)
        if len(of_length):
            texts: Any = take(words, of_length).to_pylist()
            found[of_length] = _distances(_letters(texts, length), wanted) <= edits
    return found


def _letters(words: list[str], length: int) -> Letters:
    """Return the characters of words of one length, a row for each."""
    data = "".join(words).encode("utf-32-le", "surrogatepass")
    return np.frombuffer(data, dtype="<u4").reshape(len(words), length)


def _distances(words: Letters, wanted: Letters) -> npt.NDArray[np.int32]:
    """Compute the Levenshtein distance of each word, vectorized over words."""
    count, length = words.shape
    # Row i: distance of the first i letters wanted from the letters of each word processed so far.
    before = np.repeat(np.arange(len(wanted) + 1, dtype=np.int32)[:, None], count, axis=1)
    for column in range(length):
        now = np.empty_like(before)
        now[0] = column + 1
        for row, letter in enumerate(wanted, start=1):
            changed = before[row - 1] + (words[:, column] != letter)
            now[row] = np.minimum(np.minimum(before[row], now[row - 1]) + 1, changed)
        before = now
    found: npt.NDArray[np.int32] = before[-1]
    return found
