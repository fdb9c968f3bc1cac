"""Edges with a key: the same fact is one edge, written twice, loaded twice, or written on two branches."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import ConflictError, Graph, InvalidRequestError, MergeConflictError, OpenOptions

SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { note: String?  @key(src, dst) }
edge Paid: Person -> Person { day: Date  amount: F64  memo: String?  @key(src, dst, amount, day) }
"""
NAMES = ('Ann "A"', "Ben\\", "Cid\n", "Zoë")


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=OpenOptions(durability="process")) as made:
        made.write({"Person": [{"name": name} for name in ("Ann", "Ben", *NAMES)]})
        made.branches.create("side")
        yield made


def knows(graph: Graph, note: str | None, branch: str = "main") -> None:
    text = 'query q($note: String?) { insert Knows { from: "Ann", to: "Ben", note: $note } }'
    graph.mutate(text, {"note": note}, branch=branch)


def edges(graph: Graph, type_name: str = "Knows", branch: str = "main") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}


def test_the_id_of_an_edge_is_made_from_its_ends_and_properties(graph: Graph) -> None:
    graph.write({}, {"Paid": [{"from": "Ann", "to": "Ben", "day": "2026-01-31", "amount": 2.50}]})
    graph.mutate('query q() { insert Paid { from: "Ann", to: "Ben", day: date("2026-01-31"), amount: 3.0 } }')
    assert sorted(edges(graph, "Paid")) == ['["Ann","Ben","2.5","20484"]', '["Ann","Ben","3","20484"]']


@pytest.mark.parametrize("source", NAMES)
@pytest.mark.parametrize("target", NAMES)
def test_any_name_makes_an_id_that_reads_back_as_both_names(graph: Graph, source: str, target: str) -> None:
    graph.write({}, {"Knows": [{"from": source, "to": target}]})
    [entity_id] = edges(graph)
    assert json.loads(entity_id) == [source, target]


def test_an_edge_inserted_again_takes_the_place_of_the_first(graph: Graph) -> None:
    knows(graph, "school")
    knows(graph, "work")
    assert [row["note"] for row in edges(graph).values()] == ["work"]
    assert "put edge Knows" in graph.explain('query q() { insert Knows { from: "Ann", to: "Ben" } }')


def test_an_edge_loaded_twice_is_there_once(graph: Graph) -> None:
    rows = [{"from": "Ann", "to": "Ben", "note": "a"}]
    graph.write({}, {"Knows": rows}, mode="merge")
    graph.write({}, {"Knows": [*rows, {"from": "Ann", "to": "Ben", "note": "b"}]}, mode="merge")
    assert [row["note"] for row in edges(graph).values()] == ["b"]
    with pytest.raises(ConflictError, match="already has id"):
        graph.write({}, {"Knows": rows})
    with pytest.raises(ConflictError, match="occurs twice in one write"):
        graph.write({}, {"Knows": [{"from": "Ben", "to": "Ann"}, {"from": "Ben", "to": "Ann"}]})


def test_an_id_given_with_an_edge_must_be_its_key(graph: Graph) -> None:
    graph.write({}, {"Knows": [{"id": '["Ann","Ben"]', "from": "Ann", "to": "Ben"}]})
    with pytest.raises(InvalidRequestError, match="edge Knows explicit id 'k' does not match its canonical @key id"):
        graph.write({}, {"Knows": [{"id": "k", "from": "Ben", "to": "Ann"}]})


def test_the_same_fact_on_two_branches_is_one_edge_after_the_merge(graph: Graph) -> None:
    for branch in ("side", "main"):
        knows(graph, "school", branch)
    assert graph.merge("side").outcome == "merged"
    assert [row["note"] for row in edges(graph).values()] == ["school"]


def test_the_same_edge_with_different_properties_on_two_branches_is_a_conflict(graph: Graph) -> None:
    knows(graph, "school", "side")
    knows(graph, "work")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("side")
    [conflict] = refused.value.conflicts
    assert (conflict.kind, conflict.entity_id) == ("divergent_insert", '["Ann","Ben"]')
    graph.merge("side", prefer="source")
    assert [row["note"] for row in edges(graph).values()] == ["school"]


def test_an_edge_taken_away_on_one_branch_and_written_again_on_the_other_is_a_conflict(graph: Graph) -> None:
    knows(graph, "school")
    graph.branches.create("later")
    graph.mutate('query q() { delete Knows where from = "Ann" }', branch="later")
    knows(graph, "work")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("later")
    assert [each.kind for each in refused.value.conflicts] == ["delete_vs_update"]


@pytest.mark.parametrize("missing", ["day", "amount"])
def test_a_key_without_a_value_is_refused(graph: Graph, missing: str) -> None:
    row = {"from": "Ann", "to": "Ben", "day": "2026-01-31", "amount": 1.0}
    with pytest.raises(InvalidRequestError, match=missing):
        graph.write({}, {"Paid": [{name: value for name, value in row.items() if name != missing}]})


def test_the_schema_is_told_with_its_key(graph: Graph) -> None:
    knows_type = graph.schema().edge("Knows")
    assert knows_type is not None
    assert (knows_type.key_names, knows_type.is_keyed) == (("src", "dst"), True)
    assert graph.schema_plan(SCHEMA).is_empty
    reordered = SCHEMA.replace("@key(src, dst, amount, day)", "@key(day, dst, amount, src)")
    assert graph.schema_plan(reordered).is_empty
