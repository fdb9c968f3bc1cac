"""Mutations: what statements do, what they see of each other, and what they refuse."""

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import ConstraintError, Graph, InvalidRequestError, OpenOptions, ParseError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing.counting_store import CountingStore
from omnigraph.testing.manual_clock import ManualClock

SCHEMA = """
node Person {
  name: String @key  age: I32?  email: String? @unique  nickName: String?  level: enum(low, high)?
  @range(age, 0..150)  @check(name, "^[A-Z]")
}
node Company { name: String @key  founded: Date? }
node Note { text: String  at: DateTime?  score: F64?  small: F32?  tags: [String]?  place: Vector(2)?  data: Blob? }
node Cell { row: I64  column: String  value: F64?  @key(row, column) }
edge Knows: Person -> Person { since: I32? }
edge WorksAt: Person -> Company @card(0..1)
edge Owns: Person -> Company @card(1..2)
"""
FAST = OpenOptions(durability="process")
PEOPLE = 'query people() { insert Person { name: "Ada", age: 36 } insert Person { name: "Bob", age: 25 } }'


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def graph(clock: ManualClock) -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=FAST, clock=clock) as made:
        yield made


def rows(graph: Graph, type_name: str, branch: str = "main") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = graph.export_arrow(type_name, branch=branch).read_all().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def ages(graph: Graph, branch: str = "main") -> dict[str, int | None]:
    return {row["name"]: row["age"] for row in rows(graph, "Person", branch)}


def pairs(graph: Graph, edge: str = "Knows", branch: str = "main") -> list[tuple[str, str]]:
    return sorted((row["src"], row["dst"]) for row in rows(graph, edge, branch))


def counts(result: omnigraph.MutationResult) -> tuple[int, int]:
    return result.affected_nodes, result.affected_edges


def statements(body: str, *, ordered: bool = False) -> str:
    return f"query q() {'@ordered ' if ordered else ''}{{ {body} }}"


def load(graph: Graph, *bodies: str) -> None:
    for body in bodies:
        graph.mutate(statements(body))


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
        ("String", "match { $p: Person { name: $x } } return { $p }", "A", "query 'q' only reads; it is no mutation"),
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


# -- delete -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def town(graph: Graph) -> Graph:
    load(
        graph,
        'insert Person { name: "Ada", age: 30 } insert Person { name: "Bob", age: 25 }'
        ' insert Person { name: "Cy", age: 35 } insert Person { name: "Di" } insert Company { name: "Acme" }',
        'insert Knows { from: "Ada", to: "Bob", since: 1 } insert Knows { from: "Ada", to: "Cy", since: 2 }'
        ' insert Knows { from: "Bob", to: "Di" } insert WorksAt { from: "Ada", to: "Acme" }',
    )
    return graph


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


# -- reading one's own writes -----------------------------------------------------------------------------------------


def test_an_edge_may_end_at_a_node_inserted_before_it(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" }')
    result = graph.mutate(statements('insert Person { name: "Eve" } insert Knows { from: "Eve", to: "Ada" }'))
    assert counts(result) == (1, 1)


def test_an_edge_may_stand_before_the_node_it_ends_at(graph: Graph) -> None:
    result = graph.mutate(statements('insert Knows { from: "Eve", to: "Eve" } insert Person { name: "Eve" }'))
    assert counts(result) == (1, 1)


def test_an_update_sees_a_row_inserted_before_it(graph: Graph) -> None:
    number = graph.snapshot().number
    result = graph.mutate(
        statements('insert Person { name: "X", age: 10 } update Person set { age: 99 } where age = 10')
    )
    assert counts(result) == (2, 0)
    assert ages(graph) == {"X": 99}
    assert graph.snapshot().number == number + 1


def test_a_row_superseded_in_the_same_query_no_longer_matches(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 30 }')
    body = 'update Person set { age: 99 } where name = "Ada" update Person set { age: 10 } where age > 50'
    assert counts(graph.mutate(statements(body))) == (2, 0)
    assert ages(graph) == {"Ada": 10}
    again = 'update Person set { age: 60 } where name = "Ada" update Person set { age: 11 } where age = 10'
    assert counts(graph.mutate(statements(again))) == (1, 0)
    assert ages(graph) == {"Ada": 60}


def test_uniqueness_is_judged_on_what_is_left(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", email: "old" }')
    body = 'update Person set { email: "new" } where name = "Ada" insert Person { name: "Cy", email: "old" }'
    assert counts(graph.mutate(statements(body))) == (2, 0)


def test_the_number_of_edges_counts_those_of_the_same_query(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" } insert Company { name: "Acme" }')
    edge = 'insert WorksAt { from: "Ada", to: "Acme" }'
    with pytest.raises(ConstraintError, match=r"has 2 edges \(max 1\)"):
        graph.mutate(statements(f"{edge} {edge}"))
    assert pairs(graph, "WorksAt") == []
    assert counts(graph.mutate(statements(edge))) == (0, 1)


def test_pending_and_committed_rows_are_judged_alike(graph: Graph) -> None:
    rows_ = (
        'insert Person { name: "N" } insert Person { name: "Q", nickName: "a\'b" } insert Person { name: "L", age: 5 }'
    )
    update = (
        'update Person set { level: "low" } where nickName != "x" '
        'update Person set { level: "high" } where age < 6 and not nickName = "x"'
    )
    graph.mutate(statements(f"{rows_} {update}"))
    pending = {row["name"]: row["level"] for row in rows(graph, "Person")}
    with omnigraph.init("memory://", SCHEMA, options=FAST) as other:
        load(other, rows_, update)
        assert (
            {row["name"]: row["level"] for row in rows(other, "Person")}
            == pending
            == {"N": None, "Q": "low", "L": None}
        )


# -- order, mixture, atomicity ----------------------------------------------------------------------------------------


def test_a_text_that_no_schema_makes_right_is_refused_before_anything_is_asked(clock: ManualClock) -> None:
    store = CountingStore(MemoryStore())
    with omnigraph.init(store, SCHEMA, options=FAST, clock=clock) as graph:
        load(graph, 'insert Person { name: "Ada" }')
        asked = len(store.requests())
        with pytest.raises(ParseError):
            graph.mutate("query q() { insert Person { name: } }")
        with pytest.raises(InvalidRequestError, match="not found"):
            graph.mutate(statements('insert Person { name: "Bob" }'), name="another")
        assert len(store.requests()) == asked


def test_inserts_beside_deletes_are_refused_before_anything_is_asked(clock: ManualClock) -> None:
    store = CountingStore(MemoryStore())
    with omnigraph.init(store, SCHEMA, options=FAST, clock=clock) as graph:
        load(graph, 'insert Person { name: "Ada" }')
        asked = len(store.requests())
        with pytest.raises(InvalidRequestError) as refused:
            graph.mutate(statements('insert Person { name: "Bob" } delete Person where name = "Ada"'))
        assert len(store.requests()) == asked
    assert str(refused.value) == (
        "mutation 'q' on the same query mixes inserts/updates and deletes; "
        "split into separate mutations: (1) inserts and updates, then (2) deletes"
    )


def test_ordered_statements_may_be_mixed_and_each_sees_the_ones_before(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada", age: 1 }', 'insert Knows { from: "Ada", to: "Ada" }')
    body = (
        'delete Person where name = "Ada" insert Person { name: "Ada", age: 2 }'
        ' insert Knows { from: "Ada", to: "Ada" } insert Person { name: "Bob" } delete Person where name = "Bob"'
    )
    result = graph.mutate(statements(body, ordered=True))
    assert counts(result) == (4, 2)
    assert ages(graph) == {"Ada": 2}
    assert pairs(graph) == [("Ada", "Ada")]


def test_an_ordered_insert_taken_back_leaves_nothing_and_no_commit(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" }')
    before = graph.snapshot()
    body = 'insert Person { name: "X" } insert Knows { from: "X", to: "Ada" } delete Person where name = "X"'
    result = graph.mutate(statements(body, ordered=True))
    assert (counts(result), result.commit) == ((2, 2), None)
    assert graph.snapshot().record == before.record


def test_an_edge_to_a_node_deleted_before_it_is_refused(graph: Graph) -> None:
    load(graph, 'insert Person { name: "Ada" }')
    body = 'delete Person where name = "Ada" insert Knows { from: "Ada", to: "Ada" }'
    with pytest.raises(ConstraintError, match="src 'Ada' not found in Person"):
        graph.mutate(statements(body, ordered=True))
    assert ages(graph) == {"Ada": None}


def test_statements_over_many_types_make_one_commit_with_one_version_each(town: Graph) -> None:
    before = town.snapshot()
    body = (
        'insert Person { name: "Eve" } insert Person { name: "Flo" } insert Knows { from: "Eve", to: "Flo" }'
        ' insert Knows { from: "Flo", to: "Eve" } update Person set { age: 5 } where name = "Eve"'
    )
    result = town.mutate(statements(body))
    after = town.snapshot()
    assert result.number == before.number + 1 == after.number
    assert after.commit == result.commit
    changed = {key for key, pin in after.record.tables.items() if pin != before.record.tables[key]}
    assert changed == {"node:Person", "edge:Knows"}
    assert after.record.changes.types["node:Person"].inserted == 2
    assert after.record.changes.types["edge:Knows"].inserted == 2


@pytest.mark.parametrize(
    "failing",
    [
        'insert Knows { from: "Eve", to: "Nobody" }',
        'insert Person { name: "eve" }',
        'insert Person { name: "Flo", age: 151 }',
        'insert Person { name: "Flo", email: "a@x" } insert Person { name: "Gil", email: "a@x" }',
    ],
)
def test_a_failing_statement_leaves_nothing_and_stands_in_nobodys_way(graph: Graph, failing: str) -> None:
    load(graph, 'insert Person { name: "Ada" }')
    before = graph.snapshot()
    with pytest.raises(ConstraintError):
        graph.mutate(statements(f'insert Person {{ name: "Eve" }} {failing}'))
    assert graph.snapshot().record == before.record
    assert counts(graph.mutate(statements('insert Person { name: "Eve" }'))) == (1, 0)


@pytest.mark.parametrize("death", [Crash, KeyboardInterrupt])
@pytest.mark.parametrize(
    "place", [Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED, Failpoint.WRITE_MADE_DURABLE]
)
def test_a_mutation_cut_off_before_its_entry_is_as_if_it_never_ran(
    town: Graph, place: Failpoint, death: type[BaseException]
) -> None:
    def die() -> None:
        raise death

    before = town.snapshot()
    with armed(place, die), pytest.raises(death):
        town.mutate(statements('delete Person where name = "Ada"'))
    assert town.snapshot().record == before.record
    assert counts(town.mutate(statements('delete Person where name = "Ada"'))) == (1, 3)


def test_nobody_sees_a_mutation_before_it_is_published(town: Graph) -> None:
    seen: list[int] = []
    with armed(Failpoint.WRITE_MADE_DURABLE, lambda: seen.append(town.count("Person"))):
        town.mutate(statements('insert Person { name: "Eve" }'))
    assert seen == [4]
    assert town.count("Person") == 5


def test_an_open_graph_shows_what_a_fresh_one_does() -> None:
    graph = omnigraph.init("memory://warm-and-cold", SCHEMA, options=FAST)
    load(graph, 'insert Person { name: "Ada" }', 'insert Person { name: "Bob" }', 'delete Person where name = "Ada"')
    with omnigraph.open(graph.uri) as fresh:
        assert ages(fresh) == ages(graph) == {"Bob": None}
        assert fresh.snapshot().record == graph.snapshot().record


# -- rules ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ('insert Person { name: "Eve", age: 151 }', "@range violation on Person.age: value 151 > max 150"),
        ('update Person set { age: -1 } where name = "Ada"', "@range violation on Person.age: value -1 < min 0"),
        (
            'insert Person { name: "eve" }',
            "@check violation on Person.name: value 'eve' does not match pattern '^[A-Z]'",
        ),
        (
            'insert Person { name: "Eve", email: "a@x" }',
            "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'Eve'",
        ),
        (
            'update Person set { email: "a@x" } where name = "Bob"',
            "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'Bob'",
        ),
        (
            'update Person set { email: "b@x" } where age > 0',
            "@unique violation on Person.email: value 'b@x' held by 'Ada' and 'Bob'",
        ),
        ('insert Knows { from: "Ada", to: "Eve" }', "dst 'Eve' not found in Person"),
        ('insert WorksAt { from: "Ada", to: "Ada" }', "dst 'Ada' not found in Company"),
    ],
)
def test_every_rule_holds_on_inserts_and_updates(graph: Graph, body: str, message: str) -> None:
    load(graph, 'insert Person { name: "Ada", age: 1, email: "a@x" } insert Person { name: "Bob", age: 2 }')
    with pytest.raises(ConstraintError) as broken:
        graph.mutate(statements(body))
    assert broken.value.message == message
    assert graph.snapshot().number == 2


def test_an_enum_is_checked_as_text_and_as_parameter(graph: Graph) -> None:
    with pytest.raises(ParseError, match="T3: property `level` expects one of"):
        graph.mutate(statements('insert Person { name: "Eve", level: "medium" }'))
    with pytest.raises(ConstraintError, match=r"invalid enum value 'medium' for Person.level \(expected: high, low\)"):
        graph.mutate('query q($l: String) { insert Person { name: "Eve", level: $l } }', {"l": "medium"})


def test_writing_a_node_again_with_its_own_unique_value_is_allowed(graph: Graph) -> None:
    for age in (1, 2):
        load(graph, f'insert Person {{ name: "Ada", email: "a@x", age: {age} }}')
    load(graph, 'update Person set { age: 3, email: "a@x" } where name = "Ada"')
    assert ages(graph) == {"Ada": 3}
