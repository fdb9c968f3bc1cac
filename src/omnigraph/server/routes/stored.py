"""Stored queries: called by name, their texts kept by the operator."""

from typing import Any

from fastapi import Request, Response

from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered, rows_answered
from omnigraph.server.call import Call, Served
from omnigraph.server.errors import Refusal
from omnigraph.server.history_responses import QueriesCatalogOutput
from omnigraph.server.requests import InvokeStoredQueryRequest, write_options
from omnigraph.server.responses import ChangeOutput, ReadOutput
from omnigraph.server.routes.mutations import (
    IdempotencyKey,
    IfCommit,
    condition_of,
    refuse_condition,
    run_mutation,
)
from omnigraph.server.routing import READING, WRITING, failing, graph_router
from omnigraph.server.states import StateParameters
from omnigraph.server.stored import StoredQuery

router = graph_router("queries")
_NOTHING = InvokeStoredQueryRequest(expect_mutation=None)


@router.get(
    "/queries",
    operation_id="cluster_list_queries",
    response_model=QueriesCatalogOutput,
    responses=failing(*READING),
)
def list_queries(call: Served) -> Response:
    """The stored queries there are."""
    call.reads("main")
    return answered({"queries": [each.to_dict() for each in call.served.queries.values()]})


@router.post(
    "/queries/{name}",
    operation_id="cluster_invoke_query",
    response_model=ReadOutput | ChangeOutput,
    responses=failing(*READING, *WRITING),
)
def invoke(
    name: str,
    call: Served,
    request: Request,
    body: InvokeStoredQueryRequest | None = None,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Call a stored query or mutation."""
    refuse_condition(request)
    said = body or _NOTHING
    stored = _stored(call, name, said)
    if stored.is_mutation:
        return answered(_mutated(call, stored, said, idempotency_key))
    where = call.reads_at(StateParameters(said.branch, said.snapshot))
    result = call.graph.query(stored.text, said.params, name=name, limits=call.query_limits, **where)
    return rows_answered(result, call)


@router.post(
    "/queries/{name}/if-graph-commit",
    operation_id="cluster_invoke_query_if_graph_commit",
    response_model=ChangeOutput,
    responses=failing(*WRITING),
)
def invoke_if_graph_commit(
    name: str,
    call: Served,
    request: Request,
    body: InvokeStoredQueryRequest | None = None,
    *,
    idempotency_key: IdempotencyKey = None,
    if_commit: IfCommit = None,
) -> Response:
    """Call a stored mutation only if the branch is still where the caller saw it."""
    del if_commit  # documented here; read with all its rules below
    condition = condition_of(request)
    said = body or _NOTHING
    stored = _stored(call, name, said)
    if not stored.is_mutation:
        raise InvalidRequestError("the graph-commit conditional route applies only to stored mutations")
    return answered(_mutated(call, stored, said, idempotency_key, if_commit=condition))


def _stored(call: Call, name: str, said: InvokeStoredQueryRequest) -> StoredQuery:
    stored = call.served.queries.get(name)
    try:
        call.authorize(Action.INVOKE_QUERY)
    except Refusal:
        stored = None
    if stored is None:
        # In the same words, so that nobody learns which there are by asking.
        raise Refusal(404, "stored query not found", code="not_found")
    if said.expect_mutation is not None and said.expect_mutation != stored.is_mutation:
        is_one, verb = ("mutation", "mutate") if stored.is_mutation else ("read", "query")
        raise InvalidRequestError(f"'{name}' is a {is_one} — use omnigraph {verb} {name}")
    return stored


def _mutated(
    call: Call,
    stored: StoredQuery,
    said: InvokeStoredQueryRequest,
    idempotency_key: str | None,
    *,
    if_commit: str | None = None,
) -> dict[str, Any]:
    if said.snapshot is not None:
        raise InvalidRequestError("stored mutation cannot target a snapshot")
    return run_mutation(
        call,
        stored.text,
        said.params,
        name=stored.name,
        branch=said.branch,
        options=write_options(said, actor=call.actor, idempotency_key=idempotency_key, if_commit=if_commit),
    )
