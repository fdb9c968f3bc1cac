"""Mutations, and the headers that writes take."""

from typing import Annotated

from fastapi import Header, Request, Response

from omnigraph.api.documents import full_commit_document
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.request_models import ChangeRequest, write_options
from omnigraph.server.response_models import ChangeOutput
from omnigraph.server.responses import json_response
from omnigraph.server.routes.queries import deprecation_headers
from omnigraph.server.routing import WRITE_ERRORS, error_responses, graph_router
from omnigraph.transaction.options import WriteOptions

router = graph_router("mutations")
IF_COMMIT = "Omnigraph-If-Graph-Commit"
IdempotencyKey = Annotated[
    str | None, Header(description="A repeated key returns the first commit and writes nothing.")
]
IfCommit = Annotated[
    str | None, Header(alias=IF_COMMIT, description="Write only if this is the head commit of the branch.")
]


@router.post(
    "/mutate", operation_id="cluster_mutate", response_model=ChangeOutput, responses=error_responses(*WRITE_ERRORS)
)
def mutate(
    body: ChangeRequest, call: CurrentCall, request: Request, idempotency_key: IdempotencyKey = None
) -> Response:
    """Run a mutation: all its statements as one commit, or none."""
    refuse_if_commit(request)
    return json_response(_mutate(call, body, idempotency_key))


@router.post(
    "/change",
    operation_id="cluster_change",
    response_model=ChangeOutput,
    deprecated=True,
    responses=error_responses(*WRITE_ERRORS),
)
def change(
    body: ChangeRequest, call: CurrentCall, request: Request, idempotency_key: IdempotencyKey = None
) -> Response:
    """Run a mutation, deprecated; see `mutate`."""
    refuse_if_commit(request)
    return json_response(_mutate(call, body, idempotency_key), headers=deprecation_headers("mutate"))


@router.post(
    "/mutate/if-graph-commit",
    operation_id="cluster_mutate_if_graph_commit",
    response_model=ChangeOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def mutate_if_graph_commit(
    body: ChangeRequest,
    call: CurrentCall,
    request: Request,
    idempotency_key: IdempotencyKey = None,
    if_commit: IfCommit = None,
) -> Response:
    """Run a mutation only if the head commit of the branch is the one in the header."""
    del if_commit  # declared for the API document; `read_if_commit` reads and checks it
    return json_response(_mutate(call, body, idempotency_key, if_commit=read_if_commit(request)))


def _mutate(
    call: GraphCall, body: ChangeRequest, idempotency_key: str | None, *, if_commit: str | None = None
) -> dict[str, object]:
    text = body.query if body.query is not None else body.query_source
    if text is None:
        raise InvalidRequestError("invalid request: query: Field required")
    if body.query is not None and body.query_source is not None:
        raise InvalidRequestError("invalid request: duplicate field `query`")
    return run_mutation(
        call,
        text,
        body.params,
        name=body.name if body.name is not None else body.query_name,
        branch=body.branch,
        options=write_options(body, actor=call.actor, idempotency_key=idempotency_key, if_commit=if_commit),
    )


def run_mutation(
    call: GraphCall,
    text: str,
    params: dict[str, object] | None,
    *,
    name: str | None,
    branch: str | None,
    options: WriteOptions,
) -> dict[str, object]:
    """Run a mutation as the caller; return the document of its result."""
    branch = "main" if branch is None else branch
    with call.admit_write(Action.CHANGE, branch=branch, options=options):
        result = call.graph.mutate(text, params, name=name, branch=branch, write=options)
        call.count_retries(result.attempts)
        commit = None if result.entry is None else full_commit_document(result.entry)
    return {
        "branch": result.branch,
        "query_name": result.query_name,
        "affected_nodes": result.affected_nodes,
        "affected_edges": result.affected_edges,
        "actor_id": call.actor,
        "commit": commit,
        "head": result.head,
        "replayed": result.replayed,
        "attempts": result.attempts,
        "warnings": list(result.warnings),
    }


def read_if_commit(request: Request) -> str:
    """Return the commit in the header of a conditional request.

    Raises:
        InvalidRequestError: the header is missing or malformed.
    """
    values = request.headers.getlist(IF_COMMIT)
    if not values:
        raise InvalidRequestError(f"{IF_COMMIT} is required on this conditional mutation route")
    if len(values) > 1:
        raise InvalidRequestError(f"{IF_COMMIT} must be sent exactly once")
    try:
        value = values[0].encode("latin-1").decode().strip()
    except UnicodeDecodeError:
        raise InvalidRequestError(f"{IF_COMMIT} is not valid UTF-8") from None
    if not value:
        raise InvalidRequestError(f"{IF_COMMIT} must name a graph commit id")
    if any(character in value for character in '*",') or value.startswith("W/"):
        raise InvalidRequestError(f"{IF_COMMIT} must contain one raw graph commit id, not entity-tag syntax")
    return value


def refuse_if_commit(request: Request) -> None:
    """Refuse the condition on routes that would ignore it.

    Raises:
        InvalidRequestError: the header is present.
    """
    if IF_COMMIT in request.headers:
        raise InvalidRequestError(f"{IF_COMMIT} applies only to the conditional mutation routes")
