"""The gate before every route: a name for the request, who asks, of which graph; then what came of it."""

import logging
import re
from dataclasses import dataclass
from urllib.parse import quote

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from omnigraph import limits
from omnigraph.ids import decode, encode
from omnigraph.server import metrics
from omnigraph.server.answers import answered
from omnigraph.server.call import Call
from omnigraph.server.errors import Refusal, too_many
from omnigraph.server.logs import log
from omnigraph.server.state import ServerState

REQUEST_ID = "x-request-id"
ACTOR = "omnigraph-actor"
# Whoever comes for these needs no token.
PUBLIC_PATHS = frozenset({"/", "/healthz", "/readyz", "/openapi.json", "/favicon.ico"})
PUBLIC_PREFIXES = ("/explorer/",)
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Bytes that callers stored are what their media type says, whatever they look like to a browser.
_AS_SAID = (b"x-content-type-options", b"nosniff")
_GRAPHS = "/graphs/"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


@dataclass(slots=True)
class _Sent:
    """What went out."""

    status: int = 0
    size: int = 0


class Gate:
    """The outermost part of the application that knows of graphs."""

    def __init__(self, app: ASGIApp, state: ServerState) -> None:
        self._app = app
        self._state = state
        self._under_way = 0
        self._last_id = decode(state.ids.new())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = self._state.clock.monotonic()
        headers = _headers(scope)
        request_id = self._request_id(headers.get(REQUEST_ID, ""))
        sent = _Sent()
        actor: str | None = None

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                sent.status = message["status"]
                said = list(message.get("headers", ()))
                own = [(REQUEST_ID.encode(), request_id.encode())]
                if not any(name == _AS_SAID[0] for name, _ in said):
                    own.append(_AS_SAID)
                if actor is not None:
                    own.append((ACTOR.encode(), quote(actor).encode()))  # any text, and headers are ASCII
                message["headers"] = [*said, *own]
            elif message["type"] == "http.response.body":
                sent.size += len(message.get("body", b""))
            await send(message)

        self._under_way += 1
        metrics.UNDER_WAY.inc()
        try:
            actor = self._enter(scope, headers)
            await self._app(scope, receive, watched)
        except Refusal as refused:
            await answered(refused.body(), status=refused.status, headers=refused.headers)(scope, receive, watched)
        except ClientDisconnect:
            log("client left", request_id=request_id, path=self._path(scope))
        except Exception as fault:  # noqa: BLE001  (the last place that can answer)
            log("fault", level=logging.ERROR, error=fault, request_id=request_id, path=self._path(scope))
            if not sent.status:
                body = {"error": f"internal error (request {request_id})", "code": "internal"}
                await answered(body, status=500)(scope, receive, watched)
        finally:
            self._under_way -= 1
            call = scope.get("state", {}).get("call")
            if call is not None:
                call.close()
            metrics.UNDER_WAY.dec()
            self._done(scope, sent, actor, request_id, self._state.clock.monotonic() - began)

    def _enter(self, scope: Scope, headers: dict[str, str]) -> str | None:
        if self._under_way > limits.SERVER_REQUESTS_MAX:
            raise too_many(f"server in-flight count cap {limits.SERVER_REQUESTS_MAX} exceeded", retry_after_s=1)
        path = scope["path"]
        if path in PUBLIC_PATHS or path.startswith(PUBLIC_PREFIXES):
            return None
        tokens = self._state.settings.tokens
        actor = tokens.actor_of(headers.get("authorization")) if tokens else None
        state = scope.setdefault("state", {})
        state["actor"] = actor
        if path.startswith(_GRAPHS):
            graph_id, _, _ = path.removeprefix(_GRAPHS).partition("/")
            state["call"] = Call.made(self._state.graphs.named(graph_id), actor, self._state)
        return actor

    def _request_id(self, given: str) -> str:
        if given and _REQUEST_ID.fullmatch(given) and self._state.settings.tokens.hidden(given) == given:
            return given
        # Counted on from one that nobody else has: to ask the system for chance each time would let go of the
        # interpreter, and on a busy server it comes back late.
        self._last_id += 1
        return encode(self._last_id)

    def _path(self, scope: Scope) -> str:
        """What was asked for, as it may be written down: who is refused may have put a token there by mistake."""
        return self._state.settings.tokens.hidden(scope["path"].encode(errors="replace").decode())

    def _done(self, scope: Scope, sent: _Sent, actor: str | None, request_id: str, seconds: float) -> None:
        # By the route's pattern and known methods: what callers make up would make endless series.
        route = getattr(scope.get("route"), "path", None) or "unknown"
        metrics.REQUESTS.labels(
            scope["method"] if scope["method"] in _METHODS else "other", route, str(sent.status)
        ).inc()
        metrics.REQUEST_SECONDS.labels(route).observe(seconds)
        log(
            "request",
            request_id=request_id,
            method=scope["method"],
            path=scope["path"] if sent.status < 400 else self._path(scope),
            route=route,
            status=sent.status,
            bytes=sent.size,
            ms=round(seconds * 1_000, 3),
            actor=actor,
        )


def _headers(scope: Scope) -> dict[str, str]:
    return {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
