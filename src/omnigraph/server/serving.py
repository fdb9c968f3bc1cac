"""The processes of a server: a single one, or several workers behind one socket with a supervisor."""

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from functools import partial

import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from omnigraph import limits
from omnigraph.clock import SystemClock
from omnigraph.errors import InvalidRequestError
from omnigraph.server.app import create_app
from omnigraph.server.graph_call import AppState
from omnigraph.server.logs import log, log_to_stderr
from omnigraph.server.maintenance import create_maintenance
from omnigraph.server.settings import ServerSettings
from omnigraph.server.timeouts import TimeoutProtocol

LISTEN_LINE = "OMNIGRAPH_LISTEN_ADDR"
_BACKLOG = 2_048
_WORKER_HEALTHCHECK_S = 120
_PARENT_CHECK_S = 0.5


class _Server(uvicorn.Server):
    """A server that prints its address once it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            for listener in sockets or ():
                _announce(listener, self.config.app.state.server)  # type: ignore[union-attr]  # our application


def serve(settings: ServerSettings, bind: str) -> int:
    """Serve until a signal stops the server; requests in flight are finished.

    Args:
        settings: from flags and environment.
        bind: `HOST:PORT`.

    Returns:
        The exit code: 0 after a requested stop, else 1.

    Raises:
        GraphError: it cannot start.
    """
    listener = open_listener(bind)
    with listener:
        serve_one = settings.workers == 1
        exit_code = _serve_single(settings, listener) if serve_one else _serve_workers(settings, listener)
    log("stopped")
    return exit_code


def open_listener(bind: str) -> socket.socket:
    """Bind a socket to `HOST:PORT`; it does not accept connections yet.

    Raises:
        InvalidRequestError: the address is invalid or in use.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise InvalidRequestError(f"--bind takes HOST:PORT, not '{bind}'")
    host = host.strip("[]")
    # Name the protocol: only then does asyncio disable Nagle's algorithm, which delays small responses by 40 ms.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # A response is sent in pieces: without this the second waits 40 ms for the acknowledgement of the first.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host or "0.0.0.0", int(port)))
    except OSError as fault:
        listener.close()
        raise InvalidRequestError(f"cannot listen at {bind}: {fault.strerror or fault}") from None
    listener.set_inheritable(True)
    return listener


def create_worker_app(settings: ServerSettings, parent: int) -> FastAPI:
    """Create the application of a worker process, which exits when its parent does."""
    log_to_stderr(settings.log_level)
    threading.Thread(target=_exit_with_parent, args=(parent,), daemon=True).start()
    return create_app(settings)


def _serve_single(settings: ServerSettings, listener: socket.socket) -> int:
    signal.signal(signal.SIGTERM, _exit)
    server = _Server(_config(create_app(settings), settings))
    # uvicorn raises the signal again after a graceful shutdown.
    with suppress(KeyboardInterrupt, SystemExit):
        server.run(sockets=[listener])
    return 0 if server.started else 1


def _serve_workers(settings: ServerSettings, listener: socket.socket) -> int:
    # Open the graphs here too: errors show at once, and maintenance runs in one process only.
    state = create_app(settings).state.server
    maintenance = create_maintenance(settings, state.graphs)
    workers = replace(
        settings,
        is_worker=True,
        actor_requests_max=max(1, settings.actor_requests_max // settings.workers),
        actor_bytes_max=max(1, settings.actor_bytes_max // settings.workers),
    )
    config = _config(partial(create_worker_app, workers, os.getpid()), settings)
    listener.listen(_BACKLOG)
    maintenance.start()
    _announce(listener, state)
    try:
        Multiprocess(config, sockets=[listener]).run()
    finally:
        maintenance.stop()
        state.graphs.close()
    return 0


def _config(app: object, settings: ServerSettings) -> uvicorn.Config:
    protocol = partial(TimeoutProtocol, head_s_max=settings.body_s_max, stall_s_max=settings.send_s_max)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # an application, or the factory of one in a worker
        factory=settings.workers > 1,
        workers=settings.workers,
        http=protocol,  # type: ignore[arg-type]  # called like a class
        proxy_headers=False,  # client addresses are not used
        ws="none",  # WebSocket connections would bypass the timeouts
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        ssl_certfile=settings.tls_cert,
        ssl_keyfile=settings.tls_key,
        lifespan="on",
        timeout_graceful_shutdown=int(limits.SERVER_STOP_S_MAX),
        timeout_worker_healthcheck=_WORKER_HEALTHCHECK_S,
    )


def _announce(listener: socket.socket, state: AppState) -> None:
    """Print the address for programs, and log the URL, the graphs and the authentication for people."""
    host, port, *_ = listener.getsockname()
    address = f"{f'[{host}]' if ':' in host else host}:{port}"
    sys.stdout.write(f"{LISTEN_LINE}={address}\n")
    sys.stdout.flush()
    actors = len(state.settings.tokens.actors)
    log(
        "serving",
        url=f"{'https' if state.settings.tls_cert else 'http'}://{address}",
        graphs=[served.id for served in state.graphs],
        authentication=f"bearer tokens of {actors} actors" if actors else "none: every request is allowed",
    )


def _exit_with_parent(parent: int) -> None:
    clock = SystemClock()
    while os.getppid() == parent:
        clock.sleep(_PARENT_CHECK_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _exit(*_: object) -> None:
    sys.exit(0)
