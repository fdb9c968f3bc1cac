"""Bodies of requests, read whole before anything begins: bounded in bytes, in depth, and in the time they may take."""

import asyncio
import inspect
import json
from collections.abc import Callable, Coroutine
from functools import partial, wraps
from typing import Any

from fastapi import Request, Response
from fastapi.routing import APIRoute
from starlette.types import Scope

from omnigraph import limits
from omnigraph.server.errors import Refusal

_AS_IT_IS = {"Accept-Encoding": "identity"}
_WORDS = {
    "cluster_export": "invalid export request",
    "cluster_invoke_query": "invalid stored-query invocation body",
    "cluster_invoke_query_if_graph_commit": "invalid stored-query invocation body",
}


class BoundedRequest(Request):
    """A request whose body has a limit, and is JSON as the standard has it."""

    body_bytes_max = limits.SERVER_BODY_BYTES_MAX
    body_resource = "request_body_bytes"

    async def body(self) -> bytes:
        """The whole body.

        Raises:
            Refusal: it is too large, compressed, or comes too slowly.
        """
        if not hasattr(self, "_body"):
            self._refuse_encoding()
            said = self.headers.get("content-length", "")
            if said.isascii() and said.isdigit() and int(said) > self.body_bytes_max:
                raise self._too_large(int(said))
            seconds = self.app.state.server.settings.body_s_max
            try:
                async with asyncio.timeout(seconds):
                    self._body = await self._read()
            except TimeoutError:
                raise Refusal(408, f"the body did not come within {seconds:g} s", code="request_timeout") from None
        return self._body

    async def json(self) -> Any:  # noqa: ANN401  (whatever the body holds)
        """The body as JSON.

        Raises:
            Refusal: it is none.
        """
        if not hasattr(self, "_json"):
            self._json = parsed(await self.body(), what=words_for(self.scope))
        return self._json

    async def _read(self) -> bytes:
        pieces, room = [], self.scope["state"]["call"].body
        async for piece in self.stream():
            size = room.held + len(piece)
            if size > self.body_bytes_max:
                raise self._too_large(size)
            room.take(len(piece))  # the gate gives it back, whatever becomes of the request
            pieces.append(piece)
        return b"".join(pieces)

    def _refuse_encoding(self) -> None:
        """Take bytes as they are only: what a compressed body comes to is known when it is too late."""
        encoding = self.headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("", "identity"):
            raise Refusal(
                415, "a body is taken as it is, not compressed: send it without Content-Encoding", headers=_AS_IT_IS
            )

    def _too_large(self, actual: int) -> Refusal:
        limit = {"resource": self.body_resource, "limit": self.body_bytes_max, "actual": actual}
        return Refusal(
            413,
            f"resource limit exceeded for {self.body_resource}: actual {actual}, limit {self.body_bytes_max}",
            details={"resource_limit": limit},
        )


class LoadRequest(BoundedRequest):
    """A request with rows in its body."""

    body_bytes_max = limits.SERVER_LOAD_BODY_BYTES_MAX


class NdjsonRequest(LoadRequest):
    """A request whose body is rows."""

    body_resource = "graph_batch_request_bytes"


class BoundedRoute(APIRoute):
    """A route whose requests are bounded, and run when it is their actor's turn."""

    request_class: type[BoundedRequest] = BoundedRequest
    # Those that read their body themselves take their turn afterwards.
    takes_turn = True

    def __init__(self, path: str, endpoint: Callable[..., Any], **said: Any) -> None:  # noqa: ANN401  (FastAPI's own)
        super().__init__(path, _in_our_threads(endpoint), **said)

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The handler, which gets a bounded request."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None

        async def bounded(request: Request) -> Response:
            own = self.request_class(request.scope, request.receive)
            if takes_json and _has_body(own):
                if not _is_json(own.headers.get("content-type", "")):
                    raise Refusal(415, "expected a request with `Content-Type: application/json`")
                # Here and not below, where every fault of a body would be told in the same words.
                if await own.body():
                    await own.json()
            if not self.takes_turn:
                return await handle(own)
            async with own.scope["state"]["call"].turn():
                return await handle(own)

        return bounded


class LoadRoute(BoundedRoute):
    """A route that takes rows within JSON."""

    request_class = LoadRequest


class NdjsonRoute(BoundedRoute):
    """A route that takes lines of rows."""

    request_class = NdjsonRequest
    takes_turn = False


def _in_our_threads(endpoint: Callable[..., Any]) -> Callable[..., Any]:
    """What a route does, in the threads of the server where it is about a graph and not of the loop's."""
    if inspect.iscoroutinefunction(endpoint) or "call" not in inspect.signature(endpoint).parameters:
        return endpoint

    @wraps(endpoint)
    async def in_a_thread(**given: Any) -> Any:  # noqa: ANN401  (whatever the route takes and answers)
        return await given["call"].server.threads.run(partial(endpoint, **given))

    return in_a_thread


def words_for(scope: Scope) -> str:
    """What a wrong body is called."""
    return _WORDS.get(getattr(scope.get("route"), "operation_id", None) or "", "invalid request")


class _NotStandardError(ValueError):
    """JSON that the parser takes and the standard, or a limit of ours, does not."""


def parsed(body: bytes, *, what: str = "invalid request") -> Any:  # noqa: ANN401  (whatever the body holds)
    """JSON as the standard has it: UTF-8, no NaN, no halves of characters, and not too deep.

    Args:
        body (bytes): as it came.
        what (str): how the message of a refusal begins.

    Returns:
        Any: the value.

    Raises:
        Refusal: it is none.
    """
    try:
        found = json.loads(body.decode(), parse_constant=_refuse_constant)
        _check(found, check_texts=b"\\u" in body)
    except RecursionError:
        raise Refusal(400, f"{what}: it is nested too deeply") from None
    except UnicodeDecodeError:
        raise Refusal(400, f"{what}: the body is no UTF-8") from None
    except (json.JSONDecodeError, _NotStandardError) as fault:
        raise Refusal(400, f"{what}: {fault}") from None
    except ValueError:
        # All that is left to Python's own: an integer longer than it converts.
        raise Refusal(400, f"{what}: a number has too many digits") from None
    return found


def _check(value: object, *, check_texts: bool) -> None:
    level: list[object] = [value]
    for _ in range(limits.SERVER_JSON_DEPTH_MAX):
        texts = [each for each in level if isinstance(each, str)] if check_texts else []
        inner: list[object] = []
        for each in level:
            if isinstance(each, dict):
                inner += each.values()
                if check_texts:
                    texts += each
            elif isinstance(each, list):
                inner += each
        for text in texts:
            if not _is_text(text):
                raise _NotStandardError("half of a surrogate pair stands alone")
        if not inner:
            return
        level = inner
    raise _NotStandardError(f"it is nested more than {limits.SERVER_JSON_DEPTH_MAX} levels deep")


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> None:
    raise _NotStandardError(f"{name} is no number of JSON")


def _has_body(request: Request) -> bool:
    return request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers


def _is_json(content_type: str) -> bool:
    media, _, _ = content_type.partition(";")
    media = media.strip().lower()
    return media == "application/json" or (media.startswith("application/") and media.endswith("+json"))
