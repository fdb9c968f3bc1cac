"""Export: what a commit holds, in files and streams, in the order of ids."""

import csv
import gzip
import io
import json
from pathlib import Path
from typing import Any

import networkx
import pyarrow as pa
import pyarrow.parquet
import pytest

import omnigraph
from omnigraph import AlreadyExistsError, FormatError, Graph, InvalidRequestError
from omnigraph.pipeline.export.ordered import rows_in_order

SCHEMA = """
node Person { name: String @key age: I32? tags: [String]? at: DateTime? }
node Thing { weight: F64? born: Date? big: U64? face: Vector(2)? raw: Blob? ok: Bool? }
edge Knows: Person -> Person { since: Date? }
edge Thing: Person -> Thing
"""
ADA = {"name": "Ada", "age": 36, "tags": ['a"b', "c"], "at": "2024-01-31T10:00:00.120Z"}
THING = {
    "id": "t1",
    "weight": 2.0,
    "born": "1815-12-10",
    "big": 2**64 - 1,
    "face": [0.5, 1.0],
    "raw": "base64:AAE=",
    "ok": True,
}


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    made = omnigraph.init(tmp_path / "graph", SCHEMA)
    made.write(
        {"Person": [{"name": "Grace"}, ADA, {"name": "Zoë\n"}], "Thing": [THING]},
        {
            "Knows": [
                {"id": "k2", "from": "Grace", "to": "Ada"},
                {"id": "k1", "from": "Ada", "to": "Grace", "since": "1843-01-01"},
            ],
            "Thing": [{"id": "o1", "from": "Ada", "to": "t1"}],
        },
    )
    return made


def exported(graph: Graph, **options: Any) -> str:  # noqa: ANN401  (passed on as they are)
    stream = io.BytesIO()
    graph.export(stream, **options)
    return stream.getvalue().decode()


def test_lines_have_the_form_that_a_load_takes_back(graph: Graph) -> None:
    assert exported(graph).splitlines() == [
        '{"edge":"Knows","from":"Ada","to":"Grace","data":{"id":"k1","since":"1843-01-01"}}',
        '{"edge":"Knows","from":"Grace","to":"Ada","data":{"id":"k2","since":null}}',
        '{"edge":"Thing","from":"Ada","to":"t1","data":{"id":"o1"}}',
        '{"type":"Person","data":{"id":"Ada","age":36,"at":"2024-01-31T10:00:00.120Z","name":"Ada","tags":["a\\"b","c"]}}',
        '{"type":"Person","data":{"id":"Grace","age":null,"at":null,"name":"Grace","tags":null}}',
        '{"type":"Person","data":{"id":"Zoë\\n","age":null,"at":null,"name":"Zoë\\n","tags":null}}',
        '{"type":"Thing","data":{"id":"t1","big":18446744073709551615,"born":"1815-12-10","face":[0.5,1.0],"ok":true,'
        '"raw":"base64:AAE=","weight":2.0}}',
    ]


def test_a_name_means_the_node_type_and_the_edge_type_that_have_it(graph: Graph) -> None:
    kinds = [
        (line.get("edge"), line.get("type")) for line in map(json.loads, exported(graph, types=["Thing"]).splitlines())
    ]

    assert kinds == [("Thing", None), (None, "Thing")]


def test_a_type_key_means_that_type_alone(graph: Graph) -> None:
    assert [json.loads(line)["type"] for line in exported(graph, types=["node:Thing"]).splitlines()] == ["Thing"]


def test_a_type_that_is_not_there_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="unknown export type 'Nobody'"):
        exported(graph, types=["Nobody"])


def test_a_type_that_was_misspelled_is_refused_with_the_one_that_is_meant(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="unknown export type 'Persn'; did you mean `Person`"):
        exported(graph, types=["Persn"])
    with pytest.raises(InvalidRequestError, match="types must be a list of texts, got int"):
        exported(graph, types=5)


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_a_place_that_is_none_of_this_machine_is_refused(graph: Graph, tmp_path: Path, format: str) -> None:
    for where, told in [
        ("s3://bucket/all", "an export goes to a path of this machine or to a stream, and s3://bucket/all is neither"),
        ("a\0b", "cannot be written: it is the name of no file"),
    ]:
        with pytest.raises(InvalidRequestError, match=told):
            graph.export(where, format=format)
    done = graph.export(f"file://{tmp_path}/all.{format}", format=format)
    assert all(Path(file).is_file() for file in done.files)


def test_a_folder_is_no_file_to_export_to(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match="is a folder: name a file in it"):
        graph.export(tmp_path)
    assert [each.name for each in tmp_path.iterdir()] == ["graph"]


def test_a_format_that_is_not_there_is_refused_with_those_that_are(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="'xml'; the formats are jsonl, parquet, csv, graphml"):
        exported(graph, format="xml")


def test_any_commit_can_be_exported(graph: Graph) -> None:
    before = graph.snapshot().commit
    graph.branches.create("later")
    graph.write({"Person": [{"name": "Eve"}]}, branch="later")

    assert '"Eve"' in exported(graph, branch="later")
    assert (
        exported(graph, commit=before)
        == exported(graph)
        == exported(graph, branch="later").replace(
            '{"type":"Person","data":{"id":"Eve","age":null,"at":null,"name":"Eve","tags":null}}\n', ""
        )
    )


def test_what_was_written_is_told(graph: Graph, tmp_path: Path) -> None:
    done = graph.export(tmp_path / "all.jsonl")

    assert done.rows == {"edge:Knows": 2, "edge:Thing": 1, "node:Person": 3, "node:Thing": 1}
    assert (done.total, done.commit, done.files) == (7, graph.snapshot().commit, (str(tmp_path / "all.jsonl"),))


def test_a_file_may_be_compressed_by_its_name(graph: Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "all.jsonl.gz")

    assert gzip.decompress((tmp_path / "all.jsonl.gz").read_bytes()).decode() == exported(graph)


def test_a_stream_of_lines_is_the_file(graph: Graph) -> None:
    assert b"".join(map(bytes, graph.export_lines())).decode() == exported(graph)


def test_an_empty_graph_exports_nothing(tmp_path: Path) -> None:
    assert exported(omnigraph.init(tmp_path / "empty", SCHEMA)) == ""


class FullError(OSError):
    """No space is left."""


class FullDisk(io.BytesIO):
    def write(self, _: Any) -> int:  # noqa: ANN401  (passed on as they are)
        raise FullError


def test_an_export_that_fails_leaves_no_file_and_what_was_there(graph: Graph, tmp_path: Path) -> None:
    path = tmp_path / "all.jsonl"
    path.write_text("before")
    people = tmp_path / "graph" / graph.snapshot().record.tables["node:Person"].table
    for data in (people / "data").iterdir():
        data.unlink()  # edges come first: they are written when this is met
    with omnigraph.open(tmp_path / "graph") as fresh:
        with pytest.raises(FormatError, match="a file it refers to is not there"):
            fresh.export(path)
        with pytest.raises(FormatError, match="a file it refers to is not there"):
            fresh.export(tmp_path / "folder", format="csv")

    assert path.read_text() == "before"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["all.jsonl", "graph"]


def test_an_error_of_the_stream_is_the_callers_own(graph: Graph) -> None:
    with pytest.raises(FullError):
        graph.export(FullDisk())


# Folders are made with those above them.
@pytest.mark.parametrize(("where", "form"), [("nowhere/all.jsonl", "jsonl"), ("", "jsonl"), ("", "csv")])
def test_a_place_that_cannot_be_written_is_named(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, form: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    with pytest.raises(InvalidRequestError, match="cannot be written"):
        graph.export(where, format=form)
    assert list(empty.iterdir()) == []


def test_rows_are_in_the_order_of_ids_however_large_the_table(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    from omnigraph import limits

    monkeypatch.setattr(limits, "EXPORT_BATCH_ROWS_MAX", 7)
    graph.write({"Person": [{"name": f"p{number * 7919 % 100:02}"} for number in range(100)]})
    graph.mutate('query q() { delete Person where name = "p50" }')
    table = graph._parts.snapshot(graph.snapshot().record).table("node:Person")

    whole = pa.Table.from_batches(rows_in_order(table))
    by_address = pa.Table.from_batches(rows_in_order(table, sort_bytes_max=-1))

    assert len(whole) == 102
    assert whole.column("id").to_pylist() == sorted(map(str, whole.column("id").to_pylist()))
    assert by_address == whole


def test_parquet_has_a_file_for_each_type_with_its_types(graph: Graph, tmp_path: Path) -> None:
    done = graph.export(tmp_path / "out", format="parquet")

    names = ["edges/Knows.parquet", "edges/Thing.parquet", "nodes/Person.parquet", "nodes/Thing.parquet"]
    assert [str(Path(file).relative_to(tmp_path / "out")) for file in done.files] == names
    people = pyarrow.parquet.read_table(tmp_path / "out" / "nodes" / "Person.parquet")
    assert people.column("id").to_pylist() == ["Ada", "Grace", "Zoë\n"]
    assert people.schema.field("age").type == pa.int32()
    edges = pyarrow.parquet.read_table(tmp_path / "out" / "edges" / "Knows.parquet")
    assert edges.select(["id", "src", "dst"]).to_pylist()[0] == {"id": "k1", "src": "Ada", "dst": "Grace"}


def test_one_type_may_be_one_file_or_a_stream(graph: Graph, tmp_path: Path) -> None:
    graph.export(tmp_path / "people.parquet", format="parquet", types=["Person"])
    stream = io.BytesIO()
    graph.export(stream, format="parquet", types=["Person"])

    assert pyarrow.parquet.read_table(tmp_path / "people.parquet") == pyarrow.parquet.read_table(
        io.BytesIO(stream.getvalue())
    )
    with pytest.raises(InvalidRequestError, match="one type in a file"):
        graph.export(io.BytesIO(), format="csv")


def test_a_folder_with_something_in_it_is_not_touched(graph: Graph, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    graph.export(tmp_path / "out", format="csv")

    with pytest.raises(AlreadyExistsError):
        graph.export(tmp_path / "out", format="csv")


def test_csv_tells_absent_from_empty(graph: Graph, tmp_path: Path) -> None:
    graph.write({"Thing": [{"id": "", "born": None}]}, mode="merge")
    graph.export(tmp_path / "things.csv", format="csv", types=["node:Thing"])
    text = (tmp_path / "things.csv").read_text()

    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["id"] for row in rows] == ["", "t1"]
    assert rows[1] == {
        "id": "t1", "big": "18446744073709551615", "born": "1815-12-10", "face": "[0.5,1.0]", "ok": "true",
        "raw": "base64:AAE=", "weight": "2.0",
    }  # fmt: skip
    assert text.splitlines()[1] == '"",,,,,,'


def test_graphml_is_read_by_others(graph: Graph, tmp_path: Path) -> None:
    graph.write({"Person": [{"name": "<&\">'\x01"}]}, {"Knows": [{"id": "k3", "from": "<&\">'\x01", "to": "Ada"}]})
    graph.export(tmp_path / "graph.graphml", format="graphml")

    read = networkx.read_graphml(tmp_path / "graph.graphml")

    assert read.is_directed()
    assert read.nodes["Person:Ada"] == {
        "type": "Person", "age": 36, "name": "Ada", "tags": '["a\\"b","c"]', "at": "2024-01-31T10:00:00.120Z"
    }  # fmt: skip
    assert read.nodes["Thing:t1"]["weight"] == 2.0
    assert read.nodes["Thing:t1"]["ok"] is True
    assert read.nodes["Person:<&\">'�"]["name"] == "<&\">'�"
    assert read.nodes["Person:Zoë\n"]["name"] == "Zoë\n"
    assert set(read.edges) == {
        ("Person:Ada", "Person:Grace"), ("Person:Grace", "Person:Ada"), ("Person:Ada", "Thing:t1"),
        ("Person:<&\">'�", "Person:Ada"),
    }  # fmt: skip
    assert read.edges["Person:Ada", "Person:Grace"] == {"type": "Knows", "since": "1843-01-01", "id": "Knows:k1"}
