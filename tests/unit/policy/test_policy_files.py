import pytest

from omnigraph.policy.read import PolicyError, read_rules
from omnigraph.policy.rules import Action, Kind, Rule, Scope

GOOD = """\
version: 1
groups: { team: [act-a, act-b], ops: [act-o] }
protected_branches: [main, release/1]
rules:
  - id: team-read
    allow:
      actors: { group: team }
      actions: [read, export]
      branch_scope: any
  - id: ops-merge
    allow:
      actors: { group: ops }
      actions: [branch_merge]
      target_branch_scope: protected
"""


def rule(body: str, *, name: str = "r", group: str = "team") -> str:
    return (
        "version: 1\ngroups: { team: [act-a] }\nrules:\n"
        f"  - id: {name}\n    allow:\n      actors: {{ group: {group} }}\n      {body}\n"
    )


def test_a_file_is_read_as_it_says() -> None:
    rules = read_rules(GOOD)

    assert rules.groups == {"team": ("act-a", "act-b"), "ops": ("act-o",)}
    assert rules.protected_branches == {"main", "release/1"}
    assert rules.rules == (
        Rule("team-read", "team", (Action.READ, Action.EXPORT), Scope.ANY, None),
        Rule("ops-merge", "ops", (Action.BRANCH_MERGE,), None, Scope.PROTECTED),
    )
    assert rules.actors == ("act-a", "act-b", "act-o")
    assert rules.kinds() == {Kind.GRAPH}


def test_a_file_without_rules_allows_nothing_and_is_fine() -> None:
    assert read_rules("version: 1\n").rules == ()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 2\n", "policy version must be 1"),
        ("rules: []\n", "policy version must be 1"),
        ("version: true\n", "policy version must be 1"),
        ("version: 1\ngroups: { g: [] }\n", "policy group 'g' must not be empty"),
        (rule("actions: [read]", group="x"), "policy rule 'r' references unknown group 'x'"),
        (
            "version: 1\ngroups: { g: [a] }\nrules:\n"
            + "  - { id: r, allow: { actors: { group: g }, actions: [read] } }\n" * 2,
            "duplicate policy rule id 'r'",
        ),
        (rule("actions: []"), "policy rule 'r' must include at least one action"),
        (
            rule("actions: [read]\n      branch_scope: any\n      target_branch_scope: any"),
            "policy rule 'r' may specify branch_scope or target_branch_scope, not both",
        ),
        (
            rule("actions: [read, branch_merge]\n      branch_scope: any"),
            "policy rule 'r' uses branch_scope with unsupported action 'branch_merge'",
        ),
        (
            rule("actions: [change]\n      target_branch_scope: any"),
            "policy rule 'r' uses target_branch_scope with unsupported action 'change'",
        ),
    ],
)
def test_what_a_file_must_not_say_is_told_in_these_words(text: str, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_rules(text)
    assert caught.value.message == message
    assert caught.value.code == "policy_invalid"


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            rule("actions: [read, graph_list]"),
            None,
            "policy rule 'r' mixes the server-scoped action 'graph_list' with per-graph actions",
        ),
        (
            rule("actions: [graph_list]"),
            Kind.GRAPH,
            "policy rule 'r' uses server-scoped action 'graph_list' in a Graph policy file; move it to a Server policy",
        ),
        (
            rule("actions: [read]"),
            Kind.SERVER,
            "policy rule 'r' uses per-graph action 'read' in a Server policy file; move it to a Graph policy file",
        ),
    ],
)
def test_server_actions_and_graph_actions_stay_apart(text: str, kind: Kind | None, message: str) -> None:
    with pytest.raises(PolicyError) as caught:
        read_rules(text, kind=kind)
    assert caught.value.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "line", "column", "says"),
    [
        (GOOD.replace("groups:", "group:"), 2, 1, "the policy has the unknown key 'group'"),
        (GOOD.replace("branch_scope: any", "scope: any"), 9, 7, "policy rule 'team-read' has the unknown key 'scope'"),
        (GOOD.replace("allow:", "deny:", 1), 6, 5, "unknown key 'deny'"),
        (GOOD.replace("group: team", "actor: act-a"), 7, 17, "unknown key 'actor'"),
        (GOOD.replace("read, export", "read, delete"), 8, 23, "unknown action 'delete'"),
        (GOOD.replace("scope: any", "scope: main"), 9, 21, "there are any, protected and unprotected"),
        (GOOD.replace("id: team-read", "id: ' '"), 5, 9, "'id' must be a text that is not blank"),
        (GOOD.replace("[act-o]", "[7]"), 2, 39, "policy group 'ops' must hold texts"),
        (GOOD.replace("[main, release/1]", "main"), 3, 21, "protected_branches must be a list"),
        (GOOD + "rules: []\n", 15, 1, "duplicate key 'rules'"),
        (GOOD.replace("rules:", "rules: ["), 5, 3, "not YAML"),
        ("[]", 1, 1, "the policy must be a mapping"),
        ("", 1, 1, "the policy must be a mapping"),
    ],
)
def test_a_mistake_is_told_with_its_line_and_column(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(PolicyError, match=says) as caught:
        read_rules(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert str(caught.value).endswith(f"(line {line}, column {column})")


def test_every_key_that_a_rule_needs_is_missed_by_name() -> None:
    for key in ("id", "allow", "actors", "actions", "group"):
        lines = [line for line in rule("actions: [read]").splitlines() if f"{key}:" not in line]
        text = "\n".join(lines).replace("    allow:", "  - allow:") if key == "id" else "\n".join(lines)
        if key == "group":
            text = rule("actions: [read]").replace("{ group: team }", "{}")
        if key == "allow":
            text = "version: 1\nrules:\n  - id: r\n"
        with pytest.raises(PolicyError, match=f"needs '{key}'"):
            read_rules(text)
