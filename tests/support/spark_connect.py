"""A Spark Connect server on this machine, started with the Java and the Spark of this package."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from omnigraph.clock import SystemClock
from omnigraph.pipeline.gateway import Launch
from omnigraph.pipeline.java import find_java, home_for_workers

START_S_MAX = 300.0


@contextmanager
def running_connect_server(folder: Path) -> Iterator[str]:
    """Start a server with two cores; yield its address, like `sc://127.0.0.1:15002`."""
    java, spark_home = find_java(), Path(pyspark.__file__).parent
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    conf = {
        "spark.master": "local[2]",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        "spark.pyspark.python": sys.executable,
    }
    begin = Launch(java, spark_home, 1024**3, (), None, sys.executable).command()
    command = [
        *begin[: begin.index("org.apache.spark.deploy.SparkSubmit") + 1],
        *("--class", "org.apache.spark.sql.connect.service.SparkConnectServer"),
        *(word for key, value in conf.items() for word in ("--conf", f"{key}={value}")),
        "spark-internal",
    ]
    environment = os.environ | {
        "SPARK_HOME": str(spark_home),
        "SPARK_SCALA_VERSION": "2.13",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "JAVA_HOME": str(home_for_workers(java, folder / "java")),
        "PYSPARK_PYTHON": sys.executable,
    }
    log = folder / "server.log"
    with log.open("wb") as out:
        server = subprocess.Popen(command, env=environment, stdout=out, stderr=out)
    try:
        _wait_for(port, server, log)
        yield f"sc://127.0.0.1:{port}"
    finally:
        server.kill()
        server.wait()


def _wait_for(port: int, server: "subprocess.Popen[bytes]", log: Path) -> None:
    clock = SystemClock()
    deadline = clock.monotonic() + START_S_MAX
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None, log.read_text(errors="replace")
            assert clock.monotonic() < deadline, log.read_text(errors="replace")
            clock.sleep(0.1)
        else:
            return
