"""The texts of one column of one version, by their words."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from omnigraph.execution.arrays import Mask, Ordinals, Values
from omnigraph.execution.column import SharedColumn
from omnigraph.execution.numbering import Numbering
from omnigraph.execution.search.text_index import Lengths, TextIndex, indexed
from omnigraph.execution.search.words import Term
from omnigraph.model.analyzer import Analyzer


@dataclass(frozen=True, slots=True)
class Collection:
    """Which of the texts that an index covers are those of one version.

    Attributes:
        size: how many ordinals the version has.
        alive: by ordinal of the index, which are there and have a text.
        count: how many these are.
        words: how many words they have together.
    """

    size: int
    alive: Mask
    count: int
    words: int

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.alive.nbytes


def collect(index: TextIndex, size: int, alive: Mask) -> Collection:
    """The texts of a version of this size whose rows are alive."""
    there = alive & index.has_text
    return Collection(size, there, int(there.sum()), int(index.lengths[there].sum(dtype=np.int64)))


def collection(index: TextIndex, numbering: Numbering) -> Collection:
    """The texts of a version, of those an index covers; it may cover rows of other versions too."""
    return collect(index, numbering.size, numbering.lives(index.size))


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of one version. What it gives is by the version's ordinals, and never of another version."""

    _index: TextIndex
    _those: Collection

    @property
    def size(self) -> int:
        """How many ordinals there are."""
        return self._those.size

    @property
    def analyzer(self) -> Analyzer:
        """What made the words, and has to make those that are looked for."""
        return self._index.analyzer

    @property
    def count(self) -> int:
        """How many texts there are."""
        return self._those.count

    @property
    def words(self) -> int:
        """How many words they have together."""
        return self._those.words

    @property
    def lengths(self) -> Lengths:
        """How many words each has."""
        return self._index.lengths[: self.size]

    @property
    def has_text(self) -> Mask:
        """Which ordinals have a text."""
        return self._index.has_text[: self.size]

    def occurrences(self, word: str) -> tuple[Ordinals, Lengths]:
        """The texts with a word, ascending, and how often it is in each."""
        owners, times = self._index.occurrences(word)
        there = self._those.alive[owners]
        return (owners, times) if there.all() else (owners[there], times[there])

    def with_any(self, words: Iterable[str]) -> Mask:
        """Which texts have one of the words."""
        return self._index.with_any(words)[: self.size]

    def with_phrase(self, terms: Sequence[Term]) -> Mask:
        """Which texts have the words in a row."""
        return self._index.with_phrase(terms)[: self.size]

    def with_any_like(self, words: Iterable[str], edits: int) -> Mask:
        """Which texts have a word that at most so many edits make one of these."""
        return self._index.with_any_like(words, edits)[: self.size]


def index_texts(texts: Values, analyzer: Analyzer) -> Texts:
    """Index texts that belong to no table."""
    index = indexed(SharedColumn(texts, {}), analyzer, None)
    return Texts(index, collect(index, index.size, index.has_text))
