"""Bodies of requests: how queries and write options are sent to a server."""

from collections.abc import Iterable, Mapping
from typing import Any

from omnigraph.api.engines import Engine, engine_of
from omnigraph.api.neighbourhood import Neighbourhood
from omnigraph.api.params import json_params
from omnigraph.api.prepared import PreparedQuery, as_text
from omnigraph.api.query_result import wants_objects
from omnigraph.branch.arguments import texts
from omnigraph.branch.point import Point
from omnigraph.client import values
from omnigraph.client.wire import Wire, without_nones
from omnigraph.errors import InvalidRequestError
from omnigraph.execution.query_limits import DEFAULT_LIMITS, QueryLimits
from omnigraph.transaction.options import NO_OPTIONS, WriteOptions, option_values
from omnigraph.transaction.validation import require_text

# The header of a mutation with a precondition.
IF_COMMIT = "Omnigraph-If-Graph-Commit"


def query_body(
    query: str | PreparedQuery,
    params: Mapping[str, object] | None,
    name: str | None,
    limits: QueryLimits,
    point: Point,
    *,
    engine: str = "auto",
    nodes: str = "id",
) -> dict[str, object]:
    """Make the body of a request that runs a query at a point.

    Raises:
        InvalidRequestError: the caller names limits, of which a server has its own, or an unknown form of nodes.
    """
    if limits is not DEFAULT_LIMITS:
        raise InvalidRequestError("a server has its own limits: a query to it cannot name others", code="own_limits")
    text, chosen = as_text(query, name)
    where = None if engine_of(engine) is Engine.AUTO else engine
    form = nodes if wants_objects(nodes) else None
    body = {"query": text, "name": chosen, "params": json_params(params), "engine": where, "nodes": form}
    return without_nones({**body, **values.point_fields(point)})


def fetch_entities(wire: Wire, type_name: str, ids: Iterable[str], point: Point) -> list[dict[str, Any] | None]:
    """Fetch entities by id, with all properties but blobs; None for each that does not exist."""
    named = {"type": require_text(type_name, "the name of a type"), "ids": texts(ids, "ids")}
    answer = wire.post("entities", without_nones({**named, **values.point_fields(point)}))
    found: list[dict[str, Any] | None] = answer["entities"]
    return found


def fetch_neighbourhood(
    wire: Wire, type_name: str, entity_id: str, around: Mapping[str, Any], point: Point
) -> Neighbourhood:
    """Fetch the neighbourhood of a node."""
    fields = {"type": type_name, "id": entity_id, **around, **values.point_fields(point)}
    return values.parse_neighbourhood(wire.get("neighbourhood", **fields))


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
