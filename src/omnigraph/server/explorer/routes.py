"""Routes that only the explorer uses: types, permissions, completions and drawings. All beyond the contract."""

from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from omnigraph import limits
from omnigraph.api.documents import type_document
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing import difference, history, pattern, schema, surroundings
from omnigraph.language.query.completing import split_words, suggest_next
from omnigraph.policy.rules import SERVER_ACTIONS, TARGET_ACTIONS, Action
from omnigraph.server.errors import Refusal
from omnigraph.server.graph_call import CurrentCall, GraphCall
from omnigraph.server.point_params import PointParams
from omnigraph.server.request_models import RequestModel
from omnigraph.server.response_models import ResponseModel
from omnigraph.server.responses import json_response
from omnigraph.server.routing import BODY_ERRORS, READ_ERRORS, error_responses, graph_router

router = graph_router("explorer")

Branch = Annotated[str | None, Query(description="Read the head of this branch; `main` by default.")]
Commit = Annotated[str | None, Query(alias="snapshot", description="Read this commit instead.")]
Edges = Annotated[list[str], Query(alias="edge", description="Only edges of these types; all by default.")]
Depth = Annotated[int, Query(ge=1, le=limits.NEIGHBOURHOOD_DEPTH_MAX, description="Number of steps.")]
Nodes = Annotated[
    int, Query(alias="limit", ge=1, le=limits.NEIGHBOURHOOD_NODES_MAX, description="Maximum number of nodes.")
]
Drawn = Annotated[int, Query(alias="limit", ge=1, le=limits.DRAWING_MAX, description="Maximum number of drawn items.")]


class CompletionRequest(RequestModel):
    """A query text to complete."""

    text: str = Field(description="Text before the cursor.", max_length=limits.COMPLETED_TEXT_MAX)
    branch: str | None = Field(None, description="Branch whose schema is used; `main` by default.")


class DrawingRequest(RequestModel):
    """A query whose matches to draw."""

    query: str
    name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    limit: int = Field(limits.DRAWING_MAX, ge=1, le=limits.DRAWING_MAX, description="Maximum number of matches.")


class CompletionOutput(ResponseModel):
    """Possible continuations."""

    partial: str = Field(description="The unfinished last word.")
    suggestions: list[dict[str, str]]


class DrawingOutput(ResponseModel):
    """Nodes and links; a link refers to nodes by index."""

    title: str
    subtitle: str
    layout: str
    nodes: list[dict[str, Any]]
    links: list[dict[str, Any]]


class TypesOutput(ResponseModel):
    """Types of a commit."""

    types: list[dict[str, Any]]
    graph_commit_id: str


class PermissionsOutput(ResponseModel):
    """Permissions of the caller."""

    actor_id: str | None
    actions: dict[str, bool]


@router.get(
    "/types", operation_id="cluster_listTypes", response_model=TypesOutput, responses=error_responses(*READ_ERRORS)
)
def types(call: CurrentCall, branch: Branch = None, commit: Commit = None) -> Response:
    """List the types with their properties and entity counts."""
    snapshot = _open_snapshot(call, branch, commit)
    documents = [type_document(entity, snapshot.count(entity.type_key)) for entity in snapshot.schema.entities]
    return json_response({"types": documents, "graph_commit_id": snapshot.commit})


@router.get(
    "/permissions",
    operation_id="cluster_getPermissions",
    response_model=PermissionsOutput,
    responses=error_responses(*READ_ERRORS),
)
def permissions(call: CurrentCall, branch: Branch = None) -> Response:
    """List what the caller may do, on this branch if an action involves one."""
    branch = "main" if branch is None else branch
    return json_response(
        {
            "actor_id": call.actor,
            "actions": {
                action.value: _is_allowed(call, action, branch) for action in Action if action not in SERVER_ACTIONS
            },
        }
    )


@router.post(
    "/complete",
    operation_id="cluster_complete",
    response_model=CompletionOutput,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def complete(body: CompletionRequest, call: CurrentCall) -> Response:
    """Suggest continuations of a query text: keywords, types, properties, edges, variables."""
    call.authorize_read(body.branch)
    found = suggest_next(body.text, call.graph.snapshot(branch=body.branch).schema)
    return json_response(
        {
            "partial": split_words(body.text).partial if found else "",
            "suggestions": [
                {"text": suggestion.text, "about": suggestion.about} for suggestion in found[: limits.COMPLETIONS_MAX]
            ],
        }
    )


# --- drawings ---------------------------------------------------------------------------------------------------------


@router.get(
    "/drawings/schema",
    operation_id="cluster_drawSchema",
    response_model=DrawingOutput,
    responses=error_responses(*READ_ERRORS),
)
def draw_schema(call: CurrentCall, branch: Branch = None, commit: Commit = None) -> Response:
    """Draw the schema."""
    return json_response(schema.drawn(_open_snapshot(call, branch, commit)).document())


@router.post(
    "/drawings/query",
    operation_id="cluster_drawQuery",
    response_model=DrawingOutput,
    responses=error_responses(*READ_ERRORS, *BODY_ERRORS),
)
def draw_query(body: DrawingRequest, call: CurrentCall) -> Response:
    """Draw the nodes and edges that a query's pattern matches."""
    at = _open_snapshot(call, body.branch, body.snapshot)
    drawing = pattern.drawn(at, body.query, body.params, name=body.name, limit=body.limit, limits=call.query_limits)
    return json_response(drawing.document())


@router.get(
    "/drawings/neighbourhood",
    operation_id="cluster_drawNeighbourhood",
    response_model=DrawingOutput,
    responses=error_responses(*READ_ERRORS),
)
def draw_neighbourhood(
    call: CurrentCall,
    type: Annotated[str, Query(description="Node type.")],
    id: Annotated[str, Query(description="Node id.")],
    *,
    edges: Edges = [],  # noqa: B006  (fastapi copies it)
    depth: Depth = 1,
    nodes: Nodes = limits.NEIGHBOURHOOD_NODES,
    branch: Branch = None,
    commit: Commit = None,
) -> Response:
    """Draw the neighbourhood of a node."""
    found = _open_snapshot(call, branch, commit).neighbourhood(type, id, edges=edges, depth=depth, limit=nodes)
    return json_response(surroundings.drawn(found).document())


@router.get(
    "/drawings/diff",
    operation_id="cluster_drawDiff",
    response_model=DrawingOutput,
    responses=error_responses(*READ_ERRORS),
)
def draw_diff(
    call: CurrentCall,
    older: Annotated[str, Query(alias="from", description="A branch, a tag or a commit.")],
    newer: Annotated[str, Query(alias="to", description="The newer side, in the same forms.")],
    *,
    merge_base: Annotated[bool, Query(description="Compare with the merge base.")] = False,
    most: Drawn = limits.DRAWING_MAX,
) -> Response:
    """Draw the differences between two points in time."""
    for point in (older, newer):
        call.authorize_read_of_point(point)
    drawing = difference.drawn(call.graph, older, newer, limit=most, merge_base=merge_base, engine="local")
    return json_response(drawing.document())


@router.get(
    "/drawings/history",
    operation_id="cluster_drawHistory",
    response_model=DrawingOutput,
    responses=error_responses(*READ_ERRORS),
)
def draw_history(call: CurrentCall, most: Drawn = limits.DRAWN_COMMITS) -> Response:
    """Draw the commits of the readable branches: `main`, then others by name."""
    call.authorize_read()
    names = sorted(call.graph.branches, key=lambda name: (name != MAIN_BRANCH, name))
    readable = islice((name for name in names if _is_allowed(call, Action.READ, name)), limits.DRAWN_BRANCHES_MAX)
    return json_response(history.drawn(call.graph, limit=most, branches=readable).document())


def _open_snapshot(call: GraphCall, branch: str | None, commit: str | None) -> Snapshot:
    """Open the requested snapshot, if the caller may read it."""
    return call.graph.snapshot(**call.authorize_read_at(PointParams(branch, commit)))


def _is_allowed(call: GraphCall, action: Action, branch: str) -> bool:
    try:
        if action in TARGET_ACTIONS:
            call.authorize(action, branch=branch, target_branch=branch)
        else:
            call.authorize(action, branch=branch)
    except Refusal:
        return False
    return True
