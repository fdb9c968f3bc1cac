"""Which texts a word is in, how often, and where: an index over one column of texts, in parts.

A part covers a run of ordinals, dead ones included; who asks leaves those out. New rows make a new part, and parts that
are no larger than what follows them are made anew together with it, so that there are always few and each row is
indexed a few times only.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import NO_ORDINALS, Mask, Ordinals, Positions, Values, numpy, pc
from omnigraph.execution.column import Firsts, SharedColumn
from omnigraph.execution.id_index import IdIndex, index_ids
from omnigraph.execution.numbering import Numbering
from omnigraph.execution.search.misspelled import within_edits
from omnigraph.execution.search.words import Term, words_of
from omnigraph.model.analyzer import Analyzer

Lengths = npt.NDArray[np.int32]

_PLACE_BITS = 32


@dataclass(frozen=True, slots=True)
class Part:
    """The words of the texts of some ordinals.

    Attributes:
        first: the first ordinal.
        size: how many ordinals.
        words: each once.
        lookup: finds them.
        starts: where the texts of each word start; one more than there are words.
        texts: the ordinals of texts, for each word ascending.
        place_starts: where the places of a word in a text start; one more than there are `texts`.
        places: how many words come before it there, dropped ones included.
    """

    first: int
    size: int
    words: Values
    lookup: IdIndex
    starts: Positions
    texts: Ordinals
    place_starts: Positions
    places: npt.NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        arrays = (self.starts, self.texts, self.place_starts, self.places)
        return self.words.nbytes + self.lookup.nbytes + sum(each.nbytes for each in arrays)

    def run_of(self, word: str) -> tuple[int, int]:
        """Where the texts of a word lie among `texts`."""
        for place in self.lookup.candidates(word):
            if self.words[place].as_py() == word:
                return self.starts.item(place), self.starts.item(place + 1)
        return 0, 0

    def phrase(self, terms: Sequence[Term]) -> Ordinals:
        """The texts in which words follow one another, as far apart as they are in the phrase."""
        found: npt.NDArray[np.int64] | None = None
        for term in terms:
            offset = term.place - terms[0].place
            start, stop = self.run_of(term.word)
            counts = np.diff(self.place_starts[start : stop + 1])
            place = slice(self.place_starts.item(start), self.place_starts.item(stop))
            # Where the phrase would begin, if this word belongs to it: in order, as the places are.
            begins = np.repeat(self.texts[start:stop].astype(np.int64) << _PLACE_BITS, counts) + (
                self.places[place].astype(np.int64) - offset
            )
            found = begins if found is None else found[np.isin(found, begins, assume_unique=True)]
            if not len(found):
                return NO_ORDINALS
        assert found is not None
        return np.unique(found >> _PLACE_BITS).astype(np.int32)


@dataclass(frozen=True, slots=True)
class TextIndex:
    """An index over a column of texts.

    Attributes:
        analyzer: what made the words.
        parts: each covers other ordinals, in their order.
        lengths: how many words each text has.
        has_text: which ordinals have one; null is none.
        firsts: what the column was read from.
    """

    analyzer: Analyzer
    parts: tuple[Part, ...]
    lengths: Lengths
    has_text: Mask
    firsts: Firsts

    @property
    def size(self) -> int:
        """How many ordinals it covers, from 0."""
        return len(self.lengths)

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return self.lengths.nbytes + self.has_text.nbytes + sum(part.nbytes for part in self.parts)

    def serves(self, numbering: Numbering) -> bool:
        """Whether it covers all these rows, and a place for every ordinal."""
        return self.size >= numbering.size and self.begins(numbering)

    def begins(self, numbering: Numbering) -> bool:
        """Whether it covers all these rows but those behind its end."""
        return all(
            run.first >= self.size or self.firsts.get(run.fragment.key) == run.first
            for run in numbering.runs
            if run.is_there
        )

    def occurrences(self, word: str) -> tuple[Ordinals, Lengths]:
        """The texts with a word, ascending, and how often it is in each."""
        runs = [(part, *part.run_of(word)) for part in self.parts]
        texts = [part.texts[start:stop] for part, start, stop in runs]
        times = [np.diff(part.place_starts[start : stop + 1]) for part, start, stop in runs]
        return _all(texts), (np.concatenate(times) if times else NO_ORDINALS).astype(np.int32)

    def with_any(self, words: Iterable[str]) -> Mask:
        """Which texts have one of the words."""
        found = np.zeros(self.size, dtype=np.bool_)
        for word in words:
            for part in self.parts:
                start, stop = part.run_of(word)
                found[part.texts[start:stop]] = True
        return found

    def with_phrase(self, terms: Sequence[Term]) -> Mask:
        """Which texts have the words in a row."""
        found = np.zeros(self.size, dtype=np.bool_)
        if terms:
            for part in self.parts:
                found[part.phrase(terms)] = True
        return found

    def with_any_like(self, words: Iterable[str], edits: int) -> Mask:
        """Which texts have a word that at most so many edits make one of these."""
        found = np.zeros(self.size, dtype=np.bool_)
        for word in words:
            for part in self.parts:
                for place in np.flatnonzero(within_edits(part.words, word, edits)):
                    found[part.texts[part.starts[place] : part.starts[place + 1]]] = True
        return found


def indexed(column: SharedColumn, analyzer: Analyzer, before: TextIndex | None) -> TextIndex:
    """The index over a column.

    Args:
        column (SharedColumn): its texts.
        analyzer (Analyzer): what makes words of them.
        before (TextIndex | None): the index of another version by the same one; what it covers is not read again.

    Returns:
        TextIndex: `before` itself, if nothing was added.
    """
    if before is None or not column.continues(before.firsts, before.size):
        part, lengths = _part(column.array, 0, analyzer)
        return TextIndex(analyzer, (part,), lengths, _has_text(column.array), column.firsts)
    total = len(column.array)
    if before.size == total:
        return before
    parts, first = before.parts, before.size
    while parts and parts[-1].size <= total - first:
        parts, first = parts[:-1], parts[-1].first
    part, lengths = _part(column.array.slice(first), first, analyzer)
    return TextIndex(
        analyzer,
        (*parts, part),
        np.concatenate([before.lengths[:first], lengths]),
        np.concatenate([before.has_text, _has_text(column.array.slice(before.size))]),
        column.firsts,
    )


def indexed_in_pieces(
    pieces: Iterable[tuple[int, Values]], size: int, firsts: Firsts, analyzer: Analyzer
) -> Iterator["TextIndex"]:
    """The index over texts that are not in memory as a whole.

    Args:
        pieces (Iterable[tuple[int, Values]]): some texts at a time, in order, with the ordinal of the first of them.
        size (int): how many ordinals there are, those without a text included.
        firsts (Firsts): what the texts are read from.
        analyzer (Analyzer): what makes words of them.

    Yields:
        TextIndex: over the pieces so far; the last one is whole.
    """
    parts: tuple[Part, ...] = ()
    lengths, has_text = np.zeros(size, np.int32), np.zeros(size, np.bool_)
    for first, texts in pieces:
        part, found = _part(texts, first, analyzer)
        lengths[first : first + len(texts)], has_text[first : first + len(texts)] = found, _has_text(texts)
        parts = (*parts, part)
        yield TextIndex(analyzer, parts, lengths, has_text, firsts)
    if not parts:
        yield TextIndex(analyzer, parts, lengths, has_text, firsts)


def _has_text(texts: Values) -> Mask:
    return numpy(pc.is_valid(texts)).astype(np.bool_, copy=False)


def _part(texts: Values, first: int, analyzer: Analyzer) -> tuple[Part, Lengths]:
    found = words_of(texts, analyzer)
    encoded: Any = found.words.dictionary_encode()
    words: Values = encoded.dictionary
    codes = numpy(encoded.indices).astype(np.int64)
    owners = np.repeat(np.arange(len(texts), dtype=np.int64), found.counts)
    # By word; within a word texts and places stay in their order.
    order = np.argsort(codes, kind="stable")
    codes, owners, places = codes[order], owners[order], found.places[order]
    is_new = np.ones(len(codes), dtype=np.bool_)
    is_new[1:] = (codes[1:] != codes[:-1]) | (owners[1:] != owners[:-1])
    heads = np.flatnonzero(is_new)
    starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(np.bincount(codes[heads], minlength=len(words)))])
    part = Part(
        first,
        len(texts),
        words,
        index_ids(words),
        starts.astype(np.int64),
        (owners[heads] + first).astype(np.int32),
        np.append(heads, len(codes)).astype(np.int64),
        places,
    )
    return part, found.counts


def _all(pieces: list[Ordinals]) -> Ordinals:
    return np.concatenate(pieces) if pieces else NO_ORDINALS
