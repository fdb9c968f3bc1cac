"""Several statements in one mutation: what they see of each other, in which order, all or none; and the rules."""

import pytest
from tests.support.mutation_graph import SCHEMA, ages, counts, load, pairs, rows, statements

import omnigraph
from omnigraph import ConstraintError, Graph, InvalidRequestError, OpenOptions, ParseError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.storage.object_stores import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import CountingStore

FAST = OpenOptions(durability="process")


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
