"""BM25 ranking: rarer words and shorter texts score higher.

The weight of a word depends on all texts of the type at that commit, not on filters or on file layout: a filtered
search returns the rows of the whole search that pass the filter.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.text_index import Texts

Scores = npt.NDArray[np.float64]

# The parameters k1 (term frequency saturation) and b (length normalization).
SATURATION = 1.2
LENGTH_WEIGHT = 0.75


def bm25(texts: Texts, words: Sequence[str]) -> Scores:
    """Score every text.

    Args:
        texts: all of a type at one commit.
        words: the query; duplicates count once.

    Returns:
        By ordinal; NaN where a text has none of the words or does not exist.
    """
    scores = np.full(texts.size, np.nan)
    mean = texts.words / texts.count if texts.count else 0.0
    for word in dict.fromkeys(words):
        owners, frequencies = texts.postings(word)
        if not len(owners):
            continue
        rarity = math.log(1 + (texts.count - len(owners) + 0.5) / (len(owners) + 0.5))
        length = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * texts.lengths[owners] / mean)
        scores[owners] = np.nan_to_num(scores[owners]) + rarity * frequencies * (SATURATION + 1) / (
            frequencies + length
        )
    return scores
