"""Single statements of a mutation: inserts and updates, what they write and what they refuse."""

from typing import Any

import pytest
from tests.support.mutation_graph import SCHEMA, ages, counts, load, pairs, rows, statements

import omnigraph
from omnigraph import Graph, InvalidRequestError, OpenOptions
from omnigraph.testing.clock import ManualClock

FAST = OpenOptions(durability="process")
PEOPLE = 'query people() { insert Person { name: "Ada", age: 36 } insert Person { name: "Bob", age: 25 } }'


# -- insert -----------------------------------------------------------------------------------------------------------


def test_a_keyed_insert_takes_the_place_of_the_node_with_that_key(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 36, nickName: "A" }')
    result = graph.mutate(statements('insert Person { name: "Ada", email: "a@x" }'))
    assert counts(result) == (1, 0)
    assert rows(graph, "Person") == [
        {"id": "Ada", "name": "Ada", "age": None, "email": "a@x", "nickName": None, "level": None}
    ]


def test_inserts_without_a_key_never_meet(graph: Graph) -> None:
    load(graph, 'insert Note { text: "x" } insert Note { text: "x" }', 'insert Note { text: "x" }')
    found = rows(graph, "Note")
    assert [row["text"] for row in found] == ["x", "x", "x"]
    assert len({row["id"] for row in found}) == 3


def test_a_composite_key_makes_the_id(graph: Graph) -> None:
    load(graph, 'insert Cell { row: 7, column: "b c", value: 1.5 }', 'insert Cell { column: "b c", row: 7 }')
    assert rows(graph, "Cell") == [{"id": '["b c","7"]', "column": "b c", "row": 7, "value": None}]


def test_edges_between_the_same_nodes_stay_apart(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" }')
    result = graph.mutate(statements('insert Knows { from: "Ada", to: "Ada" } insert Knows { from: "Ada", to: "Ada" }'))
    assert counts(result) == (0, 2)
    assert pairs(graph) == [("Ada", "Ada"), ("Ada", "Ada")]


def test_values_of_every_type_are_stored(graph: Graph) -> None:
    graph.mutate(
        "query q($at: DateTime, $v: Vector(2), $tags: [String], $data: Blob) {"
        ' insert Note { text: "é", at: $at, score: 1, small: 0.5, tags: $tags, place: $v, data: $data } }',
        {"at": "2024-02-29T10:00:00.5+02:00", "v": [1, 2.5], "tags": ["a", "b"], "data": "base64:eA=="},
    )
    [row] = omnigraph_json(graph, "Note")
    del row["id"]
    assert row == {
        "text": "é", "at": "2024-02-29T08:00:00.500Z", "score": 1.0, "small": 0.5, "tags": ["a", "b"],
        "place": [1.0, 2.5], "data": "base64:eA==",
    }  # fmt: skip


def omnigraph_json(graph: Graph, type_name: str) -> list[dict[str, Any]]:
    table = graph.export_arrow(type_name).read_all()
    return omnigraph.Result(table, query_name="q", branch=None, commit="c").to_pylist()


def test_now_is_one_instant_for_the_whole_execution(graph: Graph, clock: ManualClock) -> None:
    class Ticking:
        def now_us(self) -> int:
            clock.advance(1)
            return clock.now_us()

        def monotonic(self) -> float:
            return clock.monotonic()

        def sleep(self, seconds: float) -> None:
            clock.sleep(seconds)

    with omnigraph.init("memory://", SCHEMA, options=FAST, clock=Ticking()) as ticking:
        ticking.mutate(statements('insert Note { text: "a", at: now() } insert Note { text: "b", at: now() }'))
        first = {row["at"] for row in rows(ticking, "Note")}
        assert len(first) == 1
        ticking.mutate(statements('update Note set { at: now() } where text = "b"'))
        assert len({row["at"] for row in rows(ticking, "Note")}) == 2


@pytest.mark.parametrize(
    ("parameter", "body", "value", "message"),
    [
        ("I64", 'insert Person { name: "A", age: $x }', 2**31, "integer value 2147483648 exceeds Int32 range"),
        ("F64", 'insert Note { text: "a", small: $x }', 1e300, "exceeds Float32 range"),
        ("[F64]", 'insert Note { text: "a", tags: $x }', [1.0], "T7: cannot assign/compare"),
        ("String?", "insert Person { name: $x }", None, "insert @key property 'name' cannot contain null"),
        ("String?", "insert Note { text: $x }", None, "non-nullable property 'text' has null or invalid values"),
        ("String?", 'insert Knows { from: $x, to: "A" }', None, "must provide required endpoint 'from'"),
        ("String?", 'update Note set { text: $x } where text = "a"', None, "non-nullable property 'text' has null"),
        ("String", 'insert Note { text: "a", data: $x }', "s3://b/c", "external blob URI 's3://b/c' is not allowed"),
        ("Blob", 'insert Note { text: "a", data: $x }', "base64:?", "invalid base64 blob data"),
        ("String", 'update Person set { name: $x } where name = "A"', "B", "cannot update @key property 'name'"),
        ("I32", "update Knows set { since: $x } where since = 2", 1, "T16: update mutation for edge type `Knows`"),
        ("Date", "insert Company { founded: $x }", "2024-01-01", "T12: insert for `Company` must provide"),
        ("String", "match { $p: Person { name: $x } } return { $p }", "A", "query 'q' only reads; run it as a query"),
    ],
)
def test_what_cannot_be_written_is_told(graph: Graph, parameter: str, body: str, value: object, message: str) -> None:
    load(graph, 'insert Note { text: "a" }')
    with pytest.raises(InvalidRequestError) as refused:
        graph.mutate(f"query q($x: {parameter}) {{ {body} }}", {"x": value})
    assert message in str(refused.value)
    assert graph.snapshot().number == 2


def test_a_vector_to_be_embedded_is_not_made_up() -> None:
    schema = 'node Doc { text: String  vector: Vector(2) @embed("text") }'
    with omnigraph.init("memory://", schema, options=FAST) as graph:
        with pytest.raises(InvalidRequestError, match="missing required property 'vector'"):
            graph.mutate(statements('insert Doc { text: "a" }'))
        assert counts(graph.mutate(statements('insert Doc { text: "a", vector: [1.0, 2.0] }'))) == (1, 0)


def test_an_integer_may_be_written_to_a_float(graph: Graph) -> None:
    graph.mutate('query q($n: I32) { insert Note { text: "a", score: $n } }', {"n": 3})
    assert rows(graph, "Note")[0]["score"] == 3.0


# -- update -----------------------------------------------------------------------------------------------------------


def test_an_update_changes_what_it_names_and_keeps_the_rest(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 36, nickName: "A" }')
    result = graph.mutate(statements('update Person set { age: 37 } where name = "Ada"'))
    assert counts(result) == (1, 0)
    [ada] = rows(graph, "Person")
    assert (ada["age"], ada["nickName"]) == (37, "A")


def test_an_update_reaches_every_match_and_nothing_absent(graph: Graph) -> None:
    load(graph, PEOPLE[PEOPLE.index("{") + 1 : -1], 'insert Person { name: "Eve" }')
    assert counts(graph.mutate(statements('update Person set { level: "high" } where age >= 25'))) == (2, 0)
    assert counts(graph.mutate(statements('update Person set { level: "low" } where age != 25'))) == (1, 0)
    assert {row["name"]: row["level"] for row in rows(graph, "Person")} == {"Ada": "low", "Bob": "high", "Eve": None}


def test_new_values_are_computed_from_the_values_before(graph: Graph) -> None:
    load(graph, 'insert Cell { row: 1, column: "a", value: 2.0 }')
    graph.mutate(statements('update Cell set { value: value * 10.0 + row } where column = "a" and row = 1'))
    assert rows(graph, "Cell")[0]["value"] == 21.0


def test_null_is_assigned_by_an_absent_parameter(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 36 }')
    graph.mutate('query q($a: I32?) { update Person set { age: $a } where name = "Ada" }')
    assert ages(graph) == {"Ada": None}


def test_a_condition_with_an_absent_value_matches_nothing(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 36 }')
    for where in ("name = $n", "nickName = $n", "age > 1 and nickName != $n"):
        result = graph.mutate(f"query q($n: String?) {{ update Person set {{ age: 1 }} where {where} }}")
        assert counts(result) == (0, 0)


def test_numbers_of_other_types_find_what_equals_them(graph: Graph) -> None:
    load(graph, 'insert Cell { row: 7, column: "a" } insert Person { name: "Ada", age: 7 }')
    find = 'query q($x: F64) { update Cell set { value: 1.0 } where row = $x and column = "a" }'
    assert counts(graph.mutate(find, {"x": 7.0})) == (1, 0)
    assert counts(graph.mutate(find, {"x": 7.5})) == (0, 0)
    assert counts(graph.mutate(find, {"x": 1e300})) == (0, 0)
    by_age = 'query q($x: I64) { update Person set { level: "low" } where age < $x }'
    assert counts(graph.mutate(by_age, {"x": 2**40})) == (1, 0)
    assert counts(graph.mutate(by_age, {"x": -(2**40)})) == (0, 0)


def test_columns_with_capitals_work_in_conditions(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", nickName: "it\'s" }')
    assert counts(graph.mutate(statements('update Person set { age: 1 } where nickName = "it\'s"'))) == (1, 0)
    assert counts(graph.mutate(statements('delete Person where nickName = "it\'s"'))) == (1, 0)


def test_a_row_can_be_updated_again_and_again(graph: Graph) -> None:
    load(graph, PEOPLE[PEOPLE.index("{") + 1 : -1])
    for age in range(1, 6):
        assert counts(graph.mutate(statements(f'update Person set {{ age: {age} }} where name = "Ada"'))) == (1, 0)
        assert ages(graph) == {"Ada": age, "Bob": 25}
