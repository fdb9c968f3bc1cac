"""Diffs on Spark: many pieces and shares tell what one process tells; which of both is taken; what goes wrong."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph
from omnigraph import FormatError, Graph, InvalidRequestError, OpenOptions, UnavailableError, limits
from omnigraph.pipeline.diff import spark as on_spark

SCHEMA = "node Person { name: String @key  age: I64?  tags: [String]? }\nedge Knows: Person -> Person { since: I32? }\n"
FAST = OpenOptions(durability="process", auto_compact=False)
COUNT = 2_000


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST) as made:
        for first in range(0, COUNT, 500):
            rows = [{"name": f"p{each}", "age": each, "tags": [f"t{each % 7}"]} for each in range(first, first + 500)]
            made.write({"Person": rows})
        made.branches.create("side")
        made.write({"Person": [{"name": f"p{each}", "age": -each} for each in range(0, COUNT, 9)]}, mode="merge")
        made.mutate("query q() { delete Person where age > 1900 }")
        made.write({"Person": [{"name": f"n{each}"} for each in range(300)]})
        made.write(edges={"Knows": [{"from": "p1", "to": f"p{each}", "since": each} for each in range(2, 200)]})
        yield made


@pytest.fixture
def in_little_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """A task for every fragment, many blocks in each, and many shares."""
    monkeypatch.setattr(limits, "DIFF_TASK_BYTES", 1)
    monkeypatch.setattr(limits, "DIFF_BLOCK_ROWS", 64)
    monkeypatch.setattr(limits, "DIFF_SHARE_BYTES", 20_000)


@pytest.mark.usefixtures("spark", "in_little_pieces")
def test_many_pieces_in_many_shares_tell_what_one_process_tells(graph: Graph) -> None:
    before = graph.snapshot(branch="side")
    for optimized in (False, True):
        if optimized:
            graph.optimize()
        here, there = (graph.diff(before, "main", engine=engine) for engine in ("local", "spark"))
        assert there.to_pylist() == here.to_pylist()
        assert there.stats == here.stats
        assert {key: table.to_pylist() for key, table in there.to_arrow().items()} == {
            key: table.to_pylist() for key, table in here.to_arrow().items()
        }
        assert here.stats["node:Person"].updated > 200


def test_spark_is_taken_by_itself_for_what_is_large(
    spark: SparkSession, graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []
    real = on_spark.changes_on_spark

    def noticed(*args: object) -> object:
        taken.append(args[3:])
        return real(*args)  # type: ignore[arg-type]  # passed on as they are

    monkeypatch.setattr(on_spark, "changes_on_spark", noticed)
    expected = graph.diff("side", "main").stats
    assert taken == []
    monkeypatch.setattr(limits, "DIFF_LOCAL_BYTES_MAX", 10_000)
    assert graph.diff("side", "main").stats == expected
    # Of edges so little differs that they are compared here.
    tables = [graph.snapshot(branch=branch).record.tables["node:Person"] for branch in ("side", "main")]
    assert taken == [tuple(tables)]
    assert graph.diff("side", "main", engine="local").stats == expected
    assert len(taken) == 1
    with pytest.raises(InvalidRequestError, match="unknown engine 'cluster'; one of auto, local, spark"):
        graph.diff("side", "main", engine="cluster")


def test_what_is_large_is_compared_here_where_there_is_no_spark(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(*_: object) -> None:
        raise UnavailableError("there is no Java", code="no_java")

    monkeypatch.setattr("omnigraph.pipeline.session.spark_session", no_java)
    monkeypatch.setattr(limits, "DIFF_LOCAL_BYTES_MAX", 0)
    assert graph.diff("side", "main").stats == graph.diff("side", "main", engine="local").stats
    with pytest.raises(UnavailableError, match="no Java"):
        list(graph.diff("side", "main", engine="spark"))


def test_a_file_that_is_gone_is_told_as_what_it_is(spark: SparkSession, graph: Graph) -> None:
    table = graph.snapshot().record.tables["node:Person"].table
    newest = max(Path(graph.uri).glob(f"{table}/data/*.lance"), key=lambda path: path.stat().st_mtime_ns)
    newest.unlink()
    with pytest.raises(FormatError):
        list(graph.diff("side", "main", engine="spark"))
