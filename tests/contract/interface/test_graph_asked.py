"""Asking a graph, wherever it is."""

import io
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.either_library import ADD, AUTHORS, BOOKS, LOCAL, SCHEMA

from omnigraph import errors

# What a graph can be asked about a state; each is another before and after the writes of the test that uses it.
EVERY_READ: dict[str, Callable[[Any, dict[str, Any]], object]] = {
    "count": lambda graph, where: graph.count("Author", **where),
    "query": lambda graph, where: graph.query(AUTHORS, **where).to_pylist(),
    "stream": lambda graph, where: list(graph.stream(AUTHORS, **where)),
    "export lines": lambda graph, where: sorted(b"".join(graph.export_lines(types=["Author"], **where)).splitlines()),
    "export": lambda graph, where: graph.export(io.BytesIO(), types=["Author"], **where).rows,
    "neighbourhood": lambda graph, where: len(graph.neighbourhood("Author", "Le Guin", **where).edges),
    "blob": lambda graph, where: graph.blob("node", "Book", "0-1", "cover", **where).read(),
    "snapshot": lambda graph, where: graph.snapshot(**where).commit,
}
# Either of two classes, which share their methods and no ancestor.
AnyGraph = Any


# --- asking -----------------------------------------------------------------------------------------------------------


def test_a_query_returns_typed_rows_and_the_commit_they_are_of(graph: AnyGraph, line: str) -> None:
    found = graph.query(BOOKS, branch=line)

    assert found.to_pylist() == [
        {"b": "0-1", "b.title": "The Dispossessed", "b.pages": 341, "b.mood": [0.5, 1.5], "b.read": None},
        {
            "b": "0-2",
            "b.title": "Kindred",
            "b.pages": None,
            "b.mood": None,
            "b.read": "2024-05-06T07:08:09.000Z",
        },
    ]
    types: dict[str, pa.DataType] = {
        "b": pa.string(),
        "b.title": pa.string(),
        "b.pages": pa.int32(),
        "b.mood": pa.list_(pa.float32(), 2),
    }
    assert found.to_arrow().schema == pa.schema({**types, "b.read": pa.timestamp("ms", "UTC")})
    assert (found.query_name, found.branch) == ("books", line)
    assert found.commit == graph.snapshot(branch=line).commit


def test_a_query_takes_dates_and_names_of_queries(graph: AnyGraph, line: str) -> None:
    text = f"{ADD}\nquery born($d: Date) {{ match {{ $a: Author {{ born: $d }} }} return {{ $a.name }} }}"

    found = graph.query(text, {"d": date(1929, 10, 21)}, name="born", branch=line)

    assert list(found) == [{"a.name": "Le Guin"}]


def test_earlier_states_are_read_by_commit_tag_number_and_time(graph: AnyGraph, line: str) -> None:
    before = graph.snapshot(branch=line)
    graph.tags.create(f"tag-{line}", branch=line)
    later = graph.mutate(ADD, {"name": "Lem"}, branch=line)
    made = datetime.fromtimestamp(graph.commits.show(later.commit).created_at_us / 1e6, UTC)

    counts = [
        graph.count("Author", branch=line),
        graph.count("Author", commit=before.commit),
        graph.count("Author", tag=f"tag-{line}"),
        graph.count("Author", branch=line, number=before.number),
    ]

    assert counts == [3, 2, 2, 2]
    assert graph.snapshot(branch=line, at=made + timedelta(seconds=1)).commit == later.commit
    assert graph.query(BOOKS, commit=before.commit).branch is None


def test_every_read_takes_every_name_of_a_state(graph: AnyGraph, line: str) -> None:
    before = graph.snapshot(branch=line)
    graph.tags.create(f"read-{line}", branch=line)
    graph.mutate(ADD, {"name": "Lem"}, branch=line)
    graph.mutate("query q() { delete Wrote where year = 1974 }", branch=line)
    cover = 'query q() { update Book set { cover: "base64:bmV3" } where isbn = "0-1" }'
    last = graph.mutate(cover, branch=line)
    then = datetime.fromtimestamp((graph.commits.show(before.commit).created_at_us + 1) / 1e6, UTC)
    names: dict[str, dict[str, Any]] = {
        "commit": {"commit": before.commit},
        "number": {"branch": line, "number": before.number},
        "tag": {"tag": f"read-{line}"},
        "time": {"branch": line, "at": then},
    }

    for read in EVERY_READ.values():
        now = read(graph, {"branch": line})
        assert read(graph, {"branch": line, "number": last.number}) == now
        assert {name: read(graph, where) for name, where in names.items()} == dict.fromkeys(
            names, read(graph, {"commit": before.commit})
        )
        assert read(graph, {"commit": before.commit}) != now


def test_a_query_at_an_earlier_number_knows_the_types_of_then(graph: AnyGraph, line: str) -> None:
    number = graph.snapshot(branch=line).number
    graph.schema_apply(f"{SCHEMA}node Shelf {{ name: String @key }}\n", branch=line)
    shelves = "query q() { match { $s: Shelf } return { $s.name } }"

    assert graph.query(shelves, branch=line).to_pylist() == []
    for ask in (graph.query, graph.explain, lambda *args, **where: list(graph.stream(*args, **where))):
        with pytest.raises(errors.ParseError, match="unknown node type `Shelf`"):
            ask(shelves, branch=line, number=number)


def test_a_number_beside_another_name_of_a_state_is_refused(graph: AnyGraph, line: str) -> None:
    commit = graph.snapshot(branch=line).commit
    for beside in ({"commit": commit}, {"tag": "t"}, {"branch": line, "at": "2026-01-01T00:00:00Z"}):
        with pytest.raises(errors.InvalidRequestError):
            graph.count("Author", number=1, **beside)
    with pytest.raises(errors.NotFoundError, match="has no commit number 999"):
        graph.count("Author", branch=line, number=999)
    for wrong in ("1", 1.5, True):
        with pytest.raises(errors.InvalidRequestError):
            graph.query(BOOKS, branch=line, number=wrong)


def test_one_name_is_a_list_of_one(graph: AnyGraph, line: str) -> None:
    made = graph.mutate(ADD, {"name": "Lem"}, branch=line)
    for types, kinds in (("Author", "node"), (["Author"], ("node",)), (iter(["Author"]), iter(["node"]))):
        [change] = graph.commits.changes(made.commit, types=types, kinds=kinds, ops="insert").changes
        assert change.id == "Lem"
    assert graph.export(io.BytesIO(), types="Author", branch=line).rows == {"node:Author": 3}


def test_commits_are_asked_for_by_kinds_that_there_are(graph: AnyGraph, line: str) -> None:
    graph.mutate(ADD, {"name": "Lem"}, branch=line)
    graph.schema_apply(f"{SCHEMA}node Shelf {{ name: String @key }}\n", branch=line)

    assert [each.kind for each in graph.commits.list(line, kind="schema", limit=1)] == ["schema"]
    for mark in ("prune", "barrier", "fork", "delete", "x"):
        with pytest.raises(errors.InvalidRequestError) as refused:
            graph.commits.list(line, kind=mark)
        assert refused.value.message == (
            f"unknown kind '{mark}' (expected init | mutation | load | merge | schema | index | compact | revert"
            " | recover)"
        )


def test_a_stream_gives_the_same_rows(graph: AnyGraph, line: str) -> None:
    stream = graph.stream(BOOKS, branch=line)

    assert stream.columns == ["b", "b.title", "b.pages", "b.mood", "b.read"]
    assert list(stream) == graph.query(BOOKS, branch=line).to_pylist()


def test_a_snapshot_never_changes(graph: AnyGraph, line: str) -> None:
    with graph.snapshot(branch=line) as snapshot:
        graph.mutate(ADD, {"name": "Lem"}, branch=line)

        assert snapshot.count("Author") == 2
        assert snapshot.query(BOOKS).branch == line
        assert len(snapshot.query(BOOKS)) == 2
        assert len(list(snapshot.stream(BOOKS))) == 2
        assert snapshot.schema.node("Author") is not None
        assert snapshot.entity("Wrote").type_key == "edge:Wrote"
        assert snapshot.record.tables["node:Author"].rows == 2
    with pytest.raises(errors.InvalidRequestError, match="the snapshot was closed"):
        snapshot.count("Author")


def test_a_mistake_in_a_query_is_shown_where_it_is(graph: AnyGraph, line: str) -> None:
    with pytest.raises(errors.ParseError) as wrong:
        graph.query("query q() { match { $a: Authr } return { $a.name } }", branch=line)

    assert (wrong.value.code, wrong.value.stage, wrong.value.line, wrong.value.column) == (
        "type_error",
        "type",
        1,
        21,
    )
    assert wrong.value.hint == "did you mean `Author`?"
    assert str(wrong.value).startswith("type error: T1: unknown node type `Authr`\n --> 1:21\n")


def test_a_query_is_explained_and_prepared(graph: AnyGraph, line: str) -> None:
    prepared = graph.prepare(BOOKS, branch=line)

    assert graph.explain(prepared, branch=line).startswith("read books()\nscan $b: Book")
    assert (prepared.name, prepared.is_mutation) == ("books", False)
    assert len(graph.query(prepared, branch=line)) == 2


def test_what_surrounds_a_node(graph: AnyGraph, line: str) -> None:
    found = graph.neighbourhood("Author", "Le Guin", branch=line)

    assert [(each.type_name, each.id, each.distance) for each in found.nodes] == [
        ("Author", "Le Guin", 0),
        ("Book", "0-1", 1),
    ]
    assert [(each.id, each.source, each.properties) for each in found.edges] == [
        ("w1", ("Author", "Le Guin"), {"year": 1974})
    ]


# --- out of the graph -------------------------------------------------------------------------------------------------


def test_an_export_can_be_loaded_again(graph: AnyGraph, line: str, tmp_path: Path) -> None:
    out = io.BytesIO()
    streamed = graph.export(out, branch=line)
    filed = graph.export(tmp_path / "books.jsonl", branch=line, types=["Book"])

    assert streamed.rows == {"edge:Wrote": 1, "node:Author": 2, "node:Book": 2}
    assert streamed.commit == graph.snapshot(branch=line).commit
    assert filed.files == (str(tmp_path / "books.jsonl"),)
    assert b"".join(bytes(each) for each in graph.export_lines(branch=line)) == out.getvalue()
    again = graph.load(out.getvalue(), mode="merge", branch=line, **LOCAL)
    assert again.total_entities == 5
    with pytest.raises(errors.InvalidRequestError, match="unknown export type 'Nothing'"):
        graph.export(io.BytesIO(), types=["Nothing"], branch=line)


def test_a_blob_is_read_as_far_as_it_is_wanted(graph: AnyGraph, line: str) -> None:
    blob = graph.blob("node", "Book", "0-1", "cover", branch=line)

    assert (blob.size, blob.kind, blob.branch, blob.uri) == (5, "managed", line, None)
    assert (blob.read(), blob.read(1, 3), blob.read(5), blob.read(2, 99)) == (b"hello", b"ell", b"", b"llo")
    assert blob.to_dict()["selector"] == {"entity": "node", "type": "Book", "id": "0-1", "property": "cover"}
    assert graph.blob("node", "Book", "0-2", "cover", branch=line).read() == b""
    with pytest.raises(errors.InvalidRequestError) as outside:
        blob.read(6)
    assert outside.value.code == "blob_range"
    with pytest.raises(errors.NotFoundError):
        graph.blob("node", "Book", "9-9", "cover", branch=line)
    with pytest.raises(errors.InvalidRequestError, match="is not a Blob"):
        graph.blob("node", "Book", "0-1", "title", branch=line)
