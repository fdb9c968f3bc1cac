"""Deletes: what goes, what goes with it, and what stands in the way."""

import pytest
from tests.support.mutation_graph import ages, counts, load, pairs, statements

from omnigraph import ConstraintError, Graph

# -- delete -----------------------------------------------------------------------------------------------------------


def test_deleting_a_node_takes_its_edges_of_every_type_along(town: Graph) -> None:
    before = town.snapshot()
    result = town.mutate(statements('delete Person where name = "Ada"'))
    assert counts(result) == (1, 3)
    assert sorted(ages(town)) == ["Bob", "Cy", "Di"]
    assert pairs(town) == [("Bob", "Di")]
    assert pairs(town, "WorksAt") == []
    assert town.snapshot().number == before.number + 1
    assert town.snapshot().record.tables["node:Company"] == before.record.tables["node:Company"]


def test_a_node_with_an_edge_to_itself_loses_it_once(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" }', 'insert Knows { from: "Ada", to: "Ada" }')
    assert counts(graph.mutate(statements('delete Person where name = "Ada"'))) == (1, 1)


def test_a_cascade_as_the_first_write_of_a_branch_leaves_main_alone(town: Graph) -> None:
    town.branches.create("side")
    town.mutate(statements('delete Person where name = "Ada"'), branch="side")
    assert sorted(ages(town, "side")) == ["Bob", "Cy", "Di"]
    assert pairs(town, branch="side") == [("Bob", "Di")]
    assert len(ages(town)) == 4
    assert len(pairs(town)) == 3


def test_a_delete_that_matches_nothing_makes_no_commit(town: Graph) -> None:
    before = town.snapshot()
    result = town.mutate(statements('delete Person where name = "Nobody"'))
    assert (counts(result), result.commit, result.head) == ((0, 0), None, before.commit)
    assert town.snapshot().record == before.record


def test_what_two_deletes_match_is_counted_once(town: Graph) -> None:
    result = town.mutate(statements('delete Person where name = "Ada" delete Person where age > 29'))
    assert counts(result) == (2, 3)


def test_an_absent_value_does_not_hide_a_row_from_a_later_delete(town: Graph) -> None:
    load(town, 'insert Knows { from: "Di", to: "Cy" }')
    result = town.mutate(statements('delete Person where age > 30 delete Person where name = "Di"'))
    assert counts(result) == (2, 3)
    assert pairs(town) == [("Ada", "Bob")]


def test_a_cascade_and_a_delete_of_edges_meet_on_one_type(town: Graph) -> None:
    number = town.snapshot().number
    result = town.mutate(statements('delete Person where name = "Ada" delete Knows where from = "Bob"'))
    assert counts(result) == (1, 4)
    assert pairs(town) == []
    assert town.snapshot().number == number + 1


@pytest.mark.parametrize(
    ("where", "left"),
    [
        ('from = "Ada"', [("Bob", "Di")]),
        ('to = "Bob"', [("Ada", "Cy"), ("Bob", "Di")]),
        ('from = "Ada" and since > 1', [("Ada", "Bob"), ("Bob", "Di")]),
        ("since < 2", [("Ada", "Cy"), ("Bob", "Di")]),
        ("since is null", [("Ada", "Bob"), ("Ada", "Cy")]),
        ('from != "Ada"', [("Ada", "Bob"), ("Ada", "Cy")]),
        ('from in ["Ada", "Bob"]', []),
        ('from starts_with "A" or to = "Di"', []),
    ],
)
def test_edges_are_deleted_by_their_ends_and_their_properties(
    town: Graph, where: str, left: list[tuple[str, str]]
) -> None:
    result = town.mutate(statements(f"delete Knows where {where}"))
    assert counts(result) == (0, 3 - len(left))
    assert pairs(town) == left


def test_deleting_below_the_least_number_of_edges_is_refused(graph: Graph) -> None:
    load(
        graph,
        'insert Person { name: "Ada" } insert Company { name: "Acme" } insert Company { name: "Beta" }',
        'insert Owns { from: "Ada", to: "Acme" }',
    )
    for refused in ('delete Owns where from = "Ada"', 'delete Company where name = "Acme"'):
        with pytest.raises(ConstraintError, match=r"source 'Ada' has 0 edges \(min 1\)"):
            graph.mutate(statements(refused))
    assert pairs(graph, "Owns") == [("Ada", "Acme")]
    assert counts(graph.mutate(statements('delete Person where name = "Ada"'))) == (1, 1)
