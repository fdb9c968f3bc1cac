"""Translate a policy for Cedar: rules become permits, groups become parents of actors.

Cedar gets JSON, never policy text, so that no name in a policy file can inject a rule.
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
    """A request to authorize.

    Attributes:
        actor: the id of the actor.
        action: the action to authorize.
        graph: the id of the graph; empty for actions on the server.
        branch: the branch that it reads or writes.
        target_branch: the branch that it would create, change or delete.
        branch_is_protected: whether `branch` is listed as protected.
        target_branch_is_protected: whether `target_branch` is listed as protected.
    """

    actor: str
    action: Action
    graph: str
    branch: str | None
    target_branch: str | None
    branch_is_protected: bool
    target_branch_is_protected: bool


class CedarEvaluator:
    """Compile rules once and evaluate requests against them. Immutable, so safe to share between threads."""

    def __init__(self, rules: Rules) -> None:
        self._cedar = _import_cedar()
        try:
            self._policies = self._cedar.PolicySet.from_json_str(json.dumps(_policy_set(rules)))
            self._entities = self._cedar.Entities.from_json_str(json.dumps(_actor_entities(rules)))
        except ValueError as fault:
            raise InternalError(f"policy: Cedar refuses the compiled rules: {fault}") from fault

    def matching_rules(self, request: Request) -> tuple[str, ...]:
        """Return the ids of the rules that allow a request; empty if it is denied.

        Raises:
            InternalError: Cedar failed to evaluate it.
        """
        result = self._cedar.is_authorized(_cedar_request(request), self._policies, self._entities)
        if result.diagnostics.errors:
            raise InternalError(f"policy: {'; '.join(map(str, result.diagnostics.errors))}", code="policy_evaluation")
        return tuple(result.diagnostics.reasons) if result.allowed else ()


def _policy_set(rules: Rules) -> dict[str, Any]:
    """Return the rules as a Cedar policy set, under their own ids."""
    return {"staticPolicies": {rule.id: _permit(rule) for rule in rules.rules}, "templates": {}, "templateLinks": []}


def _actor_entities(rules: Rules) -> list[dict[str, Any]]:
    """Return the actors as Cedar entities with their groups as parents."""
    return [
        {
            "uid": _uid("Actor", actor),
            "attrs": {},
            "parents": [_uid("Group", name) for name, members in rules.groups.items() if actor in members],
        }
        for actor in rules.actors
    ]


def _cedar_request(request: Request) -> dict[str, Any]:
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
    is_server_rule = rule.actions[0] in SERVER_ACTIONS
    return {
        "effect": "permit",
        "principal": {"op": "in", "entity": _uid("Group", rule.group)},
        "action": {"op": "in", "entities": [_uid("Action", action) for action in rule.actions]},
        "resource": {"op": "is", "entity_type": f"{_NAMESPACE}::{'Server' if is_server_rule else 'Graph'}"},
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


def _import_cedar() -> Any:  # noqa: ANN401  (a module that may not be installed)
    try:
        import cedarpy  # noqa: PLC0415  (in an extra; only policies need it)
    except ModuleNotFoundError:
        raise InvalidRequestError(
            "policies need Cedar, which is not installed; run: pip install 'omnigraph[server]'", code="not_installed"
        ) from None
    return cedarpy
