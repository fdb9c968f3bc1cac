"""Settings of a server, from flags and environment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph import limits
from omnigraph.server.tokens import Tokens

DEFAULT_BIND = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """All settings of a server; passed to worker processes as they are.

    Attributes:
        store: address of the one graph to serve.
        graph_id: id of that graph; by default the last part of its address.
        cluster: root of a cluster to serve instead.
        policy: policy file for the one graph.
        tokens: bearer tokens; without any, actors are not distinguished.
        token_environment: the variables that tokens come from, to load them again.
        tls_cert: certificate file (PEM) of HTTPS; None for HTTP.
        tls_key: file with the key of that certificate.
        unauthenticated: allow every request if there are no tokens.
        require_all_graphs: do not start unless every graph opens.
        read_only: refuse every write.
        workers: number of processes.
        threads: calls that run at once in each process.
        actor_requests_max: writes and exports of one actor in flight in a process.
        actor_bytes_max: bytes of their bodies.
        actor_calls_max: calls of any kind of one actor that run or wait in a process.
        query_bytes_max: memory of one running query.
        queries_bytes_max: memory of all running queries of a process.
        cache_bytes_max: read cache of each graph in each process.
        query_s_max: timeout of a query.
        spark: Spark master for queries that need more memory; None refuses them.
        bodies_bytes_max: request bodies that a process holds.
        results_bytes_max: large results that a process holds while they are sent.
        body_s_max: timeout of a request head, and then of its body.
        send_s_max: timeout of a client that does not read the response.
        maintain_every_s: seconds between maintenance passes; None turns maintenance off.
        maintain_keep: prune all but this many of the newest commits of each branch.
        maintain_older_than_s: prune commits older than this.
        maintain_verify: how much a pass verifies: `all`, `some` or `none`.
        maintain_s_max: a pass starts no further step after this many seconds.
        maintain_bytes_max: total size of the tables of a branch that a pass optimizes.
        is_worker: the parent process does the maintenance.
        log_level: lowest level that is logged.
        durability: what an acknowledged write survives, on local disk.
    """

    store: str | None = None
    graph_id: str | None = None
    cluster: str | None = None
    policy: str | None = None
    tokens: Tokens = field(default_factory=lambda: Tokens({}))
    token_environment: Mapping[str, str] | None = field(default=None, repr=False)
    tls_cert: str | None = None
    tls_key: str | None = None
    unauthenticated: bool = False
    require_all_graphs: bool = False
    read_only: bool = False
    workers: int = 1
    threads: int = limits.SERVER_THREADS_MAX
    actor_requests_max: int = limits.SERVER_ACTOR_REQUESTS_MAX
    actor_bytes_max: int = limits.SERVER_ACTOR_BYTES_MAX
    actor_calls_max: int = limits.SERVER_ACTOR_CALLS_MAX
    query_bytes_max: int = limits.SERVER_QUERY_BYTES_MAX
    queries_bytes_max: int = limits.SERVER_QUERIES_BYTES_MAX
    cache_bytes_max: int = limits.QUERY_CACHE_BYTES_MAX
    query_s_max: float = limits.SERVER_QUERY_S_MAX
    spark: str | None = None
    bodies_bytes_max: int = limits.SERVER_BODIES_BYTES_MAX
    results_bytes_max: int = limits.SERVER_RESULTS_BYTES_MAX
    body_s_max: float = limits.SERVER_BODY_S_MAX
    send_s_max: float = limits.SERVER_STREAM_STALL_S
    maintain_every_s: float | None = None
    maintain_keep: int | None = None
    maintain_older_than_s: float | None = None
    maintain_verify: str = "some"
    maintain_s_max: float | None = None
    maintain_bytes_max: int | None = None
    is_worker: bool = False
    log_level: str = "info"
    durability: str = "power"

    def share_of_one(self, whole: int) -> int:
        """Return one actor's share of a common limit; all of it if actors are not distinguished."""
        return max(1, int(whole * limits.SERVER_ACTOR_SHARE)) if self.tokens else whole
