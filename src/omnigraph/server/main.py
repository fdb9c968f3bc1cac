"""`omnigraph-server`: what is typed, and the process that follows from it."""

import os
import signal
import socket
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from contextlib import suppress

import uvicorn

from omnigraph import limits
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.server.app import create_app
from omnigraph.server.logs import log, log_to_stderr
from omnigraph.server.settings import DEFAULT_BIND, ServerSettings
from omnigraph.server.tokens import tokens_of
from omnigraph.version import VERSION

LISTEN_LINE = "OMNIGRAPH_LISTEN_ADDR"
_BACKLOG = 2_048


class _Server(uvicorn.Server):
    """Says where it listens once it does."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if not self.should_exit:
            for each in sockets or ():
                _announce(each)


def parser() -> ArgumentParser:
    """What can be typed."""
    made = ArgumentParser(prog="omnigraph-server", description="Serve graphs over HTTP.", allow_abbrev=False)
    what = made.add_mutually_exclusive_group()
    what.add_argument("--cluster", metavar="DIR|URI", help="serve the graphs of a cluster, as last applied")
    what.add_argument("--store", metavar="URI", help="serve one graph: a path, file:// or s3://")
    made.add_argument("--graph-id", metavar="ID", help="with --store: what it is called; by its address if not said")
    made.add_argument("--policy", metavar="FILE", help="with --store: rules about who may do what")
    made.add_argument("--bind", metavar="HOST:PORT", default=DEFAULT_BIND, help=f"{DEFAULT_BIND} by default")
    made.add_argument("--workers", metavar="N", type=int, default=1, help="how many processes answer; 1 by default")
    made.add_argument(
        "--threads",
        metavar="N",
        type=int,
        default=limits.SERVER_THREADS_MAX,
        help=f"calls at once in each process; {limits.SERVER_THREADS_MAX} by default",
    )
    made.add_argument("--unauthenticated", action="store_true", help="without tokens: let everybody do everything")
    made.add_argument("--require-all-graphs", action="store_true", help="do not start unless every graph opens")
    made.add_argument("--read-only", action="store_true", help="refuse every write")
    made.add_argument("--log-level", choices=("debug", "info", "warning", "error"), default="info")
    made.add_argument("-v", "--version", action="version", version=f"omnigraph-server {VERSION}")
    return made


def settings_of(args: Namespace, environment: Mapping[str, str]) -> ServerSettings:
    """What follows from flags and environment.

    Raises:
        InvalidRequestError: they are wrong.
    """
    if args.workers < 1 or args.threads < 1:
        raise InvalidRequestError("--workers and --threads are at least 1")
    return ServerSettings(
        store=args.store,
        graph_id=args.graph_id,
        cluster=args.cluster,
        policy=args.policy,
        tokens=tokens_of(environment),
        unauthenticated=args.unauthenticated or _is_on(environment, "OMNIGRAPH_UNAUTHENTICATED"),
        require_all_graphs=args.require_all_graphs or _is_on(environment, "OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        read_only=args.read_only,
        workers=args.workers,
        threads=args.threads,
        actor_requests_max=_number(environment, "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", limits.SERVER_ACTOR_REQUESTS_MAX),
        actor_bytes_max=_number(environment, "OMNIGRAPH_PER_ACTOR_BYTES_MAX", limits.SERVER_ACTOR_BYTES_MAX),
    )


def main(words: Sequence[str], *, environment: Mapping[str, str]) -> int:
    """Serve until told to stop.

    Args:
        words (Sequence[str]): what was typed.
        environment (Mapping[str, str]): variables by name.

    Returns:
        int: 0 after a stop that was asked for; 1 where it could not start.
    """
    args = parser().parse_args(words)
    log_to_stderr(args.log_level)
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        settings = settings_of(args, environment)
        app = create_app(settings)
        listener = listening(args.bind)
    except GraphError as refused:
        sys.stderr.write(f"error: {refused}\n")
        return 1
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=int(limits.SERVER_STOP_S_MAX),
        lifespan="on",
    )
    signal.signal(signal.SIGTERM, _leave)
    # Asked for, and done: uvicorn hands the signal on when everything is finished.
    with suppress(KeyboardInterrupt):
        _Server(config).run(sockets=[listener])
    log("stopped")
    return 0


def listening(bind: str) -> socket.socket:
    """A socket at an address, not yet taking connections.

    Raises:
        InvalidRequestError: it cannot be had.
    """
    host, colon, port = bind.rpartition(":")
    if not colon or not port.isdigit() or int(port) > 65_535:
        raise InvalidRequestError(f"--bind takes HOST:PORT, not '{bind}'")
    host = host.strip("[]")
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host or "0.0.0.0", int(port)))
    except OSError as fault:
        made.close()
        raise InvalidRequestError(f"cannot listen at {bind}: {fault.strerror or fault}") from None
    made.set_inheritable(True)
    return made


def run() -> None:
    """The program `omnigraph-server`."""
    sys.exit(main(sys.argv[1:], environment=os.environ))


def _announce(listener: socket.socket) -> None:
    host, port, *_ = listener.getsockname()
    sys.stdout.write(f"{LISTEN_LINE}={f'[{host}]' if ':' in host else host}:{port}\n")
    sys.stdout.flush()


def _leave(*_: object) -> None:
    sys.exit(0)


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    said = environment.get(name, "").strip()
    if not said:
        return default
    if not said.isdigit() or int(said) < 1:
        raise InvalidRequestError(f"{name} must be a number of at least 1, not '{said}'")
    return int(said)


if __name__ == "__main__":
    run()
