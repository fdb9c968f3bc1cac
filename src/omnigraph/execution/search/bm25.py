"""BM25: how well texts match words, the rarer the word and the shorter the text the better.

What a word is worth depends on all texts of the type at that commit, and on nothing else: neither on filters nor on how
they lie in files, so that the rows of a filtered search are those of the whole search that pass the filter.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.texts import Texts

Scores = npt.NDArray[np.float64]

# How soon further occurrences of a word stop counting, and how much the length of a text matters.
SATURATION = 1.2
LENGTH_WEIGHT = 0.75


def bm25(texts: Texts, words: Sequence[str]) -> Scores:
    """The score of every text.

    Args:
        texts (Texts): all of a type at one commit.
        words (Sequence[str]): what is looked for; a word said twice counts once.

    Returns:
        Scores: by ordinal; not a number where a text has none of the words or is not there.
    """
    scores = np.full(texts.size, np.nan)
    mean = texts.words / texts.count if texts.count else 0.0
    for word in dict.fromkeys(words):
        owners, times = texts.occurrences(word)
        if not len(owners):
            continue
        rarity = math.log(1 + (texts.count - len(owners) + 0.5) / (len(owners) + 0.5))
        length = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * texts.lengths[owners] / mean)
        scores[owners] = np.nan_to_num(scores[owners]) + rarity * times * (SATURATION + 1) / (times + length)
    return scores
