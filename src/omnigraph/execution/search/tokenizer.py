"""Tokenizer: splits texts into words and normalizes them (case, Unicode form, and for English stems).

Texts and queries go through the same functions, so they agree on every script.
"""

import re
import threading
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import Values, concat, pc, to_numpy
from omnigraph.model.analyzer import Analyzer

# Incremented whenever an analyzer tokenizes texts differently, which invalidates index files.
REVISIONS: Final[Mapping[Analyzer, int]] = {Analyzer.ENGLISH: 1, Analyzer.SIMPLE: 1}

_BETWEEN_WORDS = r"[^\p{L}\p{N}\p{M}]+"
_BETWEEN_ASCII_WORDS = "[^a-z0-9]+"
_ASCII_WORDS = re.compile("[a-z0-9]+")
# Texts are tokenized this many at a time: temporary arrays are several times as large as the texts.
_STEP = limits.SEARCH_TEXTS_AT_ONCE
# Lucene's list, which Lance's full-text indexes use too.
STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    }
)
# Latin letters without a Unicode decomposition.
_UNDECOMPOSED = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i"}
_WORDS_REMEMBERED_MAX = 65_536

_stemmers = threading.local()


@lru_cache(maxsize=_WORDS_REMEMBERED_MAX)
def stem_word(word: str) -> str | None:
    """Stem a lower-case word; None for a stop word. Words that are not in Latin script stay as they are."""
    folded = word if word.isascii() else _fold(word)
    if folded in STOP_WORDS:
        return None
    return _stem(folded) if folded.isascii() and folded.isalpha() else folded


def _fold(word: str) -> str:
    """Remove the accents of Latin letters; those of other scripts are letters of their own."""
    folded = ""
    for part in unicodedata.normalize("NFD", word):
        before = folded[-1:]
        if not (unicodedata.combining(part) and before.isascii() and before.isalpha()):
            folded += _UNDECOMPOSED.get(part, part)
    return unicodedata.normalize("NFC", folded)


def _stem(word: str) -> str:
    stemmer: Any = getattr(_stemmers, "english", None)
    if stemmer is None:
        from snowballstemmer.english_stemmer import EnglishStemmer  # noqa: PLC0415  (loads the stemmers of all languages)

        stemmer = _stemmers.english = EnglishStemmer()
    return str(stemmer.stemWord(word))


TokenPositions = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of some texts.

    Attributes:
        words: of all texts, consecutive.
        counts: number of tokens of each text; 0 where it is null.
        positions: position of each token in its text, counting dropped ones.
    """

    words: Values
    counts: npt.NDArray[np.int32]
    positions: TokenPositions


@dataclass(frozen=True, slots=True)
class Term:
    """A query word and its position, counting dropped words."""

    word: str
    position: int


def tokenize(texts: Values, analyzer: Analyzer) -> Tokens:
    """Tokenize texts to lower-case words in composed form; null has no words."""
    parts = [_tokenize(texts.slice(start, _STEP), analyzer) for start in range(0, len(texts), _STEP)]
    if not parts:
        return Tokens(pa.nulls(0, pa.string()), np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.int32))
    return Tokens(
        concat([part.words for part in parts]),
        np.concatenate([part.counts for part in parts]),
        np.concatenate([part.positions for part in parts]),
    )


def tokenize_query(text: str, analyzer: Analyzer) -> list[Term]:
    """Tokenize one query text."""
    if text.isascii():
        # The same result without the cost of a kernel for a few words.
        tokens = _ASCII_WORDS.findall(text.lower())
    else:
        found: Any = _split_words(pa.array([text], pa.string())).words.to_pylist()
        tokens = list(found)
    if analyzer is Analyzer.ENGLISH:
        stems = _stem_all(tokens)
        return [Term(stem, position) for position, stem in enumerate(stems) if stem is not None]
    return [Term(token, position) for position, token in enumerate(tokens)]


def _tokenize(texts: Values, analyzer: Analyzer) -> Tokens:
    tokens = _split_words(texts)
    return _stem_tokens(tokens) if analyzer is Analyzer.ENGLISH else tokens


def _stem_tokens(tokens: Tokens) -> Tokens:
    encoded: Any = tokens.words.dictionary_encode()
    stems: Any = pa.array(_stem_all(encoded.dictionary.to_pylist()), pa.string())
    words = stems.take(encoded.indices)
    if not words.null_count:
        return Tokens(words, tokens.counts, tokens.positions)
    kept = to_numpy(pc.is_valid(words)).astype(np.bool_, copy=False)
    owners = np.repeat(np.arange(len(tokens.counts)), tokens.counts)[kept]
    counts = np.bincount(owners, minlength=len(tokens.counts)).astype(np.int32)
    return Tokens(words.drop_null(), counts, tokens.positions[kept])


def _stem_all(tokens: Iterable[str]) -> list[str | None]:
    return [stem_word(token) for token in tokens]


def _split_words(texts: Values) -> Tokens:
    plain: Any = texts
    separators = _BETWEEN_ASCII_WORDS
    if not pc.all(pc.string_is_ascii(plain), skip_nulls=True, min_count=0).as_py():
        # A letter can be one character, or a letter and a combining accent.
        plain = pc.utf8_normalize(plain, form="NFKC")
        separators = _BETWEEN_WORDS
    spaced = pc.replace_substring_regex(pc.utf8_lower(plain), pattern=separators, replacement=" ")
    split = pc.split_pattern(pc.utf8_trim(spaced, characters=" "), pattern=" ")
    lengths = pc.list_value_length(split).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)
    words = split.flatten()
    empty = pc.equal(words, "")
    if pc.any(empty).as_py():
        # A text without any word is split into one empty string.
        kept = pc.invert(empty)
        owners = np.repeat(np.arange(len(texts)), lengths)[kept.to_numpy(zero_copy_only=False)]
        lengths = np.bincount(owners, minlength=len(texts)).astype(np.int32)
        words = words.filter(kept)
    begins = np.cumsum(lengths, dtype=np.int64) - lengths
    positions = (np.arange(len(words)) - np.repeat(begins, lengths)).astype(np.int32)
    return Tokens(words, lengths, positions)
