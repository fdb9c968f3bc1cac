"""Loads that are validated by Spark, however small they are."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.load_lines import rows

import omnigraph
from omnigraph import Graph, limits
from omnigraph.errors import ConflictError, ConstraintError, InvalidRequestError
from omnigraph.pipeline.load.how_far import LoadProgress

SCHEMA = """
node Person { name: String @key  email: String? @unique  age: I32? }
edge Knows: Person -> Person @card(0..2)
"""


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.write(nodes={"Person": [{"name": f"p{n}", "email": f"p{n}@example.org"} for n in range(4)]})
    return graph


def people(*given: tuple[str, str]) -> list[dict[str, Any]]:
    return [{"type": "Person", "data": {"name": name, "email": email}} for name, email in given]


def knows(*given: tuple[str, str, str]) -> list[dict[str, Any]]:
    return [{"edge": "Knows", "from": source, "to": target, "data": {"id": key}} for key, source, target in given]


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records).encode()


def test_files_become_one_commit_and_progress_is_reported(graph: Graph, spark: SparkSession) -> None:
    seen: list[LoadProgress] = []
    data = lines(*people(("new", "new@example.org")), *knows(("1", "new", "p0"), ("2", "p0", "new")))
    before = graph.snapshot().number

    done = graph.load(data, mode="append", spark=spark, progress=seen.append)

    assert (done.nodes, done.edges, graph.snapshot().number) == ({"Person": 1}, {"Knows": 2}, before + 1)
    assert {(row["src"], row["dst"]) for row in rows(graph, "Knows")} == {("new", "p0"), ("p0", "new")}
    assert {now.stage for now in seen} >= {"reading", "judging"}
    assert all(now.bytes <= now.bytes_total for now in seen)


def test_a_merge_replaces_rows_and_values_may_change_hands(graph: Graph, spark: SparkSession) -> None:
    graph.load(lines(*people(("p0", "p1@example.org"), ("p1", "p0@example.org"))), mode="merge", spark=spark)
    assert {row["id"]: row["email"] for row in rows(graph, "Person")} == {
        "p0": "p1@example.org", "p1": "p0@example.org", "p2": "p2@example.org", "p3": "p3@example.org"
    }  # fmt: skip
    with pytest.raises(ConstraintError, match=r"p3@example\.org' held by 'p3' and 'p2'"):
        graph.load(lines(*people(("p2", "p3@example.org"))), mode="merge", spark=spark)


def test_rejected_records_are_named_by_their_lines_and_the_others_loaded(
    graph: Graph, spark: SparkSession, tmp_path: Path
) -> None:
    records = [
        *people(("a", "a@example.org"), ("a", "b@example.org"), ("b", "p0@example.org")),
        {"type": "Person", "data": {"name": "c", "age": "old"}},
        *knows(("1", "a", "nobody"), ("2", "a", "p0"), ("3", "a", "p1"), ("4", "a", "p2")),
    ]
    done = graph.load(lines(*records), mode="append", spark=spark, rejects=tmp_path / "rejects")
    assert [reject.number for reject in done.rejects] == [2, 3, 4, 5, 8]
    assert (done.nodes, done.edges) == ({"Person": 1}, {"Knows": 2})


def test_a_dry_run_says_the_same_and_writes_nothing(graph: Graph, spark: SparkSession) -> None:
    before = graph.snapshot().commit
    done = graph.load(lines(*people(("a", "a@example.org"))), mode="append", spark=spark, dry_run=True)
    assert done.nodes == {"Person": 1}
    with pytest.raises(ConflictError, match=r"already has id 'p0' \(line 2\)"):
        graph.load(lines(*people(("a", "x"), ("p0", "y"))), mode="append", spark=spark, dry_run=True)
    assert graph.snapshot().commit == before


def test_frames_are_written_without_a_detour_and_rows_named_by_partition(graph: Graph, spark: SparkSession) -> None:
    before = {file for file in Path(graph.uri).rglob("*") if file.is_file()}
    frame = spark.createDataFrame([("x", 1), ("y", 2)], "name string, age int").coalesce(1)
    edges = spark.createDataFrame([("x", "y")], "from string, to string").coalesce(1)

    graph.spark.write({"Person": frame, "Knows": edges})

    assert graph.count("Person") == 6
    added = {file for file in Path(graph.uri).rglob("*") if file.is_file()} - before
    assert len([file for file in added if file.suffix == ".lance" and "data" in file.parts]) == 2
    assert not [file for file in added if file.suffix == ".parquet"]
    with pytest.raises(
        ConstraintError, match=r"dst 'z' not found in Person \(row 2 of the frame for Knows, partition 0\)"
    ):
        bad = spark.createDataFrame([("x", "y"), ("x", "z")], "from string, to string").coalesce(1)
        graph.spark.write({"Knows": bad})
    with pytest.raises(InvalidRequestError, match="row 1: strict property 'age'"):
        graph.spark.write({"Person": spark.createDataFrame([("q", "old")], "name string, age string").coalesce(1)})
