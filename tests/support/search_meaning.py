"""What search means, in plain loops: words, misspellings, BM25, distances, rankings fused.

Nothing here is shared with the engine but the library that knows stems: texts are taken apart by Python, sums are sums.
"""

import math
import re
import struct
import unicodedata
from collections.abc import Callable, Sequence

from snowballstemmer.english_stemmer import EnglishStemmer

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import TextFunction
from omnigraph.model.analyzer import Analyzer

_SATURATION, _LENGTH_WEIGHT = 1.2, 0.75
_EDITS_DEFAULT = 2
_STOP_WORDS = re.findall(
    "[a-z]+",
    """
    a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to
    was will with
    """,
)
_LATIN = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "ł": "l", "þ": "th", "ħ": "h", "ı": "i"}


def tokens(text: str) -> list[str]:
    """Runs of letters, marks and digits, in lower case."""
    spaced = "".join(
        each if unicodedata.category(each)[0] in "LNM" else " " for each in unicodedata.normalize("NFKC", text).lower()
    )
    return spaced.split()


def analyzed(text: str, analyzer: Analyzer) -> list[str | None]:
    """The words of a text as an analyzer has them, None in the place of those it drops."""
    if analyzer is Analyzer.SIMPLE:
        return list(tokens(text))
    plain = [_without_accents(token) for token in tokens(text)]
    return [None if each in _STOP_WORDS else _stem(each) for each in plain]


def words(text: str, analyzer: Analyzer = Analyzer.SIMPLE) -> list[str]:
    """The words of a text as an analyzer has them."""
    return [each for each in analyzed(text, analyzer) if each is not None]


def _without_accents(token: str) -> str:
    """Accents on Latin letters go; marks on others are part of the letter."""
    found = ""
    for each in unicodedata.normalize("NFD", token):
        if unicodedata.category(each) != "Mn" or not ("a" <= found[-1:] <= "z"):
            found += _LATIN.get(each, each)
    return unicodedata.normalize("NFC", found)


def _stem(word: str) -> str:
    return str(EnglishStemmer().stemWord(word)) if re.fullmatch("[a-z]+", word) else word


def edits(one: str, other: str) -> int:
    """How many letters have to be added, left out or changed."""
    before = list(range(len(other) + 1))
    for row, letter in enumerate(one, start=1):
        now = [row]
        for column, wanted in enumerate(other, start=1):
            now.append(min(before[column] + 1, now[-1] + 1, before[column - 1] + (letter != wanted)))
        before = now
    return before[-1]


def matches(
    function: TextFunction, text: str | None, query: str | None, most: int | None, analyzer: Analyzer
) -> bool | None:
    """Whether a text matches; unknown without a text or a query."""
    if text is None or query is None:
        return None
    there, wanted = words(text, analyzer), words(query, analyzer)
    match function:
        case TextFunction.SEARCH:
            return any(each in there for each in wanted)
        case TextFunction.FUZZY:
            bound = _EDITS_DEFAULT if most is None else most
            return any(edits(each, word) <= bound for each in wanted for word in there)
        case TextFunction.MATCH_TEXT:
            phrase, places = analyzed(query, analyzer), analyzed(text, analyzer)
            while phrase and phrase[-1] is None:
                phrase.pop()
            while phrase and phrase[0] is None:
                phrase.pop(0)
            # In the place of a word that was dropped any word will do.
            return bool(phrase) and any(
                all(one is None or one == other for one, other in zip(phrase, places[at:], strict=False))
                for at in range(len(places) - len(phrase) + 1)
            )


def bm25(texts: Sequence[str | None], text: str | None, query: str | None, analyzer: Analyzer) -> float | None:
    """How well a text, which is one of all texts of its type, matches."""
    if text is None or query is None:
        return None
    collection = [words(each, analyzer) for each in texts if each is not None]
    mine = words(text, analyzer)
    mean = sum(map(len, collection)) / len(collection)
    score, found = 0.0, False
    for word in dict.fromkeys(words(query, analyzer)):
        times = mine.count(word)
        if not times:
            continue
        found = True
        having = sum(word in each for each in collection)
        rarity = math.log(1 + (len(collection) - having + 0.5) / (having + 0.5))
        length = 1 - _LENGTH_WEIGHT + _LENGTH_WEIGHT * len(mine) / mean
        score += rarity * times * (_SATURATION + 1) / (times + _SATURATION * length)
    return score if found else None


def distance(vector: Sequence[float] | None, query: Sequence[float] | None) -> float | None:
    """How far two vectors are apart, as they are stored."""
    if vector is None or query is None:
        return None
    return math.dist([_stored(each) for each in vector], [_stored(each) for each in query])


def _stored(number: float) -> float:
    rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return rounded


def fused(
    score: ex.Rrf,
    nodes: Sequence[str],
    arm: Callable[[ex.Nearest | ex.Bm25, str], float | None],
    k: int,
    depth: int | None,
) -> tuple[dict[str, float], dict[str, int]]:
    """The fused scores of nodes and their places, of those that have any."""
    scores: dict[str, float] = {}
    places: dict[str, int] = {}
    for ranking in (score.first, score.second):
        sign = 1 if isinstance(ranking, ex.Nearest) else -1
        found = [(sign * value, each.encode(), each) for each in nodes if (value := arm(ranking, each)) is not None]
        seen = len(places)
        for rank, (_, _, each) in enumerate(sorted(found)[:depth]):
            scores[each] = scores.get(each, 0.0) + 1 / (k + rank + 1)
            places.setdefault(each, seen + rank)
    return scores, places
