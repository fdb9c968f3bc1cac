"""The program `omnigraph-server`: flags and environment."""

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
from omnigraph.server.tokens import load_tokens
from omnigraph.version import VERSION

_TOKEN_PREFIX = "OMNIGRAPH_SERVER_BEARER_TOKEN"
_METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def build_parser() -> ArgumentParser:
    """Build the parser of the command line."""
    parser = ArgumentParser(prog="omnigraph-server", description="Serve graphs over HTTP.", allow_abbrev=False)
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--cluster", metavar="DIR|URI", help="serve the graphs of a cluster, as last applied")
    source.add_argument("--store", metavar="URI", help="serve one graph: a path, file:// or s3://")
    parser.add_argument("--graph-id", metavar="ID", help="with --store: id of the graph; by default from its address")
    parser.add_argument("--policy", metavar="FILE", help="with --store: policy file")
    parser.add_argument("--bind", metavar="HOST:PORT", default=DEFAULT_BIND, help=f"{DEFAULT_BIND} by default")
    parser.add_argument("--tls-cert", metavar="FILE", help="serve HTTPS with this certificate (PEM)")
    parser.add_argument("--tls-key", metavar="FILE", help="key of that certificate (PEM)")
    parser.add_argument("--workers", metavar="N", type=int, default=1, help="number of processes; 1 by default")
    parser.add_argument(
        "--threads",
        metavar="N",
        type=int,
        default=limits.SERVER_THREADS_MAX,
        help=f"calls that run at once in each process; {limits.SERVER_THREADS_MAX} by default",
    )
    parser.add_argument("--unauthenticated", action="store_true", help="without tokens: allow every request")
    parser.add_argument("--require-all-graphs", action="store_true", help="do not start unless every graph opens")
    parser.add_argument("--read-only", action="store_true", help="refuse every write")
    parser.add_argument("--body-timeout", metavar="TIME", help="timeout of a request's body; 30s by default")
    parser.add_argument("--send-timeout", metavar="TIME", help="timeout of a client that does not read; 60s by default")
    parser.add_argument("--query-timeout", metavar="TIME", help="timeout of a query; 60s by default")
    parser.add_argument("--query-memory", metavar="BYTES", type=int, help="memory of one query; 512 MiB by default")
    parser.add_argument(
        "--queries-memory", metavar="BYTES", type=int, help="memory of all queries of a process; 2 GiB by default"
    )
    parser.add_argument(
        "--spark", metavar="MASTER", help="run queries that need more memory on Spark; without it they are refused"
    )
    parser.add_argument("--cache-memory", metavar="BYTES", type=int, help="read cache of each graph; 2 GiB by default")
    maintenance = parser.add_argument_group("maintenance")
    maintenance.add_argument(
        "--maintain-every", metavar="TIME", help="optimize, sweep and verify at this interval, like 10m; off by default"
    )
    maintenance.add_argument("--maintain-keep", metavar="N", type=int, help="prune all but the newest N commits")
    maintenance.add_argument("--maintain-older-than", metavar="TIME", help="prune commits older than this, like 30d")
    maintenance.add_argument(
        "--maintain-verify",
        choices=("some", "all", "none"),
        default="some",
        help="how much each pass verifies; some by default, the next pass continues",
    )
    maintenance.add_argument(
        "--maintain-max-time", metavar="TIME", help="start no further step of a pass after this time"
    )
    maintenance.add_argument(
        "--maintain-max-bytes", metavar="N", type=int, help="total size of the tables of a branch that a pass optimizes"
    )
    parser.add_argument(
        "--log-level", choices=("debug", "info", "warning", "error"), default="info", help="info by default"
    )
    parser.add_argument("-v", "--version", action="version", version=f"omnigraph-server {VERSION}")
    return parser


def build_settings(args: Namespace, environment: Mapping[str, str]) -> ServerSettings:
    """Build the settings from flags and environment.

    Raises:
        InvalidRequestError: a value is invalid.
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
            raise InvalidRequestError(f"--{flag} must be at least 1, not {number}")
    if (args.tls_cert is None) != (args.tls_key is None):
        raise InvalidRequestError("--tls-cert and --tls-key belong together")
    for file in filter(None, (args.tls_cert, args.tls_key)):
        if not os.access(file, os.R_OK):
            raise InvalidRequestError(f"cannot read the TLS file {file}")
    return ServerSettings(
        store=args.store,
        graph_id=args.graph_id,
        cluster=args.cluster,
        policy=args.policy,
        tokens=load_tokens(environment),
        token_environment={name: value for name, value in environment.items() if name.startswith(_TOKEN_PREFIX)},
        tls_cert=args.tls_cert,
        tls_key=args.tls_key,
        unauthenticated=args.unauthenticated or _is_on(environment, "OMNIGRAPH_UNAUTHENTICATED"),
        require_all_graphs=args.require_all_graphs or _is_on(environment, "OMNIGRAPH_REQUIRE_ALL_GRAPHS"),
        read_only=args.read_only,
        workers=args.workers,
        threads=args.threads,
        actor_requests_max=_read_number(
            environment, "OMNIGRAPH_PER_ACTOR_INFLIGHT_MAX", limits.SERVER_ACTOR_REQUESTS_MAX
        ),
        actor_bytes_max=_read_number(environment, "OMNIGRAPH_PER_ACTOR_BYTES_MAX", limits.SERVER_ACTOR_BYTES_MAX),
        actor_calls_max=_read_number(environment, "OMNIGRAPH_PER_ACTOR_CALLS_MAX", limits.SERVER_ACTOR_CALLS_MAX),
        query_bytes_max=args.query_memory or limits.SERVER_QUERY_BYTES_MAX,
        queries_bytes_max=args.queries_memory or limits.SERVER_QUERIES_BYTES_MAX,
        cache_bytes_max=args.cache_memory or limits.QUERY_CACHE_BYTES_MAX,
        query_s_max=_parse_seconds("--query-timeout", args.query_timeout) or limits.SERVER_QUERY_S_MAX,
        spark=args.spark,
        body_s_max=_parse_seconds("--body-timeout", args.body_timeout) or limits.SERVER_BODY_S_MAX,
        send_s_max=_parse_seconds("--send-timeout", args.send_timeout) or limits.SERVER_STREAM_STALL_S,
        maintain_every_s=_parse_seconds("--maintain-every", args.maintain_every),
        maintain_keep=args.maintain_keep,
        maintain_older_than_s=_parse_seconds("--maintain-older-than", args.maintain_older_than),
        maintain_verify=args.maintain_verify,
        maintain_s_max=_parse_seconds("--maintain-max-time", args.maintain_max_time),
        maintain_bytes_max=args.maintain_max_bytes,
        log_level=args.log_level,
    )


def main(arguments: Sequence[str], *, environment: Mapping[str, str]) -> int:
    """Serve until a signal stops the server; return the exit code, 1 if it could not start."""
    args = build_parser().parse_args(arguments)
    log_to_stderr(args.log_level)
    os.environ.setdefault("LANCE_LOG", "error")
    try:
        settings = build_settings(args, environment)
        if find_spec("fastapi") is None or find_spec("uvicorn") is None:
            raise InvalidRequestError("the server's packages are not installed; run: pip install 'omnigraph[server]'")
        with _shared_metrics(settings):
            # Late: `--help` does not need it, and the metrics folder must be set before this import.
            from omnigraph.server.serving import serve  # noqa: PLC0415  (see above)

            return serve(settings, args.bind)
    except GraphError as refused:
        sys.stderr.write(f"error: {refused}\n")
        return 1


def run() -> None:
    """Run the program `omnigraph-server`."""
    sys.exit(main(sys.argv[1:], environment=os.environ))


@contextmanager
def _shared_metrics(settings: ServerSettings) -> Iterator[None]:
    """Create the folder in which several workers keep their metrics."""
    if settings.workers == 1 or _METRICS_FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="omnigraph-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[_METRICS_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_METRICS_FOLDER]


def _is_on(environment: Mapping[str, str], name: str) -> bool:
    return environment.get(name, "").strip().lower() in ("1", "true", "yes", "on")


def _read_number(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit()) or int(text) < 1:
        raise InvalidRequestError(f"{name} must be a number of at least 1, not '{text}'")
    return int(text)


def _parse_seconds(flag: str, text: str | None) -> float | None:
    try:
        seconds = None if text is None else duration_s(text)
    except ValueError as wrong:
        raise InvalidRequestError(f"{flag}: {wrong}") from None
    if seconds == 0:
        raise InvalidRequestError(f"{flag} must be at least 1s")
    return seconds


if __name__ == "__main__":
    run()
