"""The graph itself, as one suite: open in this process, and on a server in a process of its own.

Both keep one graph for the whole run; every test works on a branch of its own.
"""

import io
import itertools
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import errors
from omnigraph.model.conflict import ExpectedVersionMismatch, KeyConflict, MergeConflictKind, RevertConflictKind
from omnigraph.testing.served import served

SCHEMA = """\
node Author { name: String @key  born: Date? }
node Book { isbn: String @key  title: String @index  pages: I32?  cover: Blob?  mood: Vector(2)?  read: DateTime?
            @range(pages, 1..5000) }
edge Wrote: Author -> Book { year: I32? }
"""
ROWS = b"""\
{"type":"Author","data":{"name":"Le Guin","born":"1929-10-21"}}
{"type":"Author","data":{"name":"Butler"}}
{"type":"Book","data":{"isbn":"0-1","title":"The Dispossessed","pages":341,"mood":[0.5,1.5],"cover":"base64:aGVsbG8="}}
{"type":"Book","data":{"isbn":"0-2","title":"Kindred","read":"2024-05-06T07:08:09Z","cover":"base64:"}}
{"edge":"Wrote","from":"Le Guin","to":"0-1","data":{"id":"w1","year":1974}}
"""
BOOKS = """\
query books() {
  match { $b: Book }
  return { $b, $b.title, $b.pages, $b.mood, $b.read }
  order { $b.isbn }
}
"""
AUTHORS = "query authors() { match { $a: Author } return { $a.name } order { $a.name } }"
ADD = "query add($name: String) { insert Author { name: $name } }"
PAGES = 'query pages($n: I32) { update Book set { pages: $n } where isbn = "0-1" }'
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
LOCAL: dict[str, Any] = {"engine": "local", "format": "jsonl"}
_LINES = itertools.count(1)


class GraphContract:
    """What a graph does, wherever it is."""

    # -- asking -------------------------------------------------------------------------------------------------------

    def test_a_query_returns_typed_rows_and_the_commit_they_are_of(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_query_takes_dates_and_names_of_queries(self, graph: AnyGraph, line: str) -> None:
        text = f"{ADD}\nquery born($d: Date) {{ match {{ $a: Author {{ born: $d }} }} return {{ $a.name }} }}"

        found = graph.query(text, {"d": date(1929, 10, 21)}, name="born", branch=line)

        assert list(found) == [{"a.name": "Le Guin"}]

    def test_earlier_states_are_read_by_commit_tag_number_and_time(self, graph: AnyGraph, line: str) -> None:
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

    def test_every_read_takes_every_name_of_a_state(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_query_at_an_earlier_number_knows_the_types_of_then(self, graph: AnyGraph, line: str) -> None:
        number = graph.snapshot(branch=line).number
        graph.schema_apply(f"{SCHEMA}node Shelf {{ name: String @key }}\n", branch=line)
        shelves = "query q() { match { $s: Shelf } return { $s.name } }"

        assert graph.query(shelves, branch=line).to_pylist() == []
        for ask in (graph.query, graph.explain, lambda *args, **where: list(graph.stream(*args, **where))):
            with pytest.raises(errors.ParseError, match="unknown node type `Shelf`"):
                ask(shelves, branch=line, number=number)

    def test_a_number_beside_another_name_of_a_state_is_refused(self, graph: AnyGraph, line: str) -> None:
        commit = graph.snapshot(branch=line).commit
        for beside in ({"commit": commit}, {"tag": "t"}, {"branch": line, "at": "2026-01-01T00:00:00Z"}):
            with pytest.raises(errors.InvalidRequestError):
                graph.count("Author", number=1, **beside)
        with pytest.raises(errors.NotFoundError, match="has no commit number 999"):
            graph.count("Author", branch=line, number=999)
        for wrong in ("1", 1.5, True):
            with pytest.raises(errors.InvalidRequestError):
                graph.query(BOOKS, branch=line, number=wrong)

    def test_one_name_is_a_list_of_one(self, graph: AnyGraph, line: str) -> None:
        made = graph.mutate(ADD, {"name": "Lem"}, branch=line)
        for types, kinds in (("Author", "node"), (["Author"], ("node",)), (iter(["Author"]), iter(["node"]))):
            [change] = graph.commits.changes(made.commit, types=types, kinds=kinds, ops="insert").changes
            assert change.id == "Lem"
        assert graph.export(io.BytesIO(), types="Author", branch=line).rows == {"node:Author": 3}

    def test_commits_are_asked_for_by_kinds_that_there_are(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_stream_gives_the_same_rows(self, graph: AnyGraph, line: str) -> None:
        stream = graph.stream(BOOKS, branch=line)

        assert stream.columns == ["b", "b.title", "b.pages", "b.mood", "b.read"]
        assert list(stream) == graph.query(BOOKS, branch=line).to_pylist()

    def test_a_snapshot_never_changes(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_mistake_in_a_query_is_shown_where_it_is(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_query_is_explained_and_prepared(self, graph: AnyGraph, line: str) -> None:
        prepared = graph.prepare(BOOKS, branch=line)

        assert graph.explain(prepared, branch=line).startswith("read books()\nscan $b: Book")
        assert (prepared.name, prepared.is_mutation) == ("books", False)
        assert len(graph.query(prepared, branch=line)) == 2

    def test_what_surrounds_a_node(self, graph: AnyGraph, line: str) -> None:
        found = graph.neighbourhood("Author", "Le Guin", branch=line)

        assert [(each.type_name, each.id, each.distance) for each in found.nodes] == [
            ("Author", "Le Guin", 0),
            ("Book", "0-1", 1),
        ]
        assert [(each.id, each.source, each.properties) for each in found.edges] == [
            ("w1", ("Author", "Le Guin"), {"year": 1974})
        ]

    # -- writing ------------------------------------------------------------------------------------------------------

    def test_a_mutation_tells_what_it_did(self, graph: AnyGraph, line: str) -> None:
        done = graph.mutate(ADD, {"name": "Lem"}, branch=line, message="one more")

        assert (done.query_name, done.branch, done.affected_nodes, done.affected_edges) == ("add", line, 1, 0)
        assert (done.head, done.replayed) == (done.commit, False)
        made = graph.commits.show(done.commit)
        assert (made.id, made.branch, made.number, made.kind) == (done.commit, line, done.number, "mutation")
        assert made.message == "one more"
        assert made.changes["node:Author"].inserted == 1

    def test_a_key_does_a_write_once(self, graph: AnyGraph, line: str) -> None:
        first = graph.mutate(ADD, {"name": "Lem"}, branch=line, idempotency_key=f"k-{line}")
        second = graph.mutate(ADD, {"name": "Lem"}, branch=line, idempotency_key=f"k-{line}")

        assert (second.commit, second.affected_nodes, second.replayed) == (first.commit, 1, True)
        assert graph.count("Author", branch=line) == 3

    def test_a_condition_holds_or_stops_the_write(self, graph: AnyGraph, line: str) -> None:
        head = graph.snapshot(branch=line).commit
        done = graph.mutate(ADD, {"name": "Lem"}, branch=line, if_commit=head)

        with pytest.raises(errors.PreconditionError) as lost:
            graph.mutate(ADD, {"name": "Russ"}, branch=line, if_commit=head)

        assert (lost.value.details["expected"], lost.value.details["actual"]) == (head, done.commit)
        assert lost.value.code == "precondition_failed"

    def test_expected_versions_of_tables_hold_or_stop_the_write(self, graph: AnyGraph, line: str) -> None:
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

    def test_what_breaks_a_rule_is_refused_as_such(self, graph: AnyGraph, line: str) -> None:
        with pytest.raises(errors.ConstraintError, match="pages"):
            graph.mutate(PAGES, {"n": 9000}, branch=line)
        with pytest.raises(errors.ConflictError) as taken:
            graph.write({"Author": [{"name": "Butler"}]}, branch=line)

        assert taken.value.code == "key_conflict"
        assert taken.value.conflicts == (KeyConflict("node:Author", "Butler"),)
        assert str(taken.value).startswith("node type 'Author' already has id 'Butler'")

    def test_a_branch_that_is_not_there_is_not_found(self, graph: AnyGraph) -> None:
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

    def test_rows_are_written_from_dictionaries_and_tables(self, graph: AnyGraph, line: str) -> None:
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

    def test_lines_are_loaded_from_bytes_and_files(self, graph: AnyGraph, line: str, tmp_path: Path) -> None:
        (tmp_path / "more.jsonl").write_text('{"type":"Author","data":{"name":"Russ"}}\n')
        checked = graph.load(
            b'{"type":"Author","data":{"name":"Lem"}}', mode="append", branch=line, dry_run=True, **LOCAL
        )
        first = graph.load(b'{"type":"Author","data":{"name":"Lem"}}', mode="append", branch=line, **LOCAL)
        second = graph.load(
            str(tmp_path / "more.jsonl"), mode="merge", branch=f"{line}/new", from_branch=line, engine="local"
        )

        assert (checked.commit, checked.nodes) == (None, {"Author": 1})
        assert (first.nodes, first.edges, first.total_entities) == ({"Author": 1}, {}, 1)
        assert (second.branch_created, second.base_branch) == (True, line)
        assert [graph.count("Author", branch=each) for each in (line, f"{line}/new")] == [3, 4]

    def test_a_bad_line_stops_a_load(self, graph: AnyGraph, line: str) -> None:
        with pytest.raises(errors.InvalidRequestError, match="line 2: unknown input field 'nam'"):
            graph.load(
                b'{"type":"Author","data":{"name":"Lem"}}\n{"type":"Author","data":{"nam":"x"}}',
                mode="append",
                branch=line,
                **LOCAL,
            )
        assert graph.count("Author", branch=line) == 2

    def test_scripts_of_old_load_a_stream_of_values(self, graph: AnyGraph, line: str) -> None:
        body = b'{"type":"Author","data":{"name":"Lem"}} {"type":"Author",\n"data":{"name":"Russ"}}'

        done = graph.load(body, mode="merge", branch=line, strict=False, **LOCAL)

        assert done.nodes == {"Author": 2}

    # -- branches and tags --------------------------------------------------------------------------------------------

    def test_branches_come_and_go(self, graph: AnyGraph, line: str) -> None:
        name = f"{line}/a ünusual%name?"
        start = graph.branches.create(name, source=line)

        assert start == graph.snapshot(branch=line).commit
        assert name in graph.branches
        assert name in list(graph.branches)
        with pytest.raises(errors.AlreadyExistsError):
            graph.branches.create(name, source=line)
        graph.branches.delete(name)
        assert name not in graph.branches

    def test_names_come_in_pages(self, graph: AnyGraph, line: str) -> None:
        for each in "abc":
            graph.branches.create(f"{line}/{each}", source=line)
        first = graph.branches.list(limit=2)
        rest = graph.branches.list(page_token=first.next_page_token)

        assert [*first, *rest] == list(graph.branches)

    def test_a_tag_names_a_commit(self, graph: AnyGraph, line: str) -> None:
        name = f"v/{line}"
        made = graph.tags.create(name, branch=line)

        assert graph.tags.read(name) == made
        assert made.commit == graph.snapshot(branch=line).commit
        assert name in list(graph.tags)
        graph.tags.delete(name)
        with pytest.raises(errors.NotFoundError) as missing:
            graph.tags.read(name)
        assert missing.value.code == "tag_not_found"

    def test_a_merge_brings_in_what_a_branch_did(self, graph: AnyGraph, line: str) -> None:
        graph.branches.create(f"{line}/r", source=line)
        graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r")

        planned = graph.merge(f"{line}/r", into=line, preview=True)
        done = graph.merge(f"{line}/r", into=line, delete_branch=True, message="in")
        assert (planned.is_preview, planned.commit, planned.outcome) == (True, None, "fast_forward")
        assert (done.outcome, done.branch_deleted, done.head) == ("fast_forward", True, done.commit)
        assert done.changes["node:Author"].inserted == 1
        assert graph.commits.show(done.commit).merged_parent == done.source_commit
        assert graph.count("Author", branch=line) == 3

    def test_conflicts_of_a_merge_are_values_and_can_be_decided(self, graph: AnyGraph, line: str) -> None:
        graph.branches.create(f"{line}/r", source=line)
        graph.mutate(PAGES, {"n": 400}, branch=f"{line}/r")
        graph.mutate(PAGES, {"n": 500}, branch=line)

        with pytest.raises(errors.MergeConflictError) as refused:
            graph.merge(f"{line}/r", into=line)
        preview = graph.merge(f"{line}/r", into=line, preview=True)
        done = graph.merge(f"{line}/r", into=line, resolutions={"node:Book": {"0-1": "source"}})

        [conflict] = refused.value.conflicts
        assert refused.value.code == "merge_conflicts"
        assert (conflict.kind, conflict.type_key) == (MergeConflictKind.DIVERGENT_UPDATE, "node:Book")
        assert conflict.entity_id == "0-1"
        [planned] = preview.conflicts
        assert [side["pages"] for side in (planned.base, planned.source, planned.target)] == [341, 400, 500]
        assert (done.outcome, done.resolved) == ("merged", 1)
        assert graph.query(BOOKS, branch=line).to_pylist()[0]["b.pages"] == 400

    def test_a_merge_that_was_reviewed_is_refused_once_either_side_has_moved(self, graph: AnyGraph, line: str) -> None:
        graph.branches.create(f"{line}/r", source=line)
        graph.mutate(ADD, {"name": "Lem"}, branch=f"{line}/r")
        seen = graph.merge(f"{line}/r", into=line, preview=True)
        graph.mutate(ADD, {"name": "Russ"}, branch=f"{line}/r")
        moved = graph.mutate(PAGES, {"n": 500}, branch=line).commit

        with pytest.raises(errors.PreconditionError) as target:
            graph.merge(f"{line}/r", into=line, if_commit=seen.head)
        with pytest.raises(errors.PreconditionError) as source:
            graph.merge(f"{line}/r", into=line, if_source_commit=seen.source_commit)
        again = graph.merge(f"{line}/r", into=line, preview=True)
        done = graph.merge(f"{line}/r", into=line, if_commit=again.head, if_source_commit=again.source_commit)

        assert (target.value.details["expected"], target.value.details["actual"]) == (seen.head, moved)
        assert f"on branch '{line}/r'" in source.value.message
        assert (done.outcome, done.source_commit) == ("merged", again.source_commit)

    # -- history ------------------------------------------------------------------------------------------------------

    def test_commits_are_listed_newest_first_in_pages(self, graph: AnyGraph, line: str) -> None:
        done = [graph.mutate(ADD, {"name": name}, branch=line).commit for name in ("Lem", "Russ", "Tiptree")]

        page = graph.commits.list(line, limit=2)
        following = graph.commits.list(line, limit=2, page_token=page.next_page_token)

        assert [each.id for each in page] == done[:0:-1]
        assert following[0].id == done[0]
        assert [each.id for each in graph.commits.list(line, kind="merge")] == []
        with pytest.raises(errors.InvalidRequestError, match="greater than zero"):
            graph.commits.list(line, limit=0)

    def test_changes_of_a_commit_and_of_a_branch(self, graph: AnyGraph, line: str) -> None:
        cursor = graph.changes.poll(line).cursor
        done = graph.mutate(PAGES, {"n": 400}, branch=line)

        page = graph.commits.changes(done.commit, types=["Book"])
        feed = graph.changes.drain(line, cursor=cursor)
        none = graph.changes.poll(line, cursor=feed.cursor)

        [change] = page.changes
        assert (change.id, change.op, change.type_name) == ("0-1", "update", "Book")
        assert (change.before.properties["pages"], change.after.properties["pages"]) == (341, 400)
        assert [block.entry.commit for block in feed.blocks] == [done.commit]
        assert feed.blocks[0].changes == page.changes
        assert (none.blocks, none.caught_up) == ([], True)

    def test_a_feed_in_small_pages_is_put_together(self, graph: AnyGraph, line: str) -> None:
        cursor = graph.changes.poll(line).cursor
        graph.write({"Author": [{"name": f"author {each}"} for each in range(5)]}, branch=line)

        page = graph.changes.poll(line, cursor=cursor, limit=2)
        whole = graph.changes.drain(line, cursor=cursor, limit=2)

        assert page.next_page_token is not None
        assert len(whole.blocks) == 1
        assert [each.id for each in whole.blocks[0].changes] == [f"author {each}" for each in range(5)]

    def test_a_baseline_is_a_whole_state_and_a_cursor(self, graph: AnyGraph, line: str) -> None:
        baseline = graph.changes.baseline(line)
        done = graph.mutate(ADD, {"name": "Lem"}, branch=line)
        out = io.BytesIO()
        baseline.write(out)

        lines = out.getvalue().splitlines()
        assert (len(lines), b'"baseline"' in lines[-1]) == (6, True)
        assert baseline.to_dict() == {
            "snapshot_commit_id": baseline.commit,
            "resume_cursor": baseline.resume_cursor,
        }
        feed = graph.changes.poll(line, cursor=baseline.resume_cursor)
        assert [block.entry.commit for block in feed.blocks] == [done.commit]

    def test_a_diff_between_any_two_states(self, graph: AnyGraph, line: str) -> None:
        before = graph.snapshot(branch=line)
        graph.mutate(PAGES, {"n": 400}, branch=line)
        graph.mutate(ADD, {"name": "Lem"}, branch=line)

        found = graph.diff(before, line)

        assert [(each.op, each.id) for each in found] == [("insert", "Lem"), ("update", "0-1")]
        assert (len(found), bool(found), set(found.types)) == (2, True, {"node:Author", "node:Book"})
        assert found.stats["node:Book"].updated == 1
        assert found.to_pylist()[0]["op"] == "insert"
        assert [each.id for each in graph.diff(before, line, types=["Book"])] == ["0-1"]
        assert not graph.diff(line, line)
        with pytest.raises(errors.NotFoundError, match="there is no branch, tag or commit 'nowhere'"):
            graph.diff(line, "nowhere")

    def test_a_commit_is_undone_unless_something_came_since(self, graph: AnyGraph, line: str) -> None:
        first = graph.mutate(PAGES, {"n": 400}, branch=line)
        second = graph.mutate(PAGES, {"n": 500}, branch=line)

        with pytest.raises(errors.RevertConflictError) as refused:
            graph.revert(first.commit, branch=line)
        done = graph.revert(second.commit, branch=line, message="no")

        [conflict] = refused.value.conflicts
        assert (conflict.kind, conflict.entity_id) == (RevertConflictKind.CHANGED_SINCE, "0-1")
        assert (done.first, done.last, done.changes["node:Book"].updated) == (second.commit, second.commit, 1)
        assert graph.query(BOOKS, branch=line).to_pylist()[0]["b.pages"] == 400

    def test_who_did_what_to_an_entity(self, graph: AnyGraph, line: str) -> None:
        done = graph.mutate(PAGES, {"n": 400}, branch=line, message="longer")

        events = graph.log_of("Book", "0-1", branch=line)
        found = graph.blame("Book", "0-1", branch=line)

        assert [each.op for each in events] == ["update", "insert"]
        assert (events[0].entry.commit, events[0].entry.message) == (done.commit, "longer")
        assert events[0].changed == ("pages",)
        assert found.properties["pages"].commit == done.commit
        assert found.created.commit == events[-1].entry.commit
        assert found.last.commit == done.commit

    # -- out of the graph ---------------------------------------------------------------------------------------------

    def test_an_export_can_be_loaded_again(self, graph: AnyGraph, line: str, tmp_path: Path) -> None:
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

    def test_a_blob_is_read_as_far_as_it_is_wanted(self, graph: AnyGraph, line: str) -> None:
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

    # -- the schema ---------------------------------------------------------------------------------------------------

    def test_a_schema_is_planned_and_applied(self, graph: AnyGraph, line: str) -> None:
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

    def test_a_schema_that_cannot_be_had_is_refused(self, graph: AnyGraph, line: str) -> None:
        text = graph.schema_text(branch=line).replace("born: Date?", "born: String?")

        with pytest.raises(errors.InvalidRequestError, match="OG-MF-106"):
            graph.schema_apply(text, branch=line)
        with pytest.raises(errors.ParseError, match="parse error"):
            graph.schema_apply("node {", branch=line)


def _made(folder: Path) -> str:
    address = str(folder / "library")
    with omnigraph.init(address, SCHEMA) as made:
        made.load(ROWS, mode="append", **LOCAL)
    return address


@pytest.fixture(scope="module")
def open_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.Graph]:
    """A library, open in this process."""
    with omnigraph.open(_made(tmp_path_factory.mktemp("open"))) as found:
        yield found


@pytest.fixture(scope="module")
def served_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[omnigraph.RemoteGraph]:
    """A library on a server in a process of its own."""
    address = _made(tmp_path_factory.mktemp("served"))
    with (
        served("--store", address, "--unauthenticated") as server,
        omnigraph.connect(server.url, graph="library") as found,
    ):
        yield found


@pytest.fixture
def line(graph: omnigraph.Graph | omnigraph.RemoteGraph) -> str:
    """A branch of the test's own."""
    name = f"line-{next(_LINES)}"
    graph.branches.create(name)
    return name


class TestOpenGraph(GraphContract):
    """Open in this process."""

    @pytest.fixture
    def graph(self, open_library: omnigraph.Graph) -> omnigraph.Graph:
        return open_library


class TestServedGraph(GraphContract):
    """On a server."""

    @pytest.fixture
    def graph(self, served_library: omnigraph.RemoteGraph) -> omnigraph.RemoteGraph:
        return served_library
