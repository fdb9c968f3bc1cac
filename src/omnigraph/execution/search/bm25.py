"""BM25 ranking: rarer words and shorter texts score higher.

The weight of a word depends on all texts of the type at that commit, not on filters or on file layout: a filtered
search returns the rows of the whole search that pass the filter.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.search.text_index import Texts

Scores = npt.NDArray[np.float64]

# The parameters k1 (term frequency saturation) and b (length normalization).
SATURATION = 1.2
LENGTH_WEIGHT = 0.75


@dataclass(frozen=True, slots=True)
class Collection:
    """Counts over all texts of a type.

    Attributes:
        texts: number of texts.
        words: total number of words.
        owners: for each word of the query, the number of texts with it.
    """

    texts: int
    words: int
    owners: Mapping[str, int]


def describe_collection(texts: Texts, words: Sequence[str]) -> Collection:
    """Count texts and words."""
    return Collection(texts.count, texts.words, {word: len(texts.postings(word)[0]) for word in dict.fromkeys(words)})


def bm25(texts: Texts, words: Sequence[str], collection: Collection | None = None) -> Scores:
    """Score every text.

    Args:
        texts: all of a type at one commit; or some of them.
        words: the query; duplicates count once.
        collection: the counts over all texts of the type, if these are only some.

    Returns:
        By ordinal; NaN where a text has none of the words or does not exist.
    """
    scores = np.full(texts.size, np.nan)
    known = collection or describe_collection(texts, words)
    mean = known.words / known.texts if known.texts else 0.0
    for word in dict.fromkeys(words):
        owners, frequencies = texts.postings(word)
        if not len(owners):
            continue
        rarity = math.log(1 + (known.texts - known.owners[word] + 0.5) / (known.owners[word] + 0.5))
        length = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * texts.lengths[owners] / mean)
        scores[owners] = np.nan_to_num(scores[owners]) + rarity * frequencies * (SATURATION + 1) / (
            frequencies + length
        )
    return scores
