"""The application: graphs, routes, and the answers to everything that goes wrong."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from omnigraph import limits
from omnigraph.api.maintenance import Maintenance
from omnigraph.clock import SystemClock
from omnigraph.errors import GraphError
from omnigraph.ids import UlidSource
from omnigraph.server import metrics
from omnigraph.server.admission import Admission
from omnigraph.server.answers import answered
from omnigraph.server.bodies import words_for
from omnigraph.server.errors import Refusal, answer
from omnigraph.server.explorer import files
from omnigraph.server.explorer import routes as explorer
from omnigraph.server.gate import Gate
from omnigraph.server.graphs import Graphs
from omnigraph.server.openapi import api_document
from omnigraph.server.opening import open_graphs
from omnigraph.server.room import Room
from omnigraph.server.routes import ROUTERS
from omnigraph.server.settings import ServerSettings
from omnigraph.server.state import ServerState
from omnigraph.server.streams import StreamSlots
from omnigraph.server.threads import Threads
from omnigraph.server.turns import Turns
from omnigraph.server.upkeep import Upkeep
from omnigraph.version import VERSION

_CODES = {401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed"}


def create_app(settings: ServerSettings) -> FastAPI:
    """The application of one process, its graphs open.

    Args:
        settings (ServerSettings): what to serve, to whom.

    Returns:
        FastAPI: to be run by any ASGI server; its graphs are closed when it is shut down.

    Raises:
        InvalidRequestError: the settings contradict each other, or leave open who may come in.
        GraphError: a graph that must be served cannot be opened.
    """
    return application(settings, open_graphs(settings))


def application(settings: ServerSettings, graphs: Graphs) -> FastAPI:
    """The application over graphs that are open; see `create_app`."""
    clock = SystemClock()
    state = ServerState(
        settings=settings,
        graphs=graphs,
        admission=Admission(requests_max=settings.actor_requests_max, bytes_max=settings.actor_bytes_max),
        turns=Turns(
            running_max=settings.threads,
            actor_running_max=settings.share_of_one(settings.threads),
            actor_max=settings.actor_calls_max,
        ),
        threads=Threads(settings.threads),
        streams=StreamSlots(),
        bodies=_room(settings, settings.bodies_bytes_max, "bodies of requests"),
        queries=_room(settings, settings.queries_bytes_max, "queries"),
        results=_room(settings, settings.results_bytes_max, "results on their way out"),
        clock=clock,
        ids=UlidSource(clock),
    )

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        # Turns decide who of the calls gets a thread; what streams have beside them keeps none of those waiting.
        threads = settings.threads + limits.SERVER_STREAM_THREADS_MAX
        anyio.to_thread.current_default_thread_limiter().total_tokens = threads
        upkeep = upkeep_of(settings, graphs)
        upkeep.start()
        try:
            yield
            await anyio.to_thread.run_sync(upkeep.stop)
            graphs.close()
        finally:
            # Also where the loop is ended before its time: a thread that waits for work would keep the process.
            state.threads.close()

    app = FastAPI(
        title="Omnigraph API",
        version=VERSION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        # What is told of requests, to whom, is decided here, and not by what else is installed.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    app.state.server = state
    for router in (*ROUTERS, explorer.router, files.router):
        # As they are: included, each request would be looked for router by router.
        app.router.routes.extend(router.routes)
    app.openapi = cache(lambda: api_document(app, has_tokens=bool(settings.tokens)))  # type: ignore[method-assign]  # as FastAPI says to
    app.add_exception_handler(GraphError, _graph_error)
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(RequestValidationError, _not_valid)
    app.add_exception_handler(HTTPException, _http)
    app.add_middleware(Gate, state=state)
    return app


def upkeep_of(settings: ServerSettings, graphs: Graphs) -> Upkeep:
    """The maintenance of what is served; none where nothing was said, or another process does it."""
    if settings.maintain_every_s is None or settings.is_worker:
        graphs = Graphs({}, authority=graphs.authority)
    policy = Maintenance(
        keep=settings.maintain_keep,
        older_than=settings.maintain_older_than_s,
        verify=settings.maintain_verify != "none",
        verify_reads_max=None if settings.maintain_verify == "all" else limits.MAINTAIN_VERIFY_READS_MAX,
        seconds_max=settings.maintain_s_max,
        bytes_max=settings.maintain_bytes_max,
    )
    return Upkeep(graphs, every_s=settings.maintain_every_s or 0.0, policy=policy)


def _room(settings: ServerSettings, size: int, what: str) -> Room:
    return Room(size, what, actor_bytes_max=settings.share_of_one(size))


async def _graph_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, GraphError)
    status, body = answer(error)
    if status == 409:
        metrics.CONFLICTS.labels(request.path_params.get("graph_id", ""), error.code).inc()
    return answered(body, status=status)


async def _refused(_: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refusal)
    return answered(refused.body(), status=refused.status, headers=refused.headers)


async def _not_valid(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    message = f"{words_for(request.scope)}: {_told(error.errors())}"
    return answered({"error": message, "code": "bad_request"}, status=400)


async def _http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    body = {"error": str(error.detail), "code": _CODES.get(error.status_code, "bad_request")}
    return answered(body, status=error.status_code, headers=error.headers)


def _told(problems: Any) -> str:  # noqa: ANN401  (pydantic's own description)
    """What is wrong with a request, without repeating what it held."""
    told = []
    for each in problems[:3]:
        where = ".".join(map(str, each["loc"][1:]))  # the first says whether it is in the body, the address or a header
        told.append(f"{where}: {each['msg']}" if where else str(each["msg"]))
    more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
    return f"{'; '.join(told)}{more}"
