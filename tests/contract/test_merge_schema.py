"""A branch may change the schema and bring it to another by a merge; what was written under the old one comes along."""

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, MergeConflictError, OpenOptions

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
WITH_MAIL = SCHEMA.replace("age: I32?", "age: I32?  mail: String?")
RENAMED = SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")')
RENAMED_TYPE = SCHEMA.replace("node City {", 'node Town @rename_from("City") {')
WITH_BOOK = SCHEMA + "node Book { name: String @key }\nedge Wrote: Person -> Book\n"
WITHOUT_CITY = SCHEMA.replace("node City { name: String @key }\n", "")


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as made:
        people = [{"name": name, "age": age} for name, age in (("Ann", 1), ("Ben", 2), ("Cid", 3))]
        made.write({"Person": people, "City": [{"name": "Oslo"}]}, {"Knows": [{"id": "k", "from": "Ann", "to": "Ben"}]})
        made.branches.create("side")
        yield made


def rows(graph: Graph, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}


def test_a_new_property_is_brought_along_with_its_values(graph: Graph) -> None:
    graph.schema_apply(WITH_MAIL, branch="side")
    graph.write({"Person": [{"name": "Ann", "age": 10, "mail": "a@a"}]}, mode="merge", branch="side")
    done = graph.merge("side")
    assert done.outcome == "fast_forward"
    assert graph.schema_text() == graph.schema_text(branch="side")
    assert rows(graph, "Person")["Ann"] == {"id": "Ann", "name": "Ann", "age": 10, "mail": "a@a"}


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_rows_written_under_the_old_schema_get_the_new_columns(graph: Graph, source: str, target: str) -> None:
    """Whichever of both is brought into the other."""
    graph.schema_apply(WITH_MAIL, branch="side")
    graph.write({"Person": [{"name": "Ann", "age": 1, "mail": "a@a"}]}, mode="merge", branch="side")
    graph.mutate('query q() { delete Person where name = "Cid" }', branch="side")
    graph.write({"Person": [{"name": "Ben", "age": 20}, {"name": "New", "age": 4}]}, mode="merge")
    graph.write({}, {"Knows": [{"id": "n", "from": "New", "to": "Ben"}]})
    head = graph.snapshot(branch=target)
    seen = graph.merge(source, into=target, preview=True)
    done = graph.merge(source, into=target)
    assert (done.outcome, seen.changes) == ("merged", done.changes)
    assert graph.schema_text(branch=target) == WITH_MAIL
    found = {name: (row["age"], row["mail"]) for name, row in rows(graph, "Person", target).items()}
    assert found == {"Ann": (1, "a@a"), "Ben": (20, None), "New": (4, None)}
    assert sorted(rows(graph, "Knows", target)) == ["k", "n"]
    record = graph.snapshot(branch=target).record
    counted = {key: [each.inserted, each.updated, each.deleted] for key, each in record.changes.types.items()}
    told = {key: [each.inserted, each.updated, each.deleted] for key, each in graph.diff(head, target).stats.items()}
    assert counted == told
    graph.write({"Person": [{"name": "Next", "mail": "n@n"}]}, branch=target)
    assert graph.merge(source, into=target).outcome == "already_up_to_date"


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_renamed_property_keeps_what_the_other_branch_wrote_to_it(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(RENAMED, branch="side")
    graph.mutate('query q() { update Person set { years: 10 } where name = "Ann" }', branch="side")
    graph.mutate('query q() { update Person set { age: 20 } where name = "Ben" }')
    graph.merge(source, into=target)
    assert {name: row["years"] for name, row in rows(graph, "Person", target).items()} == {
        "Ann": 10,
        "Ben": 20,
        "Cid": 3,
    }


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_one_row_changed_on_both_sides_of_a_schema_change_is_a_conflict(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(RENAMED, branch="side")
    graph.mutate('query q() { update Person set { years: 10 } where name = "Ann" }', branch="side")
    graph.mutate('query q() { update Person set { age: 20 } where name = "Ann" }')
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    [conflict] = refused.value.conflicts
    assert conflict.kind == "divergent_update"
    values = {"side": 10, "main": 20}
    assert conflict.base is not None
    assert conflict.source is not None
    assert conflict.target is not None
    assert [each["years"] for each in (conflict.base, conflict.source, conflict.target)] == [
        1,
        values[source],
        values[target],
    ]
    graph.merge(source, into=target, prefer="target")
    assert rows(graph, "Person", target)["Ann"]["years"] == values[target]


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_renamed_type_keeps_what_the_other_branch_wrote_to_it(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(RENAMED_TYPE, branch="side")
    graph.write({"City": [{"name": "Rome"}]})
    graph.merge(source, into=target)
    assert sorted(rows(graph, "Town", target)) == ["Oslo", "Rome"]
    assert "node:City" not in graph.snapshot(branch=target).record.tables


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_new_types_are_brought_along(graph: Graph, source: str, target: str) -> None:
    graph.schema_apply(WITH_BOOK, branch="side")
    graph.write({"Book": [{"name": "Emma"}]}, {"Wrote": [{"from": "Ann", "to": "Emma"}]}, branch="side")
    graph.write({"Person": [{"name": "New"}]})
    graph.merge(source, into=target)
    assert sorted(rows(graph, "Book", target)) == ["Emma"]
    assert sorted(rows(graph, "Person", target)) == ["Ann", "Ben", "Cid", "New"]
    assert len(rows(graph, "Wrote", target)) == 1


def test_an_edge_of_a_new_type_to_a_node_deleted_meanwhile_is_an_orphan(graph: Graph) -> None:
    graph.schema_apply(WITH_BOOK, branch="side")
    graph.write({"Book": [{"name": "Emma"}]}, {"Wrote": [{"id": "w", "from": "Cid", "to": "Emma"}]}, branch="side")
    graph.mutate('query q() { delete Person where name = "Cid" }')
    for source, target in (("side", "main"), ("main", "side")):
        with pytest.raises(MergeConflictError) as refused:
            graph.merge(source, into=target)
        assert [(each.kind, each.entity_id) for each in refused.value.conflicts] == [("orphan_edge", "w")]


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_type_that_one_side_dropped_is_gone_unless_the_other_changed_it(
    graph: Graph, source: str, target: str
) -> None:
    graph.schema_apply(WITHOUT_CITY, branch="side", allow_data_loss=True)
    graph.write({"Person": [{"name": "New"}]})
    graph.branches.create("other")
    graph.merge(source, into=target)
    assert "node:City" not in graph.snapshot(branch=target).record.tables
    assert "New" in rows(graph, "Person", target)


def test_a_type_that_one_side_dropped_and_the_other_changed_is_a_conflict(graph: Graph) -> None:
    graph.schema_apply(WITHOUT_CITY, branch="side", allow_data_loss=True)
    graph.write({"City": [{"name": "Rome"}]})
    for source, target in (("side", "main"), ("main", "side")):
        with pytest.raises(MergeConflictError) as refused:
            graph.merge(source, into=target)
        [conflict] = refused.value.conflicts
        assert (conflict.kind, conflict.type_key, conflict.entity_id) == ("divergent_schema", "schema", "node:City")


def test_the_same_change_of_schema_on_both_sides_is_none(graph: Graph) -> None:
    """The new type has one number on both branches, though each has a table of its own for it."""
    for branch in ("side", "main"):
        graph.schema_apply(WITH_BOOK, branch=branch)
        graph.write({"Book": [{"name": "Emma"}, {"name": branch}]}, branch=branch)
    tables = {graph.snapshot(branch=branch).record.tables["node:Book"].table for branch in ("side", "main")}
    assert len(tables) == 2
    assert graph.merge("side").outcome == "merged"
    assert sorted(rows(graph, "Book")) == ["Emma", "main", "side"]


def test_a_branch_goes_on_after_its_schema_was_merged(graph: Graph) -> None:
    graph.schema_apply(WITH_MAIL, branch="side")
    graph.merge("side")
    graph.write({"Person": [{"name": "Ann", "mail": "a@a"}]}, mode="merge", branch="side")
    graph.write({"Person": [{"name": "Ben", "mail": "b@b"}]}, mode="merge")
    assert graph.merge("side").outcome == "merged"
    assert graph.merge("main", into="side").outcome == "fast_forward"
    assert rows(graph, "Person") == rows(graph, "Person", "side")
    assert {row["mail"] for row in rows(graph, "Person").values()} == {"a@a", "b@b", None}


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_required_property_with_a_default_gives_it_to_rows_of_the_other_branch(
    graph: Graph, source: str, target: str
) -> None:
    wider = SCHEMA.replace("age: I32?", 'age: I64?  rank: I32 @default("5")')
    graph.schema_apply(wider, branch="side", validated=True)
    graph.write({"Person": [{"name": "Ann", "age": 2**40, "rank": 1}]}, mode="merge", branch="side")
    graph.write({"Person": [{"name": "Ben", "age": 20}, {"name": "New", "age": 4}]}, mode="merge")
    graph.merge(source, into=target)
    found = {name: (row["age"], row["rank"]) for name, row in rows(graph, "Person", target).items()}
    assert found == {"Ann": (2**40, 1), "Ben": (20, 5), "Cid": (3, 5), "New": (4, 5)}


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_default_of_a_property_that_was_always_there_says_nothing(source: str, target: str) -> None:
    schema = SCHEMA.replace("age: I32?", 'tags: [I32] @default("none")')
    with omnigraph.init("memory://", schema, options=OpenOptions(durability="process")) as graph:
        graph.branches.create("side")
        graph.schema_apply(schema.replace("tags:", "mail: String?  tags:"), branch="side")
        graph.write({"Person": [{"name": "Ann", "tags": [1]}]}, branch="side")
        graph.write({"Person": [{"name": "Ben", "tags": [2]}]})
        graph.merge(source, into=target)
        assert {name: row["tags"] for name, row in rows(graph, "Person", target).items()} == {"Ann": [1], "Ben": [2]}


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_rows_that_lack_what_the_other_branch_requires_by_now_are_conflicts(
    graph: Graph, source: str, target: str
) -> None:
    graph.schema_apply(SCHEMA.replace("age: I32?", "age: I32"), branch="side", validated=True)
    graph.write({"Person": [{"name": "Ann", "age": 9}]}, mode="merge", branch="side")
    graph.write({"Person": [{"name": "Ageless"}, {"name": "Old", "age": 99}]})
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    [conflict] = refused.value.conflicts
    assert conflict.kind == "value_constraint_violation"
    assert conflict.message == "node:Person 'Ageless' has no value for 'age', which the schema requires"
    graph.merge(source, into=target, resolutions={"Person": {"Ageless": {"name": "Ageless", "age": 1}}})
    assert {name: row["age"] for name, row in rows(graph, "Person", target).items()} == {
        "Ageless": 1,
        "Ann": 9,
        "Ben": 2,
        "Cid": 3,
        "Old": 99,
    }


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_rows_that_break_a_rule_the_other_branch_has_by_now_are_conflicts(
    graph: Graph, source: str, target: str
) -> None:
    ruled = SCHEMA.replace("age: I32? }", "age: I32?  @range(age, 0..50)  @unique(age) }")
    graph.schema_apply(ruled, branch="side", validated=True)
    graph.write({"Person": [{"name": "Old", "age": 99}, {"name": "Twin", "age": 3}]})
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    assert {each.kind.value for each in refused.value.conflicts} == {"value_constraint_violation", "unique_violation"}


def test_a_property_dropped_and_made_anew_with_another_type_is_another_one(graph: Graph) -> None:
    before = graph.snapshot()
    graph.schema_apply(SCHEMA.replace("  age: I32?", ""), allow_data_loss=True)
    graph.schema_apply(SCHEMA.replace("age: I32?", "age: [String]?"))
    graph.write({"Person": [{"name": "Ann", "age": ["old"]}, {"name": "Ben"}]}, mode="merge")
    assert [(each.op.value, each.id) for each in graph.diff(before, "main")] == [("update", "Ann")]


def test_a_merge_tells_what_becomes_of_the_schema_and_what_it_costs(graph: Graph) -> None:
    text = WITHOUT_CITY.replace("age: I32?", "mail: String?")
    graph.write({"Person": [{"name": "Dan"}]})  # without an age
    graph.schema_apply(text, branch="side", allow_data_loss=True)
    seen = graph.merge("side", preview=True)
    assert [(step.step.kind, step.rows_lost, step.values_lost) for step in seen.schema_steps] == [
        ("add_property", 0, 0),
        ("drop_property", 0, 3),
        ("drop_type", 1, 0),
    ]
    assert [str(step) for step in seen.schema_steps if step.rows_lost] == [
        "drop node type 'City' (soft mode): loses 1 row"
    ]
    assert graph.merge("side").schema_steps == seen.schema_steps
    assert graph.merge("main", into="side", preview=True).schema_steps == ()
