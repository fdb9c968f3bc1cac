"""Parse policy files strictly: anything unknown is an error with line and column."""

from collections.abc import Mapping
from collections.abc import Set as AbstractSet

from omnigraph import yaml_document
from omnigraph.policy.rules import BRANCH_ACTIONS, SERVER_ACTIONS, TARGET_ACTIONS, Action, Kind, Rule, Rules, Scope
from omnigraph.yaml_document import Entries, Items, Place, Scalar, Value, YamlDocumentError

_WORDS = {Kind.GRAPH: "per-graph", Kind.SERVER: "server-scoped"}


class PolicyError(YamlDocumentError):
    """A policy file, or a file of policy tests, is not valid at `line` and `column`."""

    code = "policy_invalid"


def read_rules(text: str, *, kind: Kind | None = None) -> Rules:
    """Parse a policy file.

    Args:
        text: the content of the file.
        kind: whether rules must be for graphs or for the server; None for either.

    Raises:
        PolicyError: the file is not valid.
    """
    root = entries(tree(text), "the policy", {"version", "groups", "protected_branches", "rules"})
    require_version(root, "policy version must be 1")
    groups = _groups(root)
    branches = root.values.get("protected_branches")
    protected = frozenset(texts(branches, "protected_branches")) if branches is not None else frozenset()
    listed = root.values.get("rules")
    rules: dict[str, Rule] = {}
    for item in items(listed, "rules") if listed is not None else ():
        rule = _rule(item, rules, groups)
        if kind is not None:
            _refuse_other_kind(rule, kind, item.place)
        rules[rule.id] = rule
    return Rules(groups, protected, tuple(rules.values()))


def _groups(root: Entries) -> dict[str, tuple[str, ...]]:
    found = root.values.get("groups")
    if found is None or (isinstance(found, Scalar) and found.value is None):
        return {}
    groups = {}
    for name, members in entries(found, "groups").values.items():
        if not name.strip():
            raise wrong("policy group names must not be blank", members.place)
        actors = texts(members, f"policy group '{name}'")
        if not actors:
            raise wrong(f"policy group '{name}' must not be empty", members.place)
        groups[name] = actors
    return groups


def _rule(value: Value, earlier: Mapping[str, Rule], groups: Mapping[str, tuple[str, ...]]) -> Rule:
    found = entries(value, "a policy rule", {"id", "allow"})
    name = text_of(found, "id", "a policy rule")
    place = found.values["id"].place
    if name in earlier:
        raise wrong(f"duplicate policy rule id '{name}'", place)
    what = f"policy rule '{name}'"
    if "allow" not in found.values:
        raise wrong(f"{what} needs 'allow'", place)
    allow = entries(found.values["allow"], what, {"actors", "actions", "branch_scope", "target_branch_scope"})
    for key in ("actors", "actions"):
        if key not in allow.values:
            raise wrong(f"{what} needs '{key}' under 'allow'", allow.place)
    group = text_of(entries(allow.values["actors"], f"{what}, under 'actors',", {"group"}), "group", what)
    if group not in groups:
        raise wrong(f"{what} references unknown group '{group}'", allow.values["actors"].place)
    actions = tuple(action_of(action, what) for action in items(allow.values["actions"], f"the actions of {what}"))
    rule = Rule(name, group, actions, _scope(allow, "branch_scope", what), _scope(allow, "target_branch_scope", what))
    _refuse_contradictions(rule, allow.values["actions"].place)
    return rule


def _refuse_contradictions(rule: Rule, place: Place) -> None:
    what = f"policy rule '{rule.id}'"
    if not rule.actions:
        raise wrong(f"{what} must include at least one action", place)
    if rule.branch_scope is not None and rule.target_branch_scope is not None:
        raise wrong(f"{what} may specify branch_scope or target_branch_scope, not both", place)
    served = [action for action in rule.actions if action in SERVER_ACTIONS]
    if served and len(served) < len(rule.actions):
        raise wrong(
            f"{what} mixes the server-scoped action '{served[0]}' with per-graph actions; split it into two rules, one "
            "in a Server and one in a Graph policy file",
            place,
        )
    for scope, fitting, key in (
        (rule.branch_scope, BRANCH_ACTIONS, "branch_scope"),
        (rule.target_branch_scope, TARGET_ACTIONS, "target_branch_scope"),
    ):
        unfit = [action for action in rule.actions if action not in fitting]
        if scope is not None and unfit:
            raise wrong(f"{what} uses {key} with unsupported action '{unfit[0]}'", place)


def _refuse_other_kind(rule: Rule, kind: Kind, place: Place) -> None:
    for action in rule.actions:
        own = Kind.SERVER if action in SERVER_ACTIONS else Kind.GRAPH
        if own is not kind:
            raise wrong(
                f"policy rule '{rule.id}' uses {_WORDS[own]} action '{action}' in a {kind} policy file; move it to a "
                f"{own} policy file",
                place,
            )


def _scope(found: Entries, key: str, what: str) -> Scope | None:
    if key not in found.values:
        return None
    text = text_of(found, key, what)
    if text not in tuple(Scope):
        raise wrong(f"{what} has the {key} '{text}'; there are any, protected and unprotected", found.values[key].place)
    return Scope(text)


# -- also for files of policy tests ------------------------------------------------------------------------------------


def tree(text: str) -> Value:
    """Parse YAML; raise a `PolicyError` if it is not valid."""
    try:
        return yaml_document.read(text)
    except PolicyError:
        raise
    except YamlDocumentError as fault:
        raise PolicyError(fault.message, line=fault.line, column=fault.column) from None


def require_version(root: Entries, message: str) -> None:
    """Require `version: 1`."""
    found = root.values.get("version")
    if not isinstance(found, Scalar) or isinstance(found.value, bool) or found.value != 1:
        raise wrong(message, root.place if found is None else found.place)


def entries(value: Value, what: str, known: AbstractSet[str] | None = None) -> Entries:
    """Require a mapping with known keys only."""
    if not isinstance(value, Entries):
        raise wrong(f"{what} must be a mapping", value.place)
    for key in value.values:
        if known is not None and key not in known:
            raise wrong(f"{what} has the unknown key '{key}'", value.places[key])
    return value


def items(value: Value, what: str) -> tuple[Value, ...]:
    """Require a list."""
    if not isinstance(value, Items):
        raise wrong(f"{what} must be a list", value.place)
    return value.values


def texts(value: Value, what: str) -> tuple[str, ...]:
    """Require a list of strings that are not blank."""
    found = []
    for item in items(value, what):
        if not isinstance(item, Scalar) or not isinstance(item.value, str) or not item.value.strip():
            raise wrong(f"{what} must hold texts that are not blank", item.place)
        found.append(item.value)
    return tuple(found)


def text_of(found: Entries, key: str, what: str) -> str:
    """Require a string under a key, not blank."""
    value = found.values.get(key)
    if value is None:
        raise wrong(f"{what} needs '{key}'", found.place)
    if not isinstance(value, Scalar) or not isinstance(value.value, str) or not value.value.strip():
        raise wrong(f"{what}: '{key}' must be a text that is not blank", value.place)
    return value.value


def action_of(value: Value, what: str) -> Action:
    """Require the name of an action."""
    if not isinstance(value, Scalar) or value.value not in tuple(Action):
        shown = value.value if isinstance(value, Scalar) else "…"
        raise wrong(f"{what} names the unknown action '{shown}'; there are {', '.join(Action)}", value.place)
    return Action(str(value.value))


def wrong(message: str, place: Place) -> PolicyError:
    """Return an error with a position in the file."""
    return PolicyError(message, line=place.line, column=place.column)
