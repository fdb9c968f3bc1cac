"""Merges of branches with several best common ancestors: no update is dropped, whichever ancestor is nearer."""

from collections.abc import Callable, Iterator

import pytest
from tests.support.needed_files import AT_ONCE

import omnigraph
from omnigraph import Graph, MergeConflictError
from omnigraph.api.schemas import Schemas
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.transaction.root import open_root

SCHEMA = """
node P { name: String @key  x: I32?  y: I32? }
edge Knows: P -> P { since: I32? }
edge Likes: P -> P { since: I32?  @key(src, dst) }
"""
Rows = dict[str, tuple[int | None, ...]]


@pytest.fixture
def graph() -> Iterator[Graph]:
    store = MemoryStore(f"criss-cross-{UlidSource().new()}")
    omnigraph.init(store, SCHEMA).close()
    parts = open_root(store, settings=AT_ONCE)
    with Graph(parts, Schemas(parts)) as opened:
        put(opened, "main", p=(0, 0), q=(0, 0), r=(0, 0))
        opened.branches.create("b")
        yield opened


def put(graph: Graph, branch: str, **rows: tuple[int | None, int | None]) -> None:
    people = [{"name": name, "x": x, "y": y} for name, (x, y) in rows.items()]
    graph.write({"P": people}, mode="merge", branch=branch)


def drop(graph: Graph, branch: str, name: str) -> None:
    graph.mutate(f'query q() {{ delete P where name = "{name}" }}', branch=branch)


def link(graph: Graph, branch: str, edge: str, since: int) -> None:
    named = {"id": "pq"} if edge == "Knows" else {}
    graph.write({}, {edge: [{**named, "from": "p", "to": "q", "since": since}]}, mode="merge", branch=branch)


def unlink(graph: Graph, branch: str, edge: str) -> None:
    graph.mutate(f"query q() {{ delete {edge} where since >= 0 }}", branch=branch)


def cross(graph: Graph, one: str = "main", other: str = "b", *, by: str = "row", prefer: str | None = None) -> None:
    """Merge each into the other as it was before: afterwards both old heads are best common ancestors."""
    for number, branch in enumerate((one, other)):
        graph.branches.create(f"was {number}", source=branch)
    graph.merge("was 1", into=one, by=by, prefer=prefer)
    graph.merge("was 0", into=other, by=by, prefer=prefer)
    for number in range(2):
        graph.branches.delete(f"was {number}")


def clean(graph: Graph) -> None:
    for branch in ("main", "b"):
        put(graph, branch, **{f"late {branch}": (1, 1)})
    graph.cleanup(keep=1, confirm=True)
    graph.cleanup(keep=1, confirm=True)


def keep_everything(_graph: Graph) -> None:
    """Prune nothing."""


def people(graph: Graph, branch: str = "main") -> Rows:
    rows = graph.export_arrow("P", branch=branch).read_all().to_pylist()
    return {row["id"]: (row["x"], row["y"]) for row in rows if not row["id"].startswith("late")}


def years(graph: Graph, edge: str, branch: str = "main") -> list[int]:
    return [row["since"] for row in graph.export_arrow(edge, branch=branch).read_all().to_pylist()]


CLEANING = pytest.mark.parametrize("tidy", [keep_everything, clean])
DIRECTIONS = pytest.mark.parametrize(("source", "target"), [("b", "main"), ("main", "b")])


@CLEANING
@DIRECTIONS
@pytest.mark.parametrize("undone_on", ["main", "b"])
def test_an_update_that_sets_an_old_value_again_is_brought_in(
    graph: Graph, source: str, target: str, undone_on: str, tidy: Callable[[Graph], None]
) -> None:
    put(graph, "main", p=(1, 0))
    put(graph, "b", q=(1, 0))
    cross(graph)
    put(graph, undone_on, p=(0, 0))
    put(graph, "main", r=(5, 5))
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    assert people(graph, target) == {"p": (0, 0), "q": (1, 0), "r": (5, 5)}


@CLEANING
@DIRECTIONS
def test_single_properties_are_compared_with_what_the_ancestors_come_to(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    put(graph, "main", p=(1, 0))
    put(graph, "b", p=(0, 1))
    cross(graph, by="property")
    put(graph, "b", p=(0, 1))
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    assert people(graph, target)["p"] == (0, 1)


@CLEANING
@DIRECTIONS
def test_rows_and_edges_that_were_deleted_again_stay_deleted(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    put(graph, "main", new=(1, 1))
    link(graph, "main", "Knows", 1)
    link(graph, "main", "Likes", 1)
    put(graph, "b", r=(1, 1))
    cross(graph)
    drop(graph, "b", "new")
    unlink(graph, "b", "Knows")
    unlink(graph, "b", "Likes")
    tidy(graph)
    assert graph.merge(source, into=target).outcome in ("merged", "fast_forward")
    assert people(graph, target) == {"p": (0, 0), "q": (0, 0), "r": (1, 1)}
    assert (years(graph, "Knows", target), years(graph, "Likes", target)) == ([], [])


@CLEANING
@DIRECTIONS
def test_rows_and_edges_that_were_put_back_stay(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    link(graph, "main", "Knows", 0)
    link(graph, "main", "Likes", 0)
    graph.merge("main", into="b")
    drop(graph, "main", "r")
    unlink(graph, "main", "Knows")
    unlink(graph, "main", "Likes")
    put(graph, "b", p=(7, 7))
    cross(graph)
    put(graph, "b", r=(0, 0))
    link(graph, "b", "Knows", 0)
    link(graph, "b", "Likes", 0)
    tidy(graph)
    assert graph.merge(source, into=target).outcome in ("merged", "fast_forward")
    assert people(graph, target) == {"p": (7, 7), "q": (0, 0), "r": (0, 0)}
    assert (years(graph, "Knows", target), years(graph, "Likes", target)) == ([0], [0])


@CLEANING
@pytest.mark.parametrize("edge", ["Knows", "Likes"])
def test_an_edge_set_back_to_its_old_value_is_brought_in(
    graph: Graph, edge: str, tidy: Callable[[Graph], None]
) -> None:
    link(graph, "main", edge, 0)
    graph.merge("main", into="b")
    link(graph, "main", edge, 1)
    put(graph, "b", r=(1, 1))
    cross(graph)
    link(graph, "b", edge, 0)
    put(graph, "main", p=(3, 3))
    tidy(graph)
    assert graph.merge("b").outcome == "merged"
    assert years(graph, edge) == [0]


@CLEANING
@DIRECTIONS
@pytest.mark.parametrize("by", ["row", "property"])
def test_what_the_ancestors_disagree_about_is_a_conflict_and_never_chosen(
    graph: Graph, source: str, target: str, by: str, tidy: Callable[[Graph], None]
) -> None:
    """Both changed it, and each merge decided otherwise: nothing tells which of the two values was there before."""
    put(graph, "main", p=(1, 0))
    put(graph, "b", p=(2, 0))
    cross(graph, prefer="target")
    tidy(graph)
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target, by=by)
    [conflict] = refused.value.conflicts
    assert (conflict.kind.value, conflict.entity_id, conflict.properties) == ("divergent_update", "p", ("x",))
    assert graph.merge(source, into=target, by=by, prefer="source").outcome == "merged"
    assert people(graph, target)["p"] == people(graph, source)["p"]


def test_what_both_sides_agree_on_needs_no_ancestor(graph: Graph) -> None:
    put(graph, "main", p=(1, 0))
    put(graph, "b", p=(2, 0))
    cross(graph, prefer="source")
    put(graph, "main", p=(3, 0), q=(1, 1))
    put(graph, "b", p=(3, 4))
    assert graph.merge("b").outcome == "merged"
    assert people(graph) == {"p": (3, 4), "q": (1, 1), "r": (0, 0)}


@DIRECTIONS
def test_a_row_that_one_ancestor_deleted_and_one_changed_is_a_conflict(graph: Graph, source: str, target: str) -> None:
    drop(graph, "main", "r")
    put(graph, "b", r=(1, 1))
    cross(graph, prefer="target")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target, by="property")
    assert [(each.kind.value, each.entity_id) for each in refused.value.conflicts] == [("delete_vs_update", "r")]


@DIRECTIONS
def test_rows_inserted_on_both_sides_are_compared_cell_by_cell(graph: Graph, source: str, target: str) -> None:
    put(graph, "main", n=(1, 0))
    put(graph, "b", n=(2, 0))
    cross(graph, prefer="source")
    put(graph, "main", n=(2, 9))
    put(graph, "b", n=(2, 0))
    assert graph.merge(source, into=target, by="property").outcome == "merged"
    assert people(graph, target)["n"] == (2, 9)


def test_a_named_base_is_the_only_one(graph: Graph) -> None:
    put(graph, "main", p=(1, 0))
    nearest = graph.snapshot(branch="main").commit
    put(graph, "b", q=(1, 0))
    other = graph.snapshot(branch="b").commit
    cross(graph)
    put(graph, "b", p=(0, 0))
    assert graph.merge("b", base=nearest, preview=True).changes != graph.merge("b", base=other, preview=True).changes
    assert graph.merge("b", base=nearest).base == nearest
    assert people(graph)["p"] == (0, 0)


@CLEANING
@DIRECTIONS
def test_of_three_best_ancestors_each_counts(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    for name, rows in (("one", {"p": (1, 0)}), ("two", {"q": (1, 0)}), ("three", {"r": (1, 0)})):
        graph.branches.create(name)
        put(graph, name, **rows)
    for branch, names in (("main", ("one", "two", "three")), ("b", ("three", "one", "two"))):
        for name in names:
            graph.merge(name, into=branch)
    for name in ("one", "two", "three"):
        graph.branches.delete(name)
    put(graph, "b", p=(0, 0), q=(0, 0))
    put(graph, "main", r=(0, 0))
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    assert people(graph, target) == {"p": (0, 0), "q": (0, 0), "r": (0, 0)}


@CLEANING
def test_crossing_again_and_again_loses_nothing(graph: Graph, tidy: Callable[[Graph], None]) -> None:
    for number in range(1, 3):
        put(graph, "main", p=(number, 0))
        put(graph, "b", q=(number, 0))
        cross(graph)
        put(graph, "b", p=(0, 0))
        put(graph, "main", q=(0, 0))
        tidy(graph)
        cross(graph)
        assert people(graph) == people(graph, "b") == {"p": (0, 0), "q": (0, 0), "r": (0, 0)}


# -- schemas ----------------------------------------------------------------------------------------------------------


def reshape(graph: Graph, branch: str, old: str, new: str) -> None:
    text = graph.schema_text(branch=branch)
    assert old in text
    graph.schema_apply(text.replace(old, new), branch=branch, validated=True, allow_data_loss=True)


def columns(graph: Graph, branch: str) -> set[str]:
    return set(graph.export_arrow("P", branch=branch).read_all().column_names)


@CLEANING
@DIRECTIONS
def test_schema_changes_of_both_ancestors_are_known(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    reshape(graph, "main", "y: I32?", "y: I32?  m: I32?")
    reshape(graph, "b", "y: I32?", "y: I32?  n: I32?")
    graph.write({"P": [{"name": "p", "x": 0, "y": 0, "m": 1}]}, mode="merge")
    graph.write({"P": [{"name": "q", "x": 0, "y": 0, "n": 1}]}, mode="merge", branch="b")
    cross(graph)
    graph.write({"P": [{"name": "p", "x": 0, "y": 0, "m": None}]}, mode="merge", branch="b")
    graph.write({"P": [{"name": "q", "x": 0, "y": 0, "n": None}]}, mode="merge", branch="main")
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    rows = graph.export_arrow("P", branch=target).read_all().to_pylist()
    found = {row["id"]: (row["m"], row["n"]) for row in rows}
    assert (found["p"], found["q"]) == ((None, None), (None, None))


@CLEANING
@DIRECTIONS
def test_a_property_that_was_added_and_dropped_again_stays_dropped(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    reshape(graph, "main", "y: I32?", "y: I32?  m: I32?")
    put(graph, "b", q=(1, 1))
    cross(graph)
    reshape(graph, "b", "  m: I32?", "")
    put(graph, "main", r=(1, 1))
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    assert columns(graph, target) == {"id", "name", "x", "y"}
    assert people(graph, target) == {"p": (0, 0), "q": (1, 1), "r": (1, 1)}


@CLEANING
@DIRECTIONS
def test_a_type_that_was_added_and_dropped_again_stays_dropped(
    graph: Graph, source: str, target: str, tidy: Callable[[Graph], None]
) -> None:
    reshape(graph, "main", "edge Knows", "node Extra { name: String @key }\nedge Knows")
    graph.write({"Extra": [{"name": "e"}]}, mode="merge")
    put(graph, "b", q=(1, 1))
    cross(graph)
    reshape(graph, "b", "node Extra { name: String @key }\n", "")
    put(graph, "main", r=(1, 1))
    tidy(graph)
    assert graph.merge(source, into=target).outcome == "merged"
    assert "Extra" not in graph.schema_text(branch=target)


@DIRECTIONS
def test_rows_of_a_type_that_one_ancestor_added_are_compared(graph: Graph, source: str, target: str) -> None:
    reshape(graph, "main", "edge Knows", "node Extra { name: String @key  v: I32? }\nedge Knows")
    graph.write({"Extra": [{"name": "e", "v": 1}, {"name": "f", "v": 1}]}, mode="merge")
    put(graph, "b", q=(1, 1))
    cross(graph)
    graph.mutate('query q() { delete Extra where name = "e" }', branch="b")
    graph.write({"Extra": [{"name": "f", "v": 2}]}, mode="merge", branch="b")
    graph.write({"Extra": [{"name": "g", "v": 1}]}, mode="merge")
    assert graph.merge(source, into=target).outcome == "merged"
    rows = graph.export_arrow("Extra", branch=target).read_all().to_pylist()
    assert {row["id"]: row["v"] for row in rows} == {"f": 2, "g": 1}


@DIRECTIONS
def test_a_name_that_was_changed_and_set_back_is_brought_in(graph: Graph, source: str, target: str) -> None:
    reshape(graph, "main", "x: I32?", 'z: I32? @rename_from("x")')
    put(graph, "b", q=(1, 1))
    cross(graph)
    reshape(graph, "b", 'z: I32? @rename_from("x")', 'x: I32? @rename_from("z")')
    assert graph.merge(source, into=target).outcome in ("merged", "fast_forward")
    assert people(graph, target) == {"p": (0, 0), "q": (1, 1), "r": (0, 0)}


@DIRECTIONS
def test_schemas_that_the_ancestors_disagree_about_are_a_conflict(graph: Graph, source: str, target: str) -> None:
    reshape(graph, "main", "x: I32?", 'one: I32? @rename_from("x")')
    reshape(graph, "b", "x: I32?", 'two: I32? @rename_from("x")')
    cross(graph, prefer="target")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge(source, into=target)
    assert [(each.kind.value, each.entity_id) for each in refused.value.conflicts] == [("divergent_schema", "*")]
    assert graph.merge(source, into=target, resolutions={"schema": {"*": "target"}}).outcome == "merged"
    assert columns(graph, target) == {"id", "name", "y", "one" if target == "main" else "two"}
