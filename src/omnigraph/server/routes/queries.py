"""Queries."""

from typing import Any

from fastapi import Request, Response

from omnigraph.api.query_result import Result
from omnigraph.errors import InvalidRequestError
from omnigraph.language.query import parse
from omnigraph.language.query.statements import Mutation
from omnigraph.server.answers import ARROW, answered, arrow_answered, rows_answered
from omnigraph.server.call import Served
from omnigraph.server.requests import ExplainRequest, QueryRequest, ReadRequest
from omnigraph.server.responses import ExplainOutput, LegacyReadOutput, ReadOutput
from omnigraph.server.routing import READING, WITH_BODY, failing, graph_router
from omnigraph.server.states import StateParameters

router = graph_router("queries")
_ROWS: dict[int | str, dict[str, Any]] = {
    **failing(*READING, *WITH_BODY),
    200: {"description": "The rows.", "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}},
}


@router.post(
    "/query",
    operation_id="cluster_query",
    response_model=ReadOutput,
    responses=_ROWS,
)
def query(body: QueryRequest, call: Served, request: Request) -> Response:
    """Answer a query. It sees one commit, whatever is written meanwhile.

    Beyond the contract: as an Arrow stream, for whoever accepts one.
    """
    where = call.reads_at(body)
    written = _mutation_in(body.query, body.name)
    if written is not None:
        raise InvalidRequestError(
            f"query '{written}' contains mutations (insert/update/delete); use POST /mutate for write queries"
        )
    result = call.graph.query(body.query, body.params, name=body.name, limits=call.query_limits, **where)
    wants_arrow = ARROW in request.headers.get("accept", "")
    return (arrow_answered if wants_arrow else rows_answered)(result, call)


@router.post(
    "/read",
    operation_id="cluster_read",
    response_model=LegacyReadOutput,
    deprecated=True,
    responses=failing(*READING, *WITH_BODY),
)
def read(body: ReadRequest, call: Served) -> Response:
    """Answer a query, in the words of old; see `query`."""
    where = call.reads_at(StateParameters(body.branch, body.snapshot))
    if _mutation_in(body.query_source, body.query_name) is not None:
        raise InvalidRequestError("type error: mutation query cannot be typechecked with read-query API")
    result: Result = call.graph.query(
        body.query_source,
        body.params,
        name=body.query_name,
        limits=call.query_limits,
        **where,
    )
    return rows_answered(result, call, headers=superseded_by("query"), legacy=True)


@router.post(
    "/explain",
    operation_id="cluster_explain",
    response_model=ExplainOutput,
    responses=failing(*READING, *WITH_BODY),
)
def explain(body: ExplainRequest, call: Served) -> Response:
    """How a query or mutation would be carried out. Beyond the contract."""
    plan = call.graph.explain(body.query, name=body.name, **call.reads_at(body))
    return answered({"plan": plan.splitlines()})


def superseded_by(route: str) -> dict[str, str]:
    """The headers of a route of old."""
    return {"Deprecation": "true", "Link": f'<{route}>; rel="successor-version"'}


def _mutation_in(text: str, name: str | None) -> str | None:
    """The name of the mutation that a text means; None where it means a query, or something is wrong with it."""
    if not any(word in text for word in ("insert", "update", "delete")):
        return None
    chosen = [each for each in parse(text).queries if name in (None, each.name)]
    return chosen[0].name if len(chosen) == 1 and isinstance(chosen[0].body, Mutation) else None
