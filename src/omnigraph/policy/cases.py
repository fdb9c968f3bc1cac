"""Files of expected decisions, run against a policy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from omnigraph.errors import GraphError
from omnigraph.policy.policy import Decision
from omnigraph.policy.read import action_of, entries, items, require_version, text_of, tree, wrong
from omnigraph.policy.rules import Action
from omnigraph.yaml_document import Entries

_EXPECTED = {"allow": True, "deny": False}


@dataclass(frozen=True, slots=True)
class Case:
    """A request and the expected decision."""

    id: str
    actor: str
    action: Action
    branch: str | None
    target_branch: str | None
    allowed: bool


class PolicyTestsFailedError(GraphError):
    """Some decisions are not the expected ones; the message lists them."""

    code = "policy_tests_failed"


def read_cases(text: str) -> tuple[Case, ...]:
    """Parse a file of expected decisions.

    Raises:
        PolicyError: the file is not valid.
    """
    root = entries(tree(text), "the file of policy tests", {"version", "cases"})
    require_version(root, "policy tests version must be 1")
    if "cases" not in root.values:
        raise wrong("the file of policy tests needs 'cases'", root.place)
    found: dict[str, Case] = {}
    for item in items(root.values["cases"], "cases"):
        known = {"id", "actor", "action", "branch", "target_branch", "expect"}
        value = entries(item, "a policy test case", known)
        case = _case(value)
        if case.id in found:
            raise wrong(f"duplicate policy test case id '{case.id}'", value.values["id"].place)
        found[case.id] = case
    return tuple(found.values())


def run_cases(cases: Sequence[Case], decide: Callable[[Case], Decision]) -> None:
    """Decide every case, and compare.

    Raises:
        PolicyTestsFailedError: a decision is not the expected one.
    """
    failed = []
    for case in cases:
        decision = decide(case)
        if decision.allowed is not case.allowed:
            expected, got = ("Allow", "deny") if case.allowed else ("Deny", "allow")
            failed.append(f"{case.id}: expected {expected} but got {got}")
    if failed:
        raise PolicyTestsFailedError("\n".join(["policy tests failed:", *failed]))


def _case(value: Entries) -> Case:
    name = text_of(value, "id", "a policy test case")
    what = f"policy test case '{name}'"
    actor = text_of(value, "actor", what)
    if "action" not in value.values:
        raise wrong(f"{what} needs 'action'", value.place)
    action = action_of(value.values["action"], what)
    expect = text_of(value, "expect", what)
    if expect not in _EXPECTED:
        raise wrong(f"{what} expects '{expect}'; it can be allow or deny", value.values["expect"].place)
    return Case(name, actor, action, _branch(value, "branch"), _branch(value, "target_branch"), _EXPECTED[expect])


def _branch(value: Entries, key: str) -> str | None:
    return text_of(value, key, "a policy test case") if key in value.values else None
