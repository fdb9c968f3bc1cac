"""Bodies of requests: how queries and write options are sent to a server."""

from collections.abc import Mapping
from typing import Any

from omnigraph.api.engines import Engine, engine_of
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.client.wire import Wire, without_nones
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.transaction.options import NO_OPTIONS, WriteOptions, option_values

# The header of a mutation with a precondition.
IF_COMMIT = "Omnigraph-If-Graph-Commit"


def query_body(
    query: str | PreparedQuery,
    params: Mapping[str, object] | None,
    name: str | None,
    limits: QueryLimits,
    state: Mapping[str, object],
    *,
    engine: str = "auto",
) -> dict[str, object]:
    """Make the body of a request that runs a query at a state.

    Raises:
        InvalidRequestError: the caller names limits; a server has its own.
    """
    if limits is not DEFAULT_LIMITS:
        raise InvalidRequestError("a server has its own limits: a query to it cannot name others", code="own_limits")
    text, chosen = as_text(query, name)
    where = None if engine_of(engine) is Engine.AUTO else engine
    return without_nones({"query": text, "name": chosen, "params": json_params(params), "engine": where, **state})


def write_fields(options: WriteOptions) -> dict[str, object]:
    """Name the write options as request fields; the actor is the token's, and the idempotency key a header."""
    given = {name: value for name, value in option_values(options).items() if value != getattr(NO_OPTIONS, name)}
    expected = options.expected_table_versions
    return given | {
        "actor": None,
        "idempotency_key": None,
        "expected_table_versions": None if expected is None else dict(expected),
    }


def send_mutation(wire: Wire, path: str, body: Mapping[str, object], options: WriteOptions) -> Any:  # noqa: ANN401  (a document)
    """Send a mutation; its precondition is a header."""
    body = {**body, **write_fields(options), "if_commit": None}
    if options.if_commit is None:
        return wire.write(path, body, options.idempotency_key)
    condition = {IF_COMMIT: options.if_commit}
    return wire.write(f"{path}/if-graph-commit", body, options.idempotency_key, condition)


def refuse_actor(actor: str | None, wire: Wire) -> None:
    """Refuse to write as someone else.

    Raises:
        InvalidRequestError: the actor is not the one of the token.
    """
    if actor is not None and actor != wire.actor:
        raise InvalidRequestError(
            "a served graph takes no actor: the bearer token decides who writes", code="actor_of_token"
        )
