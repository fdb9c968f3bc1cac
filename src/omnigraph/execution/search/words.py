"""What the words of a text are: runs of letters and digits, without regard to case, as an analyzer has them.

Texts and what is looked for in them go through the same functions, so they agree on every script.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values, joined, numpy, pc
from omnigraph.model.analyzer import Analyzer

# Counted up whenever an analyzer makes other words of the same texts: indexes that were kept before are of no use then.
REVISIONS: Final[Mapping[Analyzer, int]] = {Analyzer.ENGLISH: 1, Analyzer.SIMPLE: 1}

_BETWEEN_WORDS = r"[^\p{L}\p{N}\p{M}]+"
_BETWEEN_ASCII_WORDS = "[^a-z0-9]+"
_ASCII_WORDS = re.compile("[a-z0-9]+")
# Texts are taken apart so many at a time: what is made on the way is several times as large as they are.
_STEP = limits.SEARCH_TEXTS_AT_ONCE

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Words:
    """The words of some texts.

    Attributes:
        words: of all texts, one after the other.
        counts: how many each text has; none where it is null.
        places: for each word how many came before it in its text, dropped ones included.
    """

    words: Values
    counts: npt.NDArray[np.int32]
    places: Places


@dataclass(frozen=True, slots=True)
class Term:
    """A word that is looked for, and how many came before it, dropped ones included."""

    word: str
    place: int


def words_of(texts: Values, analyzer: Analyzer) -> Words:
    """The words of texts, in their order.

    Args:
        texts (Values): strings; null has no words.
        analyzer (Analyzer): which words these are.

    Returns:
        Words: each in lower case, in its composed form.
    """
    parts = [_words(texts.slice(start, _STEP), analyzer) for start in range(0, len(texts), _STEP)]
    if not parts:
        return Words(pa.nulls(0, pa.string()), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
    return Words(
        joined([part.words for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.places for part in parts]),
    )


def terms_in(text: str, analyzer: Analyzer) -> list[Term]:
    """The words of one text that is looked for."""
    if text.isascii():
        # The same, without the cost of a kernel for a few words.
        tokens = _ASCII_WORDS.findall(text.lower())
    else:
        found: Any = _tokens(pa.array([text], pa.string())).words.to_pylist()
        tokens = list(found)
    if analyzer is Analyzer.ENGLISH:
        stems = _stems(tokens)
        return [Term(stem, place) for place, stem in enumerate(stems) if stem is not None]
    return [Term(token, place) for place, token in enumerate(tokens)]


def _words(texts: Values, analyzer: Analyzer) -> Words:
    tokens = _tokens(texts)
    return _stemmed(tokens) if analyzer is Analyzer.ENGLISH else tokens


def _stemmed(tokens: Words) -> Words:
    encoded: Any = tokens.words.dictionary_encode()
    stems: Any = pa.array(_stems(encoded.dictionary.to_pylist()), pa.string())
    words = stems.take(encoded.indices)
    if not words.null_count:
        return Words(words, tokens.counts, tokens.places)
    kept = numpy(pc.is_valid(words)).astype(np.bool_, copy=False)
    owners = np.repeat(np.arange(len(tokens.counts)), tokens.counts)[kept]
    counts = np.bincount(owners, minlength=len(tokens.counts)).astype(np.int32)
    return Words(words.drop_null(), counts, tokens.places[kept])


def _stems(tokens: Iterable[str]) -> list[str | None]:
    from omnigraph.execution.search.english import stem_of  # noqa: PLC0415  (most queries search no words)

    return [stem_of(token) for token in tokens]


def _tokens(texts: Values) -> Words:
    plain: Any = texts
    between = _BETWEEN_ASCII_WORDS
    if not pc.all(pc.string_is_ascii(plain), skip_nulls=True, min_count=0).as_py():
        # One letter can be spelled in several ways: as one character, or as a letter and its accent.
        plain = pc.utf8_normalize(plain, form="NFKC")
        between = _BETWEEN_WORDS
    spaced = pc.replace_substring_regex(pc.utf8_lower(plain), pattern=between, replacement=" ")
    split = pc.split_pattern(pc.utf8_trim(spaced, characters=" "), pattern=" ")
    lengths = pc.list_value_length(split).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    words = split.flatten()
    empty = pc.equal(words, "")
    if pc.any(empty).as_py():
        # A text without any word is split into one empty one.
        kept = pc.invert(empty)
        owners = np.repeat(np.arange(len(texts)), lengths)[kept.to_numpy(zero_copy_only=False)]
        lengths = np.bincount(owners, minlength=len(texts)).astype(np.int32)
        words = words.filter(kept)
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    places = (np.arange(len(words)) - np.repeat(begins, lengths)).astype(np.int32)
    return Words(words, lengths, places)
