"""The FastAPI application: shared state, routes, middleware and error handlers."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.types import Scope

from omnigraph import limits
from omnigraph.api.engines import start_session
from omnigraph.clock import SystemClock
from omnigraph.errors import GraphError
from omnigraph.ids import UlidSource
from omnigraph.server import metrics
from omnigraph.server.direct import direct_routes
from omnigraph.server.errors import Refusal, error_response
from omnigraph.server.explorer import files
from omnigraph.server.explorer import routes as explorer
from omnigraph.server.fair_scheduler import Admission, FairScheduler, StreamSlots, WorkerThreads
from omnigraph.server.graph_call import AppState
from omnigraph.server.graphs import Graphs
from omnigraph.server.maintenance import create_maintenance
from omnigraph.server.memory_budget import MemoryBudget
from omnigraph.server.middleware import RequestMiddleware
from omnigraph.server.openapi import build_openapi
from omnigraph.server.opening import open_graphs
from omnigraph.server.responses import json_response
from omnigraph.server.routes import ROUTERS
from omnigraph.server.routing import error_prefix
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import TokenSource
from omnigraph.version import VERSION

_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}


def create_app(settings: ServerSettings) -> FastAPI:
    """Open the graphs and create the application of one process.

    Args:
        settings: name the graphs, the tokens and the limits.

    Returns:
        An application for any ASGI server; its graphs are closed at shutdown.

    Raises:
        InvalidRequestError: the settings contradict each other, or leave access undecided.
        GraphError: a required graph cannot be opened.
    """
    return create_app_over(settings, open_graphs(settings))


def create_app_over(settings: ServerSettings, graphs: Graphs) -> FastAPI:
    """Create the application over open graphs; see `create_app`."""
    clock = SystemClock()
    state = AppState(
        settings=settings,
        tokens=TokenSource(settings.tokens, settings.token_environment),
        graphs=graphs,
        admission=Admission(requests_max=settings.actor_requests_max, bytes_max=settings.actor_bytes_max),
        scheduler=FairScheduler(
            running_max=settings.threads,
            actor_running_max=settings.share_of_one(settings.threads),
            actor_max=settings.actor_calls_max,
        ),
        threads=WorkerThreads(settings.threads),
        streams=StreamSlots(),
        body_memory=_budget(settings, settings.bodies_bytes_max, "bodies of requests"),
        query_memory=_budget(settings, settings.queries_bytes_max, "queries"),
        result_memory=_budget(settings, settings.results_bytes_max, "results being sent"),
        clock=clock,
        ids=UlidSource(clock),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # The scheduler limits the calls; streams have threads of their own, so that neither waits for the other.
        threads = settings.threads + limits.SERVER_STREAM_THREADS_MAX
        anyio.to_thread.current_default_thread_limiter().total_tokens = threads
        if settings.spark is not None:
            await anyio.to_thread.run_sync(start_session, settings.spark)
        maintenance = create_maintenance(settings, graphs)
        maintenance.start()
        try:
            yield
            await anyio.to_thread.run_sync(maintenance.stop)
            graphs.close()
        finally:
            # Also if the loop ends early: idle worker threads would keep the process alive.
            state.threads.close()

    app = FastAPI(
        title="Omnigraph API",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        # Off, whatever else is installed: this server has its own logs and metrics.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.server = state
    for router in (*ROUTERS, explorer.router, files.router):
        # One flat list: with `include_router`, each request would be matched router by router.
        app.router.routes.extend(router.routes)
    app.openapi = cache(lambda: build_openapi(app, has_tokens=bool(settings.tokens)))  # type: ignore[method-assign]  # as FastAPI documents it
    for kind in (GraphError, Refusal, RequestValidationError, HTTPException):
        app.add_exception_handler(kind, _handle_error)
    app.add_middleware(RequestMiddleware, state=state, direct=direct_routes(app.router.routes, _respond_to_error))
    return app


def _budget(settings: ServerSettings, size: int, purpose: str) -> MemoryBudget:
    return MemoryBudget(size, purpose, actor_bytes_max=settings.share_of_one(size))


async def _handle_error(request: Request, error: Exception) -> Response:
    return _respond_to_error(request.scope, error)


def _respond_to_error(scope: Scope, error: Exception) -> Response:
    """Build the response to an error of a route."""
    match error:
        case GraphError():
            status, body = error_response(error)
            if status == 409:
                metrics.CONFLICTS.labels(scope.get("path_params", {}).get("graph_id", ""), error.code).inc()
            return json_response(body, status=status)
        case Refusal():
            return json_response(error.body(), status=error.status, headers=error.headers)
        case RequestValidationError():
            message = f"{error_prefix(scope)}: {_describe(error.errors())}"
            return json_response({"error": message, "code": "bad_request"}, status=400)
        case HTTPException():
            body = {"error": str(error.detail), "code": _CODES.get(error.status_code, "bad_request")}
            return json_response(body, status=error.status_code, headers=error.headers)
    raise error


def _describe(problems: Any) -> str:  # noqa: ANN401  (pydantic's own description)
    """Describe what is wrong with a request, without repeating its values."""
    texts = []
    for problem in problems[:3]:
        field = ".".join(map(str, problem["loc"][1:]))  # the first part says: body, path, query or header
        texts.append(f"{field}: {problem['msg']}" if field else str(problem["msg"]))
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return f"{'; '.join(texts)}{more}"
