"""Text analyzers: how searches tokenize a property, as its `@analyzer` annotation declares."""

from enum import StrEnum

ANNOTATION = "analyzer"


class Analyzer(StrEnum):
    """Token filters that are applied to texts and queries, beside lower-casing.

    Attributes:
        ENGLISH: fold accents, drop stop words, reduce words to their stems.
        SIMPLE: nothing.
    """

    ENGLISH = "english"
    SIMPLE = "simple"


DEFAULT_ANALYZER = Analyzer.ENGLISH
