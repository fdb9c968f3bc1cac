"""Inverted index over one text column, with positions, in mergeable segments.

A segment covers a range of ordinals, deleted rows included; callers leave those out. New rows make a new segment, and
segments no larger than what follows them are merged with it, so that there are always few and each row is indexed a few
times only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import NO_ORDINALS, Mask, Ordinals, Positions, Values, pc, to_numpy
from omnigraph.execution.column import FragmentStarts, SharedColumn
from omnigraph.execution.growing import GrowingArray
from omnigraph.execution.id_index import IdIndex, build_id_index
from omnigraph.execution.numbering import Numbering, serials
from omnigraph.execution.search.fuzzy import within_edits
from omnigraph.execution.search.tokenizer import Term, tokenize
from omnigraph.model.analyzer import Analyzer

Lengths = npt.NDArray[np.int32]

_POSITION_BITS = 32


@dataclass(frozen=True, slots=True)
class Segment:
    """Posting lists of the texts of a range of ordinals.

    Attributes:
        first: the first ordinal.
        size: number of ordinals.
        words: the distinct words (dictionary).
        lookup: finds a word in the dictionary.
        posting_starts: offsets of each word's posting list; one more than there are words.
        postings: posting lists: ordinals of texts, ascending for each word.
        position_starts: offsets of the positions of each posting; one more than there are postings.
        positions: token positions, counting dropped words.
    """

    first: int
    size: int
    words: Values
    lookup: IdIndex
    posting_starts: Positions
    postings: Ordinals
    position_starts: Positions
    positions: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        arrays = (self.posting_starts, self.postings, self.position_starts, self.positions)
        return self.words.nbytes + self.lookup.nbytes + sum(array.nbytes for array in arrays)

    def posting_range(self, word: str) -> tuple[int, int]:
        """Return the range of a word's posting list."""
        for position in self.lookup.candidates(word):
            if self.words[position].as_py() == word:
                return self.posting_starts.item(position), self.posting_starts.item(position + 1)
        return 0, 0

    def find_phrase(self, terms: Sequence[Term]) -> Ordinals:
        """Return the texts that contain the phrase, by its token positions."""
        found: npt.NDArray[np.int64] | None = None
        for term in terms:
            offset = term.position - terms[0].position
            start, stop = self.posting_range(term.word)
            counts = np.diff(self.position_starts[start : stop + 1])
            position = slice(self.position_starts.item(start), self.position_starts.item(stop))
            # Where the phrase would begin, if this word belongs to it; ascending like the positions.
            begins = np.repeat(self.postings[start:stop].astype(np.int64) << _POSITION_BITS, counts) + (
                self.positions[position].astype(np.int64) - offset
            )
            found = begins if found is None else found[np.isin(found, begins, assume_unique=True)]
            if not len(found):
                return NO_ORDINALS
        assert found is not None
        return np.unique(found >> _POSITION_BITS).astype(np.int32)


@dataclass(frozen=True, slots=True)
class TextIndex:
    """Inverted index over a text column, shared by versions.

    Attributes:
        analyzer: the tokenizer.
        segments: segments in ordinal order.
        lengths: number of words of each text.
        has_text: mask of ordinals with a text; null is none.
        fragment_starts: the fragments read.
        lineage: of the index it was extended from, which serves no version that this one does not.
    """

    analyzer: Analyzer
    segments: tuple[Segment, ...]
    lengths: Lengths
    has_text: Mask
    fragment_starts: FragmentStarts
    lineage: int = field(default_factory=serials.__next__)

    @property
    def size(self) -> int:
        """Number of ordinals covered, from 0."""
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.lengths.nbytes + self.has_text.nbytes + sum(segment.nbytes for segment in self.segments)

    def covers(self, numbering: Numbering) -> bool:
        """Return whether it covers all these rows, and a place for every ordinal."""
        return self.size >= numbering.size and self.is_prefix_of(numbering)

    def is_prefix_of(self, numbering: Numbering) -> bool:
        """Return whether it covers all these rows but those behind its end."""
        return all(
            run.first >= self.size or self.fragment_starts.get(run.fragment.key) == run.first for run in numbering.runs
        )

    def postings(self, word: str) -> tuple[Ordinals, Lengths]:
        """Return the texts with a word, ascending, and the frequency of the word in each."""
        runs = [(segment, *segment.posting_range(word)) for segment in self.segments]
        texts = [segment.postings[start:stop] for segment, start, stop in runs]
        frequencies = [np.diff(segment.position_starts[start : stop + 1]) for segment, start, stop in runs]
        return _concat(texts), (np.concatenate(frequencies) if frequencies else NO_ORDINALS).astype(np.int32)

    def match_any(self, words: Iterable[str]) -> Mask:
        """Return the mask of texts with one of the words."""
        found = np.zeros(self.size, dtype=np.bool_)
        for word in words:
            for segment in self.segments:
                start, stop = segment.posting_range(word)
                found[segment.postings[start:stop]] = True
        return found

    def match_phrase(self, terms: Sequence[Term]) -> Mask:
        """Return the mask of texts with a phrase."""
        found = np.zeros(self.size, dtype=np.bool_)
        if terms:
            for segment in self.segments:
                found[segment.find_phrase(terms)] = True
        return found

    def match_fuzzy(self, words: Iterable[str], edits: int) -> Mask:
        """Return the mask of texts with a word within an edit distance of one of these."""
        found = np.zeros(self.size, dtype=np.bool_)
        for word in words:
            for segment in self.segments:
                for position in np.flatnonzero(within_edits(segment.words, word, edits)):
                    start, stop = segment.posting_starts[position : position + 2]
                    found[segment.postings[start:stop]] = True
        return found


def build_text_index(column: SharedColumn, analyzer: Analyzer, before: TextIndex | None) -> TextIndex:
    """Build the index of a column; what `before`, of another version, covers is not tokenized again."""
    array, starts = column.array, dict(column.fragment_starts)
    total = len(array)
    starts = {key: first for key, first in starts.items() if first < total}
    if before is None or not column.extends(before.fragment_starts, before.size):
        segment, lengths = _build_segment(array, 0, analyzer)
        return TextIndex(analyzer, (segment,), lengths, _has_text(array), starts)
    if before.size == total:
        return before
    segments, first = before.segments, before.size
    while segments and segments[-1].size <= total - first:
        segments, first = segments[:-1], segments[-1].first
    segment, lengths = _build_segment(array.slice(first), first, analyzer)
    return TextIndex(
        analyzer,
        (*segments, segment),
        np.concatenate([before.lengths[:first], lengths]),
        np.concatenate([before.has_text, _has_text(array.slice(before.size))]),
        starts,
        before.lineage,
    )


def build_in_pieces(
    pieces: Iterable[tuple[int, Values]], size: int, fragment_starts: FragmentStarts, analyzer: Analyzer
) -> Iterator["TextIndex"]:
    """Build the index of texts that are not in memory as a whole.

    Args:
        pieces: some texts at a time, in order, with the ordinal of the first of them.
        size: number of ordinals, those without a text included.
        fragment_starts: the fragments read.
        analyzer: the tokenizer.

    Yields:
        The index of the pieces so far; the last one is whole.
    """
    segments: tuple[Segment, ...] = ()
    lengths, has_text = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    for first, texts in pieces:
        segment, found = _build_segment(texts, first, analyzer)
        lengths[first : first + len(texts)], has_text[first : first + len(texts)] = found, _has_text(texts)
        segments = (*segments, segment)
        yield TextIndex(analyzer, segments, lengths, has_text, fragment_starts)
    if not segments:
        yield TextIndex(analyzer, segments, lengths, has_text, fragment_starts)


def _has_text(texts: Values) -> Mask:
    return to_numpy(pc.is_valid(texts)).astype(np.bool_, copy=False)


def _build_segment(texts: Values, first: int, analyzer: Analyzer) -> tuple[Segment, Lengths]:
    found = tokenize(texts, analyzer)
    encoded: Any = found.words.dictionary_encode()
    words: Values = encoded.dictionary
    codes = to_numpy(encoded.indices).astype(np.int64)
    owners = np.repeat(np.arange(len(texts), dtype=np.int64), found.counts)
    # By word; within a word, texts and positions keep their order.
    order = np.argsort(codes, kind="stable")
    codes, owners, positions = codes[order], owners[order], found.positions[order]
    is_new = np.ones(len(codes), dtype=np.bool_)
    is_new[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
    heads = np.flatnonzero(is_new)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(codes[heads], minlength=len(words)))])
    segment = Segment(
        first,
        len(texts),
        words,
        build_id_index(words),
        starts.astype(np.int64),
        (owners[heads] + first).astype(np.int32),
        np.append(heads, len(codes)).astype(np.int64),
        positions,
    )
    return segment, found.counts


def _concat(pieces: list[Ordinals]) -> Ordinals:
    return np.concatenate(pieces) if pieces else NO_ORDINALS


@dataclass(frozen=True, slots=True)
class LiveTexts:
    """The texts of one version among those an index covers.

    Attributes:
        size: number of ordinals of the version.
        alive: by ordinal of the index, mask of live rows with a text.
        count: number of texts.
        words: total number of words.
    """

    size: int
    alive: Mask
    count: int
    words: int

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.alive.nbytes


def select_live(index: TextIndex, size: int, alive: Mask) -> LiveTexts:
    """Select the texts of a version of this size whose rows are live."""
    there = alive & index.has_text
    return LiveTexts(size, there, int(there.sum()), int(index.lengths[there].sum(dtype=np.int64)))


def live_texts(index: TextIndex, numbering: Numbering) -> LiveTexts:
    """Select the texts of a version; the index may cover rows of other versions too."""
    return select_live(index, numbering.size, numbering.live_mask(index.size))


@dataclass(frozen=True, slots=True)
class Texts:
    """Inverted index restricted to the texts and ordinals of one version."""

    _index: TextIndex
    _live: LiveTexts

    @property
    def size(self) -> int:
        """Number of ordinals."""
        return self._live.size

    @property
    def analyzer(self) -> Analyzer:
        """The tokenizer of the texts, and of queries."""
        return self._index.analyzer

    @property
    def count(self) -> int:
        """Number of texts."""
        return self._live.count

    @property
    def words(self) -> int:
        """Total number of words."""
        return self._live.words

    @property
    def lengths(self) -> Lengths:
        """Number of words of each text."""
        return self._index.lengths[: self.size]

    @property
    def has_text(self) -> Mask:
        """Mask of ordinals with a text."""
        return self._index.has_text[: self.size]

    def postings(self, word: str) -> tuple[Ordinals, Lengths]:
        """Return the texts with a word, ascending, and the frequency of the word in each."""
        owners, frequencies = self._index.postings(word)
        there = self._live.alive[owners]
        return (owners, frequencies) if there.all() else (owners[there], frequencies[there])

    def match_any(self, words: Iterable[str]) -> Mask:
        """Return the mask of texts with one of the words."""
        return self._index.match_any(words)[: self.size]

    def match_phrase(self, terms: Sequence[Term]) -> Mask:
        """Return the mask of texts with a phrase."""
        return self._index.match_phrase(terms)[: self.size]

    def match_fuzzy(self, words: Iterable[str], edits: int) -> Mask:
        """Return the mask of texts with a word within an edit distance of one of these."""
        return self._index.match_fuzzy(words, edits)[: self.size]


def index_texts(texts: Values, analyzer: Analyzer) -> Texts:
    """Index texts that belong to no table."""
    index = build_text_index(SharedColumn(GrowingArray([texts]), {}), analyzer, None)
    return Texts(index, select_live(index, index.size, index.has_text))
