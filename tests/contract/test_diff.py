"""Differences between any two states: exactly what differs, as it was and as it is, however the tables lie."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, NotFoundError, OpenOptions, Point
from omnigraph.branch.diff import Diff
from omnigraph.branch.entity_change import Op
from omnigraph.storage.instants import EPOCH

SCHEMA = """
node Person { name: String @key  age: I32?  tags: [String]?  place: Vector(2)?  score: F64? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
FAST = OpenOptions(durability="process")
Telling = Callable[..., Diff]


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as made:
        people = [{"name": name, "age": age} for name, age in (("Ann", 1), ("Ben", 2), ("Cid", 3))]
        made.write({"Person": people}, {"Knows": [{"id": "k", "from": "Ann", "to": "Ben"}]})
        made.branches.create("side")
        yield made


@pytest.fixture(params=["local", "spark"])
def diff(graph: Graph, request: pytest.FixtureRequest) -> Telling:
    """The same question, answered in this process and on Spark."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return partial(graph.diff, engine=request.param)


def told(diff: Telling, older: Any, newer: Any, **only: Any) -> list[tuple[str, str, Any, Any]]:  # noqa: ANN401  (any state)
    """What differs: the operation, the entity, and its first property before and after. Counting agrees with it."""
    found = []
    whole = diff(older, newer, **only)
    counts = Counter((f"{each.kind}:{each.type_name}", each.op) for each in whole)
    stats = {key: [counts[key, op] for op in Op] for key in dict.fromkeys(key for key, _ in counts)}
    counted = diff(older, newer, **only)
    assert {key: [each.inserted, each.updated, each.deleted] for key, each in counted.stats.items()} == stats
    assert (len(counted), counted.types) == (sum(counts.values()), tuple(stats))
    for each in whole:
        names = {"Person": "age", "Knows": "since"}
        name = names.get(each.type_name, "name")
        before, after = (None if image is None else image.properties[name] for image in (each.before, each.after))
        found.append((each.op.value, each.id, before, after))
    return found


def test_a_diff_has_every_entity_that_differs_before_and_after(graph: Graph, diff: Telling) -> None:
    graph.write({"Person": [{"name": "Ann", "age": 7}, {"name": "Dee", "age": 4}]}, mode="merge", branch="side")
    graph.mutate('query q() { delete Person where name = "Ben" }', branch="side")
    expected = [("update", "Ann", 1, 7), ("delete", "Ben", 2, None), ("insert", "Dee", None, 4)]
    assert told(diff, "main", "side") == [*expected, ("delete", "k", None, None)]
    assert told(diff, "side", "main") == [
        ("update", "Ann", 7, 1),
        ("insert", "Ben", None, 2),
        ("delete", "Dee", 4, None),
        ("insert", "k", None, None),
    ]
    found = diff("main", "side")
    assert {key: (each.inserted, each.updated, each.deleted) for key, each in found.stats.items()} == {
        "node:Person": (1, 1, 1),
        "edge:Knows": (0, 0, 1),
    }
    assert (len(found), bool(found), found.types) == (4, True, ("node:Person", "edge:Knows"))


def test_a_diff_is_there_as_dictionaries_and_as_arrow(graph: Graph, diff: Telling) -> None:
    graph.write({"Person": [{"name": "Ann", "tags": ["x", "y"]}]}, mode="merge", branch="side")
    found = diff("main", "side")
    [change] = found.to_pylist()
    assert (change["kind"], change["type"]["name"], change["id"], change["op"]) == ("node", "Person", "Ann", "update")
    assert change["before"]["properties"]["age"] == 1
    assert change["after"]["properties"]["tags"] == ["x", "y"]
    table = found.to_arrow()["node:Person"]
    assert table.column_names == ["op", "id", "before", "after"]
    [row] = table.to_pylist()
    assert (row["op"], row["before"]["tags"], row["after"]["tags"]) == ("update", None, ["x", "y"])


def test_inserts_and_deletes_have_no_row_on_the_other_side(graph: Graph, diff: Telling) -> None:
    graph.write({"Person": [{"name": "Dee"}]}, branch="side")
    graph.mutate('query q() { delete Person where name = "Cid" }', branch="side")
    rows = diff("main", "side").to_arrow()["node:Person"].to_pylist()
    assert [(row["op"], row["before"] is None, row["after"] is None) for row in rows] == [
        ("delete", False, True),
        ("insert", True, False),
    ]


def test_states_are_named_in_any_way(graph: Graph, diff: Telling) -> None:
    first = graph.snapshot()
    graph.tags.create("before")
    graph.write({"Person": [{"name": "Dee", "age": 4}]})
    expected = [("insert", "Dee", None, 4)]
    number = graph.snapshot().number
    for older in (first, first.commit, "before", "side", Point(tag="before"), Point(branch="main", number=number - 1)):
        assert told(diff, older, "main") == expected
    with pytest.raises(NotFoundError, match="no branch, tag or commit 'nowhere'"):
        diff("nowhere", "main")


def test_a_text_may_name_a_number_or_a_time_of_a_branch(graph: Graph, diff: Telling) -> None:
    first = graph.snapshot()
    graph.write({"Person": [{"name": "Dee", "age": 4}]})
    then = (EPOCH + timedelta(microseconds=first.record.created_at_us)).isoformat()
    for older in (f"main@{first.number}", f"@{first.number}", f"main@{then}", f"@{then}", "side@2999-01-01"):
        assert told(diff, older, "main") == [("insert", "Dee", None, 4)]
    with pytest.raises(NotFoundError, match="branch 'main' has no commit number 99"):
        diff("main@99", "main")
    with pytest.raises(NotFoundError, match="no commit as old as 1999-01-01"):
        diff("main@1999-01-01", "main")
    with pytest.raises(NotFoundError, match="no branch, tag or commit 'main@yesterday'"):
        diff("main@yesterday", "main")


def test_a_branch_that_is_called_like_a_place_of_another_means_itself(graph: Graph, diff: Telling) -> None:
    graph.branches.create("main@2")
    graph.write({"Person": [{"name": "Dee", "age": 4}]}, branch="main@2")
    assert told(diff, "main", "main@2") == [("insert", "Dee", None, 4)]


def test_a_diff_can_be_asked_for_some_kinds_types_and_operations(graph: Graph, diff: Telling) -> None:
    graph.write({"Person": [{"name": "Dee", "age": 4}], "City": [{"name": "Oslo"}]}, branch="side")
    graph.mutate('query q() { delete Person where name = "Ben" }', branch="side")
    assert told(diff, "main", "side", kinds=["edge"]) == [("delete", "k", None, None)]
    assert told(diff, "main", "side", types=["City"]) == [("insert", "Oslo", None, "Oslo")]
    assert told(diff, "main", "side", types=["Person"], ops=["delete"]) == [("delete", "Ben", 2, None)]
    assert diff("main", "side", ops=["insert"]).stats.keys() == {"node:Person", "node:City"}
    with pytest.raises(InvalidRequestError, match="unknown op 'upsert'"):
        diff("main", "side", ops=["upsert"])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("tags", None, []),
        ("tags", ["a, b"], ["a", "b"]),
        ("tags", [], ["a"]),
        ("place", [0.0, 1.0], [0.0, 2.0]),
        ("score", 1.0, 1.0000000001),
        ("age", None, 0),
    ],
)
def test_values_are_compared_as_what_they_are(
    graph: Graph, diff: Telling, name: str, before: object, after: object
) -> None:
    graph.write({"Person": [{"name": "Eve", name: before}]}, branch="side")
    one = graph.snapshot(branch="side")
    graph.write({"Person": [{"name": "Eve", name: after}]}, mode="merge", branch="side")
    [change] = diff(one, "side")
    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties[name], change.after.properties[name]) == (before, after)


def test_a_row_written_again_as_it_was_does_not_differ(graph: Graph, diff: Telling) -> None:
    odd = {"name": "Eve", "tags": ["a"], "place": [1.0, 2.0], "score": 1.5}
    graph.write({"Person": [odd]}, branch="side")
    one = graph.snapshot(branch="side")
    graph.write({"Person": [odd, {"name": "Ann", "age": 1}]}, mode="merge", branch="side")
    graph.write({"Person": [{"name": "Fay"}]}, branch="side")
    graph.mutate('query q() { delete Person where name = "Fay" }', branch="side")
    assert not diff(one, "side")
    assert diff(one, "side").to_pylist() == []


def test_a_diff_across_a_compaction_tells_what_changed_and_nothing_else(graph: Graph, diff: Telling) -> None:
    for number in range(5):
        graph.write({"Person": [{"name": f"P{number}", "age": number}]}, branch="side")
    one = graph.snapshot(branch="side")
    graph.mutate('query q() { update Person set { age: 9 } where name = "P3" }', branch="side")
    graph.mutate('query q() { delete Person where name = "P1" }', branch="side")
    graph.optimize(branch="side")
    versions = [
        graph.snapshot(branch="side").record.tables["node:Person"].version,
        one.record.tables["node:Person"].version,
    ]
    assert versions[0] != versions[1]
    assert told(diff, one, "side") == [("delete", "P1", 1, None), ("update", "P3", 3, 9)]


def test_a_type_that_only_one_state_has_is_all_new_or_all_gone(graph: Graph, diff: Telling) -> None:
    before = graph.snapshot()
    graph.schema_apply(SCHEMA + "node Book { name: String @key }\n")
    graph.write({"Book": [{"name": "Emma"}]})
    assert told(diff, before, "main") == [("insert", "Emma", None, "Emma")]
    assert told(diff, "main", before) == [("delete", "Emma", "Emma", None)]


def test_a_renamed_type_is_the_same_type(graph: Graph, diff: Telling) -> None:
    before = graph.snapshot()
    graph.schema_apply(SCHEMA.replace("node City {", 'node Town @rename_from("City") {'))
    graph.write({"Town": [{"name": "Oslo"}]})
    assert [(each.type_name, each.op.value) for each in diff(before, "main")] == [("Town", "insert")]


def test_a_property_that_came_again_under_its_name_is_another_one(graph: Graph, diff: Telling) -> None:
    before = graph.snapshot().record.commit
    graph.schema_apply(SCHEMA.replace("age: I32?  ", ""))
    graph.schema_apply(SCHEMA)
    graph.mutate('query q() { update Person set { age: 1 } where name = "Ann" }')

    # Ann has the very number she had, and has it anew; the others lost theirs, and nobody wrote their rows.
    assert [(each.id, each.op.value) for each in diff(before, "main", types=["Person"])] == [("Ann", "update")]


def test_the_same_state_has_no_differences_and_reads_nothing(graph: Graph, diff: Telling) -> None:
    assert diff("main", "side").types == ()


def test_rows_of_a_type_that_grew_are_told_apart_by_their_values_in_either_direction(
    graph: Graph, diff: Telling
) -> None:
    older = graph.snapshot().commit
    graph.schema_apply(SCHEMA.replace("age: I32?", "age: I64?"), validated=True)
    graph.write({"Person": [{"name": "Ann", "age": 2**40}]}, mode="merge")
    newer = graph.snapshot().commit
    assert told(diff, older, newer) == [("update", "Ann", 1, 2**40)]
    assert told(diff, newer, older) == [("update", "Ann", 2**40, 1)]
