"""`omnigraph-server`: what is typed, and what follows from it."""

import os
import sys
import tempfile
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec

from omnigraph import limits
from omnigraph.clock import duration_s
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.server.logs import log_to_stderr
from omnigraph.server.settings import DEFAULT_BIND, ServerSettings
from omnigraph.server.tokens import tokens_of
from omnigraph.version import VERSION

_SHARED_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


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
    made.add_argument(
        "--body-timeout", metavar="TIME", help="how long a request's body may take to come; 30s by default"
    )
    made.add_argument("--send-timeout", metavar="TIME", help="how long a reader may take nothing; 60s by default")
    made.add_argument("--query-timeout", metavar="TIME", help="how long a query may run; 60s by default")
    made.add_argument("--query-memory", metavar="BYTES", type=int, help="what it may use meanwhile; 512 MiB by default")
    made.add_argument(
        "--queries-memory", metavar="BYTES", type=int, help="and all queries of a process together; 2 GiB by default"
    )
    made.add_argument(
        "--cache-memory", metavar="BYTES", type=int, help="what each graph may keep for reads; 2 GiB by default"
    )
    upkeep = made.add_argument_group("maintenance")
    upkeep.add_argument(
        "--maintain-every", metavar="TIME", help="optimize, sweep and verify so often, like 10m; not if not said"
    )
    upkeep.add_argument("--maintain-keep", metavar="N", type=int, help="and prune all but the newest N commits")
    upkeep.add_argument("--maintain-older-than", metavar="TIME", help="and prune commits older than this, like 30d")
    upkeep.add_argument(
        "--maintain-verify",
        choices=("some", "all", "none"),
        default="some",
        help="how much of what commits need each pass looks at; some by default, going on in the next",
    )
    upkeep.add_argument("--maintain-max-time", metavar="TIME", help="begin nothing more after this long in a pass")
    upkeep.add_argument("--maintain-max-bytes", metavar="N", type=int, help="leave larger tables alone")
    made.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="info by default"
    )
    made.add_argument("-v", "--version", action="version", version=f"omnigraph-server {VERSION}")
    return made


def settings_of(args: Namespace, environment: Mapping[str, str]) -> ServerSettings:
    """What follows from flags and environment.

    Raises:
        InvalidRequestError: they are wrong.
    """
    for flag, number in (
        ("workers", args.workers),
        ("threads", args.threads),
        ("maintain-keep", args.maintain_keep),
        ("maintain-max-bytes", args.maintain_max_bytes),
        ("query-memory", args.query_memory),
        ("queries-memory", args.queries_memory),
        ("cache-memory", args.cache_memory),
    ):
        if number is not None and number < 1:
            raise InvalidRequestError(f"--{flag} is at least 1, not {number}")
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
        actor_calls_max=_number(environment, "OMNIGRAPH_PER_ACTOR_CALLS_MAX", limits.SERVER_ACTOR_CALLS_MAX),
        query_bytes_max=args.query_memory or limits.SERVER_QUERY_BYTES_MAX,
        queries_bytes_max=args.queries_memory or limits.SERVER_QUERIES_BYTES_MAX,
        cache_bytes_max=args.cache_memory or limits.QUERY_CACHE_BYTES_MAX,
        query_s_max=_seconds("--query-timeout", args.query_timeout) or limits.SERVER_QUERY_S_MAX,
        body_s_max=_seconds("--body-timeout", args.body_timeout) or limits.SERVER_BODY_S_MAX,
        send_s_max=_seconds("--send-timeout", args.send_timeout) or limits.SERVER_STREAM_STALL_S,
        maintain_every_s=_seconds("--maintain-every", args.maintain_every),
        maintain_keep=args.maintain_keep,
        maintain_older_than_s=_seconds("--maintain-older-than", args.maintain_older_than),
        maintain_verify=args.maintain_verify,
        maintain_s_max=_seconds("--maintain-max-time", args.maintain_max_time),
        maintain_bytes_max=args.maintain_max_bytes,
        log_level=args.log_level,
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
        if find_spec("fastapi") is None or find_spec("uvicorn") is None:
            raise InvalidRequestError("the server's packages are not installed; run: pip install 'omnigraph[server]'")
        with _sharing_numbers(settings):
            # Help needs none of it; and that workers share their numbers must be known before this import.
            from omnigraph.server.serving import serve  # noqa: PLC0415  (see above)

            return serve(settings, args.bind)
    except GraphError as refused:
        sys.stderr.write(f"error: {refused}\n")
        return 1


def run() -> None:
    """The program `omnigraph-server`."""
    sys.exit(main(sys.argv[1:], environment=os.environ))


@contextmanager
def _sharing_numbers(settings: ServerSettings) -> Iterator[None]:
    """A folder in which workers keep their numbers, where there are several workers."""
    if settings.workers == 1 or _SHARED_FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="omnigraph-numbers-", ignore_cleanup_errors=True) as folder:
        os.environ[_SHARED_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_SHARED_FOLDER]


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _number(environment: Mapping[str, str], name: str, default: int) -> int:
    said = environment.get(name, "").strip()
    if not said:
        return default
    if not (said.isascii() and said.isdigit()) or int(said) < 1:
        raise InvalidRequestError(f"{name} must be a number of at least 1, not '{said}'")
    return int(said)


def _seconds(flag: str, said: str | None) -> float | None:
    try:
        seconds = None if said is None else duration_s(said)
    except ValueError as wrong:
        raise InvalidRequestError(f"{flag}: {wrong}") from None
    if seconds == 0:
        raise InvalidRequestError(f"{flag} is at least 1s")
    return seconds


if __name__ == "__main__":
    run()
