"""Direct dispatch: requests to routes with plain signatures skip the routing and the dependencies of FastAPI.

FastAPI needs about half of the processor time of a small read to match the route and to resolve its parameters. A route
below a graph whose function takes only the call, the request, one JSON body and the idempotency key needs neither: the
middleware finds it by method and path. All routes stay declared in FastAPI, which documents and serves the others.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import Any, get_type_hints

from fastapi import Response
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.routing import BaseRoute
from starlette.types import Receive, Scope, Send

from omnigraph.errors import GraphError
from omnigraph.server.errors import Refusal
from omnigraph.server.routing import GRAPH_PREFIX, BoundedRequest, BoundedRoute, read_json

# Turns an error into the response to it.
ErrorHandler = Callable[[Scope, Exception], Response]
_KEY = "idempotency_key"
_PARAMETERS = frozenset(("body", "call", "request", _KEY))
_MISSING = {"type": "missing", "loc": ("body",), "msg": "Field required"}


class DirectRoute:
    """One route as an ASGI application."""

    def __init__(self, route: BoundedRoute, on_error: ErrorHandler) -> None:
        self._route = route
        self._on_error = on_error
        self._run = route.synchronous
        hints = get_type_hints(route.synchronous)
        self._names = frozenset(inspect.signature(route.synchronous).parameters)
        self._model: type[BaseModel] | None = hints.get("body")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the function of the route in a worker thread, and send what it returns."""
        scope["route"] = self._route
        scope["path_params"] = {"graph_id": scope["state"]["call"].served.id}
        request = self._route.request_class(scope, receive)
        try:
            response = await self._respond(request)
        except (GraphError, Refusal, RequestValidationError) as error:
            response = self._on_error(scope, error)
        await response(scope, receive, send)

    async def _respond(self, request: BoundedRequest) -> Response:
        call = request.scope["state"]["call"]
        arguments: dict[str, Any] = {"call": call}
        if self._model is not None:
            arguments["body"] = await self._read_body(request, self._model)
        if "request" in self._names:
            arguments["request"] = request
        if _KEY in self._names:
            arguments[_KEY] = request.headers.get("idempotency-key")
        await call.take_slot()
        try:
            response: Response = await call.server.threads.run(partial(self._run, **arguments))
        finally:
            call.release_slot()
        return response

    async def _read_body(self, request: BoundedRequest, model: type[BaseModel]) -> BaseModel:
        if not await read_json(request):
            raise RequestValidationError([_MISSING])
        try:
            return model.model_validate(await request.json())
        except ValidationError as error:
            problems = [{**problem, "loc": ("body", *problem["loc"])} for problem in error.errors(include_url=False)]
            raise RequestValidationError(problems) from None


def direct_routes(
    routes: Iterable[BaseRoute], on_error: ErrorHandler
) -> dict[tuple[str, str], Callable[[Scope, Receive, Send], Awaitable[None]]]:
    """Return the routes that can be dispatched directly, by method and by what follows the graph in the path."""
    found: dict[tuple[str, str], Callable[[Scope, Receive, Send], Awaitable[None]]] = {}
    for route in routes:
        if not isinstance(route, BoundedRoute) or not route.takes_slot or not _has_plain_signature(route):
            continue
        rest = route.path.removeprefix(f"{GRAPH_PREFIX}/")
        if "{" not in rest:
            found |= {(method, rest): DirectRoute(route, on_error) for method in route.methods or ()}
    return found


def _has_plain_signature(route: BoundedRoute) -> bool:
    names = set(inspect.signature(route.synchronous).parameters)
    if inspect.iscoroutinefunction(route.synchronous) or "call" not in names or not names <= _PARAMETERS:
        return False
    body = get_type_hints(route.synchronous).get("body")
    return body is None or (isinstance(body, type) and issubclass(body, BaseModel))
