"""Small writes beside `ladybug`, an embedded graph database without versions, and stores that keep every version.

Both graphs must hold the same before and after. Rounds are interleaved, so that the machine's moods fall on all alike;
figures are medians, with processor time beside the time that passed. Peers come with `make bench`.
"""

import gc
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any

import arcticdb
import deltalake
import ladybug
import lance
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.graphs import power_law

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.api.options import OpenOptions

_SCHEMA = """
node Person { name: String @key  age: I32  city: String  score: F64 }
edge Knows: Person -> Person { since: I32 }
"""
_Work = Callable[[int], object]
# No peer here syncs: beside the comparison of like with like stands what syncing adds.
_SAFE = "safe from a loss of power"


class _Data:
    """People who know each other, no pair twice: products differ in what two equal edges mean."""

    def __init__(self, persons: int, knows: int) -> None:
        made = power_law(persons, knows)
        pairs = np.unique(np.stack([made.sources, made.targets]), axis=1)
        self.persons = persons
        self.sources, self.targets = pairs
        self.names = np.array([f"person-{number:07d}" for number in range(persons)])
        self.people = made.tables["node:Person"].select(["name", "age", "city", "score"])
        since = np.random.default_rng(3).integers(2000, 2025, pairs.shape[1]).astype(np.int32)
        self.edges = pa.table(
            {"from": pa.array(self.names[self.sources]), "to": pa.array(self.names[self.targets]), "since": since}
        )

    def name(self, number: int) -> str:
        return str(self.names[number * 7919 % self.persons])


class _Ours:
    def __init__(self, root: Path, data: _Data) -> None:
        self.graph = omnigraph.init(root, _SCHEMA, options=OpenOptions(durability="process"))
        self.graph.write(nodes={"Person": data.people}, edges={"Knows": data.edges})

    def ask(self, text: str, **params: object) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.graph.query(f"query q{text}", params)]


class _Ladybug:
    def __init__(self, root: Path, data: _Data) -> None:
        root.mkdir()
        self._root = root
        self._connect()
        self.ask("CREATE NODE TABLE Person(name STRING PRIMARY KEY, age INT32, city STRING, score DOUBLE)")
        self.ask("CREATE REL TABLE Knows(FROM Person TO Person, since INT32)")
        for table, rows in (("Person", data.people), ("Knows", data.edges)):
            pq.write_table(rows, root / f"{table}.parquet")
            self.ask(f"COPY {table} FROM '{root / table}.parquet'")

    def _connect(self) -> None:
        self._database = ladybug.Database(str(self._root / "database"))
        self._connection = ladybug.Connection(self._database)

    def ask(self, text: str, **params: object) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._connection.execute(text, parameters=params or None).get_all()]


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    persons, knows = (10_000, 100_000) if scale.quick else (100_000, 2_000_000)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        data = _Data(persons, knows)
        ours, theirs = _Ours(Path(folder) / "ours", data), _Ladybug(Path(folder) / "theirs", data)
        yield alone("distinct edges between people", len(data.sources), "edges")
        yield from _bytes_on_disk(Path(folder), ours, theirs)
        yield from _writes(ours, theirs, data, scale)
        yield from _versioned(Path(folder), scale)


def _bytes_on_disk(folder: Path, ours: _Ours, theirs: _Ladybug) -> Iterable[Figure]:
    """Disk after loading the same rows, before and after the first query writes adjacency beside the graph."""
    theirs.ask("CHECKPOINT")
    peer = _disk_mb(folder / "theirs" / "database")
    loaded = _disk_mb(folder / "ours")
    ours.ask("() { match { $a: Person $a knows $b } return { count($b) as n } }")
    yield compared("bytes on disk after a load", loaded, "MB", against="ladybug", other=peer, at_most=1.5)
    yield compared("  the same with what queries keep", _disk_mb(folder / "ours"), "MB", against="ladybug", other=peer)


def _disk_mb(place: Path) -> float:
    """Size of a file or of all files below a folder, in the blocks they occupy."""
    files = [place] if place.is_file() else [file for file in place.rglob("*") if file.is_file()]
    return sum(file.stat().st_blocks * 512 for file in files) / 1e6


def _writes(ours: _Ours, theirs: _Ladybug, data: _Data, scale: Scale) -> Iterable[Figure]:
    few = scale.pick(full=10, quick=4)
    numbers = count(1)
    rows = [{"name": str(name), "age": 50, "city": "city-001", "score": 0.5} for name in data.names[:10_000]]
    table = pa.Table.from_pylist(rows).cast(pa.schema([data.people.schema.field(name) for name in rows[0]]))
    merge = "UNWIND $rows AS r MERGE (p:Person {name: r.name}) SET p.age = r.age, p.city = r.city, p.score = r.score"
    (own, own_cpu), (peer, peer_cpu) = _interleaved(
        [
            lambda _: ours.graph.write(nodes={"Person": table}, mode="merge"),
            lambda _: theirs.ask(merge, rows=rows),
        ],
        few,
    )
    yield compared(
        "upsert of 10,000 rows in one commit", own * 1e3, "ms", against="ladybug", other=peer * 1e3, at_most=1.0
    )
    yield compared("  the same in processor time", own_cpu * 1e3, "ms", against="ladybug", other=peer_cpu * 1e3)

    add = 'query add($n: String) { insert Person { name: $n, age: 1, city: "x", score: 0.0 } }'
    create = "CREATE (p:Person {name: $n, age: 1, city: 'x', score: 0.0})"
    (own, own_cpu), (peer, peer_cpu) = _interleaved(
        [
            lambda _: ours.graph.mutate(add, {"n": f"new-{next(numbers)}"}),
            lambda _: theirs.ask(create, n=f"new-{next(numbers)}"),
        ],
        scale.pick(full=50, quick=20),
    )
    yield compared(
        "one-row insert, one commit (theirs unversioned)",
        own * 1e3,
        "ms",
        against="ladybug",
        other=peer * 1e3,
        at_most=5.0,
    )
    yield compared("  the same in processor time", own_cpu * 1e3, "ms", against="ladybug", other=peer_cpu * 1e3)

    (own, own_cpu), (peer, peer_cpu) = _interleaved(
        [
            lambda n: ours.graph.mutate(
                "query d($k: String) { delete Person where name = $k }", {"k": data.name(n + 1)}
            ),
            lambda n: theirs.ask("MATCH (p:Person {name: $k}) DETACH DELETE p", k=data.name(n + 1)),
        ],
        few,
    )
    yield compared(
        "delete of a person with its edges", own * 1e3, "ms", against="ladybug", other=peer * 1e3, at_most=4.0
    )
    yield compared("  the same in processor time", own_cpu * 1e3, "ms", against="ladybug", other=peer_cpu * 1e3)
    left = "() { match { $a: Person $a knows $b } return { count($b) as n } }"
    _same("what is left", ours.ask(left), theirs.ask("MATCH (a:Person)-[:Knows]->(b) RETURN count(*)"))


def _versioned(folder: Path, scale: Scale) -> Iterable[Figure]:
    """One-row commits of stores that keep every version, at commit 10 and further on."""
    depth = scale.pick(full=1_000, quick=100)
    row = pa.table({"name": ["x"], "age": pa.array([1], pa.int32())})
    schema = row.schema
    graph, safe = (
        omnigraph.init(
            folder / f"v-ours-{durability}",
            "node Row { name: String  age: I32 }",
            options=OpenOptions(durability=durability),
        )
        for durability in ("process", "power")
    )
    add = "query a($n: String) { insert Row { name: $n, age: 1 } }"
    lance_uri, delta_uri = str(folder / "v-lance"), str(folder / "v-delta")
    head = [lance.write_dataset(schema.empty_table(), lance_uri, schema=schema)]
    deltalake.write_deltalake(delta_uri, schema.empty_table())
    library = arcticdb.Arctic(f"lmdb://{folder / 'v-arctic'}").create_library("rows")
    frame = pandas.DataFrame({"name": ["x"], "age": np.array([1], np.int32)})
    library.write("rows", frame)

    def lance_append(_: int) -> None:
        head[0] = lance.write_dataset(row, head[0], mode="append")

    works: dict[str, _Work] = {
        "ours": lambda n: graph.mutate(add, {"n": f"r{n}"}),
        _SAFE: lambda n: safe.mutate(add, {"n": f"r{n}"}),
        "pylance": lance_append,
        "deltalake": lambda _: deltalake.write_deltalake(delta_uri, row, mode="append"),
        "arcticdb": lambda _: library.append("rows", frame),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    used: dict[str, list[float]] = {name: [] for name in works}
    for number in range(depth):
        for name, work in works.items():
            started, before = time.perf_counter(), time.process_time()
            work(number)
            times[name].append(time.perf_counter() - started)
            used[name].append(time.process_time() - before)
    assert graph.count("Row") == safe.count("Row") == depth == head[0].count_rows()
    for label, window in (("10", slice(5, 25)), (f"{depth:,}", slice(depth - 20, depth))):
        medians = {name: median(each[window]) for name, each in times.items()}
        processor = {name: median(each[window]) for name, each in used.items()}
        best = min((name for name in medians if name not in ("ours", _SAFE)), key=medians.__getitem__)
        yield compared(
            f"one-row commit at commit {label}",
            medians["ours"] * 1e3,
            "ms",
            against=f"{best}, the best of pylance, deltalake, arcticdb",
            other=medians[best] * 1e3,
            at_most=1.0,
        )
        yield compared(
            "  the same in processor time", processor["ours"] * 1e3, "ms", against=best, other=processor[best] * 1e3
        )
        yield compared(
            f"  the same, {_SAFE} (theirs is not)", medians[_SAFE] * 1e3, "ms", against=best, other=medians[best] * 1e3
        )
    yield compared(
        f"disk per one-row commit, over {depth:,} commits",
        _disk_mb(folder / "v-ours-power") / depth * 1e3,
        "KB",
        against="pylance",
        other=_disk_mb(folder / "v-lance") / depth * 1e3,
    )
    for opened in (graph, safe):
        opened.close()
    shutil.rmtree(folder / "v-arctic", ignore_errors=True)


def _interleaved(works: Sequence[_Work], rounds: int) -> list[tuple[float, float]]:
    """Per work, the medians of wall and processor time; all get the same inputs in the same order."""
    wall: list[list[float]] = [[] for _ in works]
    cpu: list[list[float]] = [[] for _ in works]
    gc.collect()
    for number in range(rounds + 1):
        for place, work in enumerate(works):
            started, used = time.perf_counter(), time.process_time()
            work(number)
            if number:  # the first round warms up
                wall[place].append(time.perf_counter() - started)
                cpu[place].append(time.process_time() - used)
    return [(median(each), median(processor)) for each, processor in zip(wall, cpu, strict=True)]


def _same(what: str, mine: Iterable[Iterable[object]], other: Iterable[Iterable[object]]) -> None:
    assert _plain(mine) == _plain(other), f"{what}: {str(mine)[:200]} is not {str(other)[:200]}"


def _plain(rows: Iterable[Iterable[object]]) -> list[tuple[str, ...]]:
    return sorted(tuple(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)


if __name__ == "__main__":
    run("write", measure)
