"""Evaluation of text queries."""

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import NONE, Mask, Ordinals, Values, make_nulls, to_arrow
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.query_text import TextQuery, distinct_words, refuse_more_than
from omnigraph.execution.search.text_index import Texts, index_texts
from omnigraph.execution.search.tokenizer import tokenize_query
from omnigraph.language.plan.expressions import TextFunction


class TextMatches:
    """Text queries of one run, with cached results. Used by one thread."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, str, TextQuery], tuple[Mask, Mask]] = {}

    def evaluate(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Return whether rows match; null where they have no text.

        Args:
            columns: the table.
            ordinals: the rows; `NONE` has no text.
            name: the column.
            query: any word, phrase or fuzzy.
        """
        if query.text is None:
            return make_nulls(len(ordinals), _BOOL)
        key = (columns.key, name, query)
        found = self._found.get(key)
        if found is None:
            if not columns.has_text_index(name, query.analyzer, rows=len(ordinals)):
                # Tokenizing few rows is faster than building the index of a large table.
                few = index_texts(columns.take(name, ordinals, absent=True), query.analyzer)
                return to_arrow(match_texts(few, query), nulls=~few.has_text)
            texts = columns.texts(name, query.analyzer)
            found = self._found[key] = match_texts(texts, query), ~texts.has_text
        matched, no_text = found
        return to_arrow(matched[ordinals], nulls=no_text[ordinals] | (ordinals == NONE))


_BOOL = to_arrow(np.zeros(0, dtype=np.bool_)).type


def match_texts(texts: Texts, query: TextQuery) -> Mask:
    """Return the mask of matching texts."""
    text = query.text or ""
    match query.function:
        case TextFunction.SEARCH:
            return texts.match_any(distinct_words(text, texts.analyzer))
        case TextFunction.MATCH_TEXT:
            terms = tokenize_query(text, texts.analyzer)
            refuse_more_than(terms, "words of a phrase", limits.SEARCH_WORDS_MAX)
            return texts.match_phrase(terms)
        case TextFunction.FUZZY:
            words = distinct_words(text, texts.analyzer)
            refuse_more_than(words, "words of fuzzy", limits.FUZZY_WORDS_MAX)
            refuse_more_than(
                max(words, key=len, default=""), "letters of a word of fuzzy", limits.FUZZY_WORD_LETTERS_MAX
            )
            return texts.match_fuzzy(words, query.edits or 0)
