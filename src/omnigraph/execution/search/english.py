"""English words as searches compare them: accents folded, stop words dropped, the rest reduced to their stems."""

import threading
import unicodedata
from functools import lru_cache
from typing import Any

# Lucene's list, which full-text indexes of Lance have too.
STOP_WORDS = frozenset(
    {
        *("a", "an", "and", "are", "as", "at", "be", "but", "by", "for", "if", "in", "into", "is", "it", "no", "not"),
        *("of", "on", "or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was"),
        *("will", "with"),
    }
)
# Latin letters that no decomposition takes apart.
_UNDECOMPOSED = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i"}
_WORDS_REMEMBERED_MAX = 65_536

_stemmers = threading.local()


@lru_cache(maxsize=_WORDS_REMEMBERED_MAX)
def stem_of(word: str) -> str | None:
    """The stem of a word in lower case; None for a stop word. What is not made of Latin letters stays as it is."""
    folded = word if word.isascii() else _fold(word)
    if folded in STOP_WORDS:
        return None
    return _stem(folded) if folded.isascii() and folded.isalpha() else folded


def _fold(word: str) -> str:
    """The word without the accents of its Latin letters; those of other scripts are letters of their own."""
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
