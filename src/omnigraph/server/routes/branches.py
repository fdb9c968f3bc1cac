"""Branches."""

from dataclasses import asdict
from typing import Any

from fastapi import Response

from omnigraph.api.documents import full_commit_document, merge_conflict_document
from omnigraph.api.results import MergeResult
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.request_models import BranchCreateRequest, BranchMergeRequest, write_options
from omnigraph.server.response_models import BranchCreateOutput, BranchDeleteOutput, BranchListOutput, BranchMergeOutput
from omnigraph.server.responses import json_response
from omnigraph.server.routing import READ_ERRORS, WRITE_ERRORS, error_responses, graph_router

router = graph_router("branches")


@router.get(
    "/branches",
    operation_id="cluster_listBranches",
    response_model=BranchListOutput,
    responses=error_responses(*READ_ERRORS),
)
def list_branches(call: CurrentCall) -> Response:
    """List the branches in order."""
    call.authorize_read()
    return json_response({"branches": list(call.graph.branches)})


@router.post(
    "/branches",
    operation_id="cluster_createBranch",
    response_model=BranchCreateOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def create(body: BranchCreateRequest, call: CurrentCall) -> Response:
    """Create a branch from the head of another, or from any earlier commit."""
    # The branch of a start commit or tag is not looked up here, so that a refusal reveals nothing about it.
    start = (body.from_ or "main") if body.commit is None and body.tag is None else None
    with call.admit_write(Action.BRANCH_CREATE, branch=start, target_branch=body.name):
        commit = call.graph.branches.create(
            body.name,
            source=body.from_,
            commit=body.commit,
            number=body.number,
            tag=body.tag,
            at=body.at,
            actor=call.actor,
        )
    return json_response(
        {
            "uri": call.graph.uri,
            "from": body.from_ or body.commit or body.tag or "main",
            "name": body.name.strip(),
            "actor_id": call.actor,
            "graph_commit_id": commit,
        }
    )


@router.delete(
    "/branches/{branch:path}",
    operation_id="cluster_deleteBranch",
    response_model=BranchDeleteOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def delete(branch: str, call: CurrentCall, if_commit: str | None = None) -> Response:
    """Delete a branch; branches created from it stay. With `if_commit`, only if that is its head commit."""
    with call.admit_write(Action.BRANCH_DELETE, target_branch=branch):
        call.graph.branches.delete(branch, actor=call.actor, if_commit=if_commit)
    return json_response({"uri": call.graph.uri, "name": branch.strip(), "actor_id": call.actor})


@router.post(
    "/branches/merge",
    operation_id="cluster_mergeBranches",
    response_model=BranchMergeOutput,
    response_model_exclude_unset=True,
    responses=error_responses(*WRITE_ERRORS),
)
def merge(body: BranchMergeRequest, call: CurrentCall) -> Response:
    """Merge one branch into another, as one commit."""
    target = "main" if body.target is None else body.target
    if body.preview:
        call.authorize_read(body.source)
        call.authorize_read(target)
        return json_response(_merge(call, body, target, delete=False))
    options = write_options(body, actor=call.actor)
    with call.admit_write(Action.BRANCH_MERGE, branch=body.source, target_branch=target, options=options):
        refused = _check_delete(call, body)
        document = _merge(call, body, target, delete=body.delete_branch and refused is None)
    if refused is not None:
        document |= {"branch_deleted": False, "branch_delete_error": refused}
    return json_response(document)


def _check_delete(call: GraphCall, body: BranchMergeRequest) -> str | None:
    """Return why the source may not be deleted, or None; the merge does not depend on it."""
    if not body.delete_branch:
        return None
    try:
        call.authorize(Action.BRANCH_DELETE, target_branch=body.source)
    except Refusal as refused:
        return refused.message
    return None


def _merge(call: GraphCall, body: BranchMergeRequest, target: str, *, delete: bool) -> dict[str, Any]:
    result = call.graph.merge(
        body.source,
        into=target,
        by=body.by,
        prefer=body.prefer,
        resolutions=body.resolve,
        base=body.base,
        preview=body.preview,
        delete_branch=delete,
        if_source_commit=body.if_source_commit,
        write=write_options(body, actor=call.actor),
    )
    document: dict[str, Any] = {
        "source": result.source,
        "target": result.into,
        "outcome": result.outcome,
        "actor_id": call.actor,
    }
    if delete:
        document["branch_deleted"] = result.branch_deleted
        if result.branch_delete_error is not None:
            document["branch_delete_error"] = result.branch_delete_error
    return document | _extra_fields(call, result)


def _extra_fields(call: GraphCall, result: MergeResult) -> dict[str, Any]:
    """Return the fields beyond the contract."""
    call.count_retries(result.attempts)
    commit = None if result.commit is None else full_commit_document(call.graph.snapshot(commit=result.commit).record)
    document: dict[str, Any] = {
        "commit": commit,
        "base": result.base,
        "source_commit": result.source_commit,
        "head": result.head,
        "changes": {key: asdict(counts) for key, counts in result.changes.items()},
        "resolved": result.resolved,
        "schema_steps": [step.to_dict() for step in result.schema_steps],
        "attempts": result.attempts,
        "warnings": list(result.warnings),
    }
    if result.is_preview:
        conflicts = [merge_conflict_document(conflict, values=True) for conflict in result.conflicts]
        document |= {"preview": True, "conflicts": conflicts}
    return document
