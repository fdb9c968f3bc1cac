"""What goes beyond the contract: the lines of a graph's history, and looking around in it."""

from dataclasses import asdict
from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Response

from omnigraph import limits
from omnigraph.api.commit import Commit
from omnigraph.branch.told import Tag
from omnigraph.policy.rules import Action
from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.documents import commit_told
from omnigraph.server.history_responses import (
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
from omnigraph.server.requests import RevertRequest, TagCreateRequest, write_options
from omnigraph.server.routes.commits import Kinds, Limit, Ops, Types
from omnigraph.server.routes.mutations import IdempotencyKey
from omnigraph.server.routing import READING, WRITING, failing, graph_router
from omnigraph.server.states import State

router = graph_router("history")
tags_router = graph_router("tags")
TypeName = Annotated[str, Query(alias="type", description="A node type, else an edge type; or a type key.")]
EntityId = Annotated[str, Query(description="Which entity.")]


@router.get("/diff", operation_id="cluster_diff", response_model=DiffOutput, responses=failing(*READING, 409))
def diff(
    call: Served,
    *,
    older: Annotated[
        str, Query(alias="from", description="A branch, a tag or a commit; or BRANCH@TIME, BRANCH@NUMBER.")
    ],
    newer: Annotated[str, Query(alias="to", description="Another.")],
    merge_base: Annotated[
        bool, Query(description="Compare with the commit where both parted: what `to` did since, and nothing else.")
    ] = False,
    stat: Annotated[bool, Query(description="Only how much differs.")] = False,
    limit: Annotated[int, Query(ge=1, le=limits.CHANGE_PAGE_CHANGES_MAX)] = limits.CHANGE_PAGE_CHANGES,
    offset: Annotated[int, Query(ge=0, description="Leave out so many changes at the beginning.")] = 0,
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
) -> Response:
    """What lies between any two states. Beyond the contract."""
    for state in (older, newer):
        call.reads_state(state)
    found = call.graph.diff(
        older, newer, kinds=kind or (), types=type or (), ops=op or (), merge_base=merge_base, engine="local"
    )
    # Who may read both branches may read what both descend from, whichever log its entry is in.
    for entry in (found.newer,) if merge_base else (found.older, found.newer):
        call.reads(entry.branch)
    # The changes first: whoever has read them can count them, and the other way they would be read twice.
    changes = [] if stat else [each.to_dict() for each in islice(found, offset, offset + limit)]
    stats = {key: asdict(counts) for key, counts in found.stats.items()}
    document: dict[str, Any] = {"from_commit_id": found.from_commit, "to_commit_id": found.to_commit, "stats": stats}
    if not stat:
        document["changes"] = changes
        document["is_cut"] = offset + limit < sum(sum(counts.values()) for counts in stats.values())
    return answered(document)


@router.get("/history", operation_id="cluster_getHistory", response_model=HistoryOutput, responses=failing(*READING))
def history(
    call: Served,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Commits of each branch.")] = 50,
    branch: Annotated[list[str] | None, Query(description="Only these branches; repeatable.")] = None,
) -> Response:
    """The newest commits of every branch with their parents, and where branches and tags point. Beyond the contract."""
    call.reads()
    names = list(call.graph.branches) if branch is None else branch
    commits: dict[str, Commit] = {}
    heads = {}
    for name in names:
        call.reads(name)
        page = call.graph.commits.list(name, limit=limit)
        heads[name] = page[0].id if page else None
        commits |= {each.id: each for each in page}
    tags = {name: call.graph.tags.read(name).commit for name in call.graph.tags}
    ordered = sorted(commits.values(), key=lambda each: (each.created_at_us, each.id), reverse=True)
    told = [commit_told(each.record) for each in ordered]
    return answered({"branches": heads, "tags": tags, "commits": told})


@router.post("/revert", operation_id="cluster_revert", response_model=RevertOutput, responses=failing(*WRITING))
def revert(body: RevertRequest, call: Served, idempotency_key: IdempotencyKey = None) -> Response:
    """Undo what a commit, or a range of commits, did, as a new commit. Beyond the contract."""
    where = "main" if body.branch is None else body.branch
    options = write_options(body, actor=call.actor, idempotency_key=idempotency_key)
    with call.writing(Action.CHANGE, branch=where, options=options):
        # Undoing a deletion writes what was deleted: rows of a commit elsewhere are for those who may read it there.
        for undone in filter(None, (body.commit, body.last)):
            call.reads_commit(undone, on=where)
        reverted = body.commit if body.last is None else (body.commit, body.last)
        done = call.graph.revert(reverted, branch=where, write=options)
        call.ran(done.attempts)
        commit = None if done.commit is None else commit_told(call.graph.snapshot(commit=done.commit).record)
    changes = {
        key: {"inserted": each.inserted, "updated": each.updated, "deleted": each.deleted}
        for key, each in done.changes.items()
    }
    return answered(
        {
            "branch": done.branch,
            "first": done.first,
            "last": done.last,
            "actor_id": call.actor,
            "commit": commit,
            "head": done.head,
            "changes": changes,
            "replayed": done.replayed,
            "attempts": done.attempts,
            "warnings": list(done.warnings),
        }
    )


@router.get(
    "/neighbourhood",
    operation_id="cluster_getNeighbourhood",
    tags=["queries"],
    response_model=NeighbourhoodOutput,
    responses=failing(*READING),
)
def neighbourhood(
    call: Served,
    *,
    type_name: TypeName,
    id: EntityId,
    edge: Annotated[list[str] | None, Query(description="Only edges of these types; repeatable.")] = None,
    depth: int = 1,
    limit: Limit = None,
    state: State,
) -> Response:
    """What surrounds a node. Beyond the contract."""
    where = call.reads_at(state)
    most = limits.NEIGHBOURHOOD_NODES if limit is None else limit
    found = call.graph.neighbourhood(type_name, id, edges=edge or (), depth=depth, limit=most, **where)
    return answered(found.to_dict())


@router.get(
    "/count",
    operation_id="cluster_count",
    tags=["queries"],
    response_model=CountOutput,
    responses=failing(*READING),
)
def count(call: Served, *, type_name: TypeName, state: State) -> Response:
    """How many nodes or edges of a type there are. Beyond the contract."""
    found = call.graph.count(type_name, **call.reads_at(state))
    return answered({"type": type_name, "count": found})


@router.get(
    "/entity/log",
    operation_id="cluster_getEntityLog",
    response_model=EntityLogOutput,
    responses=failing(*READING, 409),
)
def entity_log(
    call: Served, *, type_name: TypeName, id: EntityId, branch: str = "main", limit: Limit = None
) -> Response:
    """What happened to one entity, newest first. Beyond the contract."""
    call.reads(branch)
    events = call.graph.log_of(type_name, id, branch=branch, limit=limit)
    told = []
    for each in events:
        images = {"before": each.before, "after": each.after}
        told.append(
            {
                "commit": commit_told(each.entry),
                "op": each.op.value,
                "changed": list(each.changed),
                **{name: image.to_dict() for name, image in images.items() if image is not None},
            }
        )
    return answered({"events": told})


@router.get(
    "/entity/blame",
    operation_id="cluster_getEntityBlame",
    response_model=BlameOutput,
    responses=failing(*READING, 409),
)
def blame(call: Served, *, type_name: TypeName, id: EntityId, branch: str = "main") -> Response:
    """Which commit last set each property of an entity. Beyond the contract."""
    call.reads(branch)
    found = call.graph.blame(type_name, id, branch=branch)
    return answered(
        {
            "entity_id": found.entity_id,
            "properties": {name: commit_told(record) for name, record in found.properties.items()},
            "created": None if found.created is None else commit_told(found.created),
            "last": None if found.last is None else commit_told(found.last),
            "pruned": list(found.pruned),
        }
    )


@tags_router.get("/tags", operation_id="cluster_listTags", response_model=TagListOutput, responses=failing(*READING))
def list_tags(call: Served) -> Response:
    """The tags, by name. Beyond the contract."""
    call.reads()
    return answered({"tags": [_tag(call.graph.tags.read(name)) for name in call.graph.tags]})


@tags_router.post("/tags", operation_id="cluster_createTag", response_model=TagOutput, responses=failing(*WRITING))
def create_tag(body: TagCreateRequest, call: Served) -> Response:
    """Name a commit. Beyond the contract."""
    call.acts_on(Action.CHANGE, branch=body.branch, commit=body.commit)
    with call.admitted():
        made = call.graph.tags.create(
            body.name, branch=body.branch, commit=body.commit, number=body.number, at=body.at, actor=call.actor
        )
    return answered(_tag(made))


@tags_router.get(
    "/tags/{tag:path}", operation_id="cluster_getTag", response_model=TagOutput, responses=failing(*READING)
)
def get_tag(tag: str, call: Served) -> Response:
    """What a tag names. Beyond the contract."""
    call.reads()
    return answered(_tag(call.graph.tags.read(tag)))


@tags_router.delete(
    "/tags/{tag:path}", operation_id="cluster_deleteTag", response_model=TagOutput, responses=failing(*WRITING)
)
def delete_tag(tag: str, call: Served) -> Response:
    """Take a name back; the commit stays. Beyond the contract."""
    call.acts_on(Action.CHANGE, tag=tag)
    with call.admitted():
        found = call.graph.tags.read(tag)
        call.graph.tags.delete(tag)
    return answered(_tag(found))


def _tag(tag: Tag) -> dict[str, Any]:
    return {
        "name": tag.name,
        "graph_commit_id": tag.commit,
        "graph_branch": tag.branch,
        "graph_manifest_version": tag.number,
        "actor_id": tag.actor,
        "created_at": tag.created_at_us,
    }
