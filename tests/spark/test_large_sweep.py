"""Sweeps that read on Spark find what one process finds, delete the same, and fail closed in the same way."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.support.s3_server import S3Server

import omnigraph
from omnigraph import Graph, InvalidRequestError, OpenOptions, limits
from omnigraph.api.prune import SweepReport
from omnigraph.branch.sweep.files import Candidate, Verdict
from omnigraph.branch.sweep.reading import Files
from omnigraph.model.commit import Pin
from omnigraph.pipeline.sweep import spark as on_spark
from omnigraph.storage import paths
from omnigraph.storage.object_stores.s3 import S3Options

SCHEMA = "node Person { name: String @key  age: I64? }\nnode City { name: String @key }\nedge Knows: Person -> Person\n"
EAGER = OpenOptions(durability="process", auto_compact=False, protection_s=0)


def littered(graph: Graph) -> Graph:
    """A graph with files that are needed, and with some of every kind that is not."""
    graph.write({"Person": [{"name": f"p{each}", "age": each} for each in range(20)]})
    graph.tags.create("kept")
    graph.branches.create("gone")
    for age in range(6):
        graph.write({"Person": [{"name": "p1", "age": age}]}, mode="merge")
        graph.write({"City": [{"name": f"c{age}"}]}, branch="gone")
    graph.write(edges={"Knows": [{"id": "k", "from": "p1", "to": "p2"}]})
    graph.optimize()
    graph.branches.delete("gone")
    graph.schema_apply(SCHEMA.replace("node City { name: String @key }\n", ""), allow_data_loss=True)
    graph.mutate('query q() { delete Person where name = "p3" }')
    graph.prune(keep=1, now=True)
    return graph


def timeless(report: SweepReport) -> list[dict[str, Any]]:
    """A worklist without entries of logs: those go when a minute old, which may happen between two looks."""
    return [each for each in report.worklist if not each["path"].startswith(paths.LOGS)]


@pytest.fixture(params=["disk", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Graph]:
    uri, options = str(tmp_path / "graph"), EAGER
    if request.param == "memory":
        uri = "memory://"
    if request.param == "s3":
        server: S3Server = request.getfixturevalue("s3_server")
        uri = f"s3://omnigraph-tests/{request.getfixturevalue('s3_prefix')}"
        options = OpenOptions(auto_compact=False, protection_s=0, s3=server.options)
    with omnigraph.init(uri, SCHEMA, options=options) as made:
        yield littered(made)


@pytest.mark.usefixtures("spark")
def test_both_engines_have_one_worklist_and_leave_nothing_for_the_other(graph: Graph) -> None:
    here, there = (graph.sweep(older_than=0, dry_run=True, engine=engine) for engine in ("local", "spark"))
    by_path = {each["path"]: each for each in timeless(here)}
    assert {each["path"]: each for each in timeless(there)} == by_path
    assert len([each for each in here.worklist if each["verdict"] == "orphan"]) > 20
    assert (there.swept.kept_files, there.swept.kept_bytes) == (here.swept.kept_files, here.swept.kept_bytes)
    done = graph.sweep(older_than=0, engine="spark")
    assert not done.swept.errors
    assert done.swept.of(Verdict.INDETERMINATE) == []
    orphans = {path for path, each in by_path.items() if each["verdict"] == "orphan"}
    assert {file.path for file in done.swept.deleted if not file.path.startswith(paths.LOGS)} == orphans
    assert not [each for each in timeless(graph.sweep(older_than=0, dry_run=True)) if each["verdict"] == "orphan"]
    assert graph.count("Person") == 19
    assert graph.snapshot(tag="kept").count("Person") == 20


def test_a_kept_version_that_cannot_be_read_keeps_the_sweep_from_its_table_on_spark_too(
    spark: SparkSession, tmp_path: Path
) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=EAGER) as graph:
        head = littered(graph).snapshot().record.tables["node:Person"]
    (tmp_path / "graph" / head.table / "_versions" / f"d{head.version}.manifest").unlink()
    before = sorted((tmp_path / "graph" / head.table).rglob("*"))
    with omnigraph.open(tmp_path / "graph", options=EAGER) as graph:
        for engine in ("spark", "local"):
            swept = graph.sweep(older_than=0, engine=engine).swept
            assert {item.file.owner for item in swept.of(Verdict.INDETERMINATE)} == {head.table}
    assert [path for path in before if not path.exists()] == []


def test_spark_is_taken_by_itself_for_very_many_files_or_versions(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Noticed(on_spark.ReadingOnSpark):
        def listed(self) -> list[Candidate]:
            asked.append("files")
            return super().listed()

        def files(self, pins: Sequence[Pin]) -> Iterable[Files]:
            asked.append("versions")
            return super().files(pins)

    monkeypatch.setattr(on_spark, "ReadingOnSpark", Noticed)
    with omnigraph.init(tmp_path / "graph", SCHEMA, options=EAGER) as made:
        graph = littered(made)
        expected = timeless(graph.sweep(older_than=0, dry_run=True))
        assert asked == []
        monkeypatch.setattr(limits, "SWEEP_LOCAL_FILES_MAX", 10)
        assert timeless(graph.sweep(older_than=0, dry_run=True)) == expected
        assert asked == ["files"]
        monkeypatch.setattr(limits, "SWEEP_LOCAL_VERSIONS_MAX", 1)
        assert timeless(graph.sweep(older_than=0, dry_run=True)) == expected
        assert asked[1:] == ["files", "versions"]
        assert timeless(graph.sweep(older_than=0, dry_run=True, engine="local")) == expected
        with pytest.raises(InvalidRequestError, match="unknown engine"):
            graph.sweep(engine="cluster")


def test_options_for_a_bucket_survive_the_way_to_the_tasks() -> None:
    said = S3Options("http://there", "eu", "key", "secret", "token", allow_http=True, virtual_hosted=True)
    assert S3Options.from_storage_options(said.as_storage_options()) == said
    assert S3Options.from_storage_options(S3Options().as_storage_options()) == S3Options()
