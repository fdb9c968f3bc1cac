"""Routes of graphs: request bodies with limits on bytes, depth and time; scheduling; documented errors."""

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from starlette.types import Scope

from omnigraph import limits
from omnigraph.server.errors import Refusal
from omnigraph.server.response_models import ErrorOutput

GRAPH_PREFIX = "/graphs/{graph_id}"
# Errors that every route can return.
_COMMON_ERRORS = (400, 401, 403, 404, 429, 500, 503)
_ERROR_TEXTS = {
    400: "The request is invalid.",
    401: "The bearer token is missing or unknown.",
    403: "The actor may not do this.",
    404: "It does not exist.",
    408: "The body came too slowly.",
    409: "It conflicts with another change.",
    410: "It was pruned.",
    412: "A precondition does not hold.",
    413: "It exceeds a limit.",
    415: "The body has another media type.",
    416: "The range is outside the blob.",
    424: "An external blob cannot be read.",
    429: "Too many requests are in flight.",
    500: "Internal error of the server.",
    503: "The store is not available, or an interrupted write has to be recovered first.",
}
BODY_ERRORS = (408, 413, 415)
READ_ERRORS = (410, 413)
WRITE_ERRORS = (*BODY_ERRORS, 409, 410, 412)
_ACCEPT_IDENTITY = {"Accept-Encoding": "identity"}
_ERROR_PREFIXES = {
    "cluster_export": "invalid export request",
    "cluster_invoke_query": "invalid stored-query invocation body",
    "cluster_invoke_query_if_graph_commit": "invalid stored-query invocation body",
}


class BoundedRequest(Request):
    """A request whose body has a size limit and a timeout, and holds standard JSON."""

    body_bytes_max = limits.SERVER_BODY_BYTES_MAX
    body_resource = "request_body_bytes"

    async def body(self) -> bytes:
        """Read the whole body.

        Raises:
            Refusal: it is too large, compressed, or comes too slowly.
        """
        if not hasattr(self, "_body"):
            self._refuse_encoding()
            length = self.headers.get("content-length", "")
            if length.isascii() and length.isdigit() and int(length) > self.body_bytes_max:
                raise self._too_large(int(length))
            seconds = self.app.state.server.settings.body_s_max
            try:
                async with asyncio.timeout(seconds):
                    self._body = await self._read()
            except TimeoutError:
                raise Refusal(408, f"the body did not come within {seconds:g} s", code="request_timeout") from None
        return self._body

    async def json(self) -> Any:  # noqa: ANN401  (whatever the body holds)
        """Parse the body as JSON.

        Raises:
            Refusal: it is not JSON.
        """
        if not hasattr(self, "_json"):
            self._json = parse_json(await self.body(), prefix=error_prefix(self.scope))
        return self._json

    async def _read(self) -> bytes:
        chunks, memory = [], self.scope["state"]["call"].body_memory
        async for chunk in self.stream():
            size = memory.held + len(chunk)
            if size > self.body_bytes_max:
                raise self._too_large(size)
            memory.take(len(chunk))  # the middleware releases it after the response
            chunks.append(chunk)
        return b"".join(chunks)

    def _refuse_encoding(self) -> None:
        """Refuse a compressed body: its real size would be known too late."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refusal(
                415, "compressed bodies are not supported: send it without Content-Encoding", headers=_ACCEPT_IDENTITY
            )

    def _too_large(self, actual: int) -> Refusal:
        limit = {"resource": self.body_resource, "limit": self.body_bytes_max, "actual": actual}
        return Refusal(
            413,
            f"resource limit exceeded for {self.body_resource}: actual {actual}, limit {self.body_bytes_max}",
            details={"resource_limit": limit},
        )


class LoadRequest(BoundedRequest):
    """A request with rows in a JSON body."""

    body_bytes_max = limits.SERVER_LOAD_BODY_BYTES_MAX


class NdjsonRequest(LoadRequest):
    """A request whose body is lines of rows."""

    body_resource = "graph_batch_request_bytes"


class BoundedRoute(APIRoute):
    """A route that limits its bodies and runs in a worker thread, when the scheduler grants a slot."""

    request_class: type[BoundedRequest] = BoundedRequest
    # False for routes that read the body themselves and take a slot afterwards.
    takes_slot = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **options: Any) -> None:  # noqa: ANN401  (FastAPI's own)
        self.synchronous = endpoint
        super().__init__(path, _run_in_worker_thread(endpoint), **options)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return a handler that gets a bounded request."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None

        async def handle_bounded(request: Request) -> Response:
            bounded = self.request_class(request.scope, request.receive)
            if takes_json:
                # Parse it here: FastAPI would report every fault of a body with the same message.
                await read_json(bounded)
            if not self.takes_slot:
                return await handle(bounded)
            async with bounded.scope["state"]["call"].slot():
                return await handle(bounded)

        return handle_bounded


class LoadRoute(BoundedRoute):
    """A route that takes rows within JSON."""

    request_class = LoadRequest


class NdjsonRoute(BoundedRoute):
    """A route that takes lines of rows."""

    request_class = NdjsonRequest
    takes_slot = False


async def read_json(request: BoundedRequest) -> bool:
    """Read and parse the body of a request that takes JSON; return False if it has none.

    Raises:
        Refusal: it is of another type, or invalid.
    """
    headers = request.headers
    if headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers:
        return False
    if not _is_json(headers.get("content-type", "")):
        raise Refusal(415, "expected a request with `Content-Type: application/json`")
    if not await request.body():
        return False
    await request.json()
    return True


def graph_router(*tags: str, route_class: type[BoundedRoute] = BoundedRoute) -> APIRouter:
    """Create a router below one graph, its operations under these tags."""
    return APIRouter(prefix=GRAPH_PREFIX, tags=list(tags), route_class=route_class)


def error_responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Document the errors of a route, in addition to those that every route has."""
    return {
        status: {"model": ErrorOutput, "description": _ERROR_TEXTS[status]}
        for status in sorted({*_COMMON_ERRORS, *statuses})
    }


def _run_in_worker_thread(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a synchronous endpoint that calls a graph, so that it runs in the server's worker threads."""
    if inspect.iscoroutinefunction(endpoint) or "call" not in inspect.signature(endpoint).parameters:
        return endpoint

    @wraps(endpoint)
    async def run(**arguments: Any) -> Any:  # noqa: ANN401  (whatever the route takes and returns)
        return await arguments["call"].server.threads.run(partial(endpoint, **arguments))

    return run


def error_prefix(scope: Scope) -> str:
    """Return how the message about an invalid body begins, which depends on the route."""
    return _ERROR_PREFIXES.get(getattr(scope.get("route"), "operation_id", None) or "", "invalid request")


class _NotStandardError(ValueError):
    """JSON that Python's parser accepts, but the standard or a limit does not."""


def parse_json(body: bytes, *, prefix: str = "invalid request") -> Any:  # noqa: ANN401  (whatever the body holds)
    """Parse standard JSON: UTF-8, no NaN, no lone surrogates, limited depth.

    Args:
        body: as received.
        prefix: begins the message of a refusal.

    Raises:
        Refusal: it is not standard JSON.
    """
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant)
        _check_json(value, check_texts=b"\\u" in body)
    except RecursionError:
        raise Refusal(400, f"{prefix}: it is nested too deeply") from None
    except UnicodeDecodeError:
        raise Refusal(400, f"{prefix}: the body is not UTF-8") from None
    except (json.JSONDecodeError, _NotStandardError) as fault:
        raise Refusal(400, f"{prefix}: {fault}") from None
    except ValueError:
        # The one other ValueError of the parser: an integer longer than Python converts.
        raise Refusal(400, f"{prefix}: a number has too many digits") from None
    return value


def _check_json(value: object, *, check_texts: bool) -> None:
    level: list[object] = [value]
    for _ in range(limits.SERVER_JSON_DEPTH_MAX):
        texts = [item for item in level if isinstance(item, str)] if check_texts else []
        inner: list[object] = []
        for item in level:
            if isinstance(item, dict):
                inner += item.values()
                if check_texts:
                    texts += item
            elif isinstance(item, list):
                inner += item
        for text in texts:
            if not _is_encodable(text):
                raise _NotStandardError("half of a surrogate pair stands alone")
        if not inner:
            return
        level = inner
    raise _NotStandardError(f"it is nested more than {limits.SERVER_JSON_DEPTH_MAX} levels deep")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise _NotStandardError(f"{name} is not a JSON number")


def _is_json(content_type: str) -> bool:
    media, _, _ = content_type.partition(";")
    media = media.strip().lower()
    return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
