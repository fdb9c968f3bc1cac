"""One request to one graph: who asks, of which graph, and what it may hold meanwhile."""

from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Self

from fastapi import Depends, Request

from omnigraph.api.graph import Graph
from omnigraph.api.options import MAIN_BRANCH
from omnigraph.branch.tags import tag_name
from omnigraph.errors import GraphError, NotFoundError, ReclaimedError
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.policy.rules import Action
from omnigraph.server import metrics
from omnigraph.server.admission import bucket
from omnigraph.server.errors import Refusal
from omnigraph.server.graphs import ServedGraph
from omnigraph.server.room import Holding
from omnigraph.server.state import ServerState
from omnigraph.server.states import NamesState, Where, where
from omnigraph.storage.paths import branch_name
from omnigraph.transaction.options import NO_OPTIONS, WriteOptions


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        served: the graph it is about.
        actor: who asks; None where nobody has a token.
        server: what all requests share.
        body: room for its body.
        memory: room for what its queries hold.
        results: room for a large result on its way out.
    """

    served: ServedGraph
    actor: str | None
    server: ServerState
    body: Holding
    memory: Holding
    results: Holding

    @classmethod
    def made(cls, served: ServedGraph, actor: str | None, server: ServerState) -> Self:
        """A call that holds nothing yet."""
        who = bucket(actor)
        rooms = (server.bodies, server.queries, server.results)
        return cls(served, actor, server, *(Holding(room, who) for room in rooms))

    def close(self) -> None:
        """Give back whatever it still holds, when all is over."""
        for each in (self.body, self.memory, self.results):
            each.close()

    @property
    def graph(self) -> Graph:
        """The graph itself."""
        return self.served.graph

    @property
    def query_limits(self) -> QueryLimits:
        """What a query of the call may use."""
        settings = self.server.settings
        # Never more than there is for all: what can never fit is to be told so, and not to come again.
        most = min(settings.query_bytes_max, settings.share_of_one(settings.queries_bytes_max))
        return QueryLimits(memory_bytes=most, seconds=settings.query_s_max, shared=self.memory)

    def authorize(self, action: Action, *, branch: str | None = None, target_branch: str | None = None) -> None:
        """Refuse what the caller may not do; see `Authority.authorize`.

        Branches are judged by the names they are stored under, however they were spelled.
        """
        self.served.authority.authorize(
            self.actor,
            action,
            branch=None if branch is None else branch_name(branch),
            target_branch=None if target_branch is None else branch_name(target_branch),
        )

    def reads(self, branch: str | None = None) -> None:
        """Refuse a read that is not allowed."""
        self.authorize(Action.READ, branch=branch)

    def reads_at(self, named: NamesState) -> Where:
        """The state that a request names; see `acts_at`."""
        return self.acts_at(Action.READ, named)

    def acts_at(self, action: Action, named: NamesState) -> Where:
        """The state that a request names, once something is allowed on the branch that has it; see `acts_on`.

        Raises:
            Refusal: it is not.
            NotFoundError: there is no such commit or tag, as far as the caller is told.
            InvalidRequestError: it is named in two ways.
        """
        state = where(named)
        self.acts_on(action, branch=state["branch"], commit=state["commit"], tag=state["tag"])
        return state

    def acts_on(
        self, action: Action, *, branch: str | None = None, commit: str | None = None, tag: str | None = None
    ) -> None:
        """Refuse what is not allowed on the branch that has a state, however that is named.

        A commit or a tag on a branch that the caller sees nothing of is like one that is not there: which there are is
        told to readers only.

        Raises:
            Refusal: it is not allowed.
            NotFoundError: there is no such commit or tag, as far as the caller is told.
        """
        if commit is None and tag is None:
            self.authorize(action, branch=MAIN_BRANCH if branch is None else branch)
            return
        owner = self._owner(commit, tag)
        try:
            self.authorize(action, branch=owner)
        except Refusal:
            if self.may(Action.READ) or self.may(Action.READ, branch=owner):
                raise
            raise _absent(commit, tag) from None

    def reads_state(self, text: str) -> None:
        """Refuse to read a state that is named in words: a branch, a tag, a commit, or a branch at a number or time.

        Where the branch that the words may mean is none the caller may read, the answer is the same whatever is there.

        Raises:
            Refusal: it may not be read.
            NotFoundError: there is no such state, as far as the caller is told.
            GraphError: it cannot be found out.
        """
        line = text.rpartition("@")[0] if "@" in text else text
        try:
            found = self.graph.diff(text, text, engine="local").older.branch
        except GraphError:
            self.reads(line or MAIN_BRANCH)
            raise
        if not self.may(Action.READ, branch=found):
            self.reads(line or MAIN_BRANCH)
            raise NotFoundError(f"there is no branch, tag or commit '{text}'", code="point_not_found")

    def reads_commit(self, commit: str, *, on: str | None = None) -> None:
        """Refuse what was asked of a commit on a branch that may not be read, as if there were no such commit.

        Args:
            commit (str): which.
            on (str | None): a branch whose commits are the caller's already.

        Raises:
            NotFoundError: there is none, as far as the caller is told.
        """
        owner = self._owner(commit, None)
        if on is not None and owner == branch_name(on):
            return
        try:
            self.reads(owner)
        except Refusal:
            # The same words as for a commit that is not there: which ids there are is told to readers only.
            raise _absent(commit, None) from None

    def may(self, action: Action, *, branch: str | None = None) -> bool:
        """Whether the caller may do something."""
        try:
            self.authorize(action, branch=branch)
        except Refusal:
            return False
        return True

    def _owner(self, commit: str | None, tag: str | None) -> str:
        """The branch that has a commit, or the commit of a tag."""
        try:
            if commit is not None:
                return self.graph.commits.show(commit).branch
            assert tag is not None
            return self.graph.tags.read(tag).branch
        except ReclaimedError:
            if self.may(Action.READ):
                raise
            # That it was there once is told to those only who may read all there is.
            raise _absent(commit, tag) from None

    def may_prune(self, *, prunes: bool) -> None:
        """Refuse a write that takes earlier commits away, to all but those who administer: it cannot be undone."""
        if prunes:
            self.authorize(Action.ADMIN)

    @contextmanager
    def writing(
        self,
        action: Action,
        *,
        branch: str | None = None,
        target_branch: str | None = None,
        options: WriteOptions = NO_OPTIONS,
    ) -> Iterator[None]:
        """Let a write through, and count it while it runs.

        Args:
            action (Action): what it does.
            branch (str | None): the branch that is changed or started from.
            target_branch (str | None): the branch that is made, deleted or merged into.
            options (WriteOptions): pruning earlier commits needs a permission of its own.

        Raises:
            Refusal: it is not allowed, or the actor has too much under way.
        """
        self.authorize(action, branch=branch, target_branch=target_branch)
        self.may_prune(prunes=options.prune_previous)
        with self.admitted():
            yield

    def ran(self, attempts: int) -> None:
        """Count how often a write ran again."""
        metrics.REDOS.labels(self.served.id).inc(attempts - 1)

    @contextmanager
    def admitted(self) -> Iterator[None]:
        """Count the call among those of its actor while it runs."""
        with self.server.admission.admitted(self.actor, self.body.held):
            yield

    def turn(self) -> AbstractAsyncContextManager[None]:
        """A turn of its actor at the threads."""
        return self.server.turns.turn(bucket(self.actor))


def _absent(commit: str | None, tag: str | None) -> NotFoundError:
    """What a graph says of a commit, or of a tag, that is not there."""
    if commit is not None:
        return NotFoundError(f"commit '{commit}' not found", code="commit_not_found")
    assert tag is not None
    return NotFoundError(f"tag '{tag_name(tag)}' not found", code="tag_not_found")


async def _call(request: Request) -> Call:
    call = request.scope["state"]["call"]
    assert isinstance(call, Call)
    return call


Served = Annotated[Call, Depends(_call)]
"""A parameter of a route: the call."""
