"""Health, readiness, metrics and the list of graphs."""

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from omnigraph.errors import GraphError
from omnigraph.policy.rules import Action
from omnigraph.server import metrics
from omnigraph.server.graph_call import AppState
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.response_models import ErrorOutput, GraphListResponse, HealthOutput, ReadyOutput
from omnigraph.server.responses import json_response
from omnigraph.server.routing import error_responses
from omnigraph.version import INTERNAL_SCHEMA, VERSION

_READY = "ready"
# These routes share one queue of the scheduler. No actor has a blank name.
_PUBLIC_QUEUE = ""


class _ScheduledRoute(APIRoute):
    """A route without a graph that works in a thread: scheduled, so that it cannot take all threads."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that waits for a slot."""
        handle = super().get_route_handler()

        async def handle_scheduled(request: Request) -> Response:
            async with request.app.state.server.scheduler.slot(_PUBLIC_QUEUE):
                return await handle(request)

        return handle_scheduled


router = APIRouter()
scheduled_router = APIRouter(route_class=_ScheduledRoute)


@router.get("/healthz", operation_id="health", tags=["health"], response_model=HealthOutput)
async def health() -> Response:
    """Report that the process is up."""
    return json_response({"status": "ok", "version": VERSION, "internal_schema_version": INTERNAL_SCHEMA})


@scheduled_router.get(
    "/readyz",
    operation_id="ready",
    tags=["health"],
    response_model=ReadyOutput,
    responses={
        429: {"model": ErrorOutput, "description": "Too many requests are in flight."},
        503: {"model": ReadyOutput, "description": "A graph cannot be read."},
    },
)
def ready(request: Request) -> Response:
    """Report whether every served graph can be read. Names only the graphs that the caller could use."""
    state: AppState = request.app.state.server
    actor = state.tokens.current().authenticate_if_known(request.headers.get("authorization"))
    is_ready, shown, visible = True, {}, state.graphs.visible_to(actor)
    for served in state.graphs:
        status = _check_readiness(served)
        is_ready = is_ready and status == _READY
        if served.id in visible:
            shown[served.id] = status
    return json_response(
        {"status": _READY if is_ready else "unready", "graphs": shown}, status=200 if is_ready else 503
    )


@scheduled_router.get(
    "/graphs",
    operation_id="listGraphs",
    tags=["management"],
    response_model=GraphListResponse,
    responses=error_responses(),
)
def list_graphs(request: Request) -> Response:
    """List the served graphs by id."""
    state: AppState = request.app.state.server
    state.graphs.authority.authorize(request.scope["state"]["actor"], Action.GRAPH_LIST)
    return json_response({"graphs": [{"graph_id": served.id, "uri": served.graph.uri} for served in state.graphs]})


@scheduled_router.get(
    "/metrics",
    operation_id="metrics",
    tags=["health"],
    response_class=Response,
    responses={
        **error_responses(),
        200: {"description": "Prometheus text format.", "content": {"text/plain": {"schema": {"type": "string"}}}},
    },
)
def get_metrics(request: Request) -> Response:
    """Return Prometheus metrics: requests, latencies, commits, conflicts, caches, store requests, maintenance.

    Needs a token if the server has tokens. Metrics of a graph are shown to actors who could use it, and to those who
    may list all graphs.
    """
    state: AppState = request.app.state.server
    visible = state.graphs.visible_to(request.scope["state"]["actor"])
    return Response(metrics.render(state.graphs, visible), media_type=metrics.CONTENT_TYPE)


def _check_readiness(served: ServedGraph) -> str:
    """Return "ready", or the code of the error that reading the graph raises."""
    try:
        served.graph.snapshot()
    except GraphError as fault:
        return fault.code
    return _READY
