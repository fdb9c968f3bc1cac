"""Mutations."""

from typing import Annotated

from fastapi import Header, Request, Response

from omnigraph.errors import InvalidRequestError
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered
from omnigraph.server.call import Call, Served
from omnigraph.server.documents import commit_told
from omnigraph.server.requests import ChangeRequest, write_options
from omnigraph.server.responses import ChangeOutput
from omnigraph.server.routes.queries import superseded_by
from omnigraph.server.routing import WRITING, failing, graph_router
from omnigraph.transaction.options import WriteOptions

router = graph_router("mutations")
IF_COMMIT = "Omnigraph-If-Graph-Commit"
IdempotencyKey = Annotated[
    str | None, Header(description="The same key again does nothing more and answers with the first commit.")
]
IfCommit = Annotated[str | None, Header(alias=IF_COMMIT, description="Only if this is the head commit of the branch.")]


@router.post("/mutate", operation_id="cluster_mutate", response_model=ChangeOutput, responses=failing(*WRITING))
def mutate(body: ChangeRequest, call: Served, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Carry out a mutation: all its statements, as one commit, or nothing."""
    refuse_condition(request)
    return answered(_mutated(call, body, idempotency_key))


@router.post(
    "/change",
    operation_id="cluster_change",
    response_model=ChangeOutput,
    deprecated=True,
    responses=failing(*WRITING),
)
def change(body: ChangeRequest, call: Served, request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Carry out a mutation, by the name of old; see `mutate`."""
    refuse_condition(request)
    return answered(_mutated(call, body, idempotency_key), headers=superseded_by("mutate"))


@router.post(
    "/mutate/if-graph-commit",
    operation_id="cluster_mutate_if_graph_commit",
    response_model=ChangeOutput,
    responses=failing(*WRITING),
)
def mutate_if_graph_commit(
    body: ChangeRequest,
    call: Served,
    request: Request,
    idempotency_key: IdempotencyKey = None,
    if_commit: IfCommit = None,
) -> Response:
    """Carry out a mutation only if the branch is still where the caller saw it."""
    del if_commit  # documented here; read with all its rules below
    return answered(_mutated(call, body, idempotency_key, if_commit=condition_of(request)))


def _mutated(
    call: Call, body: ChangeRequest, idempotency_key: str | None, *, if_commit: str | None = None
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
    call: Call,
    text: str,
    params: dict[str, object] | None,
    *,
    name: str | None,
    branch: str | None,
    options: WriteOptions,
) -> dict[str, object]:
    """Carry out a mutation as the caller, and tell what came of it."""
    where = "main" if branch is None else branch
    with call.writing(Action.CHANGE, branch=where, options=options):
        done = call.graph.mutate(text, params, name=name, branch=where, write=options)
        call.ran(done.attempts)
        commit = None if done.entry is None else commit_told(done.entry)
    return {
        "branch": done.branch,
        "query_name": done.query_name,
        "affected_nodes": done.affected_nodes,
        "affected_edges": done.affected_edges,
        "actor_id": call.actor,
        "commit": commit,
        "head": done.head,
        "replayed": done.replayed,
        "attempts": done.attempts,
        "warnings": list(done.warnings),
    }


def condition_of(request: Request) -> str:
    """The commit that a conditional request names.

    Raises:
        InvalidRequestError: it names none, or not in the way it should.
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


def refuse_condition(request: Request) -> None:
    """Refuse a condition where it would be passed over.

    Raises:
        InvalidRequestError: there is one.
    """
    if IF_COMMIT in request.headers:
        raise InvalidRequestError(f"{IF_COMMIT} applies only to the conditional mutation routes")
