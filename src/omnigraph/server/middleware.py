"""Middleware before every route: request id, authentication, choice of graph; afterwards metrics and one log line."""

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph import limits
from omnigraph.ids import decode, encode
from omnigraph.server import metrics
from omnigraph.server.errors import Refusal, too_many_requests
from omnigraph.server.graph_call import AppState, GraphCall
from omnigraph.server.logs import log
from omnigraph.server.responses import json_response

REQUEST_ID = "x-request-id"
ACTOR = "omnigraph-actor"
# Paths that need no token.
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/openapi.json", "/favicon.ico"})
PUBLIC_PREFIXES = ("/explorer/",)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Browsers must trust the media type of stored bytes and not guess another.
_NOSNIFF = (b"x-content-type-options", b"nosniff")
_GRAPHS = "/graphs/"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class _Sent:
    """Status and body size of a response."""

    status: int = 0
    size: int = 0


class RequestMiddleware:
    """The outermost ASGI middleware of the application."""

    def __init__(self, app: ASGIApp, state: AppState, direct: Mapping[tuple[str, str], ASGIApp]) -> None:
        self._app = app
        self._direct = direct
        self._state = state
        self._in_flight = 0
        self._last_id = decode(state.ids.new())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate a request, pass it on, and record its response."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start = self._state.clock.monotonic()
        headers = _read_headers(scope)
        request_id = self._choose_request_id(headers.get(REQUEST_ID, ""))
        sent = _Sent()
        actor: str | None = None

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status = message["status"]
                given = list(message.get("headers", ()))
                added = [(REQUEST_ID.encode(), request_id.encode())]
                if not any(name == _NOSNIFF[0] for name, _ in given):
                    added.append(_NOSNIFF)
                if actor is not None:
                    added.append((ACTOR.encode(), quote(actor).encode()))  # any text, and headers are ASCII
                message["headers"] = [*given, *added]
            elif message["type"] == "http.response.body":
                sent.size += len(message.get("body", b""))
            await send(message)

        self._in_flight += 1
        metrics.IN_FLIGHT.inc()
        try:
            actor = self._authenticate(scope, headers)
            _, _, rest = scope["path"].removeprefix(_GRAPHS).partition("/")
            app = self._direct.get((scope["method"], rest), self._app) if "call" in scope["state"] else self._app
            await app(scope, receive, send_with_headers)
        except Refusal as refused:
            response = json_response(refused.body(), status=refused.status, headers=refused.headers)
            await response(scope, receive, send_with_headers)
        except ClientDisconnect:
            log("client left", request_id=request_id, path=self._redacted_path(scope))
        except Exception as fault:  # noqa: BLE001  (the last place that can answer)
            log("fault", level=logging.ERROR, error=fault, request_id=request_id, path=self._redacted_path(scope))
            if not sent.status:
                body = {"error": f"internal error (request {request_id})", "code": "internal"}
                await json_response(body, status=500)(scope, receive, send_with_headers)
        finally:
            self._in_flight -= 1
            call = scope.get("state", {}).get("call")
            if call is not None:
                call.close()
            metrics.IN_FLIGHT.dec()
            self._record(scope, sent, actor, request_id, self._state.clock.monotonic() - start)

    def _authenticate(self, scope: Scope, headers: dict[str, str]) -> str | None:
        """Return the actor of a request, and put the call to its graph into the scope."""
        if self._in_flight > limits.SERVER_REQUESTS_MAX:
            raise too_many_requests(
                f"server in-flight count cap {limits.SERVER_REQUESTS_MAX} exceeded", retry_after_s=1
            )
        path = scope["path"]
        if path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES):
            return None
        # Whether there are tokens is decided at the start: revoking the last one must not open the server.
        has_tokens = bool(self._state.settings.tokens)
        actor = self._state.tokens.current().authenticate(headers.get("authorization")) if has_tokens else None
        state = scope.setdefault("state", {})
        state["actor"] = actor
        if path.startswith(_GRAPHS):
            graph_id, _, _ = path.removeprefix(_GRAPHS).partition("/")
            state["call"] = GraphCall.create(self._state.graphs.get(graph_id), actor, self._state)
        return actor

    def _choose_request_id(self, given: str) -> str:
        if given and _REQUEST_ID.fullmatch(given) and self._state.tokens.current().redact(given) == given:
            return given
        # Count up from one random id: asking the system for randomness each time would release the interpreter lock,
        # which on a busy server is slow to get back.
        self._last_id += 1
        return encode(self._last_id)

    def _redacted_path(self, scope: Scope) -> str:
        """Return the path for the log, without a token that a caller put there by mistake."""
        return self._state.tokens.current().redact(scope["path"].encode(errors="replace").decode())

    def _record(self, scope: Scope, sent: _Sent, actor: str | None, request_id: str, seconds: float) -> None:
        # Label by route pattern and known method: made-up paths would create endless time series.
        route = getattr(scope.get("route"), "path", None) or "unknown"
        metrics.count_request(scope["method"] if scope["method"] in _METHODS else "other", route, sent.status, seconds)
        log(
            "request",
            request_id=request_id,
            method=scope["method"],
            path=scope["path"] if sent.status < 400 else self._redacted_path(scope),
            route=route,
            status=sent.status,
            bytes=sent.size,
            ms=round(seconds * 1_000, 3),
            actor=actor,
        )


def _read_headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
