"""The schema."""

from typing import Any

from fastapi import Response

from omnigraph.model.schema_change_document import plan_document
from omnigraph.model.schema_document import to_document
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.errors import Refusal
from omnigraph.server.requests import SchemaApplyRequest, write_options
from omnigraph.server.responses import ResolvedSchemaOutput, SchemaApplyOutput, SchemaOutput, SchemaPlanOutput
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routing import READING, WITH_BODY, WRITING, failing, graph_router
from omnigraph.server.states import State

router = graph_router("schema")


@router.get("/schema", operation_id="cluster_getSchema", response_model=SchemaOutput, responses=failing(*READING))
def schema(call: Served, branch: str | None = None) -> Response:
    """The accepted schema, as it was written."""
    call.reads(branch)
    return answered({"schema_source": call.graph.schema_text(branch="main" if branch is None else branch)})


@router.get(
    "/schema/resolved",
    operation_id="cluster_getResolvedSchema",
    response_model=ResolvedSchemaOutput,
    responses=failing(*READING),
)
def resolved(call: Served, state: State) -> Response:
    """The types there are, with their ids, as a document. Beyond the contract."""
    found = call.graph.snapshot(**call.reads_at(state))
    return answered({"schema": to_document(found.schema)})


@router.post(
    "/schema/plan",
    operation_id="cluster_planSchema",
    response_model=SchemaPlanOutput,
    responses=failing(*READING, *WITH_BODY),
)
def plan(body: SchemaApplyRequest, call: Served) -> Response:
    """What applying a schema would do; nothing is written. Beyond the contract."""
    where = "main" if body.branch is None else body.branch
    call.reads(where)
    planned = call.graph.schema_plan(
        body.schema_source, branch=where, allow_data_loss=body.allow_data_loss, validated=body.validated
    )
    steps: dict[str, Any] = plan_document(planned.steps)
    return answered({"uri": call.graph.uri, "step_count": len(planned.steps), **steps})


@router.post(
    "/schema/apply",
    operation_id="cluster_applySchema",
    response_model=SchemaApplyOutput,
    responses=failing(*WRITING),
)
def apply(body: SchemaApplyRequest, call: Served, idempotency_key: IdempotencyKey = None) -> Response:
    """Give a branch another schema, as one commit."""
    where = "main" if body.branch is None else body.branch
    options = write_options(body, actor=call.actor, idempotency_key=idempotency_key)
    with call.writing(Action.SCHEMA_APPLY, target_branch=where, options=options):
        if call.served.schema_is_managed:
            raise Refusal(
                409, "the schema of a graph of a cluster is changed with `omnigraph cluster apply`", code="conflict"
            )
        done = call.graph.schema_apply(
            body.schema_source,
            branch=where,
            allow_data_loss=body.allow_data_loss,
            validated=body.validated,
            write=options,
        )
    beyond = {"branch": done.branch, "graph_commit_id": done.commit}
    return answered({"uri": call.graph.uri, **done.to_dict(), **beyond})
