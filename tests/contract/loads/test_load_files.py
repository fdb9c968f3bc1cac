"""What every engine that loads files reads, and where and when it writes."""

import gzip
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from tests.support.load_lines import ADA, BOB, KNOWS, SCHEMA, edge, head, ids, person, refused, rows

import omnigraph
from omnigraph import AllowedBase, ExternalBlobPolicy, Graph, LoadResult
from omnigraph.errors import (
    BlobSourceError,
    ConflictError,
    GraphError,
    InvalidRequestError,
    NotFoundError,
    PermissionDeniedError,
    PreconditionError,
)
from omnigraph.failpoints import Failpoint, armed
from omnigraph.pipeline.settings import SparkSettings

Load = Callable[..., LoadResult]


# --- files ------------------------------------------------------------------------------------------------------------


def test_columns_of_csv_and_parquet(graph: Graph, load: Load, tmp_path: Path) -> None:
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
    refused(graph, lambda: load(data=tmp_path / "more.csv", type_name="Person"), InvalidRequestError, told)


def test_packed_files_and_patterns(graph: Graph, load: Load, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl.gz").write_bytes(gzip.compress(f"{ADA}\n".encode()))
    with pa.CompressedOutputStream(str(tmp_path / "b.jsonl.zst"), "zstd") as file:
        file.write(f"\ufeff{BOB}\r\n{KNOWS}\r\n".encode())
    assert load(data=f"{tmp_path}/*.jsonl.*").total_entities == 3
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(f"{person('Cid')}\n".encode())[:-9])
    refused(graph, lambda: load(data=tmp_path / "c.jsonl.gz"), InvalidRequestError, "c.jsonl.gz is not gzip")


def test_the_forgiving_reader(graph: Graph, load: Load) -> None:
    stream = '{"type":"Person",\n"data":{"name":"Ada","age":"old","hat":1}}{"type":"Person","data":{"name":"Bob"}}'
    load(data=stream.encode(), strict=False)
    assert [(row["id"], row["age"]) for row in rows(graph, "Person")] == [("Ada", None), ("Bob", None)]
    told = "record 2: expected 'type' or 'edge' field"
    refused(graph, lambda: load(data=b'{"type":"Person","data":{"name":"C"}} 7', strict=False), GraphError, told)


# --- where and when ---------------------------------------------------------------------------------------------------


def test_a_branch_is_made_for_a_load_that_succeeds(graph: Graph, load: Load) -> None:
    load(ADA)
    refused(graph, lambda: load(BOB, branch="dev"), NotFoundError, "branch 'dev' not found")
    refused(graph, lambda: load(ADA, branch="dev", from_branch="main"), ConflictError, "'Ada'")
    result = load(BOB, branch="dev", from_branch="main")
    assert (result.branch_created, result.base_branch) == (True, "main")
    assert (ids(graph, "Person", branch="dev"), ids(graph, "Person")) == (["Ada", "Bob"], ["Ada"])
    assert load(person("Cid"), branch="dev", from_branch="main").branch_created is False


def test_the_same_request_twice_is_done_once(graph: Graph, load: Load) -> None:
    first = load(ADA, idempotency_key="k", actor="me", message="why")
    second = load(ADA, idempotency_key="k")
    assert (second.commit, second.replayed) == (first.commit, True)
    assert first.entry is not None
    assert (first.entry.actor, first.entry.message, first.entry.kind) == ("me", "why", "load")


def test_only_on_the_head_that_was_meant(graph: Graph, load: Load) -> None:
    before = head(graph)
    load(ADA, if_commit=before)
    refused(graph, lambda: load(BOB, if_commit=before), PreconditionError, "head")


def test_a_graph_opened_for_reading_is_not_loaded_into(
    graph: Graph, options: Mapping[str, Any], tmp_path: Path
) -> None:
    with omnigraph.open(tmp_path / "graph", read_only=True) as reader, pytest.raises(PermissionDeniedError):
        reader.load(ADA.encode(), mode="append", **options)


def test_what_cannot_be_meant_is_refused(graph: Graph, load: Load, tmp_path: Path) -> None:
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
        ({"engine": "quick"}, "unknown engine 'quick'; one of spark, local"),
        ({"progress": "loud"}, "progress must be a function, not str"),
        ({"from_column": "a"}, "records in JSON have no columns"),
        ({"max_rejects": 1}, "max_rejects needs a folder"),
        ({"rejects": tmp_path, "max_rejects": -1}, "max_rejects must be 0 or more, not -1"),
        ({"rejects": tmp_path / "x.bin"}, "bad records cannot be put aside in"),
        ({"rejects": "s3://bucket/bad"}, "it must be a folder of this machine"),
    ]
    (tmp_path / "x.csv").write_text("name\nAda\n")
    for more, message in wrong:
        error = refused(graph, partial(load, **more), InvalidRequestError, message)
        assert error.code in ("load_option", "rejects_folder")
    refused(graph, partial(load, format=["csv"]), InvalidRequestError, "format must be a text, got list")
    refused(graph, partial(load, max_rejects="1"), InvalidRequestError, "max_rejects must be a whole number, got '1'")


def test_where_there_is_nothing_it_is_told_what_was_looked_for(graph: Graph, load: Load, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "x.bin").write_text("")
    for data, told in [
        (tmp_path / "a.jsonl", "a.jsonl: there is no such file or folder"),
        (tmp_path / "*.jsonl", "*.jsonl: no file fits the pattern"),
        (tmp_path / "in", "in: no file in the folder has a name that ends like JSON lines, CSV or Parquet"),
        ([tmp_path / "in" / "x.bin", tmp_path / "b.csv"], "b.csv: there is no such file or folder"),
    ]:
        error = refused(graph, partial(load, data=data), NotFoundError, told)
        assert error.code == "data_not_found"


def test_what_others_wrote_meanwhile_is_kept_and_judged(graph: Graph, load: Load, tmp_path: Path) -> None:
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


def test_blobs_are_loaded_copied_from_elsewhere_or_left_there(tmp_path: Path, options: Mapping[str, Any]) -> None:
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


def test_what_is_said_about_spark_is_refused_by_the_engine_that_does_without(graph: Graph) -> None:
    said = SparkSettings(master="local[1]")
    told = "the local engine does not use Spark"
    refused(
        graph, lambda: graph.load(ADA.encode(), mode="append", engine="local", spark=said), InvalidRequestError, told
    )
