"""What every engine that loads files does with records: the modes, and the rules of the schema."""

import json
from collections.abc import Callable
from functools import partial

import pytest
from tests.support.load_lines import ADA, BOB, KNOWS, edge, head, ids, note, person, refused, rows

from omnigraph import Graph, LoadResult
from omnigraph.errors import (
    ConflictError,
    ConstraintError,
)

Load = Callable[..., LoadResult]


# --- modes ------------------------------------------------------------------------------------------------------------


def test_nodes_and_edges_in_any_order_become_one_commit(graph: Graph, load: Load) -> None:
    before = head(graph)
    result = load(KNOWS, BOB, "", ADA, '{"edge":"likes","from":"Bob","to":"Bob"}')
    assert (result.nodes, result.edges, result.total_entities) == ({"Person": 2}, {"Knows": 1, "Likes": 1}, 4)
    commit = graph.snapshot().record
    assert (commit.commit, commit.parent) == (result.commit, before)
    assert rows(graph, "Knows")[0]["src"] == "Ada"
    assert ids(graph, "Person") == ["Ada", "Bob"]
    document = result.to_dict()
    assert document["nodes"] == [{"name": "Person", "entities_loaded": 2}]
    assert document["commit"]["graph_commit_id"] == result.commit


def test_every_type_of_value_arrives_as_it_was_written(graph: Graph, load: Load) -> None:
    data = {
        "id": "n",
        "text": "é\n",
        "size": 2**64 - 1,
        "seen": "2024-01-31T10:00:00.123Z",
        "tags": ["a", "b"],
        "at": [1, 2.5],
        "raw": "base64:aGk=",
    }
    load(json.dumps({"type": "Note", "data": data}), '{"type":"Pair","data":{"a":"x","b":-1}}')
    found = rows(graph, "Note")[0]
    assert (found["text"], found["size"], found["tags"], found["at"], found["raw"]) == (
        "é\n",
        2**64 - 1,
        ["a", "b"],
        [1.0, 2.5],
        b"hi",
    )
    assert found["seen"].isoformat() == "2024-01-31T10:00:00.123000+00:00"
    assert ids(graph, "Pair") == ['["x","-1"]']


def test_append_refuses_what_is_there(graph: Graph, load: Load) -> None:
    load(ADA)
    told = refused(graph, lambda: load(BOB, person("Ada", age=9)), ConflictError, "already has id 'Ada'")
    assert told.code == "key_conflict"
    assert ids(graph, "Person") == ["Ada"]


def test_merge_puts_whole_rows_in_the_place_of_old_ones(graph: Graph, load: Load) -> None:
    load(ADA, person("Bob", age=7), KNOWS)
    load(person("Ada", age=31), person("Cid"), KNOWS.replace("2020", "2021"), mode="merge")
    found = {row["id"]: (row["age"], row["email"]) for row in rows(graph, "Person")}
    assert found == {"Ada": (31, None), "Bob": (7, None), "Cid": (None, None)}
    assert [row["since"].year for row in rows(graph, "Knows")] == [2021]
    changes = graph.snapshot().record.changes.types["node:Person"]
    assert (changes.inserted_ids, changes.updated_ids) == (("Cid",), ("Ada",))


def test_overwrite_replaces_the_types_it_names_and_no_others(graph: Graph, load: Load) -> None:
    load(ADA, BOB, note("n1", "x"))
    load(person("Ada"), person("Cid"), mode="overwrite")
    assert (ids(graph, "Person"), ids(graph, "Note")) == (["Ada", "Cid"], ["n1"])
    changes = graph.snapshot().record.changes.types["node:Person"]
    assert (changes.inserted, changes.updated, changes.deleted) == (1, 1, 1)


def test_overwrite_keeps_no_edge_to_a_node_that_goes(graph: Graph, load: Load) -> None:
    load(ADA, BOB, KNOWS)
    refused(graph, lambda: load(ADA, mode="overwrite"), ConstraintError, "dst 'Bob' not found in Person")
    load(ADA, edge("Knows", "Ada", "Ada"), mode="overwrite")
    assert graph.count("Knows") == 1


def test_a_load_of_nothing_makes_a_commit_too(graph: Graph, load: Load) -> None:
    before = head(graph)
    assert load(data=b"").commit == head(graph) != before


def test_the_last_record_of_an_id_wins_a_merge_and_only_that(graph: Graph, load: Load) -> None:
    load(note("n", "one"), note("m", "x"), note("n", "two"), mode="merge")
    assert [row["text"] for row in rows(graph, "Note")] == ["x", "two"]
    for mode in ("append", "overwrite"):
        twice = (note("q", "one"), note("q", "two"))
        refused(graph, partial(load, *twice, mode=mode), ConflictError, "occurs twice")


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_key_twice_is_refused_in_every_mode(graph: Graph, load: Load, mode: str) -> None:
    told = "@unique violation on Person.name: value 'Ada' held by 'Ada' and 'Ada' (line 3)"
    refused(graph, lambda: load(ADA, BOB, person("Ada"), mode=mode), ConstraintError, told)


# --- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([person("C", level="mid")], "invalid enum value 'mid' for Person.level (expected: high, low) (line 1)"),
        ([person("C"), person("D", age=151)], "@range violation on Person.age: value 151 > max 150 (line 2)"),
        ([person("C D")], "@check violation on Person.name: value 'C D' does not match pattern"),
        ([person("C", email="a@x")], "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'C'"),
        (
            [person("C", first="x", born="2000-01-01"), person("D", first="x", born="2000-01-01")],
            "@unique violation on Person.(first, born): value '(x, 2000-01-01)' held by 'C' and 'D' (line 2)",
        ),
        ([edge("Knows", "Ada", "Bob")], "@unique violation on Knows.(src, dst): value '(Ada, Bob)' held by 'k1'"),
        ([edge("Likes", "Ada", "Cid")], "dst 'Cid' not found in Person (line 1)"),
        ([edge("Likes", "Cid", "Ada")], "src 'Cid' not found in Person (line 1)"),
        (
            [note("n", "x"), *[edge("Owns", "Ada", "n")] * 3],
            "@card violation on edge Owns: source 'Ada' has 3 edges (max 2)",
        ),
    ],
)
def test_the_first_broken_rule_is_told_with_its_line(graph: Graph, load: Load, lines: list[str], message: str) -> None:
    load(ADA, BOB, KNOWS)
    refused(graph, lambda: load(*lines), ConstraintError, message)
    assert load(person("Zoe"), edge("Likes", "Zoe", "Ada")).total_entities == 2, "the next load is as good as any"


def test_values_change_hands_within_one_merge(graph: Graph, load: Load) -> None:
    load(person("Ada", email="a"), person("Bob", email="b"))
    load(person("Ada", email="b"), person("Bob", email="a"), mode="merge")
    assert {row["id"]: row["email"] for row in rows(graph, "Person")} == {"Ada": "b", "Bob": "a"}
    refused(graph, lambda: load(person("Ada", email="a"), mode="merge"), ConstraintError, "'Bob' and 'Ada'")


def test_edges_that_are_replaced_no_longer_count(graph: Graph, load: Load) -> None:
    load(ADA, BOB, note("n", "x"), edge("Owns", "Ada", "n", id="o1"), edge("Owns", "Ada", "n", id="o2"))
    load(edge("Owns", "Bob", "n", id="o2"), edge("Owns", "Ada", "n", id="o3"), mode="merge")
    assert sorted(row["src"] for row in rows(graph, "Owns")) == ["Ada", "Ada", "Bob"]
    told = "source 'Bob' has 0 edges (min 1)"
    refused(graph, lambda: load(edge("Owns", "Ada", "n", id="o2"), mode="merge"), ConstraintError, "@card")
    refused(
        graph,
        lambda: load(edge("Owns", "Ada", "n", id="z"), mode="overwrite"),
        ConstraintError,
        told,
    )
