"""Commits and their changes."""

from typing import Annotated

from fastapi import Query, Request, Response

from omnigraph import limits
from omnigraph.api.documents import full_commit_document
from omnigraph.errors import InvalidRequestError
from omnigraph.server.graph_call import CurrentCall
from omnigraph.server.history_models import ChangeFeedOutput, CommitChangesOutput, CommitListOutput
from omnigraph.server.response_models import CommitOutput
from omnigraph.server.responses import json_response
from omnigraph.server.routing import READ_ERRORS, error_responses, graph_router

router = graph_router("commits")
changes_router = graph_router("changes")
Kinds = Annotated[list[str] | None, Query(description="Only `node` or `edge`; repeatable.")]
Types = Annotated[list[str] | None, Query(description="Only types of these names; repeatable.")]
Ops = Annotated[list[str] | None, Query(description="Only `insert`, `update` or `delete`; repeatable.")]
Limit = Annotated[int | None, Query(ge=1, description="Maximum number of items.")]


def refuse_other_params(request: Request, *once: str) -> None:
    """Refuse query parameters that are unknown, or given twice where one is taken: a typo would silently widen a read.

    Raises:
        InvalidRequestError: there is one.
    """
    names = [name for name, _ in request.query_params.multi_items()]
    for name in names:
        if name not in (*once, "kind", "type", "op"):
            raise InvalidRequestError(f"unknown query parameter '{name}'")
        if name in once and names.count(name) > 1:
            raise InvalidRequestError(f"query parameter '{name}' must be given once")


@router.get(
    "/commits",
    operation_id="cluster_listCommits",
    response_model=CommitListOutput,
    responses=error_responses(*READ_ERRORS),
)
def list_commits(
    call: CurrentCall,
    *,
    branch: str = "main",
    actor: Annotated[str | None, Query(description="Only commits of this actor. Beyond the contract.")] = None,
    kind: Annotated[str | None, Query(description="Only commits of this kind. Beyond the contract.")] = None,
    since: Annotated[str | None, Query(description="Only commits since this time. Beyond the contract.")] = None,
    until: Annotated[str | None, Query(description="Only commits until this time. Beyond the contract.")] = None,
    limit: Limit = None,
    page_token: Annotated[str | None, Query(description="From the previous page. Beyond the contract.")] = None,
) -> Response:
    """List the commits of a branch, newest first, in pages."""
    limit = min(limit or limits.SERVER_COMMITS_MAX, limits.SERVER_COMMITS_MAX)
    call.authorize_read(branch)
    page = call.graph.commits.list(
        branch, actor=actor, kind=kind, since=since, until=until, limit=limit, page_token=page_token
    )
    document: dict[str, object] = {"commits": [full_commit_document(commit.record) for commit in page]}
    if page.next_page_token is not None:
        document["next_page_token"] = page.next_page_token
    return json_response(document)


@router.get(
    "/commits/{commit_id}",
    operation_id="cluster_getCommit",
    response_model=CommitOutput,
    responses=error_responses(*READ_ERRORS),
)
def get_commit(commit_id: str, call: CurrentCall) -> Response:
    """Return one commit of any branch."""
    call.authorize_read()
    return json_response(full_commit_document(call.graph.commits.show(commit_id).record))


@router.get(
    "/commits/{commit_id}/changes",
    operation_id="cluster_getCommitChanges",
    tags=["changes"],
    response_model=CommitChangesOutput,
    responses=error_responses(*READ_ERRORS, 409),
)
def commit_changes(
    commit_id: str,
    call: CurrentCall,
    request: Request,
    *,
    page_token: str | None = None,
    limit: Limit = None,
    kind: Kinds = None,
    type: Types = None,
    op: Ops = None,
) -> Response:
    """List the changes of a commit, with images before and after."""
    refuse_other_params(request, "page_token", "limit")
    call.authorize_read_of_commit(commit_id)
    page = call.graph.commits.changes(
        commit_id, limit=limit, page_token=page_token, kinds=kind or (), types=type or (), ops=op or ()
    )
    return json_response(page.to_dict())


@changes_router.get(
    "/changes",
    operation_id="cluster_pollChanges",
    response_model=ChangeFeedOutput,
    responses=error_responses(*READ_ERRORS, 409),
)
def poll(
    call: CurrentCall,
    request: Request,
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
    """Poll the change feed of a branch, commit by commit."""
    refuse_other_params(request, "branch", "cursor", "start", "page_token", "limit")
    call.authorize_read(branch)
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
    return json_response(page.to_dict())
