"""Prepared queries: compiled once, run often."""

from collections.abc import Callable
from dataclasses import dataclass

from omnigraph.errors import InvalidRequestError
from omnigraph.language.plan.expressions import Parameter
from omnigraph.language.query import compile
from omnigraph.model.schema import Schema


@dataclass(frozen=True, slots=True)
class PreparedQuery:
    """A query or mutation that compiles. Running it costs no parsing while the schema stays the same.

    Attributes:
        text: the query text.
        name: which query of the text.
        is_mutation: whether it writes.
        parameters: the declared ones, in order.
    """

    text: str
    name: str
    is_mutation: bool
    parameters: tuple[Parameter, ...]


def as_text(query: str | PreparedQuery, name: str | None) -> tuple[str, str | None]:
    """Return the text and the name of a query.

    Raises:
        InvalidRequestError: it is neither a text nor prepared, or a prepared query is given another name.
    """
    if isinstance(query, str):
        return query, name
    if not isinstance(query, PreparedQuery):
        raise InvalidRequestError(f"a query is a text or a prepared one, got {type(query).__name__}")
    if name not in (None, query.name):
        raise InvalidRequestError(f"the prepared query is '{query.name}', not '{name}'")
    return query.text, query.name


def prepared(query: str | PreparedQuery, name: str | None, schema: Callable[[], Schema]) -> PreparedQuery:
    """Compile a query against a schema; see `Graph.prepare`."""
    text, chosen = as_text(query, name)
    compiled = compile(text, schema(), name=chosen)
    return PreparedQuery(text, compiled.name, compiled.is_mutation, compiled.parameters)
