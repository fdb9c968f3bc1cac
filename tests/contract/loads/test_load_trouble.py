"""What every engine that loads files does about records that are wrong."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.load_lines import ADA, BOB, KNOWS, edge, head, ids, person, refused, rows

from omnigraph import Graph, LoadResult
from omnigraph.errors import (
    ConstraintError,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    PreconditionError,
)
from omnigraph.failpoints import Crash, Failpoint, armed

Load = Callable[..., LoadResult]


# --- what is wrong with a record --------------------------------------------------------------------------------------


def test_a_wrong_line_is_told_with_its_file(graph: Graph, load: Load, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text(f"{ADA}\n")
    (tmp_path / "in" / "b.jsonl").write_text(f'{BOB}\n\n{{"type":"Person","data":{{"age":"x","name":"C"}}}}\n')
    told = "line 3: strict property 'age' expects Int32, got \"x\" (in b.jsonl)"
    refused(graph, lambda: load(data=tmp_path / "in"), InvalidRequestError, told)
    missing = tmp_path / "missing.jsonl"
    refused(graph, lambda: load(data=missing), NotFoundError, "no file to load at")


def test_of_wrong_lines_the_first_is_told(graph: Graph, load: Load) -> None:
    refused(graph, lambda: load(ADA, "{", "]"), InvalidRequestError, "invalid strict JSON at line 2: ")


# --- putting records aside --------------------------------------------------------------------------------------------


def test_bad_records_are_put_aside_with_reason_and_place(graph: Graph, load: Load, tmp_path: Path) -> None:
    load(ADA)
    file = tmp_path / "data.jsonl"
    good = [BOB, person("Cid"), edge("Likes", "Bob", "Ada")]
    bad = [
        person("Ada"),
        "rubbish",
        person("Cid"),
        person("Dan", email="a@x"),
        edge("Likes", "Dan", "Ada"),
        person("Eve", age=200),
    ]
    file.write_text("\n".join([*good, *bad]))
    result = load(data=file, rejects=tmp_path / "rejects")
    assert (ids(graph, "Person"), graph.count("Likes")) == (["Ada", "Bob", "Cid"], 1)
    assert (result.nodes, result.edges) == ({"Person": 2}, {"Likes": 1})
    written = [json.loads(line) for line in Path(str(result.rejects_file)).read_text().splitlines()]
    assert [(each["file"], each["line"], each["record"]) for each in written] == [
        ("data.jsonl", number, line) for number, line in enumerate(bad, start=4)
    ]
    assert [each["reason"] for each in written] == [
        "node type 'Person' already has id 'Ada'",
        "Expecting value at column 1",
        "@unique violation on Person.name: value 'Cid' held by 'Cid' and 'Cid'",
        "@unique violation on Person.email: value 'a@x' held by 'Ada' and 'Dan'",
        "src 'Dan' not found in Person",
        "@range violation on Person.age: value 200 > max 150",
    ]
    assert result.to_dict()["rejected"] == len(bad)


def test_a_row_that_is_put_aside_replaces_nothing(graph: Graph, load: Load, tmp_path: Path) -> None:
    load(ADA, BOB, person("Cid", email="c"), edge("Likes", "Ada", "Bob", id="l"))
    lines = (edge("Likes", "Ada", "Zoe", id="l"), person("Bob", age=5), person("Cid", email="a@x"))
    load(*lines, mode="merge", rejects=tmp_path)
    assert [row["dst"] for row in rows(graph, "Likes")] == ["Bob"]
    assert {row["id"]: (row["age"], row["email"]) for row in rows(graph, "Person")} == {
        "Ada": (None, "a@x"),
        "Bob": (5, None),
        "Cid": (None, "c"),
    }


def test_too_many_bad_records_stop_the_load(graph: Graph, load: Load, tmp_path: Path) -> None:
    def two() -> LoadResult:
        return load(ADA, "x", "y", rejects=tmp_path, max_rejects=1)

    error = refused(graph, two, LimitError, "2 records cannot be loaded, more than the 1")
    assert error.code == "too_many_rejects"
    assert sum(len(each.read_text().splitlines()) for each in tmp_path.glob("rejects-*")) == 2
    assert load(ADA, "x", rejects=tmp_path, max_rejects=1).total_entities == 1


def test_bad_records_are_written_down_before_the_others_are_seen(graph: Graph, load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "bad"

    def dies() -> None:
        raise Crash

    with armed(Failpoint.PUBLISH_ENTRY_PUT, dies), pytest.raises(Crash):
        load(ADA, "x", rejects=folder)
    assert ids(graph, "Person") == ["Ada"]
    assert [json.loads(each.read_text())["record"] for each in folder.iterdir()] == ["x"]


def test_a_load_that_comes_to_nothing_leaves_no_file_of_bad_records(graph: Graph, load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    before = head(graph)
    load(ADA)
    refused(graph, lambda: load(BOB, "x", rejects=folder, if_commit=before), PreconditionError, "head")
    assert list(folder.iterdir()) == []


def test_bad_records_that_cannot_be_written_down_stop_the_load(graph: Graph, load: Load, tmp_path: Path) -> None:
    folder = tmp_path / "bad"

    def gone(_: object) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    told = "No such file or directory; name another folder"
    refused(graph, lambda: load(ADA, "x", rejects=folder, progress=gone), InvalidRequestError, told)


def test_a_dry_run_says_all_and_writes_nothing(graph: Graph, load: Load, tmp_path: Path) -> None:
    before = head(graph), {each.name for each in (tmp_path / "graph" / "nodes").rglob("*")}
    assert load(ADA, BOB, KNOWS, dry_run=True).to_dict()["total_entities"] == 3
    told = "dst 'Bob' not found in Person (line 2)"
    refused(graph, lambda: load(ADA, KNOWS, dry_run=True), ConstraintError, told)
    assert (head(graph), {each.name for each in (tmp_path / "graph" / "nodes").rglob("*")}) == before
