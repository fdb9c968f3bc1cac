"""Queries, their plans, and snapshots."""

from typing import Any

from fastapi import Request, Response

from omnigraph.api.query_result import Result
from omnigraph.errors import InvalidRequestError
from omnigraph.language.query import parse
from omnigraph.language.query.statements import Mutation
from omnigraph.server.graph_call import CurrentCall
from omnigraph.server.point_params import PointParams, PointQuery
from omnigraph.server.request_models import EntitiesRequest, ExplainRequest, QueryRequest, ReadRequest
from omnigraph.server.response_models import EntitiesOutput, ExplainOutput, LegacyReadOutput, ReadOutput, SnapshotOutput
from omnigraph.server.responses import ARROW, arrow_response, json_response, rows_response, snapshot_document
from omnigraph.server.routing import BODY_ERRORS, READ_ERRORS, error_responses, graph_router

router = graph_router("queries")
snapshot_router = graph_router("snapshots")
_ROWS: dict[int | str, dict[str, Any]] = {
    **error_responses(*READ_ERRORS, *BODY_ERRORS),
    200: {"description": "Rows.", "content": {ARROW: {"schema": {"type": "string", "format": "binary"}}}},
}


@router.post(
    "/query",
    operation_id="cluster_query",
    response_model=ReadOutput,
    responses=_ROWS,
)
def query(body: QueryRequest, call: CurrentCall, request: Request) -> Response:
    """Run a query. It reads one commit, whatever is written meanwhile.

    Beyond the contract: an Arrow stream if the client accepts one.
    """
    point = call.authorize_read_at(body)
    mutation = _find_mutation(body.query, body.name)
    if mutation is not None:
        raise InvalidRequestError(
            f"query '{mutation}' contains mutations (insert/update/delete); use POST /mutate for write queries"
        )
    result = call.graph.query(
        body.query,
        body.params,
        name=body.name,
        limits=call.query_limits,
        engine=call.query_engine(body.engine),
        nodes=body.nodes,
        **point,
    )
    wants_arrow = ARROW in request.headers.get("accept", "")
    return (arrow_response if wants_arrow else rows_response)(result, call)


@router.post(
    "/read",
    operation_id="cluster_read",
    response_model=LegacyReadOutput,
    deprecated=True,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def read(body: ReadRequest, call: CurrentCall) -> Response:
    """Run a query, deprecated; see `query`."""
    point = call.authorize_read_at(PointParams(body.branch, body.snapshot))
    if _find_mutation(body.query_source, body.query_name) is not None:
        raise InvalidRequestError("type error: mutation query cannot be typechecked with read-query API")
    result: Result = call.graph.query(
        body.query_source,
        body.params,
        name=body.query_name,
        limits=call.query_limits,
        engine=call.query_engine(),
        **point,
    )
    return rows_response(result, call, headers=deprecation_headers("query"), legacy=True)


@router.post(
    "/explain",
    operation_id="cluster_explain",
    response_model=ExplainOutput,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def explain(body: ExplainRequest, call: CurrentCall) -> Response:
    """Explain how a query or mutation would run. Beyond the contract."""
    plan = call.graph.explain(body.query, name=body.name, **call.authorize_read_at(body))
    return json_response({"plan": plan.splitlines()})


@router.post(
    "/entities",
    operation_id="cluster_getEntities",
    response_model=EntitiesOutput,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def entities(body: EntitiesRequest, call: CurrentCall) -> Response:
    """Return nodes or edges by id, with all properties but blobs; null for each that does not exist.

    Beyond the contract.
    """
    snapshot = call.graph.snapshot(**call.authorize_read_at(body))
    found = snapshot.get_many(body.type, body.ids)
    return json_response({"entities": found, "graph_commit_id": snapshot.commit})


@snapshot_router.get(
    "/snapshot",
    operation_id="cluster_getSnapshot",
    response_model=SnapshotOutput,
    responses=error_responses(*READ_ERRORS),
)
def snapshot(call: CurrentCall, point: PointQuery) -> Response:
    """Return the contents of a branch by type."""
    return json_response(snapshot_document(call.graph.snapshot(**call.authorize_read_at(point)).record))


def deprecation_headers(route: str) -> dict[str, str]:
    """Return the headers of a deprecated route."""
    return {"Deprecation": "true", "Link": f'<{route}>; rel="successor-version"'}


def _find_mutation(text: str, name: str | None) -> str | None:
    """Return the name of the chosen mutation; None if it is a query, or the choice is ambiguous."""
    if not any(word in text for word in ("insert", "upsert", "update", "delete")):
        return None
    chosen = [query for query in parse(text).queries if name in (None, query.name)]
    return chosen[0].name if len(chosen) == 1 and isinstance(chosen[0].body, Mutation) else None
