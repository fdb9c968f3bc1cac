"""The open graphs of a server, by id, and who may do what with them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from omnigraph.api.graph import Graph
from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal
from omnigraph.server.stored_queries import StoredQuery

_GRAPH_ID = re.compile(r"[a-zA-Z0-9-]{1,64}")
_RESERVED = frozenset({"policies"})


@dataclass(frozen=True, slots=True)
class Authority:
    """Decides what actors may do with one graph, or with the server itself.

    Three modes: *open* (no tokens: all actions on graphs are allowed), *default deny* (tokens but no policy: reads
    only), and *policy*.

    Attributes:
        is_open: the server has no tokens.
        policy: None for default deny.
        graph: graph id; empty for the server itself.
    """

    is_open: bool
    policy: Policy | None = None
    graph: str = ""

    def is_visible_to(self, actor: str | None) -> bool:
        """Return whether an actor may know that the graph exists: if any action on it could be allowed."""
        if self.is_open:
            return True
        return actor is not None and (self.policy is None or self.policy.knows(actor))

    def allows(self, actor: str | None, action: Action) -> bool:
        """Return whether an actor may do something that involves no branch; see `authorize`."""
        try:
            self.authorize(actor, action)
        except Refusal:
            return False
        return True

    def authorize(
        self, actor: str | None, action: Action, *, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Refuse an action that is not allowed.

        Args:
            actor: None if the server has no tokens.
            action: what the request does.
            branch: read, changed or started from.
            target_branch: created, deleted or merged into.

        Raises:
            Refusal: it is not allowed.
        """
        if self.policy is not None and actor is not None:
            try:
                decision = self.policy.decide(actor, action, branch, target_branch, graph=self.graph)
            except InternalError as fault:
                raise Refusal(500, f"policy: {fault.message}", code="internal") from fault
            if not decision.allowed:
                raise _forbidden(decision.text)
            return
        if action is Action.GRAPH_LIST:
            raise _forbidden("graphs are listed only where a policy for the whole cluster allows it")
        if self.is_open or action is Action.READ:
            return
        raise _forbidden(
            f"server runs in default-deny mode: no policy for this graph allows action '{action}' to actor '{actor}'"
        )


@dataclass(frozen=True, slots=True)
class ServedGraph:
    """One graph with its policy and stored queries.

    Attributes:
        id: its name in URLs.
        graph: open until the server stops.
        authority: decides what actors may do with it.
        queries: stored queries by name.
        schema_is_managed: a cluster owns the schema; the server refuses to change it.
    """

    id: str
    graph: Graph
    authority: Authority
    queries: Mapping[str, StoredQuery] = field(default_factory=dict)
    schema_is_managed: bool = False


class Graphs:
    """All served graphs. The set changes only with a restart."""

    def __init__(self, served: Mapping[str, ServedGraph], *, authority: Authority) -> None:
        self._served = dict(sorted(served.items()))
        self.authority = authority

    def __iter__(self) -> Iterator[ServedGraph]:
        return iter(self._served.values())

    def __len__(self) -> int:
        return len(self._served)

    def get(self, graph_id: str) -> ServedGraph:
        """Return a graph by id.

        Raises:
            Refusal: it does not exist, or could not be opened.
        """
        served = self._served.get(graph_id)
        if served is None:
            raise Refusal(404, f"graph '{graph_id}' not found", code="not_found")
        return served

    def visible_to(self, actor: str | None) -> set[str]:
        """Return the ids of the graphs an actor may know of: all if they may list graphs, else those they could use."""
        may_list = self.authority.allows(actor, Action.GRAPH_LIST)
        return {served.id for served in self if may_list or served.authority.is_visible_to(actor)}

    def close(self) -> None:
        """Close all graphs."""
        for served in self:
            served.graph.close()


def validate_graph_id(graph_id: str) -> str:
    """Return the id if a graph may have it.

    Raises:
        InvalidRequestError: it may not.
    """
    if _GRAPH_ID.fullmatch(graph_id) is None or graph_id in _RESERVED:
        raise InvalidRequestError(
            f"'{graph_id}' is not a graph id: use up to 64 letters, digits and dashes, and not 'policies'"
        )
    return graph_id


def graph_id_from_address(address: str) -> str:
    """Derive a graph id from an address: its last part without `.omni`, other characters replaced by dashes."""
    last = address.rstrip("/").rsplit("/", 1)[-1].rsplit(":", 1)[-1].removesuffix(".omni")
    return re.sub(r"[^a-zA-Z0-9-]+", "-", last).strip("-")[:64] or "graph"


def _forbidden(message: str) -> Refusal:
    return Refusal(403, message, code="forbidden")
