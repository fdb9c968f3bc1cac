"""A policy as Cedar sees it: rules become permits, groups become parents of actors.

It is handed over as JSON, never as text: no name in a policy file can end a quotation and say something else.
"""

import json
from dataclasses import dataclass
from typing import Any

from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.policy.rules import SERVER_ACTIONS, Action, Rule, Rules, Scope

_NAMESPACE = "Omnigraph"
_SERVER = ("Server", "root")


@dataclass(frozen=True, slots=True)
class Request:
    """What an actor asks for.

    Attributes:
        actor: who.
        action: what.
        graph: of which graph; a server's action has none.
        branch: where it reads or writes.
        target_branch: what it would change, of branches.
        branch_is_protected: whether that branch is listed as protected.
        target_branch_is_protected: whether that one is.
    """

    actor: str
    action: Action
    graph: str
    branch: str | None
    target_branch: str | None
    branch_is_protected: bool
    target_branch_is_protected: bool


class CedarJudge:
    """Rules compiled once, asked many times. Safe to share between threads: nothing in it changes."""

    def __init__(self, rules: Rules) -> None:
        self._cedar = _imported()
        try:
            self._policies = self._cedar.PolicySet.from_json_str(json.dumps(permits(rules)))
            self._entities = self._cedar.Entities.from_json_str(json.dumps(actors(rules)))
        except ValueError as fault:
            raise InternalError(f"policy: Cedar refuses the compiled rules: {fault}") from fault

    def permits(self, request: Request) -> tuple[str, ...]:
        """The ids of the rules that allow a request; none where it is denied.

        Raises:
            InternalError: Cedar could not judge.
        """
        result = self._cedar.is_authorized(asked(request), self._policies, self._entities)
        if result.diagnostics.errors:
            raise InternalError(f"policy: {'; '.join(map(str, result.diagnostics.errors))}", code="policy_evaluation")
        return tuple(result.diagnostics.reasons) if result.allowed else ()


def permits(rules: Rules) -> dict[str, Any]:
    """The rules as a set of Cedar policies, under their own ids."""
    return {"staticPolicies": {rule.id: _permit(rule) for rule in rules.rules}, "templates": {}, "templateLinks": []}


def actors(rules: Rules) -> list[dict[str, Any]]:
    """The actors as Cedar entities, each in its groups."""
    return [
        {
            "uid": _uid("Actor", actor),
            "attrs": {},
            "parents": [_uid("Group", name) for name, members in rules.groups.items() if actor in members],
        }
        for actor in rules.actors
    ]


def asked(request: Request) -> dict[str, Any]:
    """A request in Cedar's shape."""
    resource = _SERVER if request.action in SERVER_ACTIONS else ("Graph", request.graph)
    return {
        "principal": _uid("Actor", request.actor),
        "action": _uid("Action", request.action),
        "resource": _uid(*resource),
        "context": {
            "has_branch": request.branch is not None,
            "branch": request.branch or "",
            "has_target_branch": request.target_branch is not None,
            "target_branch": request.target_branch or "",
            "branch_is_protected": request.branch_is_protected,
            "target_branch_is_protected": request.target_branch_is_protected,
        },
    }


def _permit(rule: Rule) -> dict[str, Any]:
    conditions = [
        {"kind": "when", "body": body}
        for scope, has, protected in (
            (rule.branch_scope, "has_branch", "branch_is_protected"),
            (rule.target_branch_scope, "has_target_branch", "target_branch_is_protected"),
        )
        for body in _condition(scope, has, protected)
    ]
    of_server = rule.actions[0] in SERVER_ACTIONS
    return {
        "effect": "permit",
        "principal": {"op": "in", "entity": _uid("Group", rule.group)},
        "action": {"op": "in", "entities": [_uid("Action", action) for action in rule.actions]},
        "resource": {"op": "is", "entity_type": f"{_NAMESPACE}::{'Server' if of_server else 'Graph'}"},
        "conditions": conditions,
    }


def _condition(scope: Scope | None, has: str, protected: str) -> list[dict[str, Any]]:
    match scope:
        case None | Scope.ANY:
            return []
        case Scope.PROTECTED:
            return [{"&&": {"left": _context(has), "right": _context(protected)}}]
        case Scope.UNPROTECTED:
            return [{"&&": {"left": _context(has), "right": {"!": {"arg": _context(protected)}}}}]


def _context(attribute: str) -> dict[str, Any]:
    return {".": {"left": {"Var": "context"}, "attr": attribute}}


def _uid(kind: str, name: str) -> dict[str, str]:
    return {"type": f"{_NAMESPACE}::{kind}", "id": str(name)}


def _imported() -> Any:  # noqa: ANN401  (a module, which may not be there)
    try:
        import cedarpy  # noqa: PLC0415  (in an extra; only who has policies needs it)
    except ModuleNotFoundError:
        raise InvalidRequestError(
            "policies need Cedar, which is not installed; run: pip install 'omnigraph[server]'", code="not_installed"
        ) from None
    return cedarpy
