"""What a load on Spark costs: over Spark itself, over another graph store's bulk loader, and over its own size.

The floor is what nobody can do without: read the JSON and write it down in columns, which Spark does by itself into
Parquet. Ours adds: every check of the schema, ids, uniqueness, both ends of every edge, the tables and the commit.
"""

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ladybug
import numpy as np
from pyspark.sql import SparkSession
from pyspark.sql.types import DateType, DoubleType, IntegerType, StringType, StructField, StructType

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph import Graph
from omnigraph.pipeline.session import spark_session, stop_spark_session
from omnigraph.pipeline.settings import SparkSettings

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  score: F64?  @range(age, 0..150) }
edge Knows: Person -> Person { since: Date?  weight: F64? }
"""
SETTINGS = SparkSettings(master="local[2]")
_CHUNK = 100_000
_SESSION, _MEMORY = "--session", "--memory"


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    nodes, edges = scale.pick(full=1_000_000, quick=60_000), scale.pick(full=5_000_000, quick=300_000)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        root = Path(folder)
        _people(root / "people.jsonl", nodes)
        _knows(root / "knows.jsonl", nodes, edges)
        yield from _session(scale, root / "cache")
        started = time.perf_counter()
        spark = spark_session(SETTINGS)
        start = time.perf_counter() - started
        # Java learns while it runs: neither side shall pay for the other's lessons. Enough that nothing is left to the
        # driver alone.
        _people(root / "warm.jsonl", 60_000)
        _to_parquet(spark, root, [root / "warm.jsonl"])
        _fresh(root, "warm").load(root / "warm.jsonl", mode="append", spark=spark)
        yield from _whole(root, spark, scale, start)
        stop_spark_session()
        if not scale.quick:  # what Java takes for itself hides how little grows
            yield from _memory(root, nodes, edges)


def _session(scale: Scale, cache: Path) -> Iterable[Figure]:
    """Session starts in processes of their own; the first finds no archive of classes and leaves one."""
    if scale.quick:  # to make an archive takes longer than all the rest
        yield alone("a session starts", _apart(_SESSION), "s")
        return
    times = [_apart(_SESSION, cache=cache) for _ in range(4)]
    yield alone("a session starts, cold", times[0], "s")
    yield alone("a session starts, warm", min(times[1:]), "s")


def _apart(*what: str, cache: Path | None = None) -> float:
    """The number that this file answers with in a process of its own."""
    environment = os.environ if cache is None else {**os.environ, "XDG_CACHE_HOME": str(cache)}
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.load", *what], capture_output=True, text=True, check=True, env=environment
    )
    return float(ended.stdout.split()[-1])


def _memory_of_load(files: list[Path]) -> float:
    """The most bytes that all processes of one load held; a Java process keeps what it had, so each has its own."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder, _peak_memory() as most:
        _fresh(Path(folder), "graph").load(files, mode="append", spark=SETTINGS)
        stop_spark_session()
    return most[0]


def _whole(root: Path, spark: SparkSession, scale: Scale, start: float) -> Iterable[Figure]:
    files = [root / "people.jsonl", root / "knows.jsonl"]
    floor = min(_to_parquet(spark, root, files) for _ in range(2))
    graph = _fresh(root, "graph")
    nodes, edges = scale.pick(full=1_000_000, quick=60_000), scale.pick(full=5_000_000, quick=300_000)
    ours = _timed(lambda: graph.load(files, mode="append", spark=spark))
    assert (graph.count("Person"), graph.count("Knows")) == (nodes, edges), "rows are missing"
    what = f"load of {nodes:,} nodes and {edges:,} edges"
    yield compared(what, ours, "s", against="Spark, JSON to Parquet", other=floor, at_most=2.0)
    other = _ladybug(root, files)
    # Of little, the start of a session is most: that says nothing about loads.
    most_of_all = None if scale.quick else 3.0
    yield compared(
        f"{what}, session start included",
        ours + start,
        "s",
        against="ladybug COPY",
        other=other,
        at_most=most_of_all,
    )
    yield compared(what, ours, "s", against="ladybug COPY", other=other, at_most=2.0)

    initial = _timed(lambda: _fresh(root, "initial").load(root / "people.jsonl", mode="append", spark=spark))
    _people(root / "changed.jsonl", nodes, age=1)
    merged = _timed(lambda: graph.load(root / "changed.jsonl", mode="merge", spark=spark))
    assert graph.count("Person") == nodes, "a merge of the same people adds none"
    yield compared(
        f"merge of {nodes:,} changed nodes into it", merged, "s", against="their first load", other=initial, at_most=2.0
    )


def _memory(root: Path, nodes: int, edges: int) -> Iterable[Figure]:
    _knows(root / "fifth.jsonl", nodes, edges // 5)
    most, less = (
        _apart(_MEMORY, str(root / "people.jsonl"), str(root / name)) for name in ("knows.jsonl", "fifth.jsonl")
    )
    yield compared(
        f"memory of all processes at {edges:,} edges",
        most / 1e6,
        "MB",
        against=f"at {edges // 5:,}",
        other=less / 1e6,
        at_most=1.5,
    )


def _fresh(root: Path, name: str) -> Graph:
    return omnigraph.init(root / name, SCHEMA)


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _people(path: Path, count: int, age: int = 0) -> None:
    with path.open("w") as file:
        for first in range(0, count, _CHUNK):
            file.writelines(
                f'{{"type":"Person","data":{{"name":"p{n}","age":{(n + age) % 90},'
                f'"email":"p{n}@example.org","score":{n / 7}}}}}\n'
                for n in range(first, min(first + _CHUNK, count))
            )


def _knows(path: Path, nodes: int, edges: int) -> None:
    random = np.random.default_rng(7)
    with path.open("w") as file:
        for first in range(0, edges, _CHUNK):
            some = min(_CHUNK, edges - first)
            ends = random.integers(0, nodes, (2, some)).tolist()
            file.writelines(
                f'{{"edge":"Knows","from":"p{a}","to":"p{b}",'
                f'"data":{{"since":"2020-01-{a % 28 + 1:02d}","weight":{b / 3}}}}}\n'
                for a, b in zip(*ends, strict=True)
            )


def _to_parquet(spark: SparkSession, root: Path, files: list[Path]) -> float:
    data = StructType(
        [
            StructField("name", StringType()),
            StructField("age", IntegerType()),
            StructField("email", StringType()),
            StructField("score", DoubleType()),
            StructField("since", DateType()),
            StructField("weight", DoubleType()),
        ]
    )
    texts = [StructField(name, StringType()) for name in ("type", "edge", "from", "to")]
    read = spark.read.schema(StructType([*texts, StructField("data", data)])).json([str(each) for each in files])
    return _timed(lambda: read.write.mode("overwrite").parquet(str(root / "parquet")))


def _ladybug(root: Path, files: list[Path]) -> float:
    """The same data through the other store's own way in: CSV files, written beforehand and not counted."""
    people, knows = root / "people.csv", root / "knows.csv"
    with people.open("w") as out, files[0].open() as lines:
        for line in lines:
            parts = line.replace('"', "").replace("}", "").split(":")
            name, age, email = (parts[place].split(",")[0] for place in (3, 4, 5))
            out.write(f"{name},{age},{email},{parts[6].strip()}\n")
    with knows.open("w") as out, files[1].open() as lines:
        for line in lines:
            parts = line.replace('"', "").replace("}", "").split(":")
            a, b, since = (parts[place].split(",")[0] for place in (2, 3, 5))
            out.write(f"{a},{b},{since},{parts[6].strip()}\n")
    connection = ladybug.Connection(ladybug.Database(str(root / "ladybug")))
    connection.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT32, email STRING, score DOUBLE)")
    connection.execute("CREATE REL TABLE Knows(FROM Person TO Person, since DATE, weight DOUBLE)")

    def copy() -> None:
        connection.execute(f"COPY Person FROM '{people}' (header=false)")
        connection.execute(f"COPY Knows FROM '{knows}' (header=false)")

    return _timed(copy)


@contextmanager
def _peak_memory() -> Iterator[list[int]]:
    """The most bytes this process and all below it held at once, as far as looking ten times a second tells."""
    most, over = [0], threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            most[0] = max(most[0], _held(os.getpid()))

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def _held(root: int) -> int:
    parents, sizes = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        pid = int(stat.parts[2])
        parents[pid], sizes[pid] = int(fields[1]), int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    own = {root}
    while grown := {pid for pid, parent in parents.items() if parent in own and pid not in own}:
        own |= grown
    return sum(sizes.get(pid, 0) for pid in own)


if __name__ == "__main__":
    if _SESSION in sys.argv:
        print(_timed(lambda: spark_session(SETTINGS).range(1).count()))
        stop_spark_session()
    elif _MEMORY in sys.argv:
        print(_memory_of_load([Path(each) for each in sys.argv[2:]]))
    else:
        run("load", measure)
