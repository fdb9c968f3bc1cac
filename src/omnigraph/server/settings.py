"""What a server is started with."""

from dataclasses import dataclass, field

from omnigraph import limits
from omnigraph.server.tokens import Tokens

DEFAULT_BIND = "127.0.0.1:8080"


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything a server is told; it travels to worker processes as it is.

    Attributes:
        store: the address of the one graph that is served.
        graph_id: what that graph is called; by default the last part of its address.
        cluster: the root of a cluster whose graphs are served instead.
        policy: a file of rules for the one graph.
        tokens: who may come in.
        unauthenticated: everybody may, where there are no tokens.
        require_all_graphs: do not start unless every graph can be opened.
        read_only: refuse every write.
        workers: how many processes answer.
        threads: how many calls run at once in each.
        actor_requests_max: how many writes and exports one actor may have under way in a process.
        actor_bytes_max: and how many bytes of bodies.
        actor_calls_max: how many calls of any kind one actor may have running or waiting in a process.
        query_bytes_max: how much memory one query may use while it runs.
        queries_bytes_max: and all queries of a process together.
        cache_bytes_max: how many bytes each graph may keep in memory for reads, in each process.
        query_s_max: how long it may run.
        bodies_bytes_max: how much of all callers' bodies a process holds.
        results_bytes_max: and of large results while they are sent.
        body_s_max: how long the head of a request may take to come, and then its body.
        send_s_max: how long a reader may take hardly anything of what it is sent.
        maintain_every_s: seconds between passes of maintenance; None for none.
        maintain_keep: of each branch, prune all but so many of the newest commits.
        maintain_older_than_s: prune commits older than this.
        maintain_verify: whether a pass looks if everything is there: `all` of it, `some`, or `none`.
        maintain_s_max: begin no further step of a pass after so long.
        maintain_bytes_max: optimize no more tables of a branch in a pass than have so many bytes together.
        is_worker: this process is one of several, and leaves maintenance to the one that started it.
        log_level: how serious something must be to be logged.
        durability: what an acknowledged write survives, on local disk.
    """

    store: str | None = None
    graph_id: str | None = None
    cluster: str | None = None
    policy: str | None = None
    tokens: Tokens = field(default_factory=lambda: Tokens({}))
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
        """What one actor may have of something that all share; all of it where there are no actors to tell apart."""
        return max(1, int(whole * limits.SERVER_ACTOR_SHARE)) if self.tokens else whole
