"""How often a merge on Spark compares its rows with what is there."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph import Graph, limits
from omnigraph.errors import ConstraintError
from omnigraph.pipeline.load.how_far import LoadProgress

SCHEMA = "node Person { name: String @key  email: String? @unique }"


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    monkeypatch.setattr(limits, "LOAD_NEAR_BYTES", -1)
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    graph.write(nodes={"Person": [{"name": f"p{n}", "email": f"p{n}@example.org"} for n in range(20)]})
    return graph


def rows(*people: tuple[str, str]) -> bytes:
    return "".join(
        json.dumps({"type": "Person", "data": {"name": name, "email": email}}) + "\n" for name, email in people
    ).encode()


def comparisons(graph: Graph, spark: SparkSession, data: bytes) -> int:
    seen: list[str] = []

    def watch(now: LoadProgress) -> None:
        if now.stage not in seen[-1:]:
            seen.append(now.stage)

    graph.load(data, mode="merge", spark=spark, progress=watch)
    return seen.count("judging")


def test_a_merge_that_nothing_is_in_the_way_of_compares_once(graph: Graph, spark: SparkSession) -> None:
    data = rows(*((f"p{n}", f"p{n}@example.com") for n in range(20)), ("new", "new@example.org"))
    assert comparisons(graph, spark, data) == 1
    assert graph.count("Person") == 21
    emails = graph.export_arrow("Person", columns=["email"]).read_all().column("email").to_pylist()
    assert set(emails) == {*(f"p{n}@example.com" for n in range(20)), "new@example.org"}


def test_values_that_change_hands_are_looked_at_again_before_anything_is_said(
    graph: Graph, spark: SparkSession
) -> None:
    assert comparisons(graph, spark, rows(("p0", "p1@example.org"), ("p1", "p0@example.org"))) == 3
    with pytest.raises(ConstraintError, match="p5"):
        graph.load(rows(("p2", "p5@example.org")), mode="merge", spark=spark)
