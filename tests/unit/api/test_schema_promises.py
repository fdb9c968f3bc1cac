"""What a change of schema promises to those beside it: readers, writers, whoever died before, and the tables."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.interleaving import once
from tests.support.interrupted_writes import interrupt, let_it_grow_old, noted_intents

import omnigraph
from omnigraph import Graph
from omnigraph.errors import ConflictError, FormatError, InvalidRequestError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.storage import paths
from omnigraph.transaction.incoming import Frame
from omnigraph.transaction.write_rows import rows_to_write

BEFORE = """\
node Person { name: String @key  age: I32?  mood: enum(good, bad)? }
node Empty { name: String @key }
edge Knows: Person -> Person
"""
NAMES = "query q() { match { $p: Person } return { $p.name as name } order { $p.name } }"
METADATA_ONLY = {
    "an index": BEFORE.replace("age: I32?", "age: I32? @index"),
    "an enum that grows": BEFORE.replace("good, bad", "good, bad, fine"),
    "a description": BEFORE.replace("node Person", 'node Person @description("one of us")'),
    "a new name of a type": BEFORE.replace("node Person", 'node Human @rename_from("Person")').replace(
        "Person -> Person", "Human -> Human"
    ),
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", BEFORE)
    graph.mutate('query q() { insert Person { name: "Ada", age: 36 } insert Person { name: "Bob" } }')
    return graph


def pins(graph: Graph) -> set[tuple[str, int]]:
    return {(pin.table, pin.version) for pin in graph.snapshot().record.tables.values()}


def moods(graph: Graph) -> list[str | None]:
    rows = graph.query("query q() { match { $p: Person } return { $p.mood as mood } order { $p.name } }").to_pylist()
    return [row["mood"] for row in rows]


def files(graph: Graph) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path(graph.uri).rglob("*") if path.is_file()}


@pytest.mark.parametrize("change", METADATA_ONLY)
def test_a_change_that_touches_no_column_moves_the_head_and_no_table(graph: Graph, change: str) -> None:
    before, head = pins(graph), graph.snapshot().number

    graph.schema_apply(METADATA_ONLY[change])

    assert pins(graph) == before
    assert graph.snapshot().number == head + 1


def test_an_update_that_began_before_a_change_of_metadata_is_refused_and_may_be_tried_again(graph: Graph) -> None:
    text = METADATA_ONLY["an enum that grows"]
    update = 'query q() { update Person set { mood: "good" } where name = "Ada" }'
    meanwhile = once(lambda: omnigraph.open(graph.uri).schema_apply(text))

    with armed(Failpoint.WRITE_TABLES_STAGED, meanwhile), pytest.raises(ConflictError, match="the schema changed"):
        graph.mutate(update)
    assert graph.schema_text() == text
    assert moods(graph) == [None, None]

    graph.mutate(update)
    assert moods(graph) == ["good", None]


def test_an_empty_table_gets_its_new_column(graph: Graph) -> None:
    before = graph.snapshot().record.tables["node:Empty"]

    graph.schema_apply(BEFORE.replace("node Empty { name: String @key }", "node Empty { name: String @key  n: I32? }"))

    after = graph.snapshot().record.tables["node:Empty"]
    assert (after.table, after.version != before.version) == (before.table, True)
    assert graph.query("query q() { match { $e: Empty } return { $e.n } }").to_pylist() == []
    graph.mutate('query q() { insert Empty { name: "first", n: 7 } }')
    assert graph.query("query q() { match { $e: Empty } return { $e.n as n } }").to_pylist() == [{"n": 7}]


def test_of_two_that_apply_at_once_one_is_refused_and_then_starts_from_what_the_other_left(graph: Graph) -> None:
    first = BEFORE.replace("age: I32?", "age: I32?  note: String?")
    second = first + "node Place { name: String @key }\n"
    meanwhile = once(lambda: omnigraph.open(graph.uri).schema_apply(first))

    with armed(Failpoint.WRITE_TABLES_STAGED, meanwhile), pytest.raises(ConflictError, match="the schema changed"):
        graph.schema_apply(second)
    assert graph.schema_text() == first

    done = graph.schema_apply(second)
    assert [step["kind"] for step in done.to_dict()["steps"]] == ["add_type"]


def test_a_name_that_stands_for_a_change_under_way_is_no_branch(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="does not allow internal system ref"):
        graph.branches.create("__schema_apply_lock__")


def test_a_reader_beside_a_change_has_the_old_schema_with_the_old_rows_or_the_new_with_the_new(graph: Graph) -> None:
    after = BEFORE.replace("age: I32?", 'years: I32? @rename_from("age")')
    old = "query q() { match { $p: Person } return { $p.age as n } order { $p.name } }"
    seen: list[list[dict[str, Any]]] = []
    began = graph.snapshot()

    with armed(
        Failpoint.WRITE_MADE_DURABLE, once(lambda: seen.append(omnigraph.open(graph.uri).query(old).to_pylist()))
    ):
        graph.schema_apply(after)

    assert seen == [[{"n": 36}, {"n": None}]]
    assert began.query(old).to_pylist() == seen[0], "who has a state keeps it, with its schema"
    with pytest.raises(InvalidRequestError, match="age"):
        graph.query(old)
    assert graph.query(old.replace("age", "years")).to_pylist() == seen[0]


@pytest.mark.parametrize("place", [Failpoint.WRITE_TABLES_STAGED, Failpoint.PUBLISH_ENTRY_PUT])
def test_who_may_only_read_finds_one_whole_schema_after_a_death_and_changes_no_file(
    graph: Graph, place: Failpoint
) -> None:
    after = BEFORE.replace("age: I32?", "age: I32?  note: String?") + "node Tag { name: String @key }\n"

    def die() -> None:
        raise Crash

    with suppress(Crash), armed(place, die):
        graph.schema_apply(after)
    there = files(graph)

    with omnigraph.open(graph.uri, read_only=True) as reader:
        is_done = place is Failpoint.PUBLISH_ENTRY_PUT
        assert reader.schema_text() == (after if is_done else BEFORE)
        assert [row["name"] for row in reader.query(NAMES).to_pylist()] == ["Ada", "Bob"]
        assert ("node:Tag" in reader.snapshot().record.tables) is is_done
    assert files(graph) == there

    # The very handle that died in it goes on under whichever schema is there.
    if is_done:
        graph.mutate('query q() { insert Tag { name: "new" } }')
        assert graph.count("Tag") == 1
    else:
        assert graph.schema_apply(after).applied
    assert graph.verify().is_whole


def test_what_an_interrupted_write_left_is_settled_before_a_schema_is_applied(graph: Graph) -> None:
    parts = graph._parts
    rows = {"Person": Frame([{"name": "Cid", "age": 5}], "node:Person")}
    left = rows_to_write(graph._schemas.at_head("main"), rows, {}, mode="append", ids=parts.ids)
    let_it_grow_old(parts, interrupt(parts, left.operation))

    graph.schema_apply(BEFORE.replace("age: I32?", "age: I32?  note: String?"))

    assert noted_intents(parts) == []
    query = "query q() { match { $p: Person } return { $p.name as name, $p.note as note } order { $p.name } }"
    found = graph.query(query).to_pylist()
    assert found == [{"name": name, "note": None} for name in ("Ada", "Bob", "Cid")], "finished, and in the new table"


def test_the_table_of_a_type_whose_apply_died_is_swept_and_others_are_left_alone(graph: Graph) -> None:
    def die() -> None:
        raise Crash

    with suppress(Crash), armed(Failpoint.WRITE_TABLES_STAGED, die):
        graph.schema_apply(BEFORE + "node Tag { name: String @key }\n")
    folders = {path.name for path in (Path(graph.uri) / paths.NODES).iterdir()}
    foreign = Path(graph.uri) / paths.NODES / "somebody-elses" / "file"
    foreign.parent.mkdir()
    foreign.write_bytes(b"theirs")

    graph.sweep(older_than=0)

    known = {pin.table.removeprefix(paths.NODES) for pin in graph.snapshot().record.tables.values()}
    kept = {each.name for each in (Path(graph.uri) / paths.NODES).iterdir() if any(each.rglob("*.manifest"))}
    assert len(folders - known) == 1, "the dead apply had made a table"
    assert kept <= known
    assert foreign.read_bytes() == b"theirs"
    assert graph.schema_apply(BEFORE + "node Tag { name: String @key }\n").applied


def test_a_schema_that_was_changed_behind_the_back_of_the_graph_is_told(graph: Graph) -> None:
    for stored in (Path(graph.uri) / "__schema").iterdir():  # the resolved form, and the copy of it beside the text
        stored.write_bytes(stored.read_bytes().replace(b'"Person"', b'"Parson"'))

    with pytest.raises(FormatError, match="damaged"):
        omnigraph.open(graph.uri).schema_apply(BEFORE + "node Tag { name: String @key }\n")
