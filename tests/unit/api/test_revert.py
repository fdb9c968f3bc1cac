"""Undoing commits: what they did goes back, whatever came later stays, and what is in the way is listed whole."""

from typing import Unpack

import pytest
from tests.support.where import Where

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InvalidRequestError, NotFoundError, PermissionDeniedError, RevertConflictError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.ids import UlidSource

SCHEMA = """
node Person { name: String @key  age: I32?  mail: String? @unique }
node Place { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> Place @card(0..1)
"""


@pytest.fixture
def uri() -> str:
    return f"memory://revert-{UlidSource().new()}"


@pytest.fixture
def graph(uri: str) -> Graph:
    graph = omnigraph.init(uri, SCHEMA)
    graph.write(
        nodes={"Person": [{"name": each, "age": 1} for each in "abc"], "Place": [{"name": "ulm"}, {"name": "bern"}]},
        edges={"Knows": [{"from": "a", "to": "b", "since": 1}], "LivesIn": [{"from": "a", "to": "ulm"}]},
    )
    return graph


def do(graph: Graph, *statements: str, branch: str = "main") -> str:
    """Statements as one commit."""
    commit = graph.mutate(f"query q() @ordered {{ {' '.join(statements)} }}", branch=branch).commit
    assert commit is not None
    return commit


def state(graph: Graph, **where: Unpack[Where]) -> dict[str, list[dict[str, object]]]:
    """Everything there is, in order."""
    return {
        name: sorted(graph.export_arrow(name, **where).read_all().to_pylist(), key=lambda row: str(row["id"]))
        for name in ("Person", "Place", "Knows", "LivesIn")
    }


def test_an_undone_commit_leaves_the_state_before_it(graph: Graph) -> None:
    before = state(graph)
    for statements in (
        ['insert Person { name: "n", age: 7 }'],
        ['update Person set { age: 9 } where name = "a"'],
        ['delete Person where name = "a"'],  # with its edges
        [
            'insert Person { name: "n" }',
            'insert Knows { from: "n", to: "a" }',
            "update Person set { age: 0 } where age = 1",
        ],
    ):
        commit = do(graph, *statements)
        done = graph.revert(commit, actor="ada", message="a mistake")
        assert state(graph) == before
        shown = graph.commits.show(str(done.commit))
        assert (shown.kind, shown.actor, shown.message, shown.parent) == ("revert", "ada", "a mistake", commit)
        assert done.head == done.commit == graph.snapshot().commit
        assert shown.record.notes["revert"] == {"first": commit, "last": commit}


def test_what_came_later_stays(graph: Graph) -> None:
    commit = do(graph, 'update Person set { age: 9 } where name = "a"', 'insert Person { name: "n" }')
    do(graph, 'update Person set { age: 5 } where name = "b"', 'insert Place { name: "rom" }')
    graph.revert(commit)
    people = {str(row["id"]): row["age"] for row in state(graph)["Person"]}
    assert people == {"a": 1, "b": 5, "c": 1}
    assert graph.count("Place") == 3


def test_a_range_is_undone_as_one_step(graph: Graph) -> None:
    before = state(graph)
    first = do(graph, 'update Person set { age: 9 } where name = "a"', 'insert Person { name: "n" }')
    do(graph, 'update Person set { age: 10 } where name = "a"', 'delete Person where name = "n"')
    last = do(graph, 'delete Person where name = "b"', 'insert Person { name: "m" }')
    done = graph.revert((first, last))
    assert state(graph) == before
    assert (done.first, done.last) == (first, last)
    assert {key: (each.inserted, each.updated, each.deleted) for key, each in done.changes.items()} == {
        "node:Person": (1, 1, 1),
        "edge:Knows": (1, 0, 0),
    }
    again = graph.revert(str(done.commit))  # undoing the undoing
    assert state(graph) == state(graph, commit=last)
    assert again.commit != done.commit


def test_undoing_what_is_undone_already_makes_no_commit(graph: Graph) -> None:
    commit = do(graph, 'update Person set { age: 9 } where name = "a"')
    do(graph, 'update Person set { age: 1 } where name = "a"')
    head = graph.snapshot().commit
    done = graph.revert(commit)
    assert (done.commit, done.number, done.head, dict(done.changes)) == (None, None, head, {})
    assert graph.snapshot().commit == head


def test_everything_in_the_way_is_listed_and_nothing_is_undone(graph: Graph) -> None:
    commit = do(
        graph,
        'update Person set { age: 9 } where name = "a"',
        'update Person set { age: 9 } where name = "b"',
        'insert Person { name: "n" }',
    )
    gone = do(graph, 'delete Person where name = "c"')
    do(graph, 'update Person set { age: 8 } where name = "a"', 'update Person set { age: 3 } where name = "n"')
    do(graph, 'delete Person where name = "b"', 'insert Person { name: "c", age: 4 }')
    head, before = graph.snapshot().commit, state(graph)
    with pytest.raises(RevertConflictError) as refused:
        graph.revert(commit)
    found = {each.entity_id: each for each in refused.value.conflicts}
    assert sorted(found) == ["a", "b", "n"]
    assert {each.kind for each in found.values()} == {"changed_since"}
    values = found["a"]
    assert [dict(each or {}).get("age") for each in (values.before, values.after, values.current)] == [1, 9, 8]
    assert found["b"].current is None
    assert found["n"].before is None
    assert str(refused.value).startswith("cannot revert: node 'a' of type 'Person' was changed since; node 'b'")
    with pytest.raises(RevertConflictError, match="node 'c' of type 'Person' was changed since"):
        graph.revert(gone)
    assert (graph.snapshot().commit, state(graph)) == (head, before)


def test_rules_that_would_be_broken_are_in_the_way(graph: Graph) -> None:
    made = do(graph, 'insert Person { name: "n" }')
    do(graph, 'insert Knows { from: "a", to: "n" }')
    with pytest.raises(RevertConflictError) as refused:
        graph.revert(made)  # the edge would end nowhere
    assert [(each.kind, each.type_key) for each in refused.value.conflicts] == [("constraint_violation", "edge:Knows")]

    freed = do(graph, 'update Person set { mail: "x" } where name = "a"')
    given_up = do(graph, 'update Person set { mail: "y" } where name = "a"')
    do(graph, 'insert Person { name: "o", mail: "x" }')
    with pytest.raises(RevertConflictError, match=r"@unique violation on Person\.mail"):
        graph.revert(given_up)

    moved_out = do(graph, 'delete LivesIn where from = "a"')
    do(graph, 'insert LivesIn { from: "a", to: "bern" }')
    with pytest.raises(RevertConflictError) as crowded:
        graph.revert(moved_out)
    assert [each.kind for each in crowded.value.conflicts] == ["constraint_violation"]
    assert freed != given_up


def test_changes_of_schema_are_not_undone(graph: Graph) -> None:
    before = do(graph, 'update Person set { age: 9 } where name = "a"')
    grown = graph.schema_apply(SCHEMA.replace("age: I32?", "age: I32?  city: String?")).commit
    assert grown is not None
    with pytest.raises(RevertConflictError, match="the schema was changed; apply the earlier schema instead"):
        graph.revert(grown)
    graph.schema_apply(SCHEMA.replace("age: I32?", "city: String?"))
    with pytest.raises(RevertConflictError) as refused:
        graph.revert(before)  # the rows of that type have no such column by now
    assert [(each.kind, each.type_key) for each in refused.value.conflicts] == [("schema_changed", "node:Person")]
    edge = do(graph, 'insert Knows { from: "b", to: "c" }')
    graph.revert(edge)
    assert graph.count("Knows") == 1


def test_a_merge_is_undone_against_its_first_parent(graph: Graph) -> None:
    graph.branches.create("side")
    do(graph, 'insert Person { name: "s" }', 'update Person set { age: 7 } where name = "a"', branch="side")
    do(graph, 'insert Place { name: "rom" }')
    before = state(graph)
    merged = graph.merge("side").commit
    assert merged is not None
    assert graph.count("Person") == 4
    graph.revert(merged)
    assert state(graph) == before


def test_a_commit_of_another_branch_that_was_brought_in_can_be_undone(graph: Graph) -> None:
    graph.branches.create("side")
    commit = do(graph, 'insert Person { name: "s" }', branch="side")
    do(graph, 'insert Person { name: "t" }', branch="side")
    graph.merge("side")
    graph.revert(commit)
    assert [row["id"] for row in state(graph)["Person"]] == ["a", "b", "c", "t"]
    assert graph.count("Person", branch="side") == 5


def test_a_commit_is_undone_on_a_branch_made_from_its_own(graph: Graph) -> None:
    commit = do(graph, 'insert Person { name: "n" }')
    graph.branches.create("side")
    graph.revert(commit, branch="side")
    assert (graph.count("Person"), graph.count("Person", branch="side")) == (4, 3)


def test_what_cannot_be_meant_is_refused(graph: Graph, uri: str) -> None:
    first = graph.commits.list()[-1].id
    one = do(graph, 'insert Person { name: "n" }')
    two = do(graph, 'insert Person { name: "m" }')
    with pytest.raises(InvalidRequestError, match="is the first of all; there is nothing to go back to"):
        graph.revert(first)
    with pytest.raises(InvalidRequestError, match="does not come before"):
        graph.revert((two, one))
    graph.branches.create("side")
    mine = do(graph, 'insert Person { name: "s" }', branch="side")
    late = do(graph, 'insert Person { name: "l" }')
    with pytest.raises(InvalidRequestError, match="does not come before"):
        graph.revert((late, mine))
    graph.revert((two, mine), branch="side")  # across the fork they are one line
    assert graph.count("Person", branch="side") == 4
    for commit, branch in (("x", "main"), (one, "ghost")):
        with pytest.raises(NotFoundError):
            graph.revert(commit, branch=branch)
    with pytest.raises(PermissionDeniedError):
        omnigraph.open(uri, read_only=True).revert(one)


def test_a_request_sent_twice_is_carried_out_once(graph: Graph) -> None:
    commit = do(graph, 'insert Person { name: "n" }')
    first = graph.revert(commit, idempotency_key="once")
    again = graph.revert(commit, idempotency_key="once")
    assert (again.commit, again.replayed) == (first.commit, True)
    assert graph.count("Person") == 3


@pytest.mark.parametrize("is_in_the_way", [False, True])
def test_a_faster_writer_is_seen(graph: Graph, uri: str, *, is_in_the_way: bool) -> None:
    commit = do(graph, 'update Person set { age: 9 } where name = "a"')
    other = omnigraph.open(uri)
    raced: list[str] = []
    whom = "a" if is_in_the_way else "b"

    def race() -> None:
        if not raced:
            raced.append("")  # the faster writer comes by here too
            raced[0] = do(other, f'update Person set {{ age: 5 }} where name = "{whom}"')

    with armed(Failpoint.WRITE_PREPARED, race):
        if is_in_the_way:
            with pytest.raises(RevertConflictError, match="node 'a' of type 'Person' was changed since"):
                graph.revert(commit)
        else:
            done = graph.revert(commit)
            assert graph.commits.show(str(done.commit)).parent == raced[0]
    ages = {str(row["id"]): row["age"] for row in state(graph)["Person"]}
    assert ages == ({"a": 5, "b": 1, "c": 1} if is_in_the_way else {"a": 1, "b": 5, "c": 1})


def test_what_means_the_same_since_is_no_reason_to_refuse(uri: str) -> None:
    """Properties renamed, added or put in another order since: the value goes back to where it belongs."""
    before = "node P { name: String @key  age: I32?  city: String? @index }"
    later = 'node P { name: String @key  mail: String?  city: String? @index  years: I32? @rename_from("age") }'
    with omnigraph.init(uri, before) as graph:
        graph.write({"P": [{"name": name, "age": 1, "city": "ulm"} for name in "abc"]})
        updated = graph.mutate('query q() { update P set { age: 2 } where name = "a" }').commit
        deleted = graph.mutate('query q() { delete P where name = "b" }').commit
        assert updated is not None and deleted is not None
        graph.branches.create("other")
        graph.schema_apply(later, branch="other")
        graph.optimize()
        graph.optimize(branch="other")
        graph.merge("other")
        graph.mutate('query q() { update P set { mail: "m" } where name = "a" }')
        graph.optimize()
        for commit in (updated, deleted):
            graph.revert(commit)
        rows = sorted(graph.export_arrow("P").read_all().to_pylist(), key=lambda row: str(row["name"]))
        assert [(row["name"], row["years"], row["city"], row["mail"]) for row in rows] == [
            ("a", 1, "ulm", "m"),
            ("b", 1, "ulm", None),
            ("c", 1, "ulm", None),
        ]


def test_a_property_dropped_since_is_in_the_way(uri: str) -> None:
    before = "node P { name: String @key  age: I32?  city: String? }"
    with omnigraph.init(uri, before) as graph:
        graph.write({"P": [{"name": "a", "age": 1}]})
        commit = graph.mutate('query q() { update P set { age: 2 } where name = "a" }').commit
        assert commit is not None
        graph.schema_apply(before.replace("age: I32?  ", ""))
        with pytest.raises(RevertConflictError, match="changed or dropped"):
            graph.revert(commit)
