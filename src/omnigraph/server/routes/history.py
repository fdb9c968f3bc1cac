"""Diff, history, revert, entity log, blame, neighbourhood, counts and tags. All beyond the contract."""

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Response

from omnigraph import limits
from omnigraph.api.commit import Commit
from omnigraph.api.documents import full_commit_document
from omnigraph.branch.history_values import Tag
from omnigraph.policy.rules import Action
from omnigraph.server.graph_call import CurrentCall
from omnigraph.server.history_models import (
    BlameOutput,
    CountOutput,
    DiffOutput,
    EntityLogOutput,
    HistoryOutput,
    NeighbourhoodOutput,
    RevertOutput,
    TagListOutput,
    TagOutput,
)
from omnigraph.server.point_params import PointQuery
from omnigraph.server.request_models import RevertRequest, TagCreateRequest, write_options
from omnigraph.server.responses import json_response
from omnigraph.server.routes.commits import Kinds, Limit, Ops, Types
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routing import READ_ERRORS, WRITE_ERRORS, error_responses, graph_router

router = graph_router("history")
tags_router = graph_router("tags")
TypeName = Annotated[str, Query(alias="type", description="A node type, else an edge type; or a type key.")]
EntityId = Annotated[str, Query(description="Id of the entity.")]


@router.get(
    "/diff", operation_id="cluster_diff", response_model=DiffOutput, responses=error_responses(*READ_ERRORS, 409)
)
def get_diff(
    call: CurrentCall,
    *,
    older: Annotated[
        str, Query(alias="from", description="A branch, a tag or a commit; or BRANCH@TIME, BRANCH@NUMBER.")
    ],
    newer: Annotated[str, Query(alias="to", description="The newer side, in the same forms.")],
    merge_base: Annotated[
        bool, Query(description="Compare with the merge base: only what `to` changed since then.")
    ] = False,
    stat: Annotated[bool, Query(description="Only change counts.")] = False,
    limit: Annotated[int, Query(ge=1, le=limits.CHANGE_PAGE_CHANGES_MAX)] = limits.CHANGE_PAGE_CHANGES,
    offset: Annotated[int, Query(ge=0, description="Skip this many changes.")] = 0,
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
) -> Response:
    """Compare any two points in time. Beyond the contract."""
    for point in (older, newer):
        call.authorize_read_of_point(point)
    diff = call.graph.diff(
        older, newer, kinds=kind or (), types=type or (), ops=op or (), merge_base=merge_base, engine="local"
    )
    # An actor who may read both branches may read their common ancestor, on any branch.
    for entry in (diff.newer,) if merge_base else (diff.older, diff.newer):
        call.authorize_read(entry.branch)
    # Read the changes before the counts: in the other order they would be read twice.
    changes = [] if stat else [change.to_dict() for change in islice(diff, offset, offset + limit)]
    stats = {key: asdict(counts) for key, counts in diff.stats.items()}
    document: dict[str, Any] = {"from_commit_id": diff.from_commit, "to_commit_id": diff.to_commit, "stats": stats}
    if not stat:
        document["changes"] = changes
        document["is_cut"] = offset + limit < sum(sum(counts.values()) for counts in stats.values())
    return json_response(document)


@router.get(
    "/history", operation_id="cluster_getHistory", response_model=HistoryOutput, responses=error_responses(*READ_ERRORS)
)
def history(
    call: CurrentCall,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Number of commits of each branch.")] = 50,
    branch: Annotated[list[str] | None, Query(description="Only these branches; repeatable.")] = None,
) -> Response:
    """Return the newest commits of every branch with their parents, branch heads and tags. Beyond the contract."""
    call.authorize_read()
    names = list(call.graph.branches) if branch is None else branch
    commits: dict[str, Commit] = {}
    heads = {}
    for name in names:
        call.authorize_read(name)
        page = call.graph.commits.list(name, limit=limit)
        heads[name] = page[0].id if page else None
        commits |= {commit.id: commit for commit in page}
    tags = {name: call.graph.tags.read(name).commit for name in call.graph.tags}
    ordered = sorted(commits.values(), key=lambda commit: (commit.created_at_us, commit.id), reverse=True)
    documents = [full_commit_document(commit.record) for commit in ordered]
    return json_response({"branches": heads, "tags": tags, "commits": documents})


@router.post(
    "/revert", operation_id="cluster_revert", response_model=RevertOutput, responses=error_responses(*WRITE_ERRORS)
)
def revert(body: RevertRequest, call: CurrentCall, idempotency_key: IdempotencyKey = None) -> Response:
    """Revert a commit or a range of commits, as a new commit. Beyond the contract."""
    branch = "main" if body.branch is None else body.branch
    options = write_options(body, actor=call.actor, idempotency_key=idempotency_key)
    with call.admit_write(Action.CHANGE, branch=branch, options=options):
        # Reverting a deletion writes the deleted rows again: the actor must be allowed to read them.
        for commit_id in filter(None, (body.commit, body.last)):
            call.authorize_read_of_commit(commit_id, authorized_branch=branch)
        reverted = body.commit if body.last is None else (body.commit, body.last)
        result = call.graph.revert(reverted, branch=branch, write=options)
        call.count_retries(result.attempts)
        commit = (
            None if result.commit is None else full_commit_document(call.graph.snapshot(commit=result.commit).record)
        )
    changes = {
        key: {"inserted": counts.inserted, "updated": counts.updated, "deleted": counts.deleted}
        for key, counts in result.changes.items()
    }
    return json_response(
        {
            "branch": result.branch,
            "first": result.first,
            "last": result.last,
            "actor_id": call.actor,
            "commit": commit,
            "head": result.head,
            "changes": changes,
            "replayed": result.replayed,
            "attempts": result.attempts,
            "warnings": list(result.warnings),
        }
    )


@router.get(
    "/neighbourhood",
    operation_id="cluster_getNeighbourhood",
    tags=["queries"],
    response_model=NeighbourhoodOutput,
    responses=error_responses(*READ_ERRORS),
)
def neighbourhood(
    call: CurrentCall,
    *,
    type_name: TypeName,
    id: EntityId,
    edge: Annotated[list[str] | None, Query(description="Only edges of these types; repeatable.")] = None,
    depth: int = 1,
    limit: Limit = None,
    vectors: bool = False,
    point: PointQuery,
) -> Response:
    """Return the neighbourhood of a node. Beyond the contract."""
    arguments = call.authorize_read_at(point)
    nodes_max = limits.NEIGHBOURHOOD_NODES if limit is None else limit
    result = call.graph.neighbourhood(
        type_name, id, edges=edge or (), depth=depth, limit=nodes_max, vectors=vectors, **arguments
    )
    return json_response(result.to_dict())


@router.get(
    "/count",
    operation_id="cluster_count",
    tags=["queries"],
    response_model=CountOutput,
    responses=error_responses(*READ_ERRORS),
)
def count(call: CurrentCall, *, type_name: TypeName, point: PointQuery) -> Response:
    """Count the entities of a type. Beyond the contract."""
    entities = call.graph.count(type_name, **call.authorize_read_at(point))
    return json_response({"type": type_name, "count": entities})


@router.get(
    "/entity/log",
    operation_id="cluster_getEntityLog",
    response_model=EntityLogOutput,
    responses=error_responses(*READ_ERRORS, 409),
)
def entity_log(
    call: CurrentCall, *, type_name: TypeName, id: EntityId, branch: str = "main", limit: Limit = None
) -> Response:
    """List the changes of one entity, newest first. Beyond the contract."""
    call.authorize_read(branch)
    events = call.graph.log_of(type_name, id, branch=branch, limit=limit)
    documents = []
    for event in events:
        images = {"before": event.before, "after": event.after}
        documents.append(
            {
                "commit": full_commit_document(event.entry),
                "op": event.op.value,
                "changed": list(event.changed),
                **{name: image.to_dict() for name, image in images.items() if image is not None},
            }
        )
    return json_response({"events": documents})


@router.get(
    "/entity/blame",
    operation_id="cluster_getEntityBlame",
    response_model=BlameOutput,
    responses=error_responses(*READ_ERRORS, 409),
)
def blame(call: CurrentCall, *, type_name: TypeName, id: EntityId, branch: str = "main") -> Response:
    """Return the commit that last set each property of an entity. Beyond the contract."""
    call.authorize_read(branch)
    found = call.graph.blame(type_name, id, branch=branch)
    return json_response(
        {
            "entity_id": found.entity_id,
            "properties": {name: full_commit_document(record) for name, record in found.properties.items()},
            "created": None if found.created is None else full_commit_document(found.created),
            "last": None if found.last is None else full_commit_document(found.last),
            "pruned": list(found.pruned),
        }
    )


@tags_router.get(
    "/tags", operation_id="cluster_listTags", response_model=TagListOutput, responses=error_responses(*READ_ERRORS)
)
def list_tags(call: CurrentCall) -> Response:
    """List the tags by name. Beyond the contract."""
    call.authorize_read()
    return json_response({"tags": [_tag_document(call.graph.tags.read(name)) for name in call.graph.tags]})


@tags_router.post(
    "/tags", operation_id="cluster_createTag", response_model=TagOutput, responses=error_responses(*WRITE_ERRORS)
)
def create_tag(body: TagCreateRequest, call: CurrentCall) -> Response:
    """Create a tag of a commit. Beyond the contract."""
    call.authorize_on(Action.CHANGE, branch=body.branch, commit=body.commit)
    with call.admit():
        tag = call.graph.tags.create(
            body.name, branch=body.branch, commit=body.commit, number=body.number, at=body.at, actor=call.actor
        )
    return json_response(_tag_document(tag))


@tags_router.get(
    "/tags/{tag:path}", operation_id="cluster_getTag", response_model=TagOutput, responses=error_responses(*READ_ERRORS)
)
def get_tag(tag: str, call: CurrentCall) -> Response:
    """Return a tag. Beyond the contract."""
    call.authorize_read()
    return json_response(_tag_document(call.graph.tags.read(tag)))


@tags_router.delete(
    "/tags/{tag:path}",
    operation_id="cluster_deleteTag",
    response_model=TagOutput,
    responses=error_responses(*WRITE_ERRORS),
)
def delete_tag(tag: str, call: CurrentCall) -> Response:
    """Delete a tag; the commit stays. Beyond the contract."""
    call.authorize_on(Action.CHANGE, tag=tag)
    with call.admit():
        found = call.graph.tags.read(tag)
        call.graph.tags.delete(tag)
    return json_response(_tag_document(found))


def _tag_document(tag: Tag) -> dict[str, Any]:
    return {
        "name": tag.name,
        "graph_commit_id": tag.commit,
        "graph_branch": tag.branch,
        "graph_manifest_version": tag.number,
        "actor_id": tag.actor,
        "created_at": tag.created_at_us,
    }
