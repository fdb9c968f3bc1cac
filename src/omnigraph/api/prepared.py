"""Queries as they are asked, and those checked once and run often."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.language.plan.expressions import Parameter


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query or mutation that was found right. Running it costs no parsing while the schema stays the same.

    Attributes:
        text: the text it is in.
        name: which query of the text.
        is_mutation: whether it writes.
        parameters: the declared ones, in order.
    """

    text: str
    name: str
    is_mutation: bool
    parameters: tuple[Parameter, ...]


@dataclass(frozen=True, slots=True)
class Asked:
    """A query as it was asked; nothing of it has been looked at.

    Attributes:
        query: a text, or a prepared one.
        params: values of its parameters.
        name: which query of the text.
        limits: what it may use.
    """

    query: str | PreparedQuery
    params: Mapping[str, object] | None
    name: str | None
    limits: QueryLimits


def as_text(query: str | PreparedQuery, name: str | None) -> tuple[str, str | None]:
    """The text and the name of the query meant.

    Raises:
        InvalidRequestError: it is neither, or a prepared query is given another name.
    """
    if isinstance(query, str):
        return query, name
    if not isinstance(query, PreparedQuery):
        raise InvalidRequestError(f"a query is a text or a prepared one, got {type(query).__name__}")
    if name not in (None, query.name):
        raise InvalidRequestError(f"the prepared query is '{query.name}', not '{name}'")
    return query.text, query.name
