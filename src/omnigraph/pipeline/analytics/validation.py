"""Validate the arguments of an algorithm before any job runs."""

import math
from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegralType, StringType

from omnigraph.errors import InvalidRequestError
from omnigraph.model.schema import NodeType
from omnigraph.model.suggest import explain_unknown
from omnigraph.model.types import FLOAT_SCALARS, PropertyType


def within(name: str, value: object, least: float, most: float = math.inf) -> None:
    """Refuse what is no number between two others.

    Args:
        name: what it is called.
        value: what was said.
        least: not less.
        most: not more.

    Raises:
        InvalidRequestError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        bound = f"from {least} to {most}" if most < math.inf else f"of {least} or more"
        raise InvalidRequestError(f"{name} is a number {bound}, and {value!r} is not")


def rounds(name: str, value: object) -> None:
    """Refuse a number of rounds that is negative or not whole.

    Args:
        name: what it is called.
        value: what was said.

    Raises:
        InvalidRequestError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise InvalidRequestError(f"{name} is a whole number of 0 or more, and {value!r} is not")


def texts(given: object, what: str) -> list[str]:
    """Names, one or several.

    Args:
        given: what was said.
        what: what they are, for the message.

    Returns:
        list[str]: the names.

    Raises:
        InvalidRequestError: they are none.
    """
    if isinstance(given, str):
        return [given]
    named = list(given) if isinstance(given, Iterable) else None
    if named is None or not all(isinstance(item, str) for item in named):
        raise InvalidRequestError(f"{what} are named by a list of texts, not by {given!r}")
    return named


def starts(sources: object) -> Sequence[tuple[str, str]]:
    """Nodes to start from.

    Args:
        sources: what was said.

    Returns:
        Sequence[tuple[str, str]]: type and id of each.

    Raises:
        InvalidRequestError: they are not that, or none.
    """
    if not isinstance(sources, Sequence) or isinstance(sources, str) or not sources:
        raise InvalidRequestError("name at least one node to start from, like [('Person', 'Ada')]")
    for item in sources:
        if isinstance(item, str) or not isinstance(item, Sequence) or [type(part) for part in item] != [str, str]:
            raise InvalidRequestError(
                f"a node to start from is its type and its id, like ('Person', 'Ada'), not {item!r}"
            )
    return sources


def check_columns(answers: DataFrame, properties: Mapping[str, str]) -> None:
    """Refuse answers that there are none of.

    Args:
        answers: all of them.
        properties: by columns of answers, the properties they go to.

    Raises:
        InvalidRequestError: there is no such column, or nothing is to be written.
    """
    if not properties:
        raise InvalidRequestError("say into which property the answers go")
    known = [column for column in answers.columns if column not in ("type", "id")]
    for column in properties:
        if column not in known:
            raise InvalidRequestError(explain_unknown("the answers have no column", str(column), known))


def check_properties(node: NodeType, answers: DataFrame, properties: Mapping[str, str]) -> None:
    """Refuse properties that cannot hold answers as they are.

    Args:
        node: the type they are of.
        properties: by columns of answers, the properties they go to.

    Raises:
        InvalidRequestError: a property is of another kind, or part of the key.
    """
    keys = {item.name for item in node.key}
    for column, own in properties.items():
        declared = node.property_named(own)
        if own in keys:
            raise InvalidRequestError(
                f"{own} is the key of {node.name}, by which its nodes are known: name another property"
            )
        kind = answers.schema[column].dataType
        if declared is not None and not _holds(declared.type, kind):
            needed = (
                "String" if isinstance(kind, StringType) else "I64 or F64" if isinstance(kind, IntegralType) else "F64"
            )
            raise InvalidRequestError(
                f"{column} is {kind.simpleString()}, and {own} of {node.name} is {declared.type}: write it into a "
                f"property of type {needed}"
            )


def _holds(of: PropertyType, kind: object) -> bool:
    if of.list or of.is_vector or of.is_enum:
        return False
    if isinstance(kind, StringType):
        return of.is_string
    return of.is_numeric if isinstance(kind, IntegralType) else of.scalar in FLOAT_SCALARS
