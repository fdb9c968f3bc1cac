import json
import sys
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.errors import InternalError, InvalidRequestError
from omnigraph.policy.cedar import CedarEvaluator, Request
from omnigraph.policy.policy import Decision, Policy
from omnigraph.policy.read import PolicyError, read_rules
from omnigraph.policy.rules import Action, Kind

ON_BRANCH = ("read", "export", "change")
ON_TARGET = ("branch_create", "schema_apply", "branch_delete", "branch_merge")
ACTIONS = (*ON_BRANCH, *ON_TARGET, "admin", "graph_list", "invoke_query")
PROTECTED = ("main", "release")
BRANCHES = (None, "main", "review")


def document(rules: list[dict[str, Any]], groups: dict[str, list[str]]) -> str:
    # JSON is YAML, and says exactly what it means.
    return json.dumps({"version": 1, "groups": groups, "protected_branches": list(PROTECTED), "rules": rules})


Asked = tuple[str, str, str | None, str | None]


def expected(rules: list[dict[str, Any]], groups: dict[str, list[str]], asked: Asked) -> list[str]:
    """The ids of the rules that allow it, worked out from the meaning of a policy, without Cedar."""
    actor, action, branch, target = asked
    fitting = []
    for rule in rules:
        allow = rule["allow"]
        holds = actor in groups[allow["actors"]["group"]] and action in allow["actions"]
        for key, name in (("branch_scope", branch), ("target_branch_scope", target)):
            scope = allow.get(key)
            if scope == "protected":
                holds = holds and name is not None and name in PROTECTED
            if scope == "unprotected":
                holds = holds and name is not None and name not in PROTECTED
        if holds:
            fitting.append(rule["id"])
    return sorted(fitting)


def words(actor: str, action: str, branch: str | None, target: str | None, groups: dict[str, list[str]]) -> str:
    if not any(actor in members for members in groups.values()):
        return f"policy denied action '{action}' for unknown actor '{actor}'"
    on = f" on branch '{branch}'" if branch is not None else ""
    to = f" targeting branch '{target}'" if target is not None else ""
    return f"policy denied action '{action}'{on}{to} for actor '{actor}'"


def scopes(action: str) -> Iterator[dict[str, str]]:
    yield {}
    key = "branch_scope" if action in ON_BRANCH else "target_branch_scope" if action in ON_TARGET else None
    if key is not None:
        yield from ({key: scope} for scope in ("any", "protected", "unprotected"))


def test_the_actions_are_all_there_are() -> None:
    assert set(ACTIONS) == set(Action)


@pytest.mark.parametrize("allowed", ACTIONS)
def test_every_action_and_scope_and_actor_is_judged_as_the_rule_means(allowed: str) -> None:
    groups = {"team": ["act-a", "act-b"], "others": ["act-c"]}
    for scope in scopes(allowed):
        rules = [{"id": "r", "allow": {"actors": {"group": "team"}, "actions": [allowed], **scope}}]
        policy = Policy.parse(document(rules, groups))
        for actor, action, branch, target in product(
            ("act-a", "act-b", "act-c", "act-nobody"), ACTIONS, BRANCHES, BRANCHES
        ):
            decision = policy.decide(actor, action, branch, target, graph="knowledge")
            fitting = expected(rules, groups, (actor, action, branch, target))
            if fitting:
                text = f"policy allowed action '{action}' for actor '{actor}'"
                assert decision == Decision(True, text, "r")
            else:
                assert decision == Decision(False, words(actor, action, branch, target, groups), None)


@pytest.mark.parametrize("key", ["branch_scope", "target_branch_scope"])
@pytest.mark.parametrize("action", ACTIONS)
def test_a_scope_is_taken_only_with_actions_that_have_such_a_branch(action: str, key: str) -> None:
    rules = [{"id": "r", "allow": {"actors": {"group": "g"}, "actions": [action], key: "any"}}]
    fits = action in (ON_BRANCH if key == "branch_scope" else ON_TARGET)
    if fits:
        Policy.parse(document(rules, {"g": ["a"]}))
    else:
        with pytest.raises(PolicyError, match=f"uses {key} with unsupported action '{action}'"):
            Policy.parse(document(rules, {"g": ["a"]}))


# Names that would end a quotation, or say something, were they ever put into a text of Cedar's.
NAMES = st.sampled_from(
    [
        "a",
        "b",
        'x" ]; permit(principal, action, resource);',
        "\\",
        "\n",
        "é\u202e",
        "\x00",
        "0",
        "Omnigraph::Actor",
        "*",
    ]
).map(lambda text: text + "_")


@st.composite
def policies(draw: st.DrawFn) -> tuple[list[dict[str, Any]], dict[str, list[str]]]:
    groups = draw(st.dictionaries(NAMES, st.lists(NAMES, min_size=1, max_size=3), min_size=1, max_size=3))
    rules: list[dict[str, Any]] = []
    for name in draw(st.lists(NAMES, unique=True, max_size=5)):
        family = draw(st.sampled_from((ON_BRANCH, ON_TARGET, ("admin", "invoke_query"), ("graph_list",))))
        allow: dict[str, Any] = {
            "actors": {"group": draw(st.sampled_from(sorted(groups)))},
            "actions": draw(st.lists(st.sampled_from(family), min_size=1, max_size=3)),
        }
        scope = draw(st.sampled_from((None, "any", "protected", "unprotected")))
        if scope is not None and family in (ON_BRANCH, ON_TARGET):
            allow["branch_scope" if family == ON_BRANCH else "target_branch_scope"] = scope
        rules.append({"id": name, "allow": allow})
    return rules, groups


@settings(max_examples=60)
@given(
    policies(),
    NAMES,
    st.sampled_from(ACTIONS),
    st.sampled_from((*BRANCHES, '" or true')),
    st.sampled_from((*BRANCHES, "")),
)
def test_many_rules_together_allow_what_one_of_them_allows_and_the_smallest_id_is_named(
    made: tuple[list[dict[str, Any]], dict[str, list[str]]],
    actor: str,
    action: str,
    branch: str | None,
    target: str | None,
) -> None:
    rules, groups = made
    decision = Policy.parse(document(rules, groups)).decide(actor, action, branch, target)
    fitting = expected(rules, groups, (actor, action, branch, target))
    assert decision.allowed is bool(fitting)
    assert decision.matched_rule_id == (fitting[0] if fitting else None)


def test_a_policy_without_rules_denies_everything() -> None:
    policy = Policy.parse("version: 1\ngroups: { g: [a] }\n")
    assert not any(policy.decide("a", action, "main", "main").allowed for action in ACTIONS)


def test_an_action_that_does_not_exist_is_no_denial_but_a_mistake() -> None:
    with pytest.raises(InvalidRequestError, match="unknown policy action 'fly'"):
        Policy.parse("version: 1\n").decide("a", "fly")


def test_a_name_that_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="cannot be encoded as UTF-8"):
        Policy.parse("version: 1\ngroups: { g: [a] }\n").decide("a", "read", "\ud800")


def test_a_policy_of_a_server_is_parsed_as_one() -> None:
    text = document([{"id": "list", "allow": {"actors": {"group": "g"}, "actions": ["graph_list"]}}], {"g": ["a"]})
    assert Policy.parse(text, kind=Kind.SERVER).decide("a", "graph_list").allowed
    with pytest.raises(PolicyError):
        Policy.parse(text, kind=Kind.GRAPH)


def test_whoever_has_no_cedar_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cedarpy", None)
    with pytest.raises(InvalidRequestError, match=r"pip install 'omnigraph\[server\]'"):
        Policy.parse("version: 1\n")


def test_a_judge_that_fails_is_never_taken_for_a_denial_or_an_allowance() -> None:
    evaluator = CedarEvaluator(read_rules("version: 1\ngroups: { g: [a] }\n"))
    with pytest.raises(InternalError, match=r"^policy: "):
        evaluator.matching_rules(Request("a", Action.READ, "g", "\ud800", None, False, False))
