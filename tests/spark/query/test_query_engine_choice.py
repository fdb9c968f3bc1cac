"""Where a query runs: in this process, on Spark, or wherever its memory suffices; and what says so."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession
from tests.support.command_line import run
from tests.support.served_here import InProcess

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidRequestError, LimitError
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.server.settings import ServerSettings

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
FRIENDS = """
query q($least: I32) {
  match { $a: Person $a knows $b $b.age >= $least } return { $a.name, $b.name as friend } order { $b.name }
}
"""
EVERYBODY = "query q() { match { $p: Person } return { $p.name } order { $p.age desc } }"
LITTLE = QueryLimits(memory_bytes=8)


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Iterator[Graph]:
    with omnigraph.init(tmp_path_factory.mktemp("engine") / "graph", SCHEMA) as made:
        people = [{"name": f"p{n}", "age": n} for n in range(9)]
        made.write({"Person": people}, {"Knows": [{"from": f"p{n}", "to": f"p{n + 1}"} for n in range(8)]})
        made.tags.create("nine")
        made.branches.create("other")
        made.mutate('query q() { delete Person where name = "p8" }', branch="other")
        yield made


def test_the_engine_of_a_query_can_be_named_and_is_told(graph: Graph) -> None:
    local = graph.query(FRIENDS, {"least": 4}, engine="local")
    found = graph.query(FRIENDS, {"least": 4}, engine="spark")

    assert (local.engine, found.engine) == ("local", "spark")
    assert found.to_arrow().equals(local.to_arrow())
    assert local.row_count == 5
    assert found.to_json() == local.to_json() | {"engine": "spark"}


def test_a_query_beyond_its_memory_runs_on_spark_unless_it_must_stay_here(
    graph: Graph, caplog: pytest.LogCaptureFixture
) -> None:
    enough = QueryLimits(memory_bytes=64)
    with caplog.at_level("INFO", "omnigraph.query"), pytest.raises(LimitError) as refused:
        graph.query(FRIENDS, {"least": 4}, limits=LITTLE)
    assert refused.value.code == "query_memory"  # not even the result fits
    assert "runs on Spark" in caplog.text

    with pytest.raises(LimitError) as here:
        graph.query(FRIENDS, {"least": 4}, limits=enough, engine="local")
    found = graph.query(FRIENDS, {"least": 4}, limits=enough)

    assert here.value.code == "query_memory"
    assert found.engine == "spark"
    assert found.to_pylist() == graph.query(FRIENDS, {"least": 4}).to_pylist()


def test_an_unknown_engine_is_refused(graph: Graph) -> None:
    with pytest.raises(InvalidRequestError, match="unknown engine 'duck'"):
        graph.query(EVERYBODY, engine="duck")


def test_a_query_on_spark_is_a_frame_at_one_commit(graph: Graph) -> None:
    there = graph.spark.query(EVERYBODY, branch="other")
    before = graph.spark.query(EVERYBODY, tag="nine")

    assert there.columns == ["p.name"]
    assert [row[0] for row in there.collect()] == [f"p{n}" for n in reversed(range(8))]
    assert before.count() == 9
    with pytest.raises(InvalidRequestError, match="writes"):
        graph.spark.query('query q() { delete Person where name = "p1" }')


def test_the_plan_of_spark_stands_beside_ours(graph: Graph) -> None:
    told = graph.spark.explain(FRIENDS)

    assert "scan" in told.lower()
    assert "== Physical Plan ==" in told


def test_the_command_line_names_the_engine(graph: Graph, spark: SparkSession) -> None:
    on_spark = run("query", "--store", graph.uri, "-e", EVERYBODY, "--engine", "spark", "--json")
    plan = run("explain", "--store", graph.uri, "-e", EVERYBODY, "--engine", "spark")

    assert '"engine": "spark"' in on_spark.out
    assert "== Physical Plan ==" in plan.out


@pytest.mark.usefixtures("spark")
def test_a_server_with_spark_runs_there_what_needs_more_memory(graph: Graph) -> None:
    servers = InProcess()
    settings = ServerSettings(
        store=graph.uri, graph_id="library", unauthenticated=True, spark="local[2]", query_bytes_max=64
    )
    body = {"query": FRIENDS, "params": {"least": 4}}
    try:
        client = servers.at(settings)
        found = client.post("query", json=body).json()
        here = client.post("query", json=body | {"engine": "local"}).json()
    finally:
        servers.close()

    assert (found["engine"], found["row_count"]) == ("spark", 5)
    assert here["resource_limit"]["resource"] == "query_memory"
