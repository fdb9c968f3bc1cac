"""That the process answers, and which graphs it serves."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from omnigraph.errors import GraphError
from omnigraph.policy.rules import Action
from omnigraph.server import metrics
from omnigraph.server.answers import answered
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.responses import ErrorOutput, GraphListResponse, HealthOutput, ReadyOutput
from omnigraph.server.routing import failing
from omnigraph.server.state import ServerState
from omnigraph.version import INTERNAL_SCHEMA, VERSION

_READY = "ready"
# Whose turn it is that these wait for: nobody's of those who ask graphs. No actor has a blank name.
_EVERYBODY = ""


class _TurnRoute(APIRoute):
    """A route that is open to many and works in a thread, of which it must not take all."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, which waits for its turn."""
        handle = super().get_route_handler()

        async def in_turn(request: Request) -> Response:
            async with request.app.state.server.turns.turn(_EVERYBODY):
                return await handle(request)

        return in_turn


router = APIRouter()
waiting_router = APIRouter(route_class=_TurnRoute)


@router.get("/healthz", operation_id="health", tags=["health"], response_model=HealthOutput)
async def health() -> Response:
    """That the process answers."""
    return answered({"status": "ok", "version": VERSION, "internal_schema_version": INTERNAL_SCHEMA})


@waiting_router.get(
    "/readyz",
    operation_id="ready",
    tags=["health"],
    response_model=ReadyOutput,
    responses={
        429: {"model": ErrorOutput, "description": "Too much is under way."},
        503: {"model": ReadyOutput, "description": "A graph cannot be read now."},
    },
)
def ready(request: Request) -> Response:
    """Whether every graph that is served can be read. Graphs are named to those who could be allowed to use them."""
    state: ServerState = request.app.state.server
    actor = state.settings.tokens.known(request.headers.get("authorization"))
    is_ready, told, named = True, {}, state.graphs.named_to(actor)
    for served in state.graphs:
        how = _readiness(served)
        is_ready = is_ready and how == _READY
        if served.id in named:
            told[served.id] = how
    return answered({"status": _READY if is_ready else "unready", "graphs": told}, status=200 if is_ready else 503)


@waiting_router.get(
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


@waiting_router.get(
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
    """Requests, latencies, commits, conflicts, rebases, caches, store requests, intents and sweeps, as numbers.

    For whoever has a token, where there are tokens. Numbers of a graph are shown to those who could be allowed to use
    it, and to those who may list all graphs.
    """
    state: ServerState = request.app.state.server
    named = state.graphs.named_to(request.scope["state"]["actor"])
    return Response(metrics.exposition(state.graphs, named), media_type=metrics.CONTENT_TYPE)


def _readiness(served: ServedGraph) -> str:
    """That a graph can be read, or the code of what stands in the way."""
    try:
        served.graph.snapshot()
    except GraphError as fault:
        return fault.code
    return _READY
