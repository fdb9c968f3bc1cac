"""Schemas."""

from typing import Any

from fastapi import Response

from omnigraph.model.schema_change_document import dump_plan
from omnigraph.model.schema_document import to_document
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall
from omnigraph.server.point_params import PointQuery
from omnigraph.server.request_models import SchemaApplyRequest, write_options
from omnigraph.server.response_models import ResolvedSchemaOutput, SchemaApplyOutput, SchemaOutput, SchemaPlanOutput
from omnigraph.server.responses import json_response
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routing import BODY_ERRORS, READ_ERRORS, WRITE_ERRORS, error_responses, graph_router

router = graph_router("schema")


@router.get(
    "/schema", operation_id="cluster_getSchema", response_model=SchemaOutput, responses=error_responses(*READ_ERRORS)
)
def schema(call: CurrentCall, branch: str | None = None) -> Response:
    """Return the accepted schema source."""
    call.authorize_read(branch)
    return json_response({"schema_source": call.graph.schema_text(branch="main" if branch is None else branch)})


@router.get(
    "/schema/resolved",
    operation_id="cluster_getResolvedSchema",
    response_model=ResolvedSchemaOutput,
    responses=error_responses(*READ_ERRORS),
)
def resolved(call: CurrentCall, point: PointQuery) -> Response:
    """Return the types with their ids as a document. Beyond the contract."""
    snapshot = call.graph.snapshot(**call.authorize_read_at(point))
    return json_response({"schema": to_document(snapshot.schema)})


@router.post(
    "/schema/plan",
    operation_id="cluster_planSchema",
    response_model=SchemaPlanOutput,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def plan(body: SchemaApplyRequest, call: CurrentCall) -> Response:
    """Plan the application of a schema; writes nothing. Beyond the contract."""
    branch = "main" if body.branch is None else body.branch
    call.authorize_read(branch)
    planned = call.graph.schema_plan(
        body.schema_source, branch=branch, allow_data_loss=body.allow_data_loss, validated=body.validated
    )
    steps: dict[str, Any] = dump_plan(planned.steps)
    return json_response({"uri": call.graph.uri, "step_count": len(planned.steps), **steps})


@router.post(
    "/schema/apply",
    operation_id="cluster_applySchema",
    response_model=SchemaApplyOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def apply(body: SchemaApplyRequest, call: CurrentCall, idempotency_key: IdempotencyKey = None) -> Response:
    """Apply a schema to a branch, as one commit."""
    branch = "main" if body.branch is None else body.branch
    options = write_options(body, actor=call.actor, idempotency_key=idempotency_key)
    with call.admit_write(Action.SCHEMA_APPLY, target_branch=branch, options=options):
        if call.served.schema_is_managed:
            raise Refusal(
                409, "the schema of a graph of a cluster is changed with `omnigraph cluster apply`", code="conflict"
            )
        result = call.graph.schema_apply(
            body.schema_source,
            branch=branch,
            allow_data_loss=body.allow_data_loss,
            validated=body.validated,
            write=options,
        )
    extra = {"branch": result.branch, "graph_commit_id": result.commit}
    return json_response({"uri": call.graph.uri, **result.to_dict(), **extra})
