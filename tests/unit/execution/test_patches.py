"""Writes that set only what they name: `upsert` in mutations, and rows written with the mode `patch`."""

from typing import Any

import pyarrow as pa
import pytest
from tests.support.interleaving import RacingStore

import omnigraph
from omnigraph import ConflictError, ConstraintError, Graph, InvalidRequestError, OpenOptions
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing.invariants import check_graph

SCHEMA = """
node Person { name: String @key  age: I32?  city: String  tags: [String]?  face: Vector(2)?  photo: Blob?
              email: String? @unique }
node Note { text: String  pages: I32? }
edge Knows: Person -> Person { since: I32?  how: String?  @key(src, dst) }
edge Wrote: Person -> Note { year: I32?  page: I32? }
"""
FAST = OpenOptions(durability="process")
KNOWS = "match { $a: Person $a $k: knows $b } return { $a, $k.* } order { $a.name }"
ADA = {
    "name": "Ada",
    "age": 36,
    "city": "London",
    "tags": ["maths"],
    "face": [0.5, 1.0],
    "photo": "base64:aGVsbG8=",
    "email": "ada@x",
}
SHOWN = {"id": "Ada", **{name: value for name, value in ADA.items() if name != "photo"}}


def make_graph(store: MemoryStore) -> Graph:
    graph = omnigraph.init(store, SCHEMA, options=FAST)
    graph.write(
        nodes={"Person": [ADA, {"name": "Bob", "city": "Bern"}], "Note": [{"id": "n1", "text": "a", "pages": 2}]}
    )
    graph.write(edges={"Knows": [{"from": "Ada", "to": "Bob", "since": 1840, "how": "post"}]})
    return graph


@pytest.fixture
def graph() -> Graph:
    return make_graph(MemoryStore())


def run(graph: Graph, body: str, **more: Any) -> omnigraph.MutationResult:  # noqa: ANN401  (options as they are)
    return graph.mutate(f"query q() {{ {body} }}", **more)


# -- upsert -----------------------------------------------------------------------------------------------------------


def test_an_upsert_keeps_every_kind_of_property(graph: Graph) -> None:
    run(graph, 'upsert Person { name: "Ada", age: 37 }')

    assert graph.get("Person", "Ada") == SHOWN | {"age": 37}
    assert graph.blob("node", "Person", "Ada", "photo").read() == b"hello"


def test_an_upsert_of_an_edge_is_found_by_its_key(graph: Graph) -> None:
    run(graph, 'upsert Knows { from: "Ada", to: "Bob", since: 1841 }')
    run(graph, 'upsert Knows { from: "Bob", to: "Ada", how: "letters" }')

    assert graph.query(KNOWS).to_pylist() == [
        {"a": "Ada", "k.since": 1841, "k.how": "post"},
        {"a": "Bob", "k.since": None, "k.how": "letters"},
    ]


def test_upserts_see_earlier_statements(graph: Graph) -> None:
    run(
        graph,
        'insert Person { name: "Cy", city: "Rom" } upsert Person { name: "Cy", age: 1 } '
        'upsert Person { name: "Cy", age: 2 } upsert Person { name: "Ada", age: 3 } '
        'update Person set { age: 4 } where name = "Ada"',
    )

    assert graph.get("Person", "Cy") == dict.fromkeys(SHOWN) | {"id": "Cy", "name": "Cy", "city": "Rom", "age": 2}
    assert graph.get("Person", "Ada") == SHOWN | {"age": 4}


def test_an_upsert_is_held_to_the_rules(graph: Graph) -> None:
    with pytest.raises(ConstraintError):
        run(graph, 'upsert Person { name: "Bob", email: "ada@x" }')
    with pytest.raises(InvalidRequestError, match="missing required property 'city'"):
        run(graph, 'upsert Person { name: "Eve" }')


def test_an_upsert_that_loses_a_race_keeps_what_the_winner_wrote() -> None:
    store = MemoryStore()
    make_graph(store)
    other = omnigraph.open(store, options=FAST)
    racing = RacingStore(store, [lambda: run(other, 'update Person set { city: "Paris" } where name = "Ada"')])

    done = run(omnigraph.open(racing, options=FAST), 'upsert Person { name: "Ada", age: 40 }')

    assert done.attempts == 2
    assert other.get("Person", "Ada") == SHOWN | {"age": 40, "city": "Paris"}
    check_graph(other)


def test_an_upsert_works_on_a_branch_after_compaction_and_prune(graph: Graph) -> None:
    graph.branches.create("side")
    run(graph, 'upsert Person { name: "Ada", age: 50 }', branch="side")
    graph.optimize()
    graph.optimize("side")
    graph.prune("side", keep=1)
    run(graph, 'upsert Person { name: "Ada", city: "Ely" }', branch="side")

    assert graph.get("Person", "Ada", branch="side") == SHOWN | {"age": 50, "city": "Ely"}
    assert graph.get("Person", "Ada") == SHOWN


def test_an_upsert_under_a_new_schema_fills_the_new_property(graph: Graph) -> None:
    graph.schema_apply(
        SCHEMA.replace("node Note", "node Extra { x: I32? }\nnode Note").replace("age: I32?", "age: I32?  rank: I32?")
    )
    run(graph, 'upsert Person { name: "Ada", rank: 1 }')

    found = graph.get("Person", "Ada")
    assert found == SHOWN | {"rank": 1}
    assert list(found or ())[:5] == ["id", "name", "age", "rank", "city"]


# -- rows with the mode `patch` ---------------------------------------------------------------------------------------


def test_a_patch_sets_what_each_row_names(graph: Graph) -> None:
    done = graph.write(
        nodes={
            "Person": [
                {"name": "Ada", "age": 40},
                {"name": "Bob", "tags": ["x"], "age": None},
                {"name": "Cy", "city": "Rom"},
            ]
        },
        mode="patch",
    )

    assert (done.mode, dict(done.nodes)) == ("patch", {"Person": 3})
    assert graph.get("Person", "Ada") == SHOWN | {"age": 40}
    nothing = dict.fromkeys(SHOWN)
    assert graph.get("Person", "Bob") == nothing | {"id": "Bob", "name": "Bob", "city": "Bern", "tags": ["x"]}
    assert graph.get("Person", "Cy") == nothing | {"id": "Cy", "name": "Cy", "city": "Rom"}
    assert graph.blob("node", "Person", "Ada", "photo").read() == b"hello"


def test_a_patch_of_a_table_sets_its_columns_nulls_included(graph: Graph) -> None:
    graph.write(
        nodes={"Person": pa.table({"name": ["Ada", "Bob"], "age": pa.array([None, 7], pa.int32())})}, mode="patch"
    )

    assert graph.get("Person", "Ada") == SHOWN | {"age": None}
    assert (graph.get("Person", "Bob") or {})["age"] == 7


def test_a_patch_finds_entities_without_a_key_by_their_id(graph: Graph) -> None:
    graph.write(nodes={"Note": [{"id": "n1", "pages": 3}, {"text": "b"}]}, mode="patch")

    assert graph.get("Note", "n1") == {"id": "n1", "text": "a", "pages": 3}
    assert graph.count("Note") == 2


def test_a_patch_of_edges_keeps_the_rest(graph: Graph) -> None:
    graph.write(edges={"Knows": [{"from": "Ada", "to": "Bob", "how": "ball"}]}, mode="patch")

    assert graph.query(KNOWS).to_pylist() == [{"a": "Ada", "k.since": 1840, "k.how": "ball"}]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([{"name": "Eve", "age": 3}], InvalidRequestError),  # new, and the city is missing
        ([{"name": "Ada", "city": None}], InvalidRequestError),  # cannot be emptied
        ([{"age": 3}], InvalidRequestError),  # no key
        ([{"name": "Ada", "age": 1}, {"name": "Ada", "age": 2}], (ConstraintError, ConflictError)),
    ],
)
def test_a_patch_that_cannot_be_written_changes_nothing(graph: Graph, rows: list[dict[str, Any]], error: Any) -> None:  # noqa: ANN401
    head = graph.snapshot().commit
    with pytest.raises(error):
        graph.write(nodes={"Person": rows}, mode="patch")

    assert graph.snapshot().commit == head


def test_a_patch_that_loses_a_race_keeps_what_the_winner_wrote() -> None:
    store = MemoryStore()
    make_graph(store)
    other = omnigraph.open(store, options=FAST)
    racing = RacingStore(store, [lambda: run(other, 'update Person set { city: "Paris" } where name = "Ada"')])

    omnigraph.open(racing, options=FAST).write(nodes={"Person": [{"name": "Ada", "age": 40}]}, mode="patch")

    assert other.get("Person", "Ada") == SHOWN | {"age": 40, "city": "Paris"}


def test_only_rows_can_be_patched(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="unknown mode 'patch'; one of append, merge, overwrite"):
        graph.load(b'{"type":"Person","data":{"name":"Ada"}}', mode="patch", engine="local")
