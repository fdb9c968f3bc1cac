"""That the process answers, and which graphs it serves."""

from fastapi import APIRouter, Request, Response

from omnigraph.errors import GraphError
from omnigraph.policy.rules import Action
from omnigraph.server import metrics
from omnigraph.server.answers import answered
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.responses import GraphListResponse, HealthOutput, ReadyOutput
from omnigraph.server.routing import failing
from omnigraph.server.state import ServerState
from omnigraph.version import INTERNAL_SCHEMA, VERSION

router = APIRouter()
_READY = "ready"


@router.get("/healthz", operation_id="health", tags=["health"], response_model=HealthOutput)
async def health() -> Response:
    """That the process answers."""
    return answered({"status": "ok", "version": VERSION, "internal_schema_version": INTERNAL_SCHEMA})


@router.get(
    "/readyz",
    operation_id="ready",
    tags=["health"],
    response_model=ReadyOutput,
    responses={503: {"model": ReadyOutput, "description": "A graph cannot be read now."}},
)
def ready(request: Request) -> Response:
    """Whether every graph that is served can be read. Graphs are named to those who could be allowed to use them."""
    state: ServerState = request.app.state.server
    actor = state.settings.tokens.known(request.headers.get("authorization"))
    is_ready, told = True, {}
    for served in state.graphs:
        how = _readiness(served)
        is_ready = is_ready and how == _READY
        if served.authority.is_named_to(actor):
            told[served.id] = how
    return answered({"status": _READY if is_ready else "unready", "graphs": told}, status=200 if is_ready else 503)


@router.get(
    "/graphs",
    operation_id="listGraphs",
    tags=["management"],
    response_model=GraphListResponse,
    responses=failing(),
)
def list_graphs(request: Request) -> Response:
    """The graphs that are served, by id."""
    state: ServerState = request.app.state.server
    state.graphs.authority.authorize(request.scope["state"]["actor"], Action.GRAPH_LIST)
    return answered({"graphs": [{"graph_id": each.id, "uri": each.graph.uri} for each in state.graphs]})


@router.get(
    "/metrics",
    operation_id="metrics",
    tags=["health"],
    response_class=Response,
    responses={
        **failing(),
        200: {"description": "Numbers for Prometheus.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    },
)
def numbers(request: Request) -> Response:
    """Requests, latencies, commits, conflicts, rebases, caches, store requests, intents and sweeps, as numbers."""
    state: ServerState = request.app.state.server
    return Response(metrics.exposition(state.graphs), media_type=metrics.CONTENT_TYPE)


def _readiness(served: ServedGraph) -> str:
    """That a graph can be read, or the code of what stands in the way."""
    try:
        served.graph.snapshot()
    except GraphError as fault:
        return fault.code
    return _READY
