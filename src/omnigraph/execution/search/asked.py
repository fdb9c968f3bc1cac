"""What a query looks for: the same for all rows, known when it runs."""

from collections.abc import Callable, Sized
from dataclasses import dataclass

import numpy as np

from omnigraph import limits
from omnigraph.embedding.choose import choose_provider
from omnigraph.embedding.provider import Provider, Purpose
from omnigraph.errors import InvalidRequestError, beyond_limit
from omnigraph.execution.search.vectors import Vector
from omnigraph.execution.search.words import terms_in
from omnigraph.language.plan.expressions import TextFunction
from omnigraph.model.analyzer import DEFAULT_ANALYZER, Analyzer


@dataclass(frozen=True, slots=True)
class TextQuery:
    """What is looked for in texts.

    Attributes:
        function: how.
        text: the words; None matches nothing and nothing else.
        edits: for misspelled words, how many edits are forgiven.
        analyzer: what makes words of the text and of those it is looked for in.
    """

    function: TextFunction
    text: str | None
    edits: int | None = None
    analyzer: Analyzer = DEFAULT_ANALYZER


def text_query(
    function: TextFunction, text: object, edits: object, *, says_edits: bool, analyzer: Analyzer
) -> TextQuery:
    """A text query from the values of its arguments.

    Args:
        function (TextFunction): how to look.
        text (object): a text or null.
        edits (object): a number or null.
        says_edits (bool): whether the number of edits was given at all.
        analyzer (Analyzer): of the property.

    Returns:
        TextQuery: one without a text, where an argument is null.

    Raises:
        InvalidRequestError: the number of edits is out of bounds.
    """
    assert text is None or isinstance(text, str)
    if function is not TextFunction.FUZZY:
        return TextQuery(function, text, analyzer=analyzer)
    if not says_edits:
        return TextQuery(function, text, limits.FUZZY_EDITS_DEFAULT, analyzer)
    if edits is None:
        return TextQuery(function, None, analyzer=analyzer)
    assert isinstance(edits, int)
    if not 0 <= edits <= limits.FUZZY_EDITS_MAX:
        raise InvalidRequestError(f"fuzzy max_edits must be from 0 to {limits.FUZZY_EDITS_MAX}, not {edits}")
    return TextQuery(function, text, edits, analyzer)


def different_words(text: str, analyzer: Analyzer) -> list[str]:
    """The words to look for, each once.

    Args:
        text (str): what was asked for.
        analyzer (Analyzer): of the texts.

    Returns:
        list[str]: in their order.

    Raises:
        LimitError: there are more than one search may look for.
    """
    words = list(dict.fromkeys(term.word for term in terms_in(text, analyzer)))
    refuse_more(words, "words of a search", limits.SEARCH_WORDS_MAX)
    return words


def refuse_more(asked: Sized, what: str, most: int) -> None:
    """Refuse to look for more than is bearable.

    Raises:
        LimitError: it is more.
    """
    if len(asked) > most:
        raise beyond_limit(what, actual=len(asked), limit=most)


class Embedder:
    """Makes vectors of the texts in queries, with the provider that the environment names."""

    def __init__(self, choose: Callable[[], Provider] = choose_provider) -> None:
        self._choose = choose

    def vector(self, text: str, *, dimension: int, model: str | None, target: str) -> Vector:
        """The vector of a text.

        Args:
            text (str): the text.
            dimension (int): of the vectors it is compared with.
            model (str | None): what made those, if the schema says.
            target (str): the name of their property.

        Raises:
            InvalidRequestError: another model made them, or no provider is set up.
            UnavailableError: the provider does not answer.
        """
        provider = self._choose()
        # A provider without a model means nothing anyway: there is nothing to mix up.
        if model is not None and provider.model is not None and provider.model != model:
            raise InvalidRequestError(
                f"nearest() on '{target}': its stored vectors were embedded with model '{model}', and the provider in "
                f"use embeds with '{provider.model}'; set OMNIGRAPH_EMBED_MODEL={model}, or pass a vector",
                code="embedding_model_mismatch",
            )
        return provider.embed(text, dimension, Purpose.QUERY)


def as_vector(value: object, dimension: int, target: str) -> Vector:
    """A list of numbers as a vector."""
    assert isinstance(value, list | tuple)
    vector = np.array(value, dtype=np.float32)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise InvalidRequestError(f"nearest() on '{target}' takes a vector of {dimension} finite numbers")
    return vector
