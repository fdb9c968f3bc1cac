"""Compaction by Spark's workers: the same rows in the same order, beside writers, or nothing at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.interleaving import once

import omnigraph
from omnigraph import Graph, InvalidRequestError, OpenOptions, UnavailableError, limits
from omnigraph.failpoints import Failpoint, armed
from omnigraph.pipeline.compact import spark as on_spark

SCHEMA = "node Person { name: String @key  age: I64? @index  note: Blob? }\nedge Knows: Person -> Person\n"
FAST = OpenOptions(durability="process", auto_compact=False)
FRAGMENTS, ROWS = 12, 40


@pytest.fixture
def graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    monkeypatch.setattr(limits, "COMPACT_TASK_ROWS", 4 * ROWS)  # several tasks, and several fragments at the end
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST) as made:
        for first in range(0, FRAGMENTS * ROWS, ROWS):
            rows = [{"name": f"p{n:04}", "age": n, "note": bytes([n % 251])} for n in range(first, first + ROWS)]
            made.write({"Person": rows})
        made.mutate("query q() { delete Person where age < 50 }")
        made.write(edges={"Knows": [{"from": "p0100", "to": "p0200"}]})
        yield made


def people(graph: Graph) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = graph.export_arrow("Person").read_all().to_pylist()
    return found


@pytest.mark.usefixtures("spark")
def test_workers_rewrite_fragments_and_no_answer_changes(graph: Graph) -> None:
    before = people(graph)
    done = graph.optimize(types=["Person"], engine="spark")
    [table] = done.tables
    assert (table.fragments_removed, table.fragments_added) == (FRAGMENTS - 1, 3)
    assert table.changed
    assert people(graph) == before
    found = graph.query("query q() { match { $p: Person { age: 77 } } return { $p.name as name } }")
    assert [row["name"] for row in found] == ["p0077"]
    assert graph.verify(deep=True).is_whole
    assert graph.diff(graph.commits.list()[1].id, "main").stats == {}


@pytest.mark.usefixtures("spark")
def test_what_others_delete_and_add_meanwhile_stays_deleted_and_added(graph: Graph) -> None:
    other = omnigraph.open(graph.uri, options=FAST)

    def meanwhile() -> None:
        other.mutate("query q() { delete Person where age > 400 }")
        other.write({"Person": [{"name": "late"}]})

    with armed(Failpoint.WRITE_TABLE_STAGED, once(meanwhile)):
        done = graph.optimize(types=["Person"], engine="spark")
    assert done.tables[0].changed
    assert {row["id"] for row in people(graph)} == {*(f"p{n:04}" for n in range(50, 401)), "late"}
    assert graph.verify(deep=True).is_whole


def test_spark_is_taken_by_itself_for_what_is_large(
    graph: Graph, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = []

    def fails(*args: Any) -> list[str]:  # noqa: ANN401  (as the real one)
        taken.append(args)
        raise UnavailableError("Spark could not finish", code="spark_job_failed")

    monkeypatch.setattr(on_spark, "rewritten_on_spark", fails)
    with pytest.raises(InvalidRequestError, match="unknown engine"):
        graph.optimize(engine="flint")
    monkeypatch.setattr(limits, "COMPACT_LOCAL_BYTES_MAX", 0)
    before = graph.snapshot().commit
    with pytest.raises(UnavailableError):
        graph.optimize(types=["Person"])
    assert graph.snapshot().commit == before
    assert taken[0][0] is spark
    monkeypatch.undo()
    assert graph.optimize(types=["Person"]).tables[0].fragments_added == 1
    assert len(taken) == 1
