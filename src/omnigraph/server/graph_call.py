"""One request to one graph: its actor, what the actor may do, and the memory it holds."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import Depends, Request

from omnigraph.api.engines import Engine, engine_of
from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.branch.tags import tag_name
from omnigraph.clock import Clock
from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError, ReclaimedError
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.ids import IdSource
from omnigraph.policy.rules import Action
from omnigraph.server import metrics
from omnigraph.server.errors import Refusal
from omnigraph.server.fair_scheduler import Admission, FairScheduler, StreamSlots, WorkerThreads, actor_key
from omnigraph.server.graphs import Graphs, ServedGraph
from omnigraph.server.memory_budget import MemoryBudget, Reservation
from omnigraph.server.point_params import HasPoint, PointArguments, point_arguments
from omnigraph.server.settings import ServerSettings
from omnigraph.server.tokens import TokenSource
from omnigraph.storage.paths import branch_name
from omnigraph.transaction.options import NO_OPTIONS, WriteOptions


@dataclass(frozen=True, slots=True)
class AppState:
    """State that all requests of a process share.

    Attributes:
        settings: from flags and environment.
        tokens: read again when their file changes.
        graphs: open for the life of the process.
        admission: limits writes and exports per actor.
        scheduler: decides which call gets a thread next.
        threads: run the calls.
        streams: limits exports.
        body_memory: budget for request bodies.
        query_memory: budget for running queries.
        result_memory: budget for large results while they are sent.
        clock: measures durations.
        ids: the first request id comes from it.
    """

    settings: ServerSettings
    tokens: TokenSource
    graphs: Graphs
    admission: Admission
    scheduler: FairScheduler
    threads: WorkerThreads
    streams: StreamSlots
    body_memory: MemoryBudget
    query_memory: MemoryBudget
    result_memory: MemoryBudget
    clock: Clock
    ids: IdSource


@dataclass(frozen=True, slots=True)
class GraphCall:
    """One request to one graph.

    Attributes:
        served: the graph, with its policy and stored queries.
        actor: None if the server has no tokens.
        server: shared by all requests.
        body_memory: holds the request body.
        query_memory: holds what its queries use.
        result_memory: holds a large result while it is sent.
    """

    served: ServedGraph
    actor: str | None
    server: AppState
    body_memory: Reservation
    query_memory: Reservation
    result_memory: Reservation

    @classmethod
    def create(cls, served: ServedGraph, actor: str | None, server: AppState) -> Self:
        """Create a call that holds no memory yet."""
        key = actor_key(actor)
        budgets = (server.body_memory, server.query_memory, server.result_memory)
        return cls(served, actor, server, *(Reservation(budget, key) for budget in budgets))

    def close(self) -> None:
        """Release all memory, after the response."""
        for reservation in (self.body_memory, self.query_memory, self.result_memory):
            reservation.close()

    @property
    def graph(self) -> Graph:
        """The open graph."""
        return self.served.graph

    @property
    def query_limits(self) -> QueryLimits:
        """Limits for the queries of this call."""
        settings = self.server.settings
        # At most the actor's share: a query that can never fit must fail for good, not ask the client to retry.
        bytes_max = min(settings.query_bytes_max, settings.share_of_one(settings.queries_bytes_max))
        return QueryLimits(memory_bytes=bytes_max, seconds=settings.query_s_max, shared=self.query_memory)

    def query_engine(self, wanted: str = Engine.AUTO) -> Engine:
        """Return the engine of a query of this call; without Spark, one that needs too much memory is refused.

        Raises:
            InvalidRequestError: Spark is wanted, and the server was started without it.
        """
        engine = engine_of(wanted)
        if self.server.settings.spark is not None:
            return engine
        if engine is Engine.SPARK:
            raise InvalidRequestError(
                "this server does not run queries on Spark; start it with --spark MASTER", code="spark_not_offered"
            )
        return Engine.LOCAL

    def authorize(self, action: Action, *, branch: str | None = None, target_branch: str | None = None) -> None:
        """Refuse what the actor may not do; see `Authority.authorize`. Branch names are normalized first."""
        self.served.authority.authorize(
            self.actor,
            action,
            branch=None if branch is None else branch_name(branch),
            target_branch=None if target_branch is None else branch_name(target_branch),
        )

    def is_allowed(self, action: Action, *, branch: str | None = None) -> bool:
        """Return whether the actor may do something; see `authorize`."""
        try:
            self.authorize(action, branch=branch)
        except Refusal:
            return False
        return True

    def authorize_read(self, branch: str | None = None) -> None:
        """Refuse a read that is not allowed."""
        self.authorize(Action.READ, branch=branch)

    def authorize_read_at(self, request: HasPoint) -> PointArguments:
        """Return the point in time that a request names, if it may be read; see `authorize_at`."""
        return self.authorize_at(Action.READ, request)

    def authorize_at(self, action: Action, request: HasPoint) -> PointArguments:
        """Return the point in time that a request names, if the action is allowed on its branch.

        Raises:
            Refusal: the action is not allowed.
            NotFoundError: the commit or tag does not exist, or the actor may not know of it.
            InvalidRequestError: the request names two points.
        """
        point = point_arguments(request)
        self.authorize_on(action, branch=point["branch"], commit=point["commit"], tag=point["tag"])
        return point

    def authorize_on(
        self, action: Action, *, branch: str | None = None, commit: str | None = None, tag: str | None = None
    ) -> None:
        """Refuse an action that is not allowed on the branch of a commit or tag, or on a named branch.

        A commit or tag on a branch that the actor may not read is reported as missing.

        Raises:
            Refusal: the action is not allowed.
            NotFoundError: the commit or tag does not exist, or the actor may not know of it.
        """
        if commit is None and tag is None:
            self.authorize(action, branch=MAIN_BRANCH if branch is None else branch)
            return
        owner = self._find_branch(commit, tag)
        try:
            self.authorize(action, branch=owner)
        except Refusal:
            if self.is_allowed(Action.READ) or self.is_allowed(Action.READ, branch=owner):
                raise
            raise _missing(commit, tag) from None

    def authorize_read_of_point(self, text: str) -> None:
        """Refuse to read a branch, tag, commit, BRANCH@NUMBER or BRANCH@TIME that is not allowed.

        If the actor may not read the branch, the response is the same whether the point exists or not.

        Raises:
            Refusal: it may not be read.
            NotFoundError: it does not exist, or the actor may not know of it.
            GraphError: it cannot be resolved.
        """
        branch = text.rpartition("@")[0] if "@" in text else text
        try:
            owner = self.graph.diff(text, text, engine="local").older.branch
        except GraphError:
            self.authorize_read(branch or MAIN_BRANCH)
            raise
        if not self.is_allowed(Action.READ, branch=owner):
            self.authorize_read(branch or MAIN_BRANCH)
            raise NotFoundError(f"there is no branch, tag or commit '{text}'", code="point_not_found")

    def authorize_read_of_commit(self, commit: str, *, authorized_branch: str | None = None) -> None:
        """Report a commit as missing unless its branch is `authorized_branch` or may be read.

        Raises:
            NotFoundError: it does not exist, or the actor may not know of it.
        """
        owner = self._find_branch(commit, None)
        if authorized_branch is not None and owner == branch_name(authorized_branch):
            return
        try:
            self.authorize_read(owner)
        except Refusal:
            # The same message as for a commit that does not exist: only readers may learn which ids exist.
            raise _missing(commit, None) from None

    def authorize_options(self, options: WriteOptions) -> None:
        """Refuse a write that drops earlier commits, except to administrators: it cannot be undone."""
        if options.drops_history:
            self.authorize(Action.ADMIN)

    @contextmanager
    def admit_write(
        self,
        action: Action,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        options: WriteOptions = NO_OPTIONS,
    ) -> Iterator[None]:
        """Authorize a write, and count it while it runs.

        Args:
            action: decides, with the branches, whether it is allowed.
            branch: changed, or started from.
            target_branch: created, deleted or merged into.
            options: pruning earlier commits needs a permission of its own.

        Raises:
            Refusal: it is not allowed, or the actor has too much in flight.
        """
        self.authorize(action, branch=branch, target_branch=target_branch)
        self.authorize_options(options)
        with self.admit():
            yield

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Count the call among those of its actor while it runs."""
        with self.server.admission.admit(self.actor, self.body_memory.held):
            yield

    def slot(self) -> AbstractAsyncContextManager[None]:
        """Wait for a slot of the scheduler and hold it."""
        return self.server.scheduler.slot(actor_key(self.actor))

    async def take_slot(self) -> None:
        """Wait for a slot of the scheduler; `release_slot` must follow."""
        await self.server.scheduler.acquire(actor_key(self.actor))

    def release_slot(self) -> None:
        """Let the next call run."""
        self.server.scheduler.release(actor_key(self.actor))

    def count_retries(self, attempts: int) -> None:
        """Add the retries of a write to the metrics."""
        metrics.RETRIES.labels(self.served.id).inc(attempts - 1)

    def _find_branch(self, commit: str | None, tag: str | None) -> str:
        """Return the branch of a commit, or of a tag's commit."""
        try:
            if commit is not None:
                return self.graph.commits.show(commit).branch
            assert tag is not None
            return self.graph.tags.read(tag).branch
        except ReclaimedError:
            if self.is_allowed(Action.READ):
                raise
            # Only those who may read every branch may learn that it existed once.
            raise _missing(commit, tag) from None


def _missing(commit: str | None, tag: str | None) -> NotFoundError:
    """Return the error that a graph raises for a commit or tag that does not exist."""
    if commit is not None:
        return NotFoundError(f"commit '{commit}' not found", code="commit_not_found")
    assert tag is not None
    return NotFoundError(f"tag '{tag_name(tag)}' not found", code="tag_not_found")


async def _current_call(request: Request) -> GraphCall:
    call = request.scope["state"]["call"]
    assert isinstance(call, GraphCall)
    return call


CurrentCall = Annotated[GraphCall, Depends(_current_call)]
"""A route parameter: the call that the middleware created."""
