"""What every engine that loads files must do, and one class per engine that does it."""

import gzip
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph import AllowedBase, ExternalBlobPolicy, Graph, LoadResult, limits
from omnigraph.errors import (
    BlobSourceError,
    ConflictError,
    ConstraintError,
    GraphError,
    InvalidRequestError,
    LimitError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
)
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.pipeline.settings import SparkSettings

SCHEMA = """
node Person {
  name: String @key  age: I32?  email: String? @unique  first: String?  born: Date?
  level: enum(low, high)?
  @unique(first, born)  @range(age, 0..150)  @check(name, "^[A-Za-z0-9]+$")
}
node Note { text: String  size: U64?  seen: DateTime?  tags: [String]?  at: Vector(2)?  raw: Blob? }
node Pair { a: String  b: I32  @key(a, b) }
edge Knows: Person -> Person { since: Date? @unique(src, dst) }
edge Likes: Person -> Person
edge Owns: Person -> Note @card(1..2)
"""

ADA, BOB = '{"type":"Person","data":{"name":"Ada","email":"a@x"}}', '{"type":"Person","data":{"name":"Bob"}}'
KNOWS = '{"edge":"Knows","from":"Ada","to":"Bob","data":{"id":"k1","since":"2020-01-31"}}'
Load = Callable[..., LoadResult]


def person(name: str, **data: object) -> str:
    return json.dumps({"type": "Person", "data": {"name": name, **data}})


def edge(kind: str, source: str, target: str, **data: object) -> str:
    return json.dumps({"edge": kind, "from": source, "to": target, "data": data})


def note(id_: str, text: str) -> str:
    return json.dumps({"type": "Note", "data": {"id": id_, "text": text}})


def rows(graph: Graph, kind: str, branch: str = "main") -> list[dict[str, Any]]:
    return sorted(graph.export_arrow(kind, branch=branch).read_all().to_pylist(), key=lambda row: str(row["id"]))


def ids(graph: Graph, kind: str, branch: str = "main") -> list[str]:
    return [str(row["id"]) for row in rows(graph, kind, branch)]


def head(graph: Graph, branch: str = "main") -> str:
    return graph.snapshot(branch=branch).commit


class LoadContract:
    """What every engine must do."""

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        """How the engine is chosen."""
        raise NotImplementedError

    @pytest.fixture
    def graph(self, tmp_path: Path) -> Iterator[Graph]:
        with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
            yield graph

    @pytest.fixture
    def load(self, graph: Graph, options: Mapping[str, Any]) -> Load:
        def run(*lines: str, data: object = None, mode: str = "append", **more: object) -> LoadResult:
            given = "\n".join(lines).encode() if data is None else data
            said: dict[str, Any] = {**options, **more}
            return graph.load(given, mode=mode, **said)

        return run

    def refused(self, graph: Graph, load: Callable[[], object], error: type[GraphError], message: str) -> GraphError:
        """What a load is refused with; it has left nothing."""
        before = head(graph), sorted(graph.branches)
        with pytest.raises(error) as refused:
            load()
        assert message in str(refused.value)
        assert (head(graph), sorted(graph.branches)) == before
        return refused.value

    # -- modes --------------------------------------------------------------------------------------------------------

    def test_nodes_and_edges_in_any_order_become_one_commit(self, graph: Graph, load: Load) -> None:
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

    def test_every_type_of_value_arrives_as_it_was_written(self, graph: Graph, load: Load) -> None:
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

    def test_append_refuses_what_is_there(self, graph: Graph, load: Load) -> None:
        load(ADA)
        refused = self.refused(graph, lambda: load(BOB, person("Ada", age=9)), ConflictError, "already has id 'Ada'")
        assert refused.code == "key_conflict"
        assert ids(graph, "Person") == ["Ada"]

    def test_merge_puts_whole_rows_in_the_place_of_old_ones(self, graph: Graph, load: Load) -> None:
        load(ADA, person("Bob", age=7), KNOWS)
        load(person("Ada", age=31), person("Cid"), KNOWS.replace("2020", "2021"), mode="merge")
        found = {row["id"]: (row["age"], row["email"]) for row in rows(graph, "Person")}
        assert found == {"Ada": (31, None), "Bob": (7, None), "Cid": (None, None)}
        assert [row["since"].year for row in rows(graph, "Knows")] == [2021]
        changes = graph.snapshot().record.changes.types["node:Person"]
        assert (changes.inserted_ids, changes.updated_ids) == (("Cid",), ("Ada",))

    def test_overwrite_replaces_the_types_it_names_and_no_others(self, graph: Graph, load: Load) -> None:
        load(ADA, BOB, note("n1", "x"))
        load(person("Ada"), person("Cid"), mode="overwrite")
        assert (ids(graph, "Person"), ids(graph, "Note")) == (["Ada", "Cid"], ["n1"])
        changes = graph.snapshot().record.changes.types["node:Person"]
        assert (changes.inserted, changes.updated, changes.deleted) == (1, 1, 1)

    def test_overwrite_keeps_no_edge_to_a_node_that_goes(self, graph: Graph, load: Load) -> None:
        load(ADA, BOB, KNOWS)
        self.refused(graph, lambda: load(ADA, mode="overwrite"), ConstraintError, "dst 'Bob' not found in Person")
        load(ADA, edge("Knows", "Ada", "Ada"), mode="overwrite")
        assert graph.count("Knows") == 1

    def test_a_load_of_nothing_makes_a_commit_too(self, graph: Graph, load: Load) -> None:
        before = head(graph)
        assert load(data=b"").commit == head(graph) != before

    def test_the_last_record_of_an_id_wins_a_merge_and_only_that(self, graph: Graph, load: Load) -> None:
        load(note("n", "one"), note("m", "x"), note("n", "two"), mode="merge")
        assert [row["text"] for row in rows(graph, "Note")] == ["x", "two"]
        for mode in ("append", "overwrite"):
            twice = (note("q", "one"), note("q", "two"))
            self.refused(graph, partial(load, *twice, mode=mode), ConflictError, "occurs twice")

    @pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
    def test_a_key_twice_is_refused_in_every_mode(self, graph: Graph, load: Load, mode: str) -> None:
        told = "@unique violation on Person.name: value 'Ada' held by 'Ada' and 'Ada' (line 3)"
        self.refused(graph, lambda: load(ADA, BOB, person("Ada"), mode=mode), ConstraintError, told)

    # -- rules --------------------------------------------------------------------------------------------------------

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
    def test_the_first_broken_rule_is_told_with_its_line(
        self, graph: Graph, load: Load, lines: list[str], message: str
    ) -> None:
        load(ADA, BOB, KNOWS)
        self.refused(graph, lambda: load(*lines), ConstraintError, message)
        assert load(person("Zoe"), edge("Likes", "Zoe", "Ada")).total_entities == 2, "the next load is as good as any"

    def test_values_change_hands_within_one_merge(self, graph: Graph, load: Load) -> None:
        load(person("Ada", email="a"), person("Bob", email="b"))
        load(person("Ada", email="b"), person("Bob", email="a"), mode="merge")
        assert {row["id"]: row["email"] for row in rows(graph, "Person")} == {"Ada": "b", "Bob": "a"}
        self.refused(graph, lambda: load(person("Ada", email="a"), mode="merge"), ConstraintError, "'Bob' and 'Ada'")

    def test_edges_that_are_replaced_no_longer_count(self, graph: Graph, load: Load) -> None:
        load(ADA, BOB, note("n", "x"), edge("Owns", "Ada", "n", id="o1"), edge("Owns", "Ada", "n", id="o2"))
        load(edge("Owns", "Bob", "n", id="o2"), edge("Owns", "Ada", "n", id="o3"), mode="merge")
        assert sorted(row["src"] for row in rows(graph, "Owns")) == ["Ada", "Ada", "Bob"]
        told = "source 'Bob' has 0 edges (min 1)"
        self.refused(graph, lambda: load(edge("Owns", "Ada", "n", id="o2"), mode="merge"), ConstraintError, "@card")
        self.refused(
            graph,
            lambda: load(edge("Owns", "Ada", "n", id="z"), mode="overwrite"),
            ConstraintError,
            told,
        )

    # -- what is wrong with a record ----------------------------------------------------------------------------------

    def test_a_wrong_line_is_told_with_its_file(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "a.jsonl").write_text(f"{ADA}\n")
        (tmp_path / "in" / "b.jsonl").write_text(f'{BOB}\n\n{{"type":"Person","data":{{"age":"x","name":"C"}}}}\n')
        told = "line 3: strict property 'age' expects Int32, got \"x\" (in b.jsonl)"
        self.refused(graph, lambda: load(data=tmp_path / "in"), InvalidRequestError, told)
        missing = tmp_path / "missing.jsonl"
        self.refused(graph, lambda: load(data=missing), NotFoundError, "no file to load at")

    def test_of_wrong_lines_the_first_is_told(self, graph: Graph, load: Load) -> None:
        self.refused(graph, lambda: load(ADA, "{", "]"), InvalidRequestError, "invalid strict JSON at line 2: ")

    # -- putting records aside ----------------------------------------------------------------------------------------

    def test_bad_records_are_put_aside_with_reason_and_place(self, graph: Graph, load: Load, tmp_path: Path) -> None:
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

    def test_a_row_that_is_put_aside_replaces_nothing(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        load(ADA, BOB, person("Cid", email="c"), edge("Likes", "Ada", "Bob", id="l"))
        lines = (edge("Likes", "Ada", "Zoe", id="l"), person("Bob", age=5), person("Cid", email="a@x"))
        load(*lines, mode="merge", rejects=tmp_path)
        assert [row["dst"] for row in rows(graph, "Likes")] == ["Bob"]
        assert {row["id"]: (row["age"], row["email"]) for row in rows(graph, "Person")} == {
            "Ada": (None, "a@x"),
            "Bob": (5, None),
            "Cid": (None, "c"),
        }

    def test_too_many_bad_records_stop_the_load(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        def two() -> LoadResult:
            return load(ADA, "x", "y", rejects=tmp_path, max_rejects=1)

        error = self.refused(graph, two, LimitError, "2 records cannot be loaded, more than the 1")
        assert error.code == "too_many_rejects"
        assert sum(len(each.read_text().splitlines()) for each in tmp_path.glob("rejects-*")) == 2
        assert load(ADA, "x", rejects=tmp_path, max_rejects=1).total_entities == 1

    def test_bad_records_are_written_down_before_the_others_are_seen(
        self, graph: Graph, load: Load, tmp_path: Path
    ) -> None:
        folder = tmp_path / "bad"

        def dies() -> None:
            raise Crash

        with armed(Failpoint.PUBLISH_ENTRY_PUT, dies), pytest.raises(Crash):
            load(ADA, "x", rejects=folder)
        assert ids(graph, "Person") == ["Ada"]
        assert [json.loads(each.read_text())["record"] for each in folder.iterdir()] == ["x"]

    def test_a_load_that_comes_to_nothing_leaves_no_file_of_bad_records(
        self, graph: Graph, load: Load, tmp_path: Path
    ) -> None:
        folder = tmp_path / "bad"
        before = head(graph)
        load(ADA)
        self.refused(graph, lambda: load(BOB, "x", rejects=folder, if_commit=before), PreconditionError, "head")
        assert list(folder.iterdir()) == []

    def test_bad_records_that_cannot_be_written_down_stop_the_load(
        self, graph: Graph, load: Load, tmp_path: Path
    ) -> None:
        folder = tmp_path / "bad"

        def gone(_: object) -> None:
            shutil.rmtree(folder, ignore_errors=True)

        told = "No such file or directory; name another folder"
        self.refused(graph, lambda: load(ADA, "x", rejects=folder, progress=gone), InvalidRequestError, told)

    def test_a_dry_run_says_all_and_writes_nothing(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        before = head(graph), {each.name for each in (tmp_path / "graph" / "nodes").rglob("*")}
        assert load(ADA, BOB, KNOWS, dry_run=True).to_dict()["total_entities"] == 3
        told = "dst 'Bob' not found in Person (line 2)"
        self.refused(graph, lambda: load(ADA, KNOWS, dry_run=True), ConstraintError, told)
        assert (head(graph), {each.name for each in (tmp_path / "graph" / "nodes").rglob("*")}) == before

    # -- files --------------------------------------------------------------------------------------------------------

    def test_columns_of_csv_and_parquet(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        (tmp_path / "people.csv").write_text('name,age,first\nAda,36,"a,\nb"\nBob,,""\n')
        load(data=tmp_path / "people.csv", type_name="Person")
        assert [(row["id"], row["age"], row["first"]) for row in rows(graph, "Person")] == [
            ("Ada", 36, "a,\nb"),
            ("Bob", None, ""),
        ]
        table = pa.table({"a": ["Ada"], "b": ["Bob"], "since": pa.array([10], pa.date32())})
        pyarrow.parquet.write_table(table, tmp_path / "knows.parquet")
        load(data=tmp_path / "knows.parquet", edge="Knows", from_column="a", to_column="b")
        assert [(row["src"], row["dst"]) for row in rows(graph, "Knows")] == [("Ada", "Bob")]
        (tmp_path / "more.csv").write_text("name,age\nCid,1\nDan,x\n")
        told = "row 2: strict property 'age' expects Int32, got \"x\" (in more.csv)"
        self.refused(graph, lambda: load(data=tmp_path / "more.csv", type_name="Person"), InvalidRequestError, told)

    def test_packed_files_and_patterns(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(f"{ADA}\n".encode()))
        with pa.CompressedOutputStream(str(tmp_path / "b.jsonl.zst"), "zstd") as file:
            file.write(f"\ufeff{BOB}\r\n{KNOWS}\r\n".encode())
        assert load(data=f"{tmp_path}/*.jsonl.*").total_entities == 3
        (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(f"{person('Cid')}\n".encode())[:-9])
        self.refused(graph, lambda: load(data=tmp_path / "c.jsonl.gz"), InvalidRequestError, "c.jsonl.gz is not gzip")

    def test_the_forgiving_reader(self, graph: Graph, load: Load) -> None:
        stream = '{"type":"Person",\n"data":{"name":"Ada","age":"old","hat":1}}{"type":"Person","data":{"name":"Bob"}}'
        load(data=stream.encode(), strict=False)
        assert [(row["id"], row["age"]) for row in rows(graph, "Person")] == [("Ada", None), ("Bob", None)]
        told = "record 2: expected 'type' or 'edge' field"
        self.refused(
            graph, lambda: load(data=b'{"type":"Person","data":{"name":"C"}} 7', strict=False), GraphError, told
        )

    # -- where and when -----------------------------------------------------------------------------------------------

    def test_a_branch_is_made_for_a_load_that_succeeds(self, graph: Graph, load: Load) -> None:
        load(ADA)
        self.refused(graph, lambda: load(BOB, branch="dev"), NotFoundError, "branch 'dev' not found")
        self.refused(graph, lambda: load(ADA, branch="dev", from_branch="main"), ConflictError, "'Ada'")
        result = load(BOB, branch="dev", from_branch="main")
        assert (result.branch_created, result.base_branch) == (True, "main")
        assert (ids(graph, "Person", branch="dev"), ids(graph, "Person")) == (["Ada", "Bob"], ["Ada"])
        assert load(person("Cid"), branch="dev", from_branch="main").branch_created is False

    def test_the_same_request_twice_is_done_once(self, graph: Graph, load: Load) -> None:
        first = load(ADA, idempotency_key="k", actor="me", message="why")
        second = load(ADA, idempotency_key="k")
        assert (second.commit, second.replayed) == (first.commit, True)
        assert first.entry is not None
        assert (first.entry.actor, first.entry.message, first.entry.kind) == ("me", "why", "load")

    def test_only_on_the_head_that_was_meant(self, graph: Graph, load: Load) -> None:
        before = head(graph)
        load(ADA, if_commit=before)
        self.refused(graph, lambda: load(BOB, if_commit=before), PreconditionError, "head")

    def test_a_graph_opened_for_reading_is_not_loaded_into(
        self, graph: Graph, options: Mapping[str, Any], tmp_path: Path
    ) -> None:
        with omnigraph.open(tmp_path / "graph", read_only=True) as reader, pytest.raises(PermissionDeniedError):
            reader.load(ADA.encode(), mode="append", **options)

    def test_what_cannot_be_meant_is_refused(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        (tmp_path / "x.csv").write_text("name\n")
        (tmp_path / "x.bin").write_text("")
        (tmp_path / "x.jsonl").write_text(ADA)
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"mode": "replace"}, "unknown mode 'replace'; one of append, merge, overwrite"),
            ({"type_name": "Person"}, "records in JSON name their types themselves"),
            ({"data": tmp_path / "x.csv"}, "x.csv holds rows of one type: name a node type or an edge type"),
            ({"data": tmp_path / "x.csv", "type_name": "Hat"}, "unknown node type 'Hat'"),
            ({"data": tmp_path / "x.csv", "type_name": "Persn"}, "'Persn'; did you mean `Person`?"),
            ({"data": tmp_path / "x.csv", "type_name": "Knows"}, "it is an edge type, name it as one"),
            ({"data": tmp_path / "x.csv", "edge": "Person"}, "it is a node type, name it as one"),
            ({"data": tmp_path / "x.csv", "edge": "Know"}, "unknown edge type 'Know'; did you mean `Knows`?"),
            ({"data": tmp_path / "x.csv", "edge": "Knows", "type_name": "Person"}, "of one type, and two are named"),
            ({"data": tmp_path / "x.csv", "type_name": "Person", "from_column": "a"}, "and only edges leave or reach"),
            ({"data": tmp_path / "x.csv", "edge": "Knows"}, "x.csv has no column 'from' for the node that edges leave"),
            ({"data": tmp_path / "x.csv", "edge": "Knows", "from_column": "who"}, "of those there are: name"),
            ({"data": [tmp_path / "x.csv", tmp_path / "x.jsonl"]}, "x.jsonl holds JSON lines and x.csv is csv: load "),
            ({"data": tmp_path / "x.bin"}, "what is in x.bin cannot be told by its name"),
            ({"data": [tmp_path / "x.csv"], "format": "xml"}, "unknown format 'xml'"),
            ({"data": 7}, "a load reads files or bytes"),
            ({"data": []}, "there is nothing to load: no file is named"),
            ({"data": [7]}, "a load reads files, and 7 is no path"),
            ({"data": "a\0b"}, "is the path of no file"),
            ({"data": "n" * 300}, "cannot be read: File name too long"),
            ({"format": ["csv"]}, "unknown format '['csv']'; one of jsonl, csv, parquet"),
            ({"engine": "quick"}, "unknown engine 'quick'; one of spark, local"),
            ({"progress": "loud"}, "progress is told to a function, and str is none"),
            ({"rejects": tmp_path, "max_rejects": "1"}, "'1' is no number of bad records"),
            ({"from_column": "a"}, "records in JSON have no columns"),
            ({"max_rejects": 1}, "no folder is named to put them into"),
            ({"rejects": tmp_path, "max_rejects": -1}, "-1 is no number of bad records"),
            ({"rejects": tmp_path / "x.bin"}, "bad records cannot be put aside in"),
            ({"rejects": "s3://bucket/bad"}, "it must be a folder of this machine"),
        ]
        (tmp_path / "x.csv").write_text("name\nAda\n")
        for more, message in wrong:
            error = self.refused(graph, partial(load, **more), InvalidRequestError, message)
            assert error.code in ("load_option", "rejects_folder")

    def test_where_there_is_nothing_it_is_told_what_was_looked_for(
        self, graph: Graph, load: Load, tmp_path: Path
    ) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "in" / "x.bin").write_text("")
        for data, told in [
            (tmp_path / "a.jsonl", "a.jsonl: there is no such file or folder"),
            (tmp_path / "*.jsonl", "*.jsonl: no file fits the pattern"),
            (tmp_path / "in", "in: no file in the folder has a name that ends like JSON lines, CSV or Parquet"),
            ([tmp_path / "in" / "x.bin", tmp_path / "b.csv"], "b.csv: there is no such file or folder"),
        ]:
            error = self.refused(graph, partial(load, data=data), NotFoundError, told)
            assert error.code == "data_not_found"

    def test_what_others_wrote_meanwhile_is_kept_and_judged(self, graph: Graph, load: Load, tmp_path: Path) -> None:
        load(ADA, BOB)
        other = omnigraph.open(tmp_path / "graph")

        def meanwhile(*made: tuple[str, str]) -> Callable[[], None]:
            """Others write, the first time the load is ready to."""
            left = list(made)

            def once() -> None:
                while left:
                    kind, name = left.pop()
                    other.write(nodes={kind: [{"name": name} if kind == "Person" else {"text": name}]})

            return once

        with armed(Failpoint.WRITE_PREPARED, meanwhile(("Note", "n"))):
            assert load(person("Cid"), edge("Likes", "Cid", "Ada")).attempts == 1
        with armed(Failpoint.WRITE_PREPARED, meanwhile(("Person", "Zoe"))):
            load(person("Dan"))
        assert ids(graph, "Person") == ["Ada", "Bob", "Cid", "Dan", "Zoe"]
        with armed(Failpoint.WRITE_PREPARED, meanwhile(("Person", "Eve"))), pytest.raises(ConflictError) as refused:
            load(person("Eve", age=3))
        assert refused.value.code == "key_conflict"
        with armed(Failpoint.WRITE_PREPARED, meanwhile(("Person", "Fay"))), pytest.raises(ConflictError):
            load(*(person(name) for name in ids(graph, "Person")), mode="overwrite")
        assert [row["age"] for row in rows(graph, "Person")] == [None] * 7, "neither was seen in part"

    def test_blobs_are_loaded_copied_from_elsewhere_or_left_there(
        self, tmp_path: Path, options: Mapping[str, Any]
    ) -> None:
        (tmp_path / "elsewhere").mkdir()
        (tmp_path / "elsewhere" / "b").write_bytes(b"bytes of b")
        uri = f"file://{tmp_path}/elsewhere/b"
        policy = ExternalBlobPolicy((AllowedBase(f"file://{tmp_path}/elsewhere/"),))
        lines = [
            json.dumps({"type": "Note", "data": {"id": id_, "text": id_, "raw": raw}})
            for id_, raw in {"own": "base64:b3du", "far": uri, "none": None}.items()
        ]
        data = "\n".join(lines).encode()

        with omnigraph.init(tmp_path / "blobs", SCHEMA, options=omnigraph.OpenOptions(external_blobs=policy)) as graph:
            for mode, kind in (("append", "managed"), ("overwrite", "external")):
                graph.load(data, mode=mode, **options)
                far = graph.blob("node", "Note", "far", "raw")
                assert (far.kind, far.read()) == (kind, b"bytes of b")
                assert graph.blob("node", "Note", "own", "raw").read() == b"own"
            with pytest.raises(InvalidRequestError, match=r"line 2: external blob URI .* is not allowed") as refused:
                graph.load(data.replace(b"elsewhere/b", b"other/b"), mode="merge", **options)
            assert refused.value.code == "external_blob_not_allowed"
            with pytest.raises(BlobSourceError, match=r"line 2: external blob source .* is unavailable"):
                graph.load(data.replace(b"elsewhere/b", b"elsewhere/c"), mode="merge", **options)
            assert graph.count("Note") == 3


class TestLocal(LoadContract):
    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"engine": "local"}

    def test_what_is_said_about_spark_is_refused(self, graph: Graph, load: Load) -> None:
        told = "the local engine does without Spark"
        self.refused(graph, lambda: load(ADA, spark=SparkSettings(master="local[1]")), InvalidRequestError, told)


class TestSpark(LoadContract):
    @pytest.fixture
    def options(self, spark: SparkSession) -> Mapping[str, Any]:
        return {"engine": "spark", "spark": spark}


@pytest.mark.torture
class TestSparkThroughout(LoadContract):
    """Nothing is judged by the driver, however little it is."""

    @pytest.fixture
    def options(self, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Mapping[str, Any]:
        monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)
        return {"engine": "spark", "spark": spark}
