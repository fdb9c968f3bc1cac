"""Decisions about single properties: a side decides what is disputed and nothing else, whichever way it is said."""

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, MergeConflictError, OpenOptions

SCHEMA = """
node P { name: String @key  role: String?  note: String?  score: I32?  day: Date? }
edge Knows: P -> P { w: I32?  since: Date? }
edge Pair: P -> P { w: I32?  @key(src, dst) }
node Day { on: Date  slot: I32  text: String?  @key(on, slot) }
"""
FAST = OpenOptions(durability="process")


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init(f"memory://cells-{omnigraph.ids.UlidSource().new()}", SCHEMA, options=FAST) as made:
        people = [{"name": name, "role": "r", "note": "n", "score": 0} for name in ("a", "b", "c")]
        made.write({"P": people}, {"Knows": [{"id": "k", "from": "a", "to": "b", "w": 0}]})
        made.branches.create("side")
        yield made


def put(graph: Graph, branch: str, name: str, **values: Any) -> None:  # noqa: ANN401  (any property's)
    graph.mutate(
        f"query q() {{ update P set {{ {', '.join(f'{key}: {value!r}' for key, value in values.items())} }} "
        f'where name = "{name}" }}'.replace("'", '"'),
        branch=branch,
    )


def row(graph: Graph, type_name: str, entity: str, branch: str = "main") -> dict[str, Any]:
    found = {each["id"]: each for each in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}
    return {name: value for name, value in found[entity].items() if name != "id" and value is not None}


@pytest.fixture
def disputed(graph: Graph) -> Graph:
    """Only the role of `a` is disputed; its note and its score are not."""
    put(graph, "side", "a", role="source", note="source")
    put(graph, "main", "a", role="target", score=7)
    return graph


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize("said", ["prefer", "entity", "property"])
@pytest.mark.parametrize("direction", ["side into main", "main into side"])
def test_a_side_decides_the_disputed_cells_only(disputed: Graph, side: str, said: str, direction: str) -> None:
    source, _, target = direction.split()
    taken = side if source == "side" else {"source": "target", "target": "source"}[side]
    ways: dict[str, dict[str, Any]] = {
        "prefer": {"by": "property", "prefer": side},
        "entity": {"by": "property", "resolutions": {"P": {"a": side}}},
        "property": {"resolutions": {"P": {"a": {"$properties": {"role": side}}}}},
    }
    done = disputed.merge(source, into=target, **ways[said])
    assert row(disputed, "P", "a", target) == {"name": "a", "role": taken, "note": "source", "score": 7}
    assert (done.resolved, done.changes["node:P"].updated) == (1, 1)


def test_by_row_a_side_decides_the_whole_row(disputed: Graph) -> None:
    disputed.merge("side", resolutions={"P": {"a": "source"}})
    assert row(disputed, "P", "a") == {"name": "a", "role": "source", "note": "source", "score": 0}


def test_one_property_can_be_given_a_value_of_its_own(disputed: Graph) -> None:
    cells = {"role": {"value": "both"}, "day": {"value": "2024-02-29"}, "score": {"value": None}}
    disputed.merge("side", resolutions={"P": {"a": {"$properties": cells}}})
    found = row(disputed, "P", "a")
    assert (found["role"], found["note"], str(found["day"]), "score" in found) == (
        "both",
        "source",
        "2024-02-29",
        False,
    )
    note = disputed.snapshot().record.notes["merge"]
    assert isinstance(note, dict)
    assert note["resolved"] == [{"type": "node:P", "id": "a", "took": "properties"}]


def test_a_property_left_undecided_is_still_a_conflict_that_names_it(graph: Graph) -> None:
    for branch in ("side", "main"):
        put(graph, branch, "a", role=branch, note=branch, score=len(branch))
    graph.mutate('query q() { update P set { score: 4 } where name = "a" }', branch="main")
    graph.mutate('query q() { update P set { score: 4 } where name = "a" }', branch="side")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("side", by="property", resolutions={"P": {"a": {"$properties": {"note": "target"}}}})
    [conflict] = refused.value.conflicts
    assert (conflict.properties, conflict.message) == (("role",), "divergent update for id 'a' in role")
    cells = {"note": "target", "role": "undecided"}
    graph.merge("side", prefer="source", resolutions={"P": {"a": {"$properties": cells}}})
    assert row(graph, "P", "a") == {"name": "a", "role": "side", "note": "main", "score": 4}


def test_conflicts_name_the_disputed_properties(disputed: Graph) -> None:
    for by in ("row", "property"):
        [conflict] = disputed.merge("side", by=by, preview=True).conflicts
        assert conflict.properties == ("role",)


def test_what_two_branches_made_differently_is_put_together_but_for_what_is_disputed(graph: Graph) -> None:
    graph.write({"P": [{"name": "new", "role": "source", "note": "n"}]}, branch="side")
    graph.write({"P": [{"name": "new", "role": "target", "score": 3}]})
    [conflict] = graph.merge("side", by="property", preview=True).conflicts
    assert (conflict.kind, conflict.properties) == ("divergent_insert", ("role",))
    graph.merge("side", by="property", prefer="source")
    assert row(graph, "P", "new") == {"name": "new", "role": "source", "note": "n", "score": 3}


def test_an_undisputed_property_can_be_decided_too(graph: Graph) -> None:
    put(graph, "side", "a", role="source", note="source")
    graph.merge("side", resolutions={"P": {"a": {"$properties": {"note": "target"}}}})
    assert row(graph, "P", "a") == {"name": "a", "role": "source", "note": "n", "score": 0}


def test_an_entity_that_one_branch_alone_changed_is_what_the_named_side_has(graph: Graph) -> None:
    put(graph, "side", "a", role="source")
    put(graph, "main", "b", role="target")
    graph.merge("side", by="property", resolutions={"P": {"a": "target", "b": "source"}})
    assert (row(graph, "P", "a")["role"], row(graph, "P", "b")["role"]) == ("r", "r")


# -- edges ------------------------------------------------------------------------------------------------------------


def test_a_row_without_ends_leaves_an_edge_where_one_branch_moved_it(graph: Graph) -> None:
    for branch, edge in (("side", {"w": 1, "to": "b"}), ("main", {"w": 2, "to": "c"})):
        graph.write({}, {"Knows": [{"id": "k", "from": "a"} | edge]}, mode="merge", branch=branch)
    graph.branches.create("copy")
    graph.merge("side", into="copy", resolutions={"Knows": {"k": {"w": 5}}})
    assert row(graph, "Knows", "k", "copy") == {"src": "a", "dst": "c", "w": 5}
    graph.merge("main", into="side", resolutions={"Knows": {"k": {"w": 5, "from": "b"}}})
    assert row(graph, "Knows", "k", "side") == {"src": "b", "dst": "c", "w": 5}


def test_a_row_without_ends_is_refused_where_both_branches_moved_the_edge(graph: Graph) -> None:
    for branch, end in (("side", "c"), ("main", "a")):
        graph.write({}, {"Knows": [{"id": "k", "from": "a", "to": end}]}, mode="merge", branch=branch)
    with pytest.raises(InvalidRequestError, match="both branches changed 'dst' of edge:Knows 'k'; a row given for it"):
        graph.merge("side", resolutions={"Knows": {"k": {"w": 5}}})
    graph.merge("side", resolutions={"Knows": {"k": {"$properties": {"to": "source", "w": {"value": 9}}}}})
    assert row(graph, "Knows", "k") == {"src": "a", "dst": "c", "w": 9}


@pytest.mark.parametrize("key", [["a", "b"], {"from": "a", "to": "b"}, {"src": "a", "dst": "b"}])
def test_an_edge_with_a_key_is_named_by_it(graph: Graph, key: object) -> None:
    for branch, weight in (("side", 1), ("main", 2)):
        graph.write({}, {"Pair": [{"from": "a", "to": "b", "w": weight}]}, branch=branch)
    decisions = [{"key": key, "decision": {"w": 8}, "message": "passed over"}]
    graph.merge("side", resolutions={"Pair": decisions})
    assert row(graph, "Pair", '["a","b"]') == {"src": "a", "dst": "b", "w": 8}


def test_a_node_with_a_key_of_several_properties_is_named_by_it(graph: Graph) -> None:
    for branch in ("side", "main"):
        graph.write({"Day": [{"on": "2024-01-01", "slot": 1, "text": branch}]}, branch=branch)
    key = {"on": "2024-01-01", "slot": 1}
    graph.merge("side", resolutions={"Day": [{"key": key, "decision": "source"}]})
    assert graph.export_arrow("Day").read_all()["text"].to_pylist() == ["side"]


# -- what means nothing -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resolutions", "message"),
    [
        ({"P": {"a": {"$properties": {"age": "source"}}}}, "the property 'age', which node:P does not have"),
        ({"P": {"a": {"$properties": {"role": "ours"}}}}, 'for role of P \'a\' must be "source", "target" or {"value"'),
        ({"P": {"a": {"$properties": "source"}}}, "must be an object of properties"),
        ({"P": {"a": {"$properties": {"name": {"value": "z"}}}}}, "'name', which is part of the key"),
        ({"P": {"a": {"$properties": {"score": {"value": "many"}}}}}, "score"),
        ({"P": {"b": {"$properties": {"role": "source"}}}}, "a branch does not have node:P 'b'"),
        ({"P": {"a": {"name": "a", "$properties": {}}}}, "unknown input field"),
        ({"P": [{"id": "a"}]}, "must have an 'id' or a 'key', and a 'decision'"),
        ({"P": [{"decision": "source"}]}, "must have an 'id' or a 'key', and a 'decision'"),
        ({"P": [{"id": "a", "decision": "source"}] * 2}, "two resolutions are for node:P 'a'"),
        ({"Pair": [{"key": ["a"], "decision": "source"}]}, "another key: its key is src, dst"),
        ({"Knows": [{"key": ["a", "b"], "decision": "source"}]}, "another key: it has none; give an id"),
        ({"P": ["a"]}, "or a list of objects with an id and a decision"),
    ],
)
def test_decisions_that_mean_nothing_are_refused(disputed: Graph, resolutions: Any, message: str) -> None:  # noqa: ANN401  (wrong on purpose)
    disputed.mutate('query q() { delete P where name = "b" }', branch="side")
    with pytest.raises(InvalidRequestError, match=message):
        disputed.merge("side", resolutions=resolutions)
