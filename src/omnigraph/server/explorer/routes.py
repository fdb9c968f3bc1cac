"""What the explorer asks of a graph beyond the routes that everybody uses. All of it goes beyond the contract."""

from itertools import islice
from typing import Annotated, Any

from fastapi import Query, Response
from pydantic import Field

from omnigraph import limits
from omnigraph.api.documents import type_document
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.api.snapshot import Snapshot
from omnigraph.drawing import difference, history, pattern, schema, surroundings
from omnigraph.language.query.completing import suggestions, typed
from omnigraph.policy.rules import SERVER_ACTIONS, TARGET_ACTIONS, Action
from omnigraph.server.answers import answered
from omnigraph.server.call import Call, Served
from omnigraph.server.errors import Refusal
from omnigraph.server.requests import Body
from omnigraph.server.responses import Answer
from omnigraph.server.routing import READING, WITH_BODY, failing, graph_router
from omnigraph.server.states import StateParameters

router = graph_router("explorer")

Branch = Annotated[str | None, Query(description="At whose head; `main` by default.")]
Commit = Annotated[str | None, Query(alias="snapshot", description="At this commit instead.")]
Edges = Annotated[list[str], Query(alias="edge", description="Only edges of these types; all by default.")]
Depth = Annotated[int, Query(ge=1, le=limits.NEIGHBOURHOOD_DEPTH_MAX, description="Steps outwards.")]
Nodes = Annotated[int, Query(alias="limit", ge=1, le=limits.NEIGHBOURHOOD_NODES_MAX, description="Nodes at most.")]
Drawn = Annotated[int, Query(alias="limit", ge=1, le=limits.DRAWING_MAX, description="What is drawn at most.")]


class CompletionRequest(Body):
    """A text that somebody types."""

    text: str = Field(description="Up to where the next word would stand.", max_length=limits.COMPLETED_TEXT_MAX)
    branch: str | None = Field(None, description="Whose schema has the words; `main` by default.")


class DrawingRequest(Body):
    """A query whose pattern is to be drawn."""

    query: str
    name: str | None = None
    params: dict[str, Any] | None = None
    branch: str | None = None
    snapshot: str | None = None
    limit: int = Field(limits.DRAWING_MAX, ge=1, le=limits.DRAWING_MAX, description="Matches at most.")


class CompletionOutput(Answer):
    """What could come next."""

    partial: str = Field(description="The word that is begun already.")
    suggestions: list[dict[str, str]]


class DrawingOutput(Answer):
    """Nodes and links; a link names its ends by their places among the nodes."""

    title: str
    subtitle: str
    layout: str
    nodes: list[dict[str, Any]]
    links: list[dict[str, Any]]


class TypesOutput(Answer):
    """The types of a state."""

    types: list[dict[str, Any]]
    graph_commit_id: str


class PermissionsOutput(Answer):
    """What the caller may do."""

    actor_id: str | None
    actions: dict[str, bool]


@router.get("/types", operation_id="cluster_listTypes", response_model=TypesOutput, responses=failing(*READING))
def types(call: Served, branch: Branch = None, commit: Commit = None) -> Response:
    """The types there are, with their properties and how many entities of each."""
    at = _at(call, branch, commit)
    told = [type_document(each, at.count(each.type_key)) for each in at.schema.entities]
    return answered({"types": told, "graph_commit_id": at.commit})


@router.get(
    "/permissions",
    operation_id="cluster_getPermissions",
    response_model=PermissionsOutput,
    responses=failing(*READING),
)
def permissions(call: Served, branch: Branch = None) -> Response:
    """What the caller may do, where an action is about a branch with this one."""
    where = "main" if branch is None else branch
    return answered(
        {
            "actor_id": call.actor,
            "actions": {each.value: _may(call, each, where) for each in Action if each not in SERVER_ACTIONS},
        }
    )


@router.post(
    "/complete",
    operation_id="cluster_complete",
    response_model=CompletionOutput,
    responses=failing(*READING, *WITH_BODY),
)
def complete(body: CompletionRequest, call: Served) -> Response:
    """What could come where a text ends: words of the language, types, properties, edges, variables."""
    call.reads(body.branch)
    found = suggestions(body.text, call.graph.snapshot(branch=body.branch).schema)
    return answered(
        {
            "partial": typed(body.text).partial if found else "",
            "suggestions": [{"text": each.text, "about": each.about} for each in found[: limits.COMPLETIONS_MAX]],
        }
    )


# --- drawings ---------------------------------------------------------------------------------------------------------


@router.get(
    "/drawings/schema", operation_id="cluster_drawSchema", response_model=DrawingOutput, responses=failing(*READING)
)
def draw_schema(call: Served, branch: Branch = None, commit: Commit = None) -> Response:
    """The schema, drawn."""
    return answered(schema.drawn(_at(call, branch, commit)).document())


@router.post(
    "/drawings/query",
    operation_id="cluster_drawQuery",
    response_model=DrawingOutput,
    responses=failing(*READING, *WITH_BODY),
)
def draw_query(body: DrawingRequest, call: Served) -> Response:
    """The nodes and edges that a query's pattern matches, drawn."""
    at = _at(call, body.branch, body.snapshot)
    drawing = pattern.drawn(at, body.query, body.params, name=body.name, limit=body.limit, limits=call.query_limits)
    return answered(drawing.document())


@router.get(
    "/drawings/neighbourhood",
    operation_id="cluster_drawNeighbourhood",
    response_model=DrawingOutput,
    responses=failing(*READING),
)
def draw_neighbourhood(
    call: Served,
    type: Annotated[str, Query(description="The type of a node.")],
    id: Annotated[str, Query(description="Its id.")],
    *,
    edges: Edges = [],  # noqa: B006  (fastapi copies it)
    depth: Depth = 1,
    nodes: Nodes = limits.NEIGHBOURHOOD_NODES,
    branch: Branch = None,
    commit: Commit = None,
) -> Response:
    """What surrounds a node, drawn."""
    found = _at(call, branch, commit).neighbourhood(type, id, edges=edges, depth=depth, limit=nodes)
    return answered(surroundings.drawn(found).document())


@router.get(
    "/drawings/diff", operation_id="cluster_drawDiff", response_model=DrawingOutput, responses=failing(*READING)
)
def draw_diff(
    call: Served,
    older: Annotated[str, Query(alias="from", description="A branch, a tag or a commit.")],
    newer: Annotated[str, Query(alias="to", description="Another.")],
    *,
    merge_base: Annotated[bool, Query(description="Compare with the commit where both parted.")] = False,
    most: Drawn = limits.DRAWING_MAX,
) -> Response:
    """What lies between two states, drawn."""
    for state in (older, newer):
        call.reads_state(state)
    drawing = difference.drawn(call.graph, older, newer, limit=most, merge_base=merge_base, engine="local")
    return answered(drawing.document())


@router.get(
    "/drawings/history", operation_id="cluster_drawHistory", response_model=DrawingOutput, responses=failing(*READING)
)
def draw_history(call: Served, most: Drawn = limits.DRAWN_COMMITS) -> Response:
    """The commits of branches that the caller may read, drawn: of `main`, then of others by name."""
    call.reads()
    names = sorted(call.graph.branches, key=lambda each: (each != MAIN_BRANCH, each))
    readable = islice((each for each in names if _may(call, Action.READ, each)), limits.DRAWN_BRANCHES_MAX)
    return answered(history.drawn(call.graph, limit=most, branches=readable).document())


def _at(call: Call, branch: str | None, commit: str | None) -> Snapshot:
    """The state to read, once it is allowed."""
    return call.graph.snapshot(**call.reads_at(StateParameters(branch, commit)))


def _may(call: Call, action: Action, branch: str) -> bool:
    try:
        if action in TARGET_ACTIONS:
            call.authorize(action, branch=branch, target_branch=branch)
        else:
            call.authorize(action, branch=branch)
    except Refusal:
        return False
    return True
