"""What one version has in memory never answers for another: by key, along edges, on branches and in the past."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph

SCHEMA = """
node P { name: String @key  age: I32? }
edge Knows: P -> P { }
"""
AGE = "query q($n: String) { match { $p: P { name: $n } } return { $p.age as age } }"
NAMES = "query q() { match { $p: P } return { $p.name as n } order { n } }"
FRIENDS = "query q($n: String) { match { $p: P { name: $n } $p knows $f } return { $f.age as age } }"
UPDATE = "query q($n: String, $a: I32) { update P set { age: $a } where name = $n }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(str(tmp_path / "g"), SCHEMA)
    graph.write(
        {"P": [{"name": f"p{number}", "age": number} for number in range(5)]},
        {"Knows": [{"from": "p0", "to": "p1"}, {"from": "p1", "to": "p1"}]},
    )
    return graph


def ages(graph: Graph, text: str, name: str, branch: str) -> list[object]:
    return [row["age"] for row in graph.query(text, {"n": name}, branch=branch)]


def test_a_key_lookup_answers_with_the_value_of_its_own_branch(graph: Graph) -> None:
    ages(graph, AGE, "p1", "main")
    graph.branches.create("agent")
    graph.write({"P": [{"name": "p9", "age": 9}]}, branch="agent")
    graph.query(NAMES, branch="agent")
    graph.branches.create("other", source="agent")
    graph.mutate(UPDATE, {"n": "p1", "a": 99}, branch="other")

    assert ages(graph, AGE, "p1", "other") == [99]
    assert ages(graph, AGE, "p1", "agent") == [1]
    assert ages(graph, AGE, "p1", "main") == [1]


def test_a_hop_leads_to_the_row_of_its_own_branch(graph: Graph) -> None:
    ages(graph, FRIENDS, "p0", "main")
    graph.branches.create("agent")
    graph.write({"P": [{"name": "p9", "age": 9}]}, branch="agent")
    graph.query(NAMES, branch="agent")
    graph.branches.create("other", source="agent")
    graph.mutate(UPDATE, {"n": "p1", "a": 99}, branch="other")

    assert ages(graph, FRIENDS, "p0", "other") == [99]
    assert ages(graph, FRIENDS, "p0", "agent") == [1]
    assert ages(graph, FRIENDS, "p1", "agent") == [1]


def test_a_key_that_another_branch_has_is_not_found(graph: Graph) -> None:
    graph.branches.create("other")
    graph.query(NAMES)
    graph.write({"P": [{"name": f"q{number}", "age": 7} for number in range(9)]}, branch="other")
    assert ages(graph, AGE, "q8", "other") == [7]
    assert ages(graph, AGE, "q8", "main") == []


def test_columns_of_one_number_on_two_branches_keep_their_types(graph: Graph) -> None:
    """Both branches add their first property to the same table: data files know both by the same number."""
    for branch, property_, value in (("one", "size: I64?", 5), ("two", "title: String?", "t")):
        graph.branches.create(branch)
        graph.schema_apply(SCHEMA.replace("age: I32?", f"age: I32?  {property_}"), branch=branch)
        name = property_.partition(":")[0]
        graph.write({"P": [{"name": "p9", name: value}]}, branch=branch)
    for _ in range(2):
        for branch, name, value in (("one", "size", 5), ("two", "title", "t")):
            text = f"query q() {{ match {{ $p: P }} return {{ $p.name as n, $p.{name} as v }} order {{ n }} }}"
            found = [row["v"] for row in graph.query(text, branch=branch)]
            assert found == [None, None, None, None, None, value]
