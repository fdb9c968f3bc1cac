"""Authorization: every read and every write passes here."""

from dataclasses import dataclass

from omnigraph.errors import InternalError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal


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


def _forbidden(message: str) -> Refusal:
    return Refusal(403, message, code="forbidden")
