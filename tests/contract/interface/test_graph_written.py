"""Writing to a graph, wherever it is, and giving it another schema."""

from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.support.either_library import ADD, BOOKS, LOCAL, PAGES

from omnigraph import errors
from omnigraph.model.conflict import ExpectedVersionMismatch, KeyConflict

# Either of two classes, which share their methods and no ancestor.
AnyGraph = Any


# --- writing ----------------------------------------------------------------------------------------------------------


def test_a_mutation_tells_what_it_did(graph: AnyGraph, line: str) -> None:
    done = graph.mutate(ADD, {"name": "Lem"}, branch=line, message="one more")

    assert (done.query_name, done.branch, done.affected_nodes, done.affected_edges) == ("add", line, 1, 0)
    assert (done.head, done.replayed) == (done.commit, False)
    made = graph.commits.show(done.commit)
    assert (made.id, made.branch, made.number, made.kind) == (done.commit, line, done.number, "mutation")
    assert made.message == "one more"
    assert made.changes["node:Author"].inserted == 1


def test_a_key_does_a_write_once(graph: AnyGraph, line: str) -> None:
    first = graph.mutate(ADD, {"name": "Lem"}, branch=line, idempotency_key=f"k-{line}")
    second = graph.mutate(ADD, {"name": "Lem"}, branch=line, idempotency_key=f"k-{line}")

    assert (second.commit, second.affected_nodes, second.replayed) == (first.commit, 1, True)
    assert graph.count("Author", branch=line) == 3


def test_a_condition_holds_or_stops_the_write(graph: AnyGraph, line: str) -> None:
    head = graph.snapshot(branch=line).commit
    done = graph.mutate(ADD, {"name": "Lem"}, branch=line, if_commit=head)

    with pytest.raises(errors.PreconditionError) as lost:
        graph.mutate(ADD, {"name": "Russ"}, branch=line, if_commit=head)

    assert (lost.value.details["expected"], lost.value.details["actual"]) == (head, done.commit)
    assert lost.value.code == "precondition_failed"


def test_expected_versions_of_tables_hold_or_stop_the_write(graph: AnyGraph, line: str) -> None:
    seen = graph.snapshot(branch=line).table_versions
    books = {"node:Book": seen["node:Book"]}
    graph.mutate(ADD, {"name": "Lem"}, branch=line, expected_table_versions=seen)
    now = graph.snapshot(branch=line).table_versions
    rows = {"Author": [{"name": "Russ"}]}
    row = b'{"type":"Author","data":{"name":"Russ"}}'
    lines: dict[str, Any] = {"mode": "merge", "branch": line, **LOCAL}
    writes: tuple[Callable[[Any], object], ...] = (
        lambda said: graph.mutate(ADD, {"name": "Russ"}, branch=line, expected_table_versions=said),
        lambda said: graph.write(rows, branch=line, expected_table_versions=said),
        lambda said: graph.load(row, expected_table_versions=said, **lines),
        lambda said: graph.load(row, expected_table_versions=said, strict=False, **lines),
    )

    for write in writes:
        with pytest.raises(errors.ConflictError) as moved:
            write(seen)
        [conflict] = moved.value.conflicts
        assert conflict == ExpectedVersionMismatch("node:Author", seen["node:Author"], now["node:Author"])
        for wrong in ({"Author": 1}, {"node:Author": "1"}, {"node:Author": True}, ["node:Author"]):
            with pytest.raises(errors.InvalidRequestError):
                write(wrong)
    graph.write(rows, branch=line, expected_table_versions=books)  # the one nobody touched is there still
    assert graph.count("Author", branch=line) == 4


def test_a_mode_or_rows_that_mean_nothing_are_refused_in_words(graph: AnyGraph, line: str) -> None:
    told = "unknown mode 'replace'; one of append, merge, overwrite"
    with pytest.raises(errors.InvalidRequestError, match=told) as refused:
        graph.write({"Author": [{"name": "Lem"}]}, mode="replace", branch=line)
    assert refused.value.code == "bad_request"
    with pytest.raises(errors.InvalidRequestError, match=told) as refused:
        graph.load(b"", mode="replace", branch=line, **LOCAL)
    assert refused.value.code == "load_option"
    with pytest.raises(errors.InvalidRequestError, match=r"nodes must be rows by type, .* got list"):
        graph.write([{"name": "Lem"}], branch=line)
    for said in ({"message": 5}, {"idempotency_key": 5}):
        with pytest.raises(errors.InvalidRequestError, match="must be a text, got int"):
            graph.mutate(ADD, {"name": "Lem"}, branch=line, **said)


def test_what_breaks_a_rule_is_refused_as_such(graph: AnyGraph, line: str) -> None:
    with pytest.raises(errors.ConstraintError, match="pages"):
        graph.mutate(PAGES, {"n": 9000}, branch=line)
    with pytest.raises(errors.ConflictError) as taken:
        graph.write({"Author": [{"name": "Butler"}]}, branch=line)

    assert taken.value.code == "key_conflict"
    assert taken.value.conflicts == (KeyConflict("node:Author", "Butler"),)
    assert str(taken.value).startswith("node type 'Author' already has id 'Butler'")


def test_a_branch_that_is_not_there_is_not_found(graph: AnyGraph) -> None:
    calls: tuple[Callable[[], object], ...] = (
        lambda: graph.query(BOOKS, branch="nowhere"),
        lambda: graph.mutate(ADD, {"name": "x"}, branch="nowhere"),
        lambda: graph.branches.delete("nowhere"),
        lambda: graph.commits.list("nowhere"),
    )
    for call in calls:
        with pytest.raises(errors.NotFoundError, match="'nowhere'") as missing:
            call()
        assert missing.value.code == "branch_not_found"


def test_rows_are_written_from_dictionaries_and_tables(graph: AnyGraph, line: str) -> None:
    people = pa.table({"name": ["Lem", "Russ"], "born": pa.array([date(1921, 9, 12), None], pa.date32())})
    books = [
        {
            "isbn": "0-3",
            "title": "Solaris",
            "cover": b"\x00\xff",
            "mood": [1, 2],
            "read": datetime(2020, 1, 2, tzinfo=UTC),
        }
    ]

    done = graph.write(
        {"Author": people, "Book": books}, {"Wrote": [{"from": "Lem", "to": "0-3", "year": 1961}]}, branch=line
    )

    assert (done.nodes, done.edges, done.mode) == ({"Author": 2, "Book": 1}, {"Wrote": 1}, "append")
    found = graph.query(BOOKS, branch=line).to_pylist()[-1]
    assert (found["b.mood"], found["b.read"]) == ([1.0, 2.0], "2020-01-02T00:00:00.000Z")
    assert graph.blob("node", "Book", "0-3", "cover", branch=line).read() == b"\x00\xff"
    assert graph.commits.show(done.commit).number == done.number


def test_lines_are_loaded_from_bytes_and_files(graph: AnyGraph, line: str, tmp_path: Path) -> None:
    (tmp_path / "more.jsonl").write_text('{"type":"Author","data":{"name":"Russ"}}\n')
    checked = graph.load(b'{"type":"Author","data":{"name":"Lem"}}', mode="append", branch=line, dry_run=True, **LOCAL)
    first = graph.load(b'{"type":"Author","data":{"name":"Lem"}}', mode="append", branch=line, **LOCAL)
    second = graph.load(
        str(tmp_path / "more.jsonl"), mode="merge", branch=f"{line}/new", from_branch=line, engine="local"
    )

    assert (checked.commit, checked.nodes) == (None, {"Author": 1})
    assert (first.nodes, first.edges, first.total_entities) == ({"Author": 1}, {}, 1)
    assert (second.branch_created, second.base_branch) == (True, line)
    assert [graph.count("Author", branch=each) for each in (line, f"{line}/new")] == [3, 4]


def test_a_bad_line_stops_a_load(graph: AnyGraph, line: str) -> None:
    with pytest.raises(errors.InvalidRequestError, match="line 2: unknown input field 'nam'"):
        graph.load(
            b'{"type":"Author","data":{"name":"Lem"}}\n{"type":"Author","data":{"nam":"x"}}',
            mode="append",
            branch=line,
            **LOCAL,
        )
    assert graph.count("Author", branch=line) == 2


def test_scripts_of_old_load_a_stream_of_values(graph: AnyGraph, line: str) -> None:
    body = b'{"type":"Author","data":{"name":"Lem"}} {"type":"Author",\n"data":{"name":"Russ"}}'

    done = graph.load(body, mode="merge", branch=line, strict=False, **LOCAL)

    assert done.nodes == {"Author": 2}


def test_what_a_load_of_old_cannot_say_to_a_server_is_refused_before_it_writes(
    served_library: AnyGraph,
) -> None:
    row = b'{"type":"Author","data":{"name":"Lem"}}'
    head = served_library.branches.create("of-old")
    for said in ({"dry_run": True}, {"message": "why"}, {"if_commit": head}, {"prune_previous": True}):
        [named] = said
        with pytest.raises(errors.InvalidRequestError, match=f"leave out `{named}`") as refused:
            served_library.load(row, mode="merge", branch="of-old", strict=False, **LOCAL, **said)
        assert refused.value.code == "json_lines_only"
    assert served_library.snapshot(branch="of-old").commit == head


# --- the schema -------------------------------------------------------------------------------------------------------


def test_a_schema_is_planned_and_applied(graph: AnyGraph, line: str) -> None:
    text = graph.schema_text(branch=line).replace("born: Date?", "born: Date?  died: Date?")

    planned = graph.schema_plan(text, branch=line)
    done = graph.schema_apply(text, branch=line, message="they die")
    again = graph.schema_apply(text, branch=line)

    assert [str(step) for step in planned.steps] == ["add property 'Author.died' (Date?) on node 'Author'"]
    assert (done.applied, done.plan.steps) == (True, planned.steps)
    assert graph.commits.show(done.commit).kind == "schema"
    assert (again.applied, again.commit, again.number) == (False, None, done.number)
    assert graph.schema_text(branch=line) == text
    assert graph.schema(branch=line).node("Author").property_named("died") is not None


def test_a_schema_that_cannot_be_had_is_refused(graph: AnyGraph, line: str) -> None:
    text = graph.schema_text(branch=line).replace("born: Date?", "born: String?")

    with pytest.raises(errors.InvalidRequestError, match="OG-MF-106"):
        graph.schema_apply(text, branch=line)
    with pytest.raises(errors.ParseError, match="parse error"):
        graph.schema_apply("node {", branch=line)
