"""Every operation on one branch against every operation on the other: how the merge ends, and what it leaves."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, product, starmap

import pytest

import omnigraph
from omnigraph import Graph, MergeConflictError, OpenOptions

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = "query people() { match { $p: Person } return { $p.name as name, $p.age as age } order { name } }"

Act = Callable[[Graph, str, bool], None]


def noop(graph: Graph, branch: str, left: bool) -> None:
    """Nothing."""


def add_node(graph: Graph, branch: str, left: bool) -> None:
    graph.write({"Person": [{"name": "Eve", "age": 60 if left else 61}]}, branch=branch)


def remove_node(graph: Graph, branch: str, left: bool) -> None:
    graph.mutate('query q() { delete Person where name = "Alice" }', branch=branch)


def add_edge(graph: Graph, branch: str, left: bool) -> None:
    graph.mutate('query q() { insert Knows { from: "Alice", to: "Carol" } }', branch=branch)


def remove_edge(graph: Graph, branch: str, left: bool) -> None:
    graph.mutate('query q() { delete Knows where from = "Bob" }', branch=branch)


def set_property(graph: Graph, branch: str, left: bool) -> None:
    graph.mutate(
        'query q($age: I32) { update Person set { age: $age } where name = "Alice" }',
        {"age": 31 if left else 32},
        branch=branch,
    )


def net_zero(graph: Graph, branch: str, left: bool) -> None:
    add_edge(graph, branch, left)
    graph.mutate('query q() { delete Knows where from = "Alice" }', branch=branch)


ACTS: dict[str, Act] = {
    "noop": noop,
    "addNode": add_node,
    "removeNode": remove_node,
    "addEdge": add_edge,
    "removeEdge": remove_edge,
    "setProperty": set_property,
    "netZero": net_zero,
}
UTD, FF, M = "already_up_to_date", "fast_forward", "merged"
# Rows: what the source did; columns, in the order of the acts: what the target did.
TABLE = {
    "noop": (UTD, UTD, UTD, UTD, UTD, UTD, UTD),
    "addNode": (FF, "divergent_insert", M, M, M, M, M),
    "removeNode": (FF, M, M, "orphan_edge", M, "delete_vs_update", M),
    "addEdge": (FF, M, "orphan_edge", M, M, M, M),
    "removeEdge": (FF, M, M, M, M, M, M),
    "setProperty": (FF, M, "delete_vs_update", M, M, "divergent_update", M),
    "netZero": (FF, M, M, M, M, M, M),
}
CELLS = [(source, target, TABLE[source][column]) for source in ACTS for column, target in enumerate(ACTS)]
_names = count(1)


@pytest.fixture(scope="module", params=["local", pytest.param("spark", marks=pytest.mark.torture)])
def engine(request: pytest.FixtureRequest) -> str:
    """Where it is found out what each side did."""
    if request.param == "spark":
        request.getfixturevalue("spark")
    return str(request.param)


@pytest.fixture(scope="module")
def graph(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    place = "memory://" if engine == "local" else tmp_path_factory.mktemp("merges") / "graph"
    with omnigraph.init(place, SCHEMA, options=OpenOptions(durability="process")) as made:
        people = {"Alice": 30, "Bob": 25, "Carol": 40, "Dan": 50}
        made.write(
            {"Person": [{"name": name, "age": age} for name, age in people.items()]},
            {"Knows": [{"from": "Bob", "to": "Carol"}]},
        )
        yield made


def content(graph: Graph, branch: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    people = {row["name"]: row["age"] for row in graph.query(PEOPLE, branch=branch)}
    edges = graph.export_arrow("Knows", branch=branch).read_all().to_pylist()
    return people, sorted((row["src"], row["dst"]) for row in edges)


def combined(graph: Graph, base: str, source: str, target: str) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """The target with what the source did to the base, worked out the simple way."""
    people, edges = content(graph, target)
    was, had = content(graph, base)
    now, has = content(graph, source)
    for name in was.keys() | now.keys():
        if was.get(name) != now.get(name):
            people.pop(name, None)
            if name in now:
                people[name] = now[name]
    for edge in had:
        if edge not in has and edge in edges:
            edges.remove(edge)
    return people, sorted(edges + [edge for edge in has if edge not in had])


@pytest.mark.parametrize(("source", "target", "ends"), CELLS)
def test_what_two_branches_did_is_merged_or_reported(
    graph: Graph, engine: str, source: str, target: str, ends: str
) -> None:
    number = next(_names)
    left, right = f"left-{number}", f"right-{number}"
    for branch in (left, right):
        graph.branches.create(branch)
    ACTS[source](graph, left, True)
    ACTS[target](graph, right, False)
    before, head = content(graph, right), graph.snapshot(branch=right).commit
    expected = combined(graph, "main", left, right)

    seen = graph.merge(left, into=right, preview=True, engine=engine)
    assert content(graph, right) == before
    if ends not in (UTD, FF, M):
        with pytest.raises(MergeConflictError) as refused:
            graph.merge(left, into=right, engine=engine)
        [conflict] = refused.value.conflicts
        assert conflict.kind == ends
        assert seen.conflicts == refused.value.conflicts
        assert (content(graph, right), graph.snapshot(branch=right).commit) == (before, head)
        return
    done = graph.merge(left, into=right, engine=engine)
    assert (done.outcome, seen.outcome) == (ends, ends)
    assert seen.changes == done.changes
    assert content(graph, right) == expected
    snapshot = graph.snapshot(branch=right)
    if ends == UTD:
        assert (done.commit, snapshot.commit) == (None, head)
    else:
        assert snapshot.commit == done.commit
        assert (snapshot.record.parent, snapshot.record.merged_parent) == (head, graph.snapshot(branch=left).commit)
    assert graph.merge(left, into=right).outcome == UTD


# -- one entity, every pair of operations, same or different values ---------------------------------------------------


@dataclass(frozen=True, slots=True)
class Cell:
    """One entity: whether the base has it, and what each branch does to it."""

    kind: str
    base: bool
    source: str
    target: str
    same: bool

    def __str__(self) -> str:
        return f"{self.kind}-{self.source}-{self.target}-{'same' if self.same else 'different'}"

    @property
    def possible(self) -> bool:
        acts = [each for each in (self.source, self.target) if each != "nothing"]
        return bool(acts) and all((each == "insert") != self.base for each in acts)

    @property
    def ends(self) -> str:
        if "nothing" in (self.source, self.target):
            return "merged"
        if self.source == self.target and (self.same or self.source == "delete"):
            return "merged"
        if not self.base:
            return "divergent_insert"
        return "divergent_update" if self.source == self.target else "delete_vs_update"

    @property
    def states(self) -> list[int | None]:
        """The value at the base, on the source and on the target; None where the entity is not there."""
        was = 1 if self.base else None
        given = {"nothing": was, "delete": None}
        return [was, given.get(self.source, 2), given.get(self.target, 2 if self.same else 3)]

    @property
    def result(self) -> int | None:
        _, source, target = self.states
        return target if self.source == "nothing" else source


KINDS = ("node", "edge")
OPERATIONS = ("nothing", "insert", "update", "delete")
EVERY = starmap(Cell, product(KINDS, (True, False), OPERATIONS, OPERATIONS, (True, False)))


def operate(graph: Graph, branch: str, kind: str, operation: str, value: int | None) -> None:
    if operation == "delete":
        what = 'Person where name = "Zoe"' if kind == "node" else "Knows where since >= 0"
        graph.mutate(f"query q() {{ delete {what} }}", branch=branch)
    elif operation != "nothing":
        mode = "append" if operation == "insert" else "merge"
        if kind == "node":
            graph.write({"Person": [{"name": "Zoe", "age": value}]}, mode=mode, branch=branch)
        else:
            edge = {"id": "e", "from": "Dan", "to": "Bob", "since": value}
            graph.write({}, {"Knows": [edge]}, mode=mode, branch=branch)


@pytest.mark.parametrize("cell", [each for each in EVERY if each.possible], ids=str)
def test_one_entity_is_merged_by_the_rules(graph: Graph, engine: str, cell: Cell) -> None:
    number = next(_names)
    root, left, right = (f"{each}-{number}" for each in ("root", "left", "right"))
    graph.branches.create(root)
    if cell.base:
        operate(graph, root, cell.kind, "insert", 1)
    for branch in (left, right):
        graph.branches.create(branch, source=root)
        # So that neither is ahead of the other, whatever the operation.
        graph.write({"Person": [{"name": f"only on {branch}"}]}, branch=branch)
    base, source, target = cell.states
    operate(graph, left, cell.kind, cell.source, source)
    operate(graph, right, cell.kind, cell.target, target)
    entity, value = ("Zoe", "age") if cell.kind == "node" else ("e", "since")
    if cell.ends != "merged":
        with pytest.raises(MergeConflictError) as refused:
            graph.merge(left, into=right, engine=engine)
        [conflict] = refused.value.conflicts
        assert (conflict.kind, conflict.entity_id) == (cell.ends, entity)
        images = (conflict.base, conflict.source, conflict.target)
        assert [None if image is None else image[value] for image in images] == [base, source, target]
        return
    assert graph.merge(left, into=right, engine=engine).outcome == "merged"
    rows = graph.export_arrow("Person" if cell.kind == "node" else "Knows", branch=right).read_all().to_pylist()
    found = [row[value] for row in rows if row["id"] == entity]
    assert found == ([] if cell.result is None else [cell.result])
