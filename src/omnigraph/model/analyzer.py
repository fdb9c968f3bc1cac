"""Analyzers: how a text becomes the words that searches compare, as `@analyzer` declares it for a property."""

from enum import StrEnum

ANNOTATION = "analyzer"


class Analyzer(StrEnum):
    """What is done to the words of texts and queries, beside lower case.

    Attributes:
        ENGLISH: fold accents, drop stop words, reduce words to their stems.
        SIMPLE: nothing.
    """

    ENGLISH = "english"
    SIMPLE = "simple"


DEFAULT_ANALYZER = Analyzer.ENGLISH
