"""Arguments of searches, computed once per run: text queries, and vectors of texts."""

from collections.abc import Callable, Sized
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.embedding.choose import choose_provider
from omnigraph.embedding.provider import Provider, Purpose
from omnigraph.errors import InvalidRequestError, beyond_limit
from omnigraph.execution.search.tokenizer import tokenize_query
from omnigraph.execution.search.vectors import Vector
from omnigraph.language.plan.expressions import TextFunction
from omnigraph.model.analyzer import DEFAULT_ANALYZER, Analyzer


@dataclass(frozen=True, slots=True)
class TextQuery:
    """A full-text query.

    Attributes:
        function: any word, phrase or fuzzy.
        text: the words; None matches nothing.
        edits: for fuzzy queries, the maximum edit distance.
        analyzer: tokenizes the query and the texts.
    """

    function: TextFunction
    text: str | None
    edits: int | None = None
    analyzer: Analyzer = DEFAULT_ANALYZER


def text_query(
    function: TextFunction, text: object, edits: object, *, has_edits: bool, analyzer: Analyzer
) -> TextQuery:
    """Make a text query from the values of its arguments; one without a text, where an argument is null.

    `has_edits` tells a missing argument from a null one.

    Raises:
        InvalidRequestError: the number of edits is out of bounds.
    """
    assert text is None or isinstance(text, str)
    if function is not TextFunction.FUZZY:
        return TextQuery(function, text, analyzer=analyzer)
    if not has_edits:
        return TextQuery(function, text, limits.FUZZY_EDITS_DEFAULT, analyzer)
    if edits is None:
        return TextQuery(function, None, analyzer=analyzer)
    assert isinstance(edits, int)
    if not 0 <= edits <= limits.FUZZY_EDITS_MAX:
        raise InvalidRequestError(f"fuzzy max_edits must be from 0 to {limits.FUZZY_EDITS_MAX}, not {edits}")
    return TextQuery(function, text, edits, analyzer)


def distinct_words(text: str, analyzer: Analyzer) -> list[str]:
    """Tokenize a query to its distinct words, in order.

    Raises:
        LimitError: there are more than one search may have.
    """
    words = list(dict.fromkeys(term.word for term in tokenize_query(text, analyzer)))
    refuse_more_than(words, "words of a search", limits.SEARCH_WORDS_MAX)
    return words


def refuse_more_than(items: Sized, what: str, most: int) -> None:
    """Enforce a limit on the size of a query.

    Raises:
        LimitError: it is larger.
    """
    if len(items) > most:
        raise beyond_limit(what, actual=len(items), limit=most)


class Embedder:
    """Embeds the texts of queries with the provider that the environment names."""

    def __init__(self, choose: Callable[[], Provider] = choose_provider) -> None:
        self._choose = choose

    def vector(self, text: str, *, dimension: int, model: str | None, target: str) -> Vector:
        """Embed a text.

        Args:
            text: the text.
            dimension: of the vectors it is compared with.
            model: the model that made those, if the schema says.
            target: the name of their property.

        Raises:
            InvalidRequestError: another model made them, or no provider is set up.
            UnavailableError: the provider does not answer.
        """
        provider = self._choose()
        # A provider without a model (for tests) cannot be mixed up with another.
        if model is not None and provider.model is not None and provider.model != model:
            raise InvalidRequestError(
                f"nearest() on '{target}': its stored vectors were embedded with model '{model}', and the provider in "
                f"use embeds with '{provider.model}'; set OMNIGRAPH_EMBED_MODEL={model}, or pass a vector",
                code="embedding_model_mismatch",
            )
        return provider.embed(text, dimension, Purpose.QUERY)


def as_vector(value: object, dimension: int, target: str) -> Vector:
    """Convert a list of numbers to a vector."""
    assert isinstance(value, list | tuple)
    vector = np.array(value, dtype=np.float32)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise InvalidRequestError(f"nearest() on '{target}' takes a vector of {dimension} finite numbers")
    return vector
