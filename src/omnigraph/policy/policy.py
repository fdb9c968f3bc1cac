"""Decide whether a policy allows a request."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.cedar import CedarEvaluator, Request
from omnigraph.policy.read import read_rules
from omnigraph.policy.rules import Action, Kind, Rules


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about a request.

    Attributes:
        allowed: False unless a rule allows it.
        text: a sentence with the decision, the action and the actor.
        matched_rule_id: the rule that allows it, the first by id if there are several; None if it is denied.
    """

    allowed: bool
    text: str
    matched_rule_id: str | None = None


class Policy:
    """A policy that decides requests. Safe to share between threads.

    Attributes:
        rules: the content of the policy file.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._actors = frozenset(rules.actors)
        self._evaluator = CedarEvaluator(rules)
        # Decisions depend only on the request, because the rules do not change.
        self._decided = lru_cache(limits.POLICY_DECISIONS_KEPT)(self._decide)

    @classmethod
    def parse(cls, text: str, *, kind: Kind | None = None) -> Self:
        """Parse a policy file.

        Args:
            text: the content of the file.
            kind: whether rules must be for graphs or for the server; None for either.

        Raises:
            PolicyError: the file is not valid.
            InvalidRequestError: Cedar is not installed.
        """
        return cls(read_rules(text, kind=kind))

    def knows(self, actor: str) -> bool:
        """True if an actor is in any group; all other actors are denied everything."""
        return actor in self._actors

    def decide(
        self,
        actor: str,
        action: Action | str,
        branch: str | None = None,
        target_branch: str | None = None,
        *,
        graph: str = "",
    ) -> Decision:
        """Decide a request.

        Args:
            actor: the id of the actor.
            action: an action, or its name.
            branch: the branch that it reads or writes.
            target_branch: the branch that it would create, change or delete.
            graph: the id of the graph; empty for actions on the server.

        Raises:
            InvalidRequestError: there is no such action, or a name cannot be encoded as UTF-8.
            InternalError: Cedar failed to evaluate it.
        """
        return self._decided(actor, action_named(action), branch, target_branch, graph)

    def _decide(
        self, actor: str, action: Action, branch: str | None, target_branch: str | None, graph: str
    ) -> Decision:
        for name in (actor, branch, target_branch, graph):
            _require_utf8(name)
        if not self.knows(actor):
            return Decision(allowed=False, text=f"policy denied action '{action}' for unknown actor '{actor}'")
        protected = self.rules.protected_branches
        matched = self._evaluator.matching_rules(
            Request(actor, action, graph, branch, target_branch, branch in protected, target_branch in protected)
        )
        if matched:
            return Decision(
                allowed=True,
                text=f"policy allowed action '{action}' for actor '{actor}'",
                matched_rule_id=min(matched),
            )
        on = "" if branch is None else f" on branch '{branch}'"
        towards = "" if target_branch is None else f" targeting branch '{target_branch}'"
        return Decision(allowed=False, text=f"policy denied action '{action}'{on}{towards} for actor '{actor}'")


def action_named(action: Action | str) -> Action:
    """Return the action with a name; raise an `InvalidRequestError` if there is none."""
    try:
        return Action(action)
    except ValueError:
        raise InvalidRequestError(f"unknown policy action '{action}'; there are {', '.join(Action)}") from None


def _require_utf8(name: str | None) -> None:
    if name is None or name.isascii():
        return
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{name!r} is not a valid name: it cannot be encoded as UTF-8") from None
