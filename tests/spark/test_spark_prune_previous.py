"""Writes from Spark that prune as they go."""

from pathlib import Path

from pyspark.sql import SparkSession

import omnigraph
from omnigraph import Graph

SCHEMA = "node Person { name: String @key }\n"


def test_frames_and_the_data_source_can_prune_what_came_before(spark: SparkSession, tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "graph", SCHEMA) as graph:
        people = [spark.createDataFrame([(name,)], "name string") for name in ("ada", "bo", "cy")]
        graph.spark.write({"Person": people[0]})
        assert len(graph.commits.list()) == 2
        done = graph.spark.write({"Person": people[1]}, prune_previous=True)
        assert shown(graph) == [done.commit]
        graph.spark.session()  # knows the format
        options = {"graph": graph.uri, "type": "Person", "prunePrevious": "true"}
        people[2].write.format("omnigraph").options(**options).mode("append").save()
        [left] = shown(graph)
        assert left != done.commit
        assert graph.count("Person") == 3


def shown(graph: Graph) -> list[str]:
    return [commit.id for commit in graph.commits.list()]
