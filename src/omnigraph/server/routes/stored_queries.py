"""Stored queries: called by name, their texts kept by the operator."""

from typing import Any

from fastapi import Request, Response

from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.history_models import QueriesCatalogOutput
from omnigraph.server.point_params import PointParams
from omnigraph.server.request_models import InvokeStoredQueryRequest, write_options
from omnigraph.server.response_models import ChangeOutput, ReadOutput
from omnigraph.server.responses import json_response, rows_response
from omnigraph.server.routes.mutations import (
    IdempotencyKey,
    IfCommit,
    read_if_commit,
    refuse_if_commit,
    run_mutation,
)
from omnigraph.server.routing import READ_ERRORS, WRITE_ERRORS, error_responses, graph_router
from omnigraph.server.stored_queries import StoredQuery

router = graph_router("queries")
_EMPTY_BODY = InvokeStoredQueryRequest(expect_mutation=None)


@router.get(
    "/queries",
    operation_id="cluster_list_queries",
    response_model=QueriesCatalogOutput,
    responses=error_responses(*READ_ERRORS),
)
def list_queries(call: CurrentCall) -> Response:
    """List the stored queries."""
    call.authorize_read("main")
    return json_response({"queries": [query.to_dict() for query in call.served.queries.values()]})


@router.post(
    "/queries/{name}",
    operation_id="cluster_invoke_query",
    response_model=ReadOutput | ChangeOutput,
    responses=error_responses(*READ_ERRORS, *WRITE_ERRORS),
)
def invoke(
    name: str,
    call: CurrentCall,
    request: Request,
    body: InvokeStoredQueryRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Call a stored query or mutation."""
    refuse_if_commit(request)
    arguments = body or _EMPTY_BODY
    stored = _find_query(call, name, arguments)
    if stored.is_mutation:
        return json_response(_mutate(call, stored, arguments, idempotency_key))
    point = call.authorize_read_at(PointParams(arguments.branch, arguments.snapshot))
    result = call.graph.query(
        stored.text,
        arguments.params,
        name=name,
        limits=call.query_limits,
        engine=call.query_engine(),
        nodes=arguments.nodes,
        **point,
    )
    return rows_response(result, call)


@router.post(
    "/queries/{name}/if-graph-commit",
    operation_id="cluster_invoke_query_if_graph_commit",
    response_model=ChangeOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def invoke_if_graph_commit(
    name: str,
    call: CurrentCall,
    request: Request,
    body: InvokeStoredQueryRequest | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
    if_commit: IfCommit = None,
) -> Response:
    """Call a stored mutation only if the head commit of the branch is the one in the header."""
    del if_commit  # declared for the API document; `read_if_commit` reads and checks it
    condition = read_if_commit(request)
    arguments = body or _EMPTY_BODY
    stored = _find_query(call, name, arguments)
    if not stored.is_mutation:
        raise InvalidRequestError("the graph-commit conditional route applies only to stored mutations")
    return json_response(_mutate(call, stored, arguments, idempotency_key, if_commit=condition))


def _find_query(call: GraphCall, name: str, arguments: InvokeStoredQueryRequest) -> StoredQuery:
    stored = call.served.queries.get(name)
    try:
        call.authorize(Action.INVOKE_QUERY)
    except Refusal:
        stored = None
    if stored is None:
        # The same message in both cases, so that a caller cannot find out which queries exist.
        raise Refusal(404, "stored query not found", code="not_found")
    if arguments.expect_mutation is not None and arguments.expect_mutation != stored.is_mutation:
        kind, verb = ("mutation", "mutate") if stored.is_mutation else ("read", "query")
        raise InvalidRequestError(f"'{name}' is a {kind} — use omnigraph {verb} {name}")
    return stored


def _mutate(
    call: GraphCall,
    stored: StoredQuery,
    arguments: InvokeStoredQueryRequest,
    idempotency_key: str | None,
    *,
    if_commit: str | None = None,
) -> dict[str, Any]:
    if arguments.snapshot is not None:
        raise InvalidRequestError("stored mutation cannot target a snapshot")
    return run_mutation(
        call,
        stored.text,
        arguments.params,
        name=stored.name,
        branch=arguments.branch,
        options=write_options(arguments, actor=call.actor, idempotency_key=idempotency_key, if_commit=if_commit),
    )
