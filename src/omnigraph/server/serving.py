"""The processes of a server: one that answers, or several behind one socket and one that looks after them."""

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
from omnigraph.server.app import create_app, upkeep_of
from omnigraph.server.logs import log, log_to_stderr
from omnigraph.server.patience import PatientProtocol
from omnigraph.server.settings import ServerSettings

LISTEN_LINE = "OMNIGRAPH_LISTEN_ADDR"
_BACKLOG = 2_048
_WORKER_ANSWERS_S = 120
_PARENT_LOOKS_S = 0.5


class _Server(uvicorn.Server):
    """Says where it listens once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            for each in sockets or ():
                _announce(each)


def serve(settings: ServerSettings, bind: str) -> int:
    """Serve until told to stop; everything that was acknowledged is finished then.

    Args:
        settings (ServerSettings): what to serve, to whom.
        bind (str): `HOST:PORT`.

    Returns:
        int: 0 after a stop that was asked for; 1 where it ended otherwise.

    Raises:
        GraphError: it cannot start.
    """
    listener = listening(bind)
    with listener:
        ended = _serve_alone(settings, listener) if settings.workers == 1 else _serve_by_workers(settings, listener)
    log("stopped")
    return ended


def listening(bind: str) -> socket.socket:
    """A socket at an address, not yet taking connections.

    Raises:
        InvalidRequestError: it cannot be had.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise InvalidRequestError(f"--bind takes HOST:PORT, not '{bind}'")
    host = host.strip("[]")
    # With its protocol named: only then does asyncio send small answers at once, instead of 40 ms later.
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    # An answer goes out in several pieces: without this the second waits until the first is acknowledged, 40 ms later.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        made.bind((host or "0.0.0.0", int(port)))
    except OSError as fault:
        made.close()
        raise InvalidRequestError(f"cannot listen at {bind}: {fault.strerror or fault}") from None
    made.set_inheritable(True)
    return made


def worker_app(settings: ServerSettings, parent: int) -> FastAPI:
    """The application of a worker, which ends when whoever started it does, however that ends."""
    log_to_stderr(settings.log_level)
    threading.Thread(target=_follow, args=(parent,), daemon=True).start()
    return create_app(settings)


def _serve_alone(settings: ServerSettings, listener: socket.socket) -> int:
    signal.signal(signal.SIGTERM, _leave)
    server = _Server(_config(create_app(settings), settings))
    # Asked for, and done: uvicorn hands the signal on when everything is finished.
    with suppress(KeyboardInterrupt, SystemExit):
        server.run(sockets=[listener])
    return 0 if server.started else 1


def _serve_by_workers(settings: ServerSettings, listener: socket.socket) -> int:
    # Opened here too: what is wrong is told at once, and maintenance runs in one process only.
    state = create_app(settings).state.server
    upkeep = upkeep_of(settings, state.graphs)
    workers = replace(
        settings,
        is_worker=True,
        actor_requests_max=max(1, settings.actor_requests_max // settings.workers),
        actor_bytes_max=max(1, settings.actor_bytes_max // settings.workers),
    )
    config = _config(partial(worker_app, workers, os.getpid()), settings)
    listener.listen(_BACKLOG)
    upkeep.start()
    _announce(listener)
    try:
        Multiprocess(config, sockets=[listener]).run()
    finally:
        upkeep.stop()
        state.graphs.close()
    return 0


def _config(app: object, settings: ServerSettings) -> uvicorn.Config:
    protocol = partial(PatientProtocol, head_s_max=settings.body_s_max, stall_s_max=settings.send_s_max)
    return uvicorn.Config(
        app,  # type: ignore[arg-type]  # an application, or what makes one in a worker
        factory=settings.workers > 1,
        workers=settings.workers,
        http=protocol,  # type: ignore[arg-type]  # called like a class
        proxy_headers=False,  # nobody here asks where a request came from
        ws="none",  # whatever is installed: such a connection would know no patience
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        lifespan="on",
        timeout_graceful_shutdown=int(limits.SERVER_STOP_S_MAX),
        timeout_worker_healthcheck=_WORKER_ANSWERS_S,
    )


def _announce(listener: socket.socket) -> None:
    host, port, *_ = listener.getsockname()
    sys.stdout.write(f"{LISTEN_LINE}={f'[{host}]' if ':' in host else host}:{port}\n")
    sys.stdout.flush()


def _follow(parent: int) -> None:
    clock = SystemClock()
    while os.getppid() == parent:
        clock.sleep(_PARENT_LOOKS_S)
    os.kill(os.getpid(), signal.SIGTERM)


def _leave(*_: object) -> None:
    sys.exit(0)
