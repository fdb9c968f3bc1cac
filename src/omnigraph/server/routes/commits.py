"""Commits and what they changed."""

from typing import Annotated

from fastapi import Query, Response

from omnigraph import limits
from omnigraph.server.answers import answered
from omnigraph.server.call import Served
from omnigraph.server.documents import commit_told
from omnigraph.server.history_responses import ChangeFeedOutput, CommitChangesOutput, CommitListOutput
from omnigraph.server.responses import CommitOutput
from omnigraph.server.routing import READING, failing, graph_router

router = graph_router("commits")
changes_router = graph_router("changes")
Kinds = Annotated[list[str] | None, Query(description="Only `node` or `edge`; repeatable.")]
Types = Annotated[list[str] | None, Query(description="Only types of these names; repeatable.")]
Ops = Annotated[list[str] | None, Query(description="Only `insert`, `update` or `delete`; repeatable.")]
Limit = Annotated[int | None, Query(ge=1, description="At most so many.")]


@router.get(
    "/commits",
    operation_id="cluster_listCommits",
    response_model=CommitListOutput,
    responses=failing(*READING),
)
def list_commits(
    call: Served,
    *,
    branch: str = "main",
    actor: Annotated[str | None, Query(description="Only of this actor. Beyond the contract.")] = None,
    kind: Annotated[str | None, Query(description="Only of this kind. Beyond the contract.")] = None,
    since: Annotated[str | None, Query(description="Only from this time on. Beyond the contract.")] = None,
    until: Annotated[str | None, Query(description="Only up to this time. Beyond the contract.")] = None,
    limit: Limit = None,
    page_token: Annotated[str | None, Query(description="Of the page before. Beyond the contract.")] = None,
) -> Response:
    """The commits of a branch, newest first. Of very many, those that follow are on further pages."""
    limit = min(limit or limits.SERVER_COMMITS_MAX, limits.SERVER_COMMITS_MAX)
    call.reads(branch)
    page = call.graph.commits.list(
        branch, actor=actor, kind=kind, since=since, until=until, limit=limit, page_token=page_token
    )
    document: dict[str, object] = {"commits": [commit_told(each.record) for each in page]}
    if page.next_page_token is not None:
        document["next_page_token"] = page.next_page_token
    return answered(document)


@router.get(
    "/commits/{commit_id}",
    operation_id="cluster_getCommit",
    response_model=CommitOutput,
    responses=failing(*READING),
)
def get_commit(commit_id: str, call: Served) -> Response:
    """One commit, on whichever branch it was made."""
    call.reads()
    return answered(commit_told(call.graph.commits.show(commit_id).record))


@router.get(
    "/commits/{commit_id}/changes",
    operation_id="cluster_getCommitChanges",
    tags=["changes"],
    response_model=CommitChangesOutput,
    responses=failing(*READING, 409),
)
def commit_changes(
    commit_id: str,
    call: Served,
    *,
    page_token: str | None = None,
    limit: Limit = None,
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
) -> Response:
    """What a commit did to entities, with images before and after."""
    call.reads_commit(commit_id)
    page = call.graph.commits.changes(
        commit_id, limit=limit, page_token=page_token, kinds=kind or (), types=type or (), ops=op or ()
    )
    return answered(page.to_dict())


@changes_router.get(
    "/changes",
    operation_id="cluster_pollChanges",
    response_model=ChangeFeedOutput,
    responses=failing(*READING, 409),
)
def poll(
    call: Served,
    *,
    branch: str = "main",
    cursor: str | None = None,
    start: Annotated[str | None, Query(description="`now`, `beginning` or `after:<commit>`.")] = None,
    page_token: str | None = None,
    limit: Limit = None,
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
) -> Response:
    """What came after a place in the history of a branch, commit by commit."""
    call.reads(branch)
    page = call.graph.changes.poll(
        branch,
        cursor=cursor,
        start=start,
        page_token=page_token,
        limit=limit,
        kinds=kind or (),
        types=type or (),
        ops=op or (),
    )
    return answered(page.to_dict())
