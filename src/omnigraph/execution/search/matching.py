"""Which rows match a text query."""

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import NONE, Mask, Ordinals, Values, arrow, no_values
from omnigraph.execution.columns import Columns
from omnigraph.execution.search.asked import TextQuery, different_words, refuse_more
from omnigraph.execution.search.texts import Texts, index_texts
from omnigraph.execution.search.words import terms_in
from omnigraph.language.plan.expressions import TextFunction


class TextMatches:
    """The text queries of one run. Used by one thread."""

    def __init__(self) -> None:
        self._found: dict[tuple[object, str, TextQuery], tuple[Mask, Mask]] = {}

    def of(self, columns: Columns, ordinals: Ordinals, name: str, query: TextQuery) -> Values:
        """Whether rows match; null where they have no text.

        Args:
            columns (Columns): the table.
            ordinals (Ordinals): which rows; `NONE` has no text.
            name (str): the column.
            query (TextQuery): what is looked for.
        """
        if query.text is None:
            return no_values(len(ordinals), _BOOL)
        key = (columns.key, name, query)
        found = self._found.get(key)
        if found is None:
            if not columns.has_word_index(name, query.analyzer, rows=len(ordinals)):
                # Few rows of a large table: their own words are found sooner than those of all.
                few = index_texts(columns.take(name, ordinals, absent=True), query.analyzer)
                return arrow(matching(few, query), nulls=~few.has_text)
            texts = columns.texts(name, query.analyzer)
            found = self._found[key] = matching(texts, query), ~texts.has_text
        matched, no_text = found
        return arrow(matched[ordinals], nulls=no_text[ordinals] | (ordinals == NONE))


_BOOL = arrow(np.zeros(0, dtype=np.bool_)).type


def matching(texts: Texts, query: TextQuery) -> Mask:
    """Which texts match."""
    text = query.text or ""
    match query.function:
        case TextFunction.SEARCH:
            return texts.with_any(different_words(text, texts.analyzer))
        case TextFunction.MATCH_TEXT:
            terms = terms_in(text, texts.analyzer)
            refuse_more(terms, "words of a phrase", limits.SEARCH_WORDS_MAX)
            return texts.with_phrase(terms)
        case TextFunction.FUZZY:
            words = different_words(text, texts.analyzer)
            refuse_more(words, "words of fuzzy", limits.FUZZY_WORDS_MAX)
            refuse_more(max(words, key=len, default=""), "letters of a word of fuzzy", limits.FUZZY_WORD_LETTERS_MAX)
            return texts.with_any_like(words, query.edits or 0)
