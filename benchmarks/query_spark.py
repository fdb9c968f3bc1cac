"""Queries on Spark: against the same queries written by hand in Spark SQL over Parquet copies of the tables.

Nine patterns shaped like those of the LSQB benchmark, and scans with conditions, groups and order. Both sides run in
one session with two cores and 1 GiB for Java, in turns, and must give the same answer. Tables are about ten times the
memory that a query may use here; how much Java and the largest Python process held is told at the end.
"""

import os
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph import Graph
from omnigraph.execution.query_limits import QueryLimits
from omnigraph.pipeline.session import spark_session, stop_spark_session
from omnigraph.pipeline.settings import SparkSettings

SCHEMA = """
node Person { name: String @key  country: I32  age: I32 }
node Tag { name: String @key }
node Message { name: String @key  length: I32  language: String }
edge Knows: Person -> Person { @unique(src, dst) }
edge Interest: Person -> Tag { @unique(src, dst) }
edge Creator: Message -> Person { @unique(src, dst) }
edge Likes: Person -> Message { @unique(src, dst) }
edge Reply: Message -> Message { @unique(src, dst) }
edge Tagged: Message -> Tag { @unique(src, dst) }
"""
_TURNS = 3


@dataclass(frozen=True, slots=True)
class Work:
    """One query: its pattern and what it returns in our language, and the same in SQL."""

    name: str
    ours: str
    sql: str


WORK = (
    Work(
        "Q1 chain: replies to messages of friends' friends",
        "match { $a knows $b $b knows $c $m creator $c $r reply $m $m tagged $t } return { count($r) as n }",
        "select count(*) from Knows k join Knows l on k.dst = l.src join Creator c on c.dst = l.dst "
        "join Reply r on r.dst = c.src join Tagged t on t.src = c.src",
    ),
    Work(
        "Q2 square: replies between friends",
        "match { $a knows $b $r reply $m $r creator $a $m creator $b } return { count($r) as n }",
        "select count(*) from Knows k join Creator c on c.dst = k.src join Reply r on r.src = c.src "
        "join Creator d on d.src = r.dst and d.dst = k.dst",
    ),
    Work(
        "Q3 triangle of people of one country",
        "match { $a knows $b $b knows $c $a knows $c $a.country = $b.country $b.country = $c.country } "
        "return { count($a) as n }",
        "select count(*) from Knows k join Knows l on k.dst = l.src join Knows m on m.src = k.src and m.dst = l.dst "
        "join Person a on a.id = k.src join Person b on b.id = k.dst join Person c on c.id = l.dst "
        "where a.country = b.country and b.country = c.country",
    ),
    Work(
        "Q4 star: tag, creator, fan and reply of a message",
        "match { $m: Message $m tagged $t $m creator $p $f likes $m $r reply $m } return { count($m) as n }",
        "select count(*) from Tagged t join Creator c on c.src = t.src join Likes l on l.dst = t.src "
        "join Reply r on r.dst = t.src",
    ),
    Work(
        "Q5 path: tags of a message and of its reply",
        "match { $r reply $m $m tagged $t $r tagged $u $t.name != $u.name } return { count($r) as n }",
        "select count(*) from Reply r join Tagged t on t.src = r.dst join Tagged u on u.src = r.src "
        "where t.dst != u.dst",
    ),
    Work(
        "Q6 path: interests of friends' friends",
        "match { $a knows $b $b knows $c $c interest $t $a.name != $c.name } return { count($t) as n }",
        "select count(*) from Knows k join Knows l on k.dst = l.src join Interest i on i.src = l.dst "
        "where k.src != l.dst",
    ),
    Work(
        "Q7 star with optional fan and reply",
        "match { $m: Message $m tagged $t $m creator $p optional { $f likes $m } optional { $r reply $m } } "
        "return { count($m) as n }",
        "select count(*) from Tagged t join Creator c on c.src = t.src left join Likes l on l.dst = t.src "
        "left join Reply r on r.dst = t.src",
    ),
    Work(
        "Q8 tags of a reply that the message does not have",
        "match { $r reply $m $m tagged $t $r tagged $u $t.name != $u.name not { $r tagged $t } } "
        "return { count($r) as n }",
        "select count(*) from Reply r join Tagged t on t.src = r.dst join Tagged u on u.src = r.src "
        "left anti join Tagged v on v.src = r.src and v.dst = t.dst where t.dst != u.dst",
    ),
    Work(
        "Q9 interests of friends' friends who are strangers",
        "match { $a knows $b $b knows $c $c interest $t $a.name != $c.name not { $a knows $c } } "
        "return { count($t) as n }",
        "select count(*) from Knows k join Knows l on k.dst = l.src join Interest i on i.src = l.dst "
        "left anti join Knows m on m.src = k.src and m.dst = l.dst where k.src != l.dst",
    ),
    Work(
        "scan with a condition, counted",
        'match { $m: Message $m.length > 900 $m.language = "l3" } return { count($m) as n }',
        "select count(*) from Message where length > 900 and language = 'l3'",
    ),
    Work(
        "scan in groups",
        "match { $m: Message } return { $m.language as language, count($m) as n, avg($m.length) as mean } "
        "order { language }",
        "select language, count(*) n, avg(length) mean from Message group by language order by language",
    ),
    Work(
        "the longest messages",
        "match { $m: Message } return { $m.name, $m.length } order { $m.length desc } limit 20",
        "select name, length from Message order by length desc, id limit 20",
    ),
)


def measure(scale: Scale) -> Iterator[Figure]:
    """Measure every query on both sides."""
    persons = scale.pick(full=40_000, quick=3_000)
    with tempfile.TemporaryDirectory() as folder, _session() as spark, _memory() as memory:
        tables = social_network(persons)
        limit = sum(table.nbytes for table in tables.values()) // 10
        graph = _store(Path(folder), tables)
        _views(spark, Path(folder), tables)
        limits = QueryLimits(memory_bytes=limit)
        for work in WORK:
            yield _compare(graph, spark, work, limits, turns=_TURNS if not scale.quick else 1)
        graph.close()
    yield alone("tables, as Arrow", sum(table.nbytes for table in tables.values()) / 2**20, "MiB")
    yield alone("memory of a query in process, a tenth of that", limit / 2**20, "MiB")
    yield alone("most that Java held (1 GiB heap)", memory["java"] / 2**20, "MiB")
    yield alone("most that one Python worker held", memory["python"] / 2**20, "MiB")


def social_network(persons: int) -> dict[str, pa.Table]:
    """People who know each other, their interests, messages, likes, replies and tags; the same for the same number."""
    chance = np.random.default_rng(7)
    messages, tags = persons * 4, max(persons // 20, 50)
    names = {"Person": persons, "Message": messages, "Tag": tags}
    ids = {kind: np.char.add(kind[0].lower(), np.arange(count).astype(str)) for kind, count in names.items()}
    people: dict[str, np.typing.NDArray[Any]] = {"country": chance.integers(0, 20, persons).astype(np.int32)}
    people["age"] = chance.integers(18, 90, persons).astype(np.int32)
    told: dict[str, np.typing.NDArray[Any]] = {"length": chance.integers(1, 1_000, messages).astype(np.int32)}
    found = {
        "node:Person": _nodes(ids["Person"], people),
        "node:Tag": _nodes(ids["Tag"], {}),
        "node:Message": _nodes(
            ids["Message"], {**told, "language": np.char.add("l", chance.integers(0, 12, messages).astype(str))}
        ),
    }
    ends = (
        ("Knows", "Person", "Person", persons * 10),
        ("Interest", "Person", "Tag", persons * 3),
        ("Likes", "Person", "Message", persons * 12),
        ("Reply", "Message", "Message", messages // 2),
        ("Tagged", "Message", "Tag", messages * 2),
    )
    for edge, source, target, count in ends:
        found[f"edge:{edge}"] = _edges(chance, ids[source], ids[target], count)
    found["edge:Creator"] = pa.table(
        {"src": ids["Message"], "dst": ids["Person"][chance.integers(0, persons, messages)]}
    )
    return found


def _nodes(ids: "np.typing.NDArray[np.str_]", columns: "dict[str, np.typing.NDArray[Any]]") -> pa.Table:
    return pa.table({"id": ids, "name": ids, **columns})


def _edges(
    chance: np.random.Generator,
    sources: "np.typing.NDArray[np.str_]",
    targets: "np.typing.NDArray[np.str_]",
    count: int,
) -> pa.Table:
    # Some are met by many; no pair occurs twice.
    starts = (len(sources) * chance.random(count) ** 1.3).astype(np.int64)
    ends = (len(targets) * chance.random(count) ** 1.5).astype(np.int64)
    pairs = np.unique(starts * len(targets) + ends)
    return pa.table({"src": sources[pairs // len(targets)], "dst": targets[pairs % len(targets)]})


def _store(folder: Path, tables: dict[str, pa.Table]) -> Graph:
    graph = omnigraph.init(folder / "graph", SCHEMA)
    nodes = {key[5:]: table.drop_columns(["id"]) for key, table in tables.items() if key.startswith("node:")}
    edges = {key[5:]: table.rename_columns(["from", "to"]) for key, table in tables.items() if key.startswith("edge:")}
    graph.write(nodes, edges)
    return graph


def _views(spark: SparkSession, folder: Path, tables: dict[str, pa.Table]) -> None:
    for key, table in tables.items():
        name = key.partition(":")[2]
        target = folder / "copies" / name
        target.mkdir(parents=True)
        # As many files as tasks should read.
        half = -(-table.num_rows // 2)
        for part in range(2):
            pq.write_table(table.slice(part * half, half), target / f"{part}.parquet")
        spark.read.parquet(str(target)).createOrReplaceTempView(name)


def _compare(graph: Graph, spark: SparkSession, work: Work, limits: QueryLimits, *, turns: int) -> Figure:
    text = f"query q() {{ {work.ours} }}"

    def ours() -> list[tuple[object, ...]]:
        found = graph.query(text, limits=limits, engine="spark").to_arrow()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))

    def theirs() -> list[tuple[object, ...]]:
        return [tuple(row) for row in spark.sql(work.sql).collect()]

    assert ours() == theirs(), work.name
    taken: dict[str, list[float]] = {"ours": [], "theirs": []}
    for _ in range(turns):
        for side, answer in (("ours", ours), ("theirs", theirs)):
            started = time.perf_counter()
            answer()
            taken[side].append(time.perf_counter() - started)
    return compared(
        work.name,
        statistics.median(taken["ours"]),
        "s",
        against="Spark SQL over Parquet",
        other=statistics.median(taken["theirs"]),
        at_most=1.3,
    )


@contextmanager
def _session() -> Iterator[SparkSession]:
    conf = (("spark.sql.shuffle.partitions", "4"),)
    yield spark_session(SparkSettings(master="local[2]", driver_memory="1g", conf=conf))
    stop_spark_session()


@contextmanager
def _memory() -> Iterator[dict[str, int]]:
    """The most that Java, and that one Python worker below this process, held; looked at ten times a second."""
    most, over = {"java": 0, "python": 0}, threading.Event()

    def look() -> None:
        while not over.wait(0.1):
            for kind, size in _processes():
                most[kind] = max(most[kind], size)

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    try:
        yield most
    finally:
        over.set()
        looking.join()


def _processes() -> Iterator[tuple[str, int]]:
    parents, sizes = {}, {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = stat.read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        pid, fields = int(stat.parts[2]), rest.split()
        parents[pid] = int(fields[1])
        sizes[pid] = ("java" if name == "java" else "python", int(fields[21]) * os.sysconf("SC_PAGE_SIZE"))
    own = {os.getpid()}
    while grown := {pid for pid, parent in parents.items() if parent in own and pid not in own}:
        own |= grown
    yield from (sizes[pid] for pid in own - {os.getpid()})


if __name__ == "__main__":
    run("query_spark", measure)
