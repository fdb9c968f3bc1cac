import pytest

from omnigraph.policy.cases import Case, PolicyTestsFailedError, read_cases, run_cases
from omnigraph.policy.policy import Decision, Policy
from omnigraph.policy.read import PolicyError
from omnigraph.policy.rules import Action

POLICY = """\
version: 1
groups: { team: [act-a] }
protected_branches: [main]
rules:
  - { id: r, allow: { actors: { group: team }, actions: [change], branch_scope: unprotected } }
"""
CASES = """\
version: 1
cases:
  - { id: on-review, actor: act-a, action: change, branch: review, expect: allow }
  - { id: on-main, actor: act-a, action: change, branch: main, expect: deny }
  - { id: merge, actor: act-a, action: branch_merge, branch: review, target_branch: main, expect: deny }
"""


def judged(text: str) -> None:
    policy = Policy.parse(POLICY)

    def decide(case: Case) -> Decision:
        return policy.decide(case.actor, case.action, case.branch, case.target_branch)

    run_cases(read_cases(text), decide)


def test_cases_are_read_as_they_say() -> None:
    assert read_cases(CASES)[2] == Case("merge", "act-a", Action.BRANCH_MERGE, "review", "main", False)


def test_cases_that_come_out_as_expected_pass() -> None:
    judged(CASES)


def test_all_that_came_out_otherwise_are_listed() -> None:
    turned = CASES.replace("expect: allow", "expect: x").replace("expect: deny", "expect: allow")
    with pytest.raises(PolicyTestsFailedError) as caught:
        judged(turned.replace("expect: x", "expect: deny"))
    assert str(caught.value).splitlines() == [
        "policy tests failed:",
        "on-review: expected Deny but got allow",
        "on-main: expected Allow but got deny",
        "merge: expected Allow but got deny",
    ]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (CASES.replace("version: 1", "version: 0"), "policy tests version must be 1"),
        (CASES.replace("id: on-main", "id: on-review"), "duplicate policy test case id 'on-review'"),
        (CASES.replace("expect: allow", "expect: maybe"), "it can be allow or deny"),
        (CASES.replace("actor: act-a, ", "", 1), "policy test case 'on-review' needs 'actor'"),
        (CASES.replace("action: change, ", "", 1), "policy test case 'on-review' needs 'action'"),
        (CASES.replace("action: change", "action: fly"), "unknown action 'fly'"),
        (CASES.replace("branch: main", "on: main"), "unknown key 'on'"),
        (CASES.replace("target_branch: main", "target_branch: 7"), "'target_branch' must be a text"),
        ("version: 1\n", "needs 'cases'"),
    ],
)
def test_a_file_of_cases_is_read_strictly(text: str, says: str) -> None:
    with pytest.raises(PolicyError, match=says):
        read_cases(text)
