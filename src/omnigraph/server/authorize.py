"""Who may do what: the one place that every read and every write passes."""

from dataclasses import dataclass

from omnigraph.errors import InternalError
from omnigraph.policy.policy import Policy
from omnigraph.policy.rules import Action
from omnigraph.server.errors import Refusal


@dataclass(frozen=True, slots=True)
class Authority:
    """What decides for one graph, or for the server itself.

    Three states: *open* (no tokens: everybody may do everything with graphs), *default deny* (tokens and no policy:
    reading only), and a policy.

    Attributes:
        is_open: nobody has a token.
        policy: the rules; None where there are none.
        graph: the id of the graph; empty for the server itself.
    """

    is_open: bool
    policy: Policy | None = None
    graph: str = ""

    def is_named_to(self, actor: str | None) -> bool:
        """Whether somebody is told that the graph is there: whoever could be allowed anything with it.

        Args:
            actor (str | None): who asks; None for those without a token.

        Returns:
            bool: whether they are told.
        """
        if self.is_open:
            return True
        return actor is not None and (self.policy is None or self.policy.knows(actor))

    def allows(self, actor: str | None, action: Action) -> bool:
        """Whether somebody may do something that is about no branch; see `authorize`."""
        try:
            self.authorize(actor, action)
        except Refusal:
            return False
        return True

    def authorize(
        self, actor: str | None, action: Action, *, branch: str | None = None, target_branch: str | None = None
    ) -> None:
        """Let a request through, or not.

        Args:
            actor (str | None): who asks; None where nobody has a token.
            action (Action): what for.
            branch (str | None): the branch that is read, changed or started from.
            target_branch (str | None): the branch that is made, deleted or merged into.

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
