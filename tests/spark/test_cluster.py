"""A cluster of several processes on this machine: a master, two workers, and an executor in each."""

import json
import os
import subprocess
import sys
from pathlib import Path

import omnigraph

ON_A_CLUSTER = """
import json, sys
import omnigraph
from omnigraph.pipeline.settings import SparkSettings

root, data = sys.argv[1:]
graph = omnigraph.open(root)
spark = graph.spark.session(SparkSettings(master="local-cluster[2,1,1024]", driver_memory="512m"))
done = graph.load(data, mode="append", spark=spark)
frame = graph.spark.read("Person", where="age < 50")
executors = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
told = {"nodes": dict(done.nodes), "edges": dict(done.edges), "young": frame.count(), "executors": executors}
print(json.dumps(told))
"""


def test_a_cluster_loads_and_reads_like_one_process(tmp_path: Path) -> None:
    graph = omnigraph.init(
        tmp_path / "graph", "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person"
    )
    people = [{"type": "Person", "data": {"name": f"p{n:03}", "age": n}} for n in range(200)]
    knows = [{"edge": "Knows", "from": f"p{n:03}", "to": f"p{n + 1:03}"} for n in range(199)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(each) + "\n" for each in [*knows, *people]))
    # The bundled Java, as on a machine that has none.
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}

    done = subprocess.run(
        [sys.executable, "-c", ON_A_CLUSTER, graph.uri, str(tmp_path / "data.jsonl")],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=280,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"nodes": {"Person": 200}, "edges": {"Knows": 199}, "young": 50, "executors": 2}
    assert graph.count("Person") == 200
