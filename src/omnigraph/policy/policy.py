"""The judge: a request in, a decision out."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from omnigraph import limits
from omnigraph.errors import InvalidRequestError
from omnigraph.policy.cedar import CedarJudge, Request
from omnigraph.policy.read import read_rules
from omnigraph.policy.rules import Action, Kind, Rules


@dataclass(frozen=True, slots=True)
class Decision:
    """What came of a request.

    Attributes:
        allowed: whether it may be done.
        text: the same for people, with who and what.
        matched_rule_id: the rule that allows it; of several the one whose id sorts first. None where it is denied.
    """

    allowed: bool
    text: str
    matched_rule_id: str | None = None


class Policy:
    """Rules that can be asked. Safe to share between threads.

    Attributes:
        rules: what the file says.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self._actors = frozenset(rules.actors)
        self._judge = CedarJudge(rules)
        # The same question has the same answer for as long as the rules are these.
        self._decided = lru_cache(limits.POLICY_DECISIONS_KEPT)(self._decide)

    @classmethod
    def parse(cls, text: str, *, kind: Kind | None = None) -> Self:
        """The policy of a file.

        Args:
            text (str): of the file.
            kind (Kind | None): what the file is for, graphs or the server; None where either will do.

        Returns:
            Policy: ready to be asked.

        Raises:
            PolicyError: the file is wrong.
            InvalidRequestError: Cedar is not installed.
        """
        return cls(read_rules(text, kind=kind))

    def knows(self, actor: str) -> bool:
        """Whether an actor is in any group; all others may do nothing.

        Args:
            actor (str): who.

        Returns:
            bool: whether they are.
        """
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
        """Judge a request.

        Args:
            actor (str): who asks.
            action (Action | str): for what.
            branch (str | None): where it reads or writes.
            target_branch (str | None): which branch it would make, change or delete.
            graph (str): of which graph.

        Returns:
            Decision: whether it may be done, why, and in words.

        Raises:
            InvalidRequestError: there is no such action, or a name is no text that can be written down.
            InternalError: Cedar could not judge.
        """
        return self._decided(actor, action_named(action), branch, target_branch, graph)

    def _decide(
        self, actor: str, wanted: Action, branch: str | None, target_branch: str | None, graph: str
    ) -> Decision:
        for name in (actor, branch, target_branch, graph):
            _refuse_unwritable(name)
        if not self.knows(actor):
            return Decision(allowed=False, text=f"policy denied action '{wanted}' for unknown actor '{actor}'")
        protected = self.rules.protected_branches
        matched = self._judge.permits(
            Request(actor, wanted, graph, branch, target_branch, branch in protected, target_branch in protected)
        )
        if matched:
            return Decision(
                allowed=True,
                text=f"policy allowed action '{wanted}' for actor '{actor}'",
                matched_rule_id=min(matched),
            )
        on = "" if branch is None else f" on branch '{branch}'"
        towards = "" if target_branch is None else f" targeting branch '{target_branch}'"
        return Decision(allowed=False, text=f"policy denied action '{wanted}'{on}{towards} for actor '{actor}'")


def action_named(action: Action | str) -> Action:
    """The action of a name.

    Raises:
        InvalidRequestError: there is no such action.
    """
    try:
        return Action(action)
    except ValueError:
        raise InvalidRequestError(f"unknown policy action '{action}'; there are {', '.join(Action)}") from None


def _refuse_unwritable(name: str | None) -> None:
    if name is None or name.isascii():
        return
    try:
        name.encode()
    except UnicodeEncodeError:
        raise InvalidRequestError(f"{name!r} is no name: it cannot be written as UTF-8") from None
