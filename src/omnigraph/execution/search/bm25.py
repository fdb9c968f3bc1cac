"""BM25: how well texts match words, the rarer the word and the shorter the text the better.

What a word is worth depends on all texts of the type at that commit, and on nothing else: neither on filters nor on how
they lie in files, so that the rows of a filtered search are those of the whole search that pass the filter.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask
from omnigraph.execution.search.text_index import TextIndex

Scores = npt.NDArray[np.float64]

# How soon further occurrences of a word stop counting, and how much the length of a text matters.
SATURATION = 1.2
LENGTH_WEIGHT = 0.75


@dataclass(frozen=True, slots=True)
class Collection:
    """All texts of a type at one commit.

    Attributes:
        alive: by ordinal of the index, which are there and have a text.
        count: how many these are.
        words: how many words they have together.
    """

    alive: Mask
    count: int
    words: int

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.alive.nbytes


def collection(index: TextIndex, alive: Mask) -> Collection:
    """The texts that are there, of those an index covers."""
    there = alive & index.has_text
    return Collection(there, int(there.sum()), int(index.lengths[there].sum(dtype=np.int64)))


def bm25(index: TextIndex, texts: Collection, words: Sequence[str]) -> Scores:
    """The score of every text.

    Args:
        index (TextIndex): over the texts.
        texts (Collection): which of them are there.
        words (Sequence[str]): what is looked for; a word said twice counts once.

    Returns:
        Scores: by ordinal; not a number where a text has none of the words or is not there.
    """
    scores = np.full(index.size, np.nan)
    mean = texts.words / texts.count if texts.count else 0.0
    for word in dict.fromkeys(words):
        owners, times = index.occurrences(word)
        there = texts.alive[owners]
        if not there.all():
            owners, times = owners[there], times[there]
        if not len(owners):
            continue
        rarity = math.log(1 + (texts.count - len(owners) + 0.5) / (len(owners) + 0.5))
        length = SATURATION * (1 - LENGTH_WEIGHT + LENGTH_WEIGHT * index.lengths[owners] / mean)
        scores[owners] = np.nan_to_num(scores[owners]) + rarity * times * (SATURATION + 1) / (times + length)
    return scores
