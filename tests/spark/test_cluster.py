"""Clusters of several processes on this machine: a master, two workers, and an executor in each."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyspark
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.pipeline.gateway import Launch
from omnigraph.pipeline.java import find_java, home_for_workers
from omnigraph.storage.object_stores import S3Store

ON_A_CLUSTER = """
import json, os, signal, sys
from pathlib import Path
import omnigraph
from omnigraph import limits
from omnigraph.pipeline.settings import SparkSettings

limits.LOAD_NEAR_BYTES = -1  # otherwise the driver loads so little by itself
root, data, master, also = sys.argv[1:]
graph = omnigraph.open(root)
# Nothing begins before both executors are there.
conf = (("spark.scheduler.minRegisteredResourcesRatio", "1.0"), ("spark.cores.max", "2"),
        ("spark.scheduler.maxRegisteredResourcesWaitingTime", "120s"), ("spark.driver.host", "127.0.0.1"))
# What the workers' own environment says of object stores is wrong: they have what comes along with their work.
wrong = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "none"}
conf += tuple((f"spark.executorEnv.{name}", value) for name, value in wrong.items())
spark = graph.spark.session(SparkSettings(master=master, driver_memory="512m", conf=conf))
for name in wrong:  # of executors only: what plans a data source is at home in the driver
    del spark.sparkContext.environment[name]
driver = "CoarseGrainedScheduler@127.0.0.1:" + spark.conf.get("spark.driver.port")
killed, executors = [], set()

def text(file):
    try:
        return file.read_text(errors="replace")
    except OSError:  # of a process that has just ended
        return ""

def kill_an_executor(now):  # while it reads; every call comes in time for that but the last, which comes right after
    if now.stage != "reading" or killed:
        return
    executors.update(each.parent for each in Path("/proc").glob("[0-9]*/cmdline") if driver in text(each))
    at_work = [each for each in executors if any(text(task) for task in each.glob("task/*/children"))]
    if len(executors) == 2 and at_work:
        os.kill(int(at_work[0].name), signal.SIGKILL)
        killed.append(at_work[0])

done = graph.load(data, mode="append", spark=spark, progress=kill_an_executor)
frame = graph.spark.read("Person", where="age < 50")
written = graph.spark.write({"Person": frame.selectExpr("name", "age + 1 as age")}, mode="merge")
if also == "format":
    one = spark.createDataFrame([("last", 1)], "name string, age int")
    one.write.format("omnigraph").options(graph=root, type="Person").mode("append").save()
told = {"nodes": dict(done.nodes), "edges": dict(done.edges), "young": frame.count(), "executors": len(executors),
        "written": dict(written.nodes), "killed": len(killed)}
print(json.dumps(told))
"""
SCHEMA = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person"
LINES = "".join(
    json.dumps(each) + "\n"
    for each in (
        *({"edge": "Knows", "from": f"p{n:03}", "to": f"p{n + 1:03}"} for n in range(199)),
        *({"type": "Person", "data": {"name": f"p{n:03}", "age": n}} for n in range(200)),
    )
)
LOCAL_CLUSTER = "local-cluster[2,1,1024]"
# The bundled Java, as on a machine that has none.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}


@contextmanager
def process_of(command: list[str], environment: dict[str, str]) -> Iterator[None]:
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def standalone_cluster(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each, started from the package of Spark without any of its scripts."""
    java, spark_home = find_java(ENVIRONMENT), Path(pyspark.__file__).parent
    launch = Launch(java, spark_home, 512 * 1024**2, (), None, sys.executable).command()
    begin = launch[: launch.index("org.apache.spark.deploy.SparkSubmit")]
    environment = ENVIRONMENT | {
        "SPARK_HOME": str(spark_home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(home_for_workers(java, folder / "java")),
    }
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    address, deploy = f"spark://127.0.0.1:{port}", "org.apache.spark.deploy"
    master = [f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    worker = [f"{deploy}.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "1g"]
    with ExitStack() as running:
        running.enter_context(process_of([*begin, *master], environment))
        for number in range(2):  # they ask for their master until it is there
            work = ["--work-dir", str(folder / f"worker-{number}"), address]
            running.enter_context(process_of([*begin, *worker, *work], environment))
        yield address


def run_on_a_cluster(graph: Graph, data: str, master: str, also: str = "format") -> None:
    done = subprocess.run(
        [sys.executable, "-c", ON_A_CLUSTER, graph.uri, data, master, also],
        env={name: value for name, value in os.environ.items() if name != "JAVA_HOME"},
        capture_output=True,
        text=True,
        check=False,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "nodes": {"Person": 200},
        "edges": {"Knows": 199},
        "young": 50,
        "executors": 2,
        "written": {"Person": 50},
        "killed": 1,
    }
    assert (graph.count("Person"), graph.count("Knows")) == (201 if also == "format" else 200, 199)


@pytest.mark.parametrize("kind", ["local-cluster", "standalone"])
@pytest.mark.torture
@pytest.mark.timeout(1_000)
def test_a_cluster_loads_reads_and_writes_like_one_process(tmp_path: Path, kind: str) -> None:
    graph = omnigraph.init(tmp_path / "graph", SCHEMA)
    (tmp_path / "data.jsonl").write_text(LINES)
    with ExitStack() as running:
        master = LOCAL_CLUSTER
        if kind == "standalone":
            master = running.enter_context(standalone_cluster(tmp_path))
        run_on_a_cluster(graph, str(tmp_path / "data.jsonl"), master)
    assert not list((tmp_path / "graph").glob("__spill/*"))


@pytest.mark.s3
@pytest.mark.usefixtures("s3_environment")
@pytest.mark.timeout(1_000)
@pytest.mark.parametrize("also", ["nothing", pytest.param("format", marks=pytest.mark.torture)])
def test_a_cluster_does_so_in_an_object_store_with_nothing_but_this_package_though_an_executor_dies(
    s3_store: S3Store, also: str
) -> None:
    graph = omnigraph.init(f"{s3_store.uri}/graph", SCHEMA)
    s3_store.put("data.jsonl", LINES.encode())
    run_on_a_cluster(graph, f"{s3_store.uri}/data.jsonl", LOCAL_CLUSTER, also)
    assert not list(s3_store.list("graph/__spill/"))
