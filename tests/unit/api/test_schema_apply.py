"""Schemas that change while the graph is in use."""

from pathlib import Path

import pytest
from tests.support.interleaving import once

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    ConstraintError,
    InvalidRequestError,
    NotFoundError,
    OutcomeUnknownError,
    ParseError,
    PreconditionError,
)
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import CommitKind
from omnigraph.transaction.accepted import Accepted

BEFORE = """\
node Person { name: String @key  age: I32?  mood: enum(good, bad)? }
node Robot { model: String }
edge Knows: Person -> Person { since: I32? }
"""
AFTER = """\
node Human @rename_from("Person") @description("one of us")
  { name: String @key  years: I32? @rename_from("age")  mood: enum(good, bad, fine)?  note: String? @index }
node Place { name: String @key }
edge Knows: Human -> Human { strength: F64? }
edge LivesIn: Human -> Place
"""
PEOPLE = "query q() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
HUMANS = "query q() { match { $h: Human } return { $h.name, $h.years, $h.note } order { $h.name } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", BEFORE)
    graph.mutate('query q() { insert Person { name: "Ada", age: 36, mood: "good" } insert Person { name: "Bob" } }')
    graph.mutate('query q() { insert Robot { model: "R2" } insert Knows { from: "Ada", to: "Bob", since: 1 } }')
    return graph


def test_every_supported_step_is_made_in_one_commit_and_no_row_is_lost(graph: Graph) -> None:
    before = graph.snapshot().record

    done = graph.schema_apply(AFTER, actor="ann", message="grow")

    head = graph.snapshot().record
    assert done.applied
    assert (done.commit, done.number) == (head.commit, before.number + 1)
    assert (head.kind, head.actor, head.message, head.parent) == (CommitKind.SCHEMA, "ann", "grow", before.commit)
    assert sorted(head.tables) == ["edge:Knows", "edge:LivesIn", "node:Human", "node:Place"]
    assert head.tables["node:Human"].table == before.tables["node:Person"].table, "a renamed type keeps its table"
    assert graph.schema_text() == AFTER
    assert graph.query(HUMANS).to_pylist() == [
        {"h.name": "Ada", "h.years": 36, "h.note": None},
        {"h.name": "Bob", "h.years": None, "h.note": None},
    ]
    paths = "query q() { match { $a: Human $a $k: knows $b } return { $a.name, $b.name as b, $k.strength as s } }"
    assert graph.query(paths).to_pylist() == [{"a.name": "Ada", "b": "Bob", "s": None}]
    assert [str(step) for step in done.plan.steps] == [
        "rename node type 'Person' -> 'Human'",
        "update metadata on node 'Human' (@description(\"one of us\"))",
        "extend enum 'Human.mood' (+fine) on node 'Human'",
        "add property 'Human.note' (String?) on node 'Human'",
        "rename property 'Human.age' -> 'Human.years' on node 'Human'",
        "add constraint @index(note) on node 'Human'",
        "add node type 'Place'",
        "drop node type 'Robot' (soft mode)",
        "add property 'Knows.strength' (F64?) on edge 'Knows'",
        "drop property 'Knows.since' of edge 'Knows' (soft mode)",
        "add edge type 'LivesIn'",
    ]


def test_an_older_commit_is_read_with_the_schema_it_was_made_under(graph: Graph) -> None:
    before = graph.snapshot().record.commit
    graph.schema_apply(AFTER)

    assert graph.query(PEOPLE, commit=before).to_pylist() == [
        {"p.name": "Ada", "p.age": 36},
        {"p.name": "Bob", "p.age": None},
    ]
    assert graph.snapshot(commit=before).count("Robot") == 1
    with pytest.raises(ParseError, match="unknown node type `Person`"):
        graph.query(PEOPLE)
    with pytest.raises(ParseError, match="unknown node type `Human`"):
        graph.query(HUMANS, commit=before)


def test_writes_go_on_under_the_new_schema_also_in_a_graph_opened_before(graph: Graph) -> None:
    other = omnigraph.open(graph.uri)
    other.mutate('query q() { insert Person { name: "Cid" } }')  # it has seen the old schema
    graph.schema_apply(AFTER)

    other.mutate('query q() { insert Human { name: "Dee", note: "new", mood: "fine" } insert Place { name: "Rome" } }')
    other.mutate('query q() { insert LivesIn { from: "Dee", to: "Rome" } }')

    with pytest.raises(ParseError, match="unknown node/edge type `Person`"):
        other.mutate('query q() { insert Person { name: "Eve" } }')
    assert [row["h.name"] for row in graph.query(HUMANS)] == ["Ada", "Bob", "Cid", "Dee"]


def test_a_type_or_property_that_comes_again_has_nothing_of_its_earlier_life(graph: Graph) -> None:
    without = "node Person { name: String @key  mood: enum(good, bad)? }\nedge Knows: Person -> Person { since: I32? }"
    graph.schema_apply(without)
    graph.schema_apply(BEFORE)

    assert graph.count("Robot") == 0
    assert [row["p.age"] for row in graph.query(PEOPLE)] == [None, None]


def test_an_apply_that_changes_nothing_makes_no_commit(graph: Graph) -> None:
    before = graph.snapshot().record
    done = graph.schema_apply(BEFORE + "\n// only a comment\n")
    assert (done.applied, done.commit, done.number) == (False, None, before.number)
    assert done.to_dict() == {
        "supported": True,
        "applied": False,
        "step_count": 0,
        "graph_manifest_version": before.number,
        "steps": [],
    }
    assert graph.snapshot().record == before


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BEFORE.replace("age: I32?", "age: I64?"), "[OG-MF-106] changing property type for 'Person.age' is not"),
        (BEFORE.replace("age: I32?", "age: I32?  email: String"), "[OG-MF-103] adding required property"),
        (BEFORE.replace("-> Person {", "-> Robot {"), "changing edge endpoints on 'Knows' is not supported"),
    ],
)
def test_an_unsupported_change_is_refused_and_moves_nothing(graph: Graph, text: str, message: str) -> None:
    before = graph.snapshot().record
    assert not graph.schema_plan(text).supported
    with pytest.raises(InvalidRequestError) as refused:
        graph.schema_apply(text)
    assert refused.value.message.startswith(message)
    assert graph.snapshot().record == before


def test_a_plan_writes_nothing(graph: Graph) -> None:
    before = graph.snapshot().record
    assert len(graph.schema_plan(AFTER).steps) == 11
    assert graph.snapshot().record == before


def test_bad_texts_names_and_preconditions_are_refused(graph: Graph) -> None:
    head = graph.snapshot().record
    with pytest.raises(ParseError):
        graph.schema_apply("node {")
    with pytest.raises(NotFoundError):
        graph.schema_apply(AFTER, branch="nowhere")
    with pytest.raises(PreconditionError):
        graph.schema_apply(AFTER, if_commit="01J00000000000000000000000")
    with pytest.raises(omnigraph.PermissionDeniedError):
        omnigraph.open(graph.uri, read_only=True).schema_apply(AFTER)
    assert graph.snapshot().record == head


def test_a_branch_has_its_own_schema_from_then_on(graph: Graph) -> None:
    graph.branches.create("next")
    graph.schema_apply(AFTER, branch="next")

    assert graph.query(PEOPLE).row_count == 2
    assert graph.query(HUMANS, branch="next").row_count == 2
    graph.mutate('query q() { insert Person { name: "Cid" } }')
    graph.mutate('query q() { insert Human { name: "Dee" } }', branch="next")
    assert [row["p.name"] for row in graph.query(PEOPLE)] == ["Ada", "Bob", "Cid"]
    assert [row["h.name"] for row in graph.query(HUMANS, branch="next")] == ["Ada", "Bob", "Dee"]


def test_the_same_key_again_applies_nothing_more(graph: Graph) -> None:
    first = graph.schema_apply(AFTER, idempotency_key="k")
    again = graph.schema_apply(AFTER, idempotency_key="k")
    assert again.number == first.number
    assert graph.snapshot().record.commit == first.commit


def test_a_write_nobody_knows_the_end_of_is_never_run_again_under_a_newer_schema(graph: Graph) -> None:
    runs = []

    def write(accepted: Accepted) -> None:
        runs.append(accepted.digest)
        omnigraph.open(graph.uri).schema_apply(AFTER)  # somebody else, between the put and its lost answer
        raise OutcomeUnknownError("the store never said")

    with pytest.raises(OutcomeUnknownError):
        graph._schemas.under_the_branch_schema("main", write)

    assert len(runs) == 1, "it may have landed: a second run could write it twice"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (AFTER, HUMANS.replace("$h.years, $h.note", "$h.mood")),
        (BEFORE.replace("good, bad", "good, bad, fine"), PEOPLE.replace("$p.age", "$p.mood")),
        (BEFORE.replace("age: I32?", "age: I64?"), PEOPLE),
        (BEFORE.replace("mood: enum(good, bad)?", "mood: enum(good, bad)?  @range(age, 0..)"), PEOPLE),
    ],
    ids=["renamed", "metadata only", "wider", "a new rule"],
)
def test_rows_that_others_write_while_a_schema_is_applied_are_not_lost(graph: Graph, text: str, query: str) -> None:
    def meanwhile() -> None:
        omnigraph.open(graph.uri).mutate('query q() { insert Person { name: "Cid", age: 5 } }')

    with armed(Failpoint.WRITE_TABLES_STAGED, once(meanwhile)):
        graph.schema_apply(text, validated=True)

    assert len(graph.query(query)) == 3
    assert graph.schema_text() == text


def test_a_row_that_breaks_a_rule_while_the_rule_is_added_stops_it(graph: Graph) -> None:
    def meanwhile() -> None:
        omnigraph.open(graph.uri).mutate('query q() { insert Person { name: "Cid", age: -5 } }')

    text = BEFORE.replace("mood: enum(good, bad)?", "mood: enum(good, bad)?  @range(age, 0..)")
    with armed(Failpoint.WRITE_PREPARED, once(meanwhile)), pytest.raises(ConstraintError, match="1 entity breaks it"):
        graph.schema_apply(text, validated=True)

    assert graph.schema_text() == BEFORE
