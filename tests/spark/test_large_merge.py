"""Merges whose sides are told apart on Spark: the same commit, the same conflicts, whoever reads."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, MergeConflictError, OpenOptions, limits
from omnigraph.pipeline.diff import spark as on_spark

SCHEMA = "node Person { name: String @key  age: I64?  tags: [String]? }\nedge Knows: Person -> Person { since: I32? }\n"
FAST = OpenOptions(durability="process", auto_compact=False)
COUNT = 400


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=FAST) as made:
        for first in range(0, COUNT, 100):
            made.write({"Person": [{"name": f"p{each}", "age": each} for each in range(first, first + 100)]})
        for branch, step in (("here", 9), ("there", 9), ("side", 7)):
            made.branches.create(branch)
            people = [{"name": f"p{each}", "age": -each, "tags": [f"t{step}"]} for each in range(step, COUNT, step * 5)]
            made.write({"Person": people}, mode="merge", branch=branch)
            made.mutate(f"query q() {{ delete Person where age = {step * 4} }}", branch=branch)
            made.write({"Person": [{"name": f"new of {step}"}]}, branch=branch)
        # Laid out anew, so that every row of the table lies elsewhere than at the base.
        made.optimize(branch="side")
        yield made


def people(graph: Graph, branch: str) -> list[dict[str, Any]]:
    return sorted(graph.export_arrow("Person", branch=branch).read_all().to_pylist(), key=lambda row: str(row["id"]))


@pytest.mark.usefixtures("spark")
def test_a_merge_is_the_same_wherever_its_sides_are_told_apart(graph: Graph) -> None:
    seen = [graph.merge("side", into="here", preview=True, engine=engine) for engine in ("local", "spark")]
    assert seen[0] == seen[1]
    done = [graph.merge("side", into=into, engine=engine) for into, engine in (("here", "local"), ("there", "spark"))]
    assert [each.outcome for each in done] == ["merged", "merged"]
    assert done[0].changes == done[1].changes
    assert people(graph, "here") == people(graph, "there")
    assert {"new of 7", "new of 9"} <= {row["id"] for row in people(graph, "there")}
    assert graph.merge("side", into="there", engine="spark").outcome == "already_up_to_date"


@pytest.mark.torture
@pytest.mark.usefixtures("spark")
def test_conflicts_are_the_same_too(graph: Graph) -> None:
    for branch, age in (("here", 1), ("there", 1), ("side", 2)):
        graph.write(
            {"Person": [{"name": f"p{each}", "age": 1000 + age} for each in range(200, 240)]},
            mode="merge",
            branch=branch,
        )
    found = []
    for into, engine in (("here", "local"), ("there", "spark")):
        with pytest.raises(MergeConflictError) as refused:
            graph.merge("side", into=into, engine=engine)
        found.append(refused.value.conflicts)
    assert len(found[0]) == 40
    assert sorted(found[0], key=str) == sorted(found[1], key=str)
    assert graph.merge("side", into="there", engine="spark", prefer="source").resolved == 40


@pytest.mark.usefixtures("spark")
def test_spark_is_taken_by_itself_for_a_large_merge(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = []
    real = on_spark.changes_on_spark

    def noted(*args: Any) -> Any:  # noqa: ANN401  (as the real one)
        taken.append(args)
        return real(*args)

    monkeypatch.setattr(on_spark, "changes_on_spark", noted)
    assert graph.merge("side", into="here").outcome == "merged"
    assert taken == []
    monkeypatch.setattr(limits, "DIFF_LOCAL_BYTES_MAX", 0)
    assert graph.merge("side", into="there").outcome == "merged"
    assert len(taken) == 2
    assert people(graph, "here") == people(graph, "there")
