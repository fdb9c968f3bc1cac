"""Branches."""

from dataclasses import asdict
from typing import Any

from fastapi import Response

from omnigraph.api.documents import merge_conflict_document
from omnigraph.api.results import MergeResult
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered
from omnigraph.server.call import Call, Served
from omnigraph.server.documents import commit_told
from omnigraph.server.errors import Refusal
from omnigraph.server.requests import BranchCreateRequest, BranchMergeRequest, write_options
from omnigraph.server.responses import BranchCreateOutput, BranchDeleteOutput, BranchListOutput, BranchMergeOutput
from omnigraph.server.routing import READING, WRITING, failing, graph_router

router = graph_router("branches")


@router.get(
    "/branches",
    operation_id="cluster_listBranches",
    response_model=BranchListOutput,
    responses=failing(*READING),
)
def list_branches(call: Served) -> Response:
    """The branches, in order."""
    call.reads()
    return answered({"branches": list(call.graph.branches)})


@router.post(
    "/branches",
    operation_id="cluster_createBranch",
    response_model=BranchCreateOutput,
    responses=failing(*WRITING),
)
def create(body: BranchCreateRequest, call: Served) -> Response:
    """Make a branch from the head of another, or from any earlier state."""
    # Whether one may depends on the new branch alone: whose commit it starts from is looked up only for those who may.
    start = (body.from_ or "main") if body.commit is None and body.tag is None else None
    with call.writing(Action.BRANCH_CREATE, branch=start, target_branch=body.name):
        commit = call.graph.branches.create(
            body.name,
            source=body.from_,
            commit=body.commit,
            number=body.number,
            tag=body.tag,
            at=body.at,
            actor=call.actor,
        )
    return answered(
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
    responses=failing(*WRITING),
)
def delete(branch: str, call: Served, if_commit: str | None = None) -> Response:
    """Delete a branch; those made from it live on. With `if_commit`, only if that is its head commit."""
    with call.writing(Action.BRANCH_DELETE, target_branch=branch):
        call.graph.branches.delete(branch, actor=call.actor, if_commit=if_commit)
    return answered({"uri": call.graph.uri, "name": branch.strip(), "actor_id": call.actor})


@router.post(
    "/branches/merge",
    operation_id="cluster_mergeBranches",
    response_model=BranchMergeOutput,
    response_model_exclude_unset=True,
    responses=failing(*WRITING),
)
def merge(body: BranchMergeRequest, call: Served) -> Response:
    """Bring what one branch did into another, as one commit."""
    target = "main" if body.target is None else body.target
    if body.preview:
        call.reads(body.source)
        call.reads(target)
        return answered(_merged(call, body, target, delete=False))
    options = write_options(body, actor=call.actor)
    with call.writing(Action.BRANCH_MERGE, branch=body.source, target_branch=target, options=options):
        refused = _refused_delete(call, body)
        document = _merged(call, body, target, delete=body.delete_branch and refused is None)
    if refused is not None:
        document |= {"branch_deleted": False, "branch_delete_error": refused}
    return answered(document)


def _refused_delete(call: Call, body: BranchMergeRequest) -> str | None:
    """Why the source may not be deleted; the merge stands all the same."""
    if not body.delete_branch:
        return None
    try:
        call.authorize(Action.BRANCH_DELETE, target_branch=body.source)
    except Refusal as refused:
        return refused.message
    return None


def _merged(call: Call, body: BranchMergeRequest, target: str, *, delete: bool) -> dict[str, Any]:
    done = call.graph.merge(
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
        "source": done.source,
        "target": done.into,
        "outcome": done.outcome,
        "actor_id": call.actor,
    }
    if delete:
        document["branch_deleted"] = done.branch_deleted
        if done.branch_delete_error is not None:
            document["branch_delete_error"] = done.branch_delete_error
    return document | _beyond(call, done)


def _beyond(call: Call, done: MergeResult) -> dict[str, Any]:
    """What the contract does not ask for."""
    call.ran(done.attempts)
    commit = None if done.commit is None else commit_told(call.graph.snapshot(commit=done.commit).record)
    document: dict[str, Any] = {
        "commit": commit,
        "base": done.base,
        "source_commit": done.source_commit,
        "head": done.head,
        "changes": {key: asdict(counts) for key, counts in done.changes.items()},
        "resolved": done.resolved,
        "schema_steps": [step.to_dict() for step in done.schema_steps],
        "attempts": done.attempts,
        "warnings": list(done.warnings),
    }
    if done.is_preview:
        conflicts = [merge_conflict_document(each, values=True) for each in done.conflicts]
        document |= {"preview": True, "conflicts": conflicts}
    return document
