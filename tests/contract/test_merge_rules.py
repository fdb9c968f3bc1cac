"""Every rule of the schema holds on the state that a merge leaves, whatever was decided and whatever the outcome is."""

import random  # noqa: TID251  (seeded: every run does the same)
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, InvalidRequestError, MergeConflictError, OpenOptions

SCHEMA = """
node P { name: String @key  mail: String? @unique  n: I32? }
edge Knows: P -> P { w: I32? }
edge Owns: P -> P @card(1..2)
edge Pair: P -> P { w: I32?  @key(src, dst) }
"""
EDGES = ("Knows", "Owns", "Pair")
FAST = OpenOptions(durability="process")


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init(f"memory://rules-{omnigraph.ids.UlidSource().new()}", SCHEMA, options=FAST) as made:
        made.write({"P": [{"name": name} for name in ("a", "b", "c")]})
        made.branches.create("side")
        yield made


def change(graph: Graph, branch: str, text: str) -> None:
    graph.mutate(f"query q() {{ {text} }}", branch=branch)


def rows(graph: Graph, type_name: str, branch: str = "main") -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in graph.export_arrow(type_name, branch=branch).read_all().to_pylist()}


def broken(graph: Graph, branch: str = "main") -> list[str]:
    """What is wrong with a state, by plain loops; a node without any edge owes none."""
    people = rows(graph, "P", branch)
    found = [
        f"{mail} twice" for mail, times in Counter(row["mail"] for row in people.values()).items() if mail and times > 1
    ]
    for name in EDGES:
        edges = rows(graph, name, branch).values()
        found += [f"{name} {row['id']} dangles" for row in edges for end in ("src", "dst") if row[end] not in people]
        if name == "Owns":
            found += [
                f"{node} owns {times}" for node, times in Counter(row["src"] for row in edges).items() if times > 2
            ]
        if name == "Pair":
            found += [
                f"{ends} pair twice"
                for ends, times in Counter((r["src"], r["dst"]) for r in edges).items()
                if times > 1
            ]
    return found


def kinds(refused: MergeConflictError) -> list[tuple[str, str, str | None]]:
    return [(each.kind.value, each.type_key, each.entity_id) for each in refused.conflicts]


def test_a_node_that_a_resolution_leaves_out_is_missed_by_the_edges_brought_in(graph: Graph) -> None:
    graph.write({"P": [{"name": "bad"}]}, {"Knows": [{"id": "k", "from": "a", "to": "bad"}]}, branch="side")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("side", resolutions={"P": {"bad": "target"}})
    assert kinds(refused.value) == [("orphan_edge", "edge:Knows", "k")]
    done = graph.merge("side", resolutions={"P": {"bad": "target"}, "Knows": {"k": "target"}})
    assert (done.outcome, broken(graph), graph.verify(deep=True).findings) == ("fast_forward", [], ())


def test_an_edge_that_a_resolution_keeps_misses_the_node_that_was_deleted(graph: Graph) -> None:
    graph.write({}, {"Knows": [{"id": "k", "from": "a", "to": "b"}]})
    graph.branches.create("later")
    change(graph, "later", 'delete P where name = "b"')
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("later", resolutions={"Knows": {"k": "target"}})
    assert kinds(refused.value) == [("orphan_edge", "edge:Knows", "k")]


def test_a_value_that_a_resolution_keeps_is_not_taken_by_a_row_brought_in(graph: Graph) -> None:
    graph.write({"P": [{"name": "a", "mail": "x"}]}, mode="merge")
    graph.branches.create("later")
    graph.write({"P": [{"name": "a", "mail": None}, {"name": "new", "mail": "x"}]}, mode="merge", branch="later")
    with pytest.raises(MergeConflictError) as refused:
        graph.merge("later", resolutions={"P": {"a": "target"}})
    assert [kind for kind, _, _ in kinds(refused.value)] == ["unique_violation"]


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
@pytest.mark.parametrize("renamed", ["", "side", "main"])
def test_a_node_kept_against_its_deletion_has_as_many_edges_as_it_must(source: str, target: str, renamed: str) -> None:
    with omnigraph.init(f"memory://rules-{omnigraph.ids.UlidSource().new()}", SCHEMA, options=FAST) as graph:
        graph.write({"P": [{"name": "a"}, {"name": "b"}]}, {"Owns": [{"id": "o", "from": "a", "to": "b"}]})
        graph.branches.create("side")
        if renamed:  # whose schema changed decides whose tables the result is made of
            graph.schema_apply(SCHEMA.replace("n: I32?", "n: I32?  more: I32?"), branch=renamed)
        change(graph, "side", 'delete P where name = "a"')
        graph.write({"P": [{"name": "a", "n": 5}]}, mode="merge", branch="main")
        for how in (
            {"prefer": "source" if source == "main" else "target"},
            {"resolutions": {"P": {"a": {"name": "a", "n": 7}}}},
        ):
            with pytest.raises(MergeConflictError) as refused:
                graph.merge(source, into=target, **how)
            assert [each.message for each in refused.value.conflicts] == [
                "@card violation on edge Owns: source 'a' has 0 edges (min 1)"
            ]
        keep = "target" if target == "main" else "source"
        graph.merge(source, into=target, resolutions={"P": {"a": keep}, "Owns": {"o": keep}})
        assert (sorted(rows(graph, "P", target)), sorted(rows(graph, "Owns", target))) == (["a", "b"], ["o"])


@pytest.mark.parametrize(("source", "target"), [("side", "main"), ("main", "side")])
def test_a_node_made_again_without_edges_owes_none(graph: Graph, source: str, target: str) -> None:
    graph.write({}, {"Owns": [{"id": "o", "from": "a", "to": "b"}]})
    graph.merge("main", into="side")
    change(graph, "side", 'delete P where name = "a"')
    graph.write({"P": [{"name": "a"}]}, branch="side")
    graph.write({}, {"Owns": [{"id": "p", "from": "b", "to": "c"}]}, branch="main")
    graph.merge(source, into=target)
    assert sorted(rows(graph, "Owns", target)) == ["p"]


def some_changes(graph: Graph, branch: str, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 5)):
        name = chance.choice("abcde")
        other = chance.choice("abcde")
        try:
            match chance.randrange(5):
                case 0:
                    change(graph, branch, f'delete P where name = "{name}"')
                case 1:
                    row = {"name": name, "mail": chance.choice([None, "x", "y"]), "n": chance.randint(0, 2)}
                    graph.write({"P": [row]}, mode="merge", branch=branch)
                case 2:
                    kind = chance.choice(EDGES)
                    ends = {"from": name, "to": other}
                    edge = ends if kind == "Pair" else ends | {"id": f"{kind}-{chance.randint(0, 3)}"}
                    graph.write({}, {kind: [edge]}, mode="merge", branch=branch)
                case 3:
                    change(graph, branch, f'delete {chance.choice(EDGES)} where from = "{name}"')
                case _:
                    graph.write({"P": [{"name": name}]}, {"Owns": [{"from": name, "to": name}]}, branch=branch)
        except omnigraph.GraphError:
            pass  # a rule of this very branch


def some_choices(graph: Graph, chance: random.Random) -> dict[str, Any]:
    choices: dict[str, Any] = {"by": chance.choice(["row", "property"])}
    if chance.random() < 0.5:
        choices["prefer"] = chance.choice(["source", "target"])
    found: dict[str, dict[str, object]] = {}
    for entity in graph.diff("main", "side"):
        if chance.random() < 0.3:
            cells = {"$properties": {"n" if entity.type_name == "P" else "to": chance.choice(["source", "target"])}}
            whole: list[object] = ["source", "target", None]
            some = [cells] if entity.op == "update" and entity.type_name != "Pair" else []
            found.setdefault(entity.type_name, {})[entity.id] = chance.choice([*whole, *some])
    return choices | {"resolutions": found}


def swapped(choices: dict[str, Any]) -> dict[str, Any]:
    """The same decisions, told from the other branch."""
    other = {"source": "target", "target": "source", None: None}

    def swap(decision: Any) -> object:  # noqa: ANN401  (a side, nothing, or some for properties)
        if isinstance(decision, dict):
            return {"$properties": {name: other[side] for name, side in decision["$properties"].items()}}
        return other[decision]

    told = {name: {key: swap(each) for key, each in ids.items()} for name, ids in choices["resolutions"].items()}
    return choices | {"prefer": other[choices.get("prefer")], "resolutions": told}


def outcome_of(graph: Graph, source: str, target: str, choices: dict[str, Any]) -> object:
    """What a merge into a branch of its own leaves there; None where it is refused for what is in conflict."""
    copy = f"copy {omnigraph.ids.UlidSource().new()}"
    graph.branches.create(copy, source=target)
    before = graph.snapshot(branch=copy)
    try:
        done = graph.merge(source, into=copy, **choices)
    except MergeConflictError:
        return None
    assert broken(graph, copy) == []
    counted = {key: (each.inserted, each.updated, each.deleted) for key, each in done.changes.items()}
    stats = graph.diff(before, graph.snapshot(branch=copy)).stats
    assert counted == {key: (each.inserted, each.updated, each.deleted) for key, each in stats.items() if each.total}
    return {name: rows(graph, name, copy) for name in ("P", *EDGES)}


@pytest.mark.parametrize("seed", range(12))
def test_merges_at_random_keep_to_every_rule_and_do_not_depend_on_the_direction(seed: int) -> None:
    chance = random.Random(seed)
    with omnigraph.init(f"memory://rules-{omnigraph.ids.UlidSource().new()}", SCHEMA, options=FAST) as graph:
        graph.write({"P": [{"name": name} for name in "abc"]})
        some_changes(graph, "main", chance)
        graph.branches.create("side")
        for branch in ("side", "main"):
            graph.write({"P": [{"name": f"of {branch}"}]}, branch=branch)  # else one of two merges has nothing to bring
            some_changes(graph, branch, chance)
        if chance.random() < 0.5:  # whose schema changed decides whose tables the result is made of
            text = SCHEMA.replace("n: I32?", "n: I32?  more: I32?")
            graph.schema_apply(text, branch=chance.choice(["side", "main"]))
        for _ in range(6):
            choices = some_choices(graph, chance)
            try:
                found = outcome_of(graph, "side", "main", choices)
            except InvalidRequestError:
                continue  # neither side changed it since they parted
            assert outcome_of(graph, "main", "side", swapped(choices)) == found
