"""Two writers at once: whatever one of them rested on, the other cannot have taken away unseen."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any

import pytest
from tests.support.interleaving import once

import omnigraph
from omnigraph import ConflictError, ConstraintError, Graph, GraphError, OpenOptions, PreconditionError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.conflict import KeyConflict, ReadSetChanged

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique }
node Company { name: String @key }
edge Knows: Person -> Person { since: I32?  @unique(src, dst) }
edge Likes: Person -> Person { since: I32? }
edge WorksAt: Person -> Company @card(0..1)
edge Owns: Person -> Company @card(1..3)
"""
FAST = OpenOptions(durability="process")
START = (
    'insert Person { name: "Ada", age: 30, email: "a@x" } insert Person { name: "Bob", age: 40 }'
    ' insert Person { name: "Cy" } insert Company { name: "Acme" } insert Company { name: "Beta" }'
    ' insert Owns { from: "Cy", to: "Acme" } insert Owns { from: "Cy", to: "Beta" }'
)

Write = Callable[[Graph], object]


@pytest.fixture
def graph() -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST) as made:
        made.mutate(f"query start() {{ {START} }}")
        yield made


@dataclass(frozen=True, slots=True)
class Do:
    """A mutation without parameters."""

    body: str

    def __call__(self, graph: Graph) -> object:
        return graph.mutate(f"query q() {{ {self.body} }}")

    def __str__(self) -> str:
        return self.body


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows written by frames."""

    mode: str
    nodes: dict[str, Any]
    edges: dict[str, Any]

    def __call__(self, graph: Graph) -> object:
        return graph.write(self.nodes, self.edges, mode=self.mode)

    def __str__(self) -> str:
        return f"{self.mode} {self.nodes} {self.edges}"


def refused(graph: Graph, mine: Write, theirs: Write) -> GraphError | None:
    """Why `mine` fails when `theirs` is published after it has run and before it publishes; None if it does not."""
    with armed(Failpoint.WRITE_PREPARED, once(lambda: theirs(graph))):
        try:
            mine(graph)
        except GraphError as error:
            return error
    return None


def people(*names: str) -> dict[str, Any]:
    return {"Person": [{"name": name} for name in names]}


PASS, READ_SET, KEY = "pass", "read_set_conflict", "key_conflict"
RACES = [
    # Whoever deletes a node has looked for its edges; whoever inserts an edge has looked for its nodes.
    (Do('insert Likes { from: "Ada", to: "Bob" }'), Do('delete Person where name = "Bob"'), "dst 'Bob' not found"),
    (Do('insert Likes { from: "Bob", to: "Ada" }'), Do('delete Person where name = "Bob"'), "src 'Bob' not found"),
    (Do('delete Person where name = "Bob"'), Do('insert Likes { from: "Ada", to: "Bob" }'), READ_SET),
    (Do('delete Person where name = "Bob"'), Do('insert Likes { from: "Bob", to: "Ada" }'), READ_SET),
    (Do('delete Person where name = "Bob"'), Do('insert Likes { from: "Ada", to: "Ada" }'), PASS),
    (Do('insert Likes { from: "Ada", to: "Ada" }'), Do('delete Person where name = "Bob"'), PASS),
    (Do('insert Likes { from: "Ada", to: "Ada" }'), Do('insert Person { name: "Ada" }'), PASS),
    (Do('insert Person { name: "Ada" }'), Do('insert Likes { from: "Ada", to: "Ada" }'), PASS),
    # Unique values.
    (
        Do('insert Person { name: "Eve", email: "e" }'),
        Do('insert Person { name: "Flo", email: "e" }'),
        "@unique violation",
    ),
    (
        Do('insert Person { name: "Eve", email: "e" }'),
        Do('update Person set { email: "e" } where name = "Bob"'),
        "@unique violation",
    ),
    (
        Do('update Person set { email: "e" } where name = "Bob"'),
        Do('insert Person { name: "Eve", email: "e" }'),
        READ_SET,
    ),
    (Do('insert Person { name: "Eve", email: "e" }'), Do('insert Person { name: "Flo", email: "f" }'), PASS),
    (Do('insert Person { name: "Eve", email: "e" }'), Do('update Person set { email: "f" } where name = "Ada"'), PASS),
    (Do('insert Knows { from: "Ada", to: "Bob" }'), Do('insert Knows { from: "Ada", to: "Bob" }'), "@unique violation"),
    (Do('insert Knows { from: "Ada", to: "Bob" }'), Do('insert Knows { from: "Bob", to: "Ada" }'), PASS),
    (
        Do('insert Person { name: "Ada", email: "a@x", age: 1 }'),
        Do('insert Person { name: "Flo", email: "f" }'),
        PASS,
    ),
    (
        Do('update Person set { email: "free" } where name = "Ada"'),
        Do('insert Person { name: "Flo", email: "f" }'),
        PASS,
    ),
    # How many edges leave a node.
    (Do('insert WorksAt { from: "Ada", to: "Acme" }'), Do('insert WorksAt { from: "Ada", to: "Beta" }'), "(max 1)"),
    (Do('insert WorksAt { from: "Ada", to: "Acme" }'), Do('insert WorksAt { from: "Bob", to: "Acme" }'), PASS),
    (Do('delete Owns where to = "Acme"'), Do('delete Owns where to = "Beta"'), READ_SET),
    (Do('delete Company where name = "Acme"'), Do('delete Company where name = "Beta"'), READ_SET),
    (Do('delete Company where name = "Acme"'), Do('delete Owns where to = "Beta"'), READ_SET),
    # Nodes named by their keys, and nodes chosen on sight of all.
    (Do('insert Person { name: "Eve", age: 1 }'), Do('insert Person { name: "Eve", age: 2 }'), PASS),
    (
        Do('update Person set { age: 1 } where name = "Ada"'),
        Do('update Person set { age: 2 } where name = "Bob"'),
        PASS,
    ),
    (
        Do('update Person set { age: 1 } where name = "Ada"'),
        Do('update Person set { age: 2 } where name = "Ada"'),
        READ_SET,
    ),
    (Do('update Person set { age: 1 } where name = "Ada"'), Do('delete Person where name = "Ada"'), READ_SET),
    (Do('delete Person where name = "Ada"'), Do('insert Person { name: "Ada" }'), READ_SET),
    (Do("update Person set { age: 1 } where age > 35"), Do('insert Person { name: "Eve" }'), READ_SET),
    (Do("update Person set { age: 1 } where age > 35"), Do('insert Company { name: "New" }'), PASS),
    (Do('insert Person { name: "Eve" }'), Do("update Person set { age: 1 } where age > 35"), PASS),
    # Edges named by an end.
    (Do('delete Likes where from = "Cy"'), Do('insert Likes { from: "Cy", to: "Ada" }'), PASS),
    # Frames.
    (Rows("append", people("Eve"), {}), Rows("append", people("Eve"), {}), KEY),
    (Rows("append", people("Eve"), {}), Rows("append", people("Flo"), {}), PASS),
    (Rows("merge", people("Eve"), {}), Rows("merge", people("Eve"), {}), PASS),
    (Rows("overwrite", people("Ada", "Bob", "Cy"), {}), Do('insert Person { name: "Eve" }'), READ_SET),
    (Rows("overwrite", people("Ada", "Cy"), {}), Do('insert Likes { from: "Ada", to: "Bob" }'), READ_SET),
    (Rows("overwrite", people("Ada", "Cy"), {}), Do('insert Likes { from: "Ada", to: "Ada" }'), PASS),
    (Do('insert Likes { from: "Ada", to: "Bob" }'), Rows("overwrite", people("Ada", "Cy"), {}), "dst 'Bob' not found"),
    (
        Rows("merge", {}, {"Likes": [{"id": "l", "from": "Ada", "to": "Bob"}]}),
        Do('delete Person where name = "Bob"'),
        "dst 'Bob' not found",
    ),
]


@pytest.mark.parametrize(("mine", "theirs", "outcome"), RACES, ids=str)
def test_a_race_ends_as_if_one_had_come_after_the_other(graph: Graph, mine: Write, theirs: Write, outcome: str) -> None:
    error = refused(graph, mine, theirs)
    if outcome == PASS:
        assert error is None
    elif outcome in (READ_SET, KEY):
        assert isinstance(error, ConflictError)
        assert error.code == outcome
    else:
        assert error is not None
        assert outcome in str(error)
    assert_every_rule_holds(graph)


def assert_every_rule_holds(graph: Graph) -> None:
    nodes = {name: _rows(graph, name) for name in ("Person", "Company")}
    ids = {name: {row["id"] for row in rows} for name, rows in nodes.items()}
    emails = [row["email"] for row in nodes["Person"] if row["email"] is not None]
    assert len(emails) == len(set(emails))
    for edge, target in (("Knows", "Person"), ("Likes", "Person"), ("WorksAt", "Company"), ("Owns", "Company")):
        edges = _rows(graph, edge)
        assert {row["src"] for row in edges} <= ids["Person"]
        assert {row["dst"] for row in edges} <= ids[target]
    works = [row["src"] for row in _rows(graph, "WorksAt")]
    assert len(works) == len(set(works))
    pairs = [(row["src"], row["dst"]) for row in _rows(graph, "Knows")]
    assert len(pairs) == len(set(pairs))
    assert "Cy" not in ids["Person"] or any(row["src"] == "Cy" for row in _rows(graph, "Owns"))


def _rows(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    return graph.export_arrow(type_name).read_all().to_pylist()


def test_a_refused_delete_can_be_run_again_and_then_takes_the_new_edge_along(graph: Graph) -> None:
    delete = Do('delete Person where name = "Bob"')
    error = refused(graph, delete, Do('insert Likes { from: "Ada", to: "Bob" }'))
    assert isinstance(error, ConflictError)
    [conflict] = error.conflicts
    assert isinstance(conflict, ReadSetChanged)
    assert conflict.member == "edge:Likes"
    result = graph.mutate('query q() { delete Person where name = "Bob" }')
    assert (result.affected_nodes, result.affected_edges) == (1, 1)


def test_an_insert_that_lost_its_race_is_checked_anew_on_the_newer_state(graph: Graph) -> None:
    before = graph.snapshot().number
    mine = Do('insert Person { name: "Eve", email: "e" }')
    error = refused(graph, mine, Do('insert Person { name: "Flo", email: "e" }'))
    assert isinstance(error, ConstraintError)
    assert error.message == "@unique violation on Person.email: value 'e' held by 'Flo' and 'Eve'"
    assert graph.snapshot().number == before + 1


def test_a_strict_insert_that_lost_its_race_names_the_entity_that_is_there(graph: Graph) -> None:
    error = refused(graph, Rows("append", people("Eve"), {}), Rows("append", people("Eve"), {}))
    assert isinstance(error, ConflictError)
    assert error.conflicts == (KeyConflict("node:Person", "Eve"),)


def test_a_precondition_is_broken_by_any_commit_in_between(graph: Graph) -> None:
    head = graph.snapshot().commit

    def mine(graph: Graph) -> object:
        return graph.mutate('query q() { insert Person { name: "Eve" } }', if_commit=head)

    error = refused(graph, mine, Do('insert Company { name: "New" }'))
    assert isinstance(error, PreconditionError)
    assert graph.count("Person") == 3


def test_an_open_graph_writes_on_what_another_has_written_meanwhile() -> None:
    first = omnigraph.init("memory://two-handles", SCHEMA, options=FAST)
    second = omnigraph.open("memory://two-handles", options=FAST)
    Do('insert Person { name: "Ada", age: 1 }')(first)
    update = second.mutate('query q() { update Person set { age: 2 } where name = "Ada" }')
    assert update.affected_nodes == 1
    Do('insert WorksAt { from: "Ada", to: "Acme" } insert Company { name: "Acme" }')(first)
    with pytest.raises(ConstraintError, match="max 1"):
        Do('insert WorksAt { from: "Ada", to: "Acme" }')(second)
    assert [row["age"] for row in _rows(first, "Person")] == [2]


def test_of_many_strict_inserts_of_one_id_one_wins_and_the_rest_are_told(graph: Graph) -> None:
    writers = 4
    barrier = Barrier(writers)

    def insert(number: int) -> GraphError | None:
        barrier.wait()
        rows = {"Person": [{"name": "Eve", "age": number}, {"name": f"own{number}"}]}
        try:
            graph.write(rows, mode="append")
        except ConflictError as error:
            return error
        return None

    with ThreadPoolExecutor(writers) as pool:
        outcomes = list(pool.map(insert, range(writers)))
    assert outcomes.count(None) == 1
    assert {error.code for error in outcomes if error is not None} == {"key_conflict"}
    found = {row["name"]: row["age"] for row in _rows(graph, "Person")}
    assert found["Eve"] == outcomes.index(None)
    assert [name for name in found if name.startswith("own")] == [f"own{outcomes.index(None)}"]
