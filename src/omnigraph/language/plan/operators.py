"""Operators and functions of the query language, shared by syntax trees and plans."""

from enum import StrEnum


class ArithmeticOp(StrEnum):
    """Operators; `/` gives a float, the others whole numbers for whole numbers. Division by zero gives null."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    MODULO = "%"


class CompareOp(StrEnum):
    """Order and equality; strings by their bytes, numbers after widening to a common type."""

    EQUAL = "="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="


class StringOp(StrEnum):
    """Tests of a string against a part; no wildcards."""

    CONTAINS = "contains"
    STARTS_WITH = "starts_with"


class Function(StrEnum):
    """Functions of single values; null if an argument is."""

    LOWER = "lower"
    UPPER = "upper"
    LENGTH = "length"  # characters of a string, elements of a list
    DAYS = "days"  # a number to a duration
    HOURS = "hours"
    MINUTES = "minutes"
    SECONDS = "seconds"
    DAYS_BETWEEN = "days_between"  # whole days from the first to the second, towards zero


class TextFunction(StrEnum):
    """Text search: any token, any token with misspellings, or a phrase."""

    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"


class AggregateFunction(StrEnum):
    """Functions over the rows of a group; absent values are ignored."""

    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"
    COLLECT = "collect"
