"""Queries and small writes beside `ladybug`, an embedded graph database, and versioned stores, in one run.

Every product gets the query text each time, through its own Python API, and must give the same answer before its time
counts. Rounds are interleaved, so that the machine's moods fall on all alike; the figure is the median. Cold figures
are of a freshly opened graph. Peers come with `make bench`.
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
import duckdb
import ladybug
import lance
import numpy as np
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
from scipy.sparse import csr_array

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.api.options import OpenOptions
from omnigraph.testing.graphs import power_law

_SCHEMA = """
node Person { name: String @key  age: I32  city: String  score: F64 }
edge Knows: Person -> Person { since: I32 }
"""
_Work = Callable[[int], object]


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
        self.root = root
        self.graph = omnigraph.init(root, _SCHEMA, options=OpenOptions(durability="process"))
        self.graph.write(nodes={"Person": data.people}, edges={"Knows": data.edges})

    def ask(self, text: str, **params: object) -> list[tuple[Any, ...]]:
        return [tuple(row.values()) for row in self.graph.query(f"query q{text}", params)]

    def reopen(self) -> None:
        self.graph = omnigraph.open(self.root, options=OpenOptions(durability="process"))


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

    def reopen(self) -> None:
        self._connection.close()
        self._database.close()
        self._connect()


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    persons, knows = (10_000, 100_000) if scale.quick else (100_000, 2_000_000)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        data = _Data(persons, knows)
        ours, theirs = _Ours(Path(folder) / "ours", data), _Ladybug(Path(folder) / "theirs", data)
        yield alone("distinct edges between them", len(data.sources), "edges")
        yield from _cold(ours, theirs, data)
        yield from _reads(ours, theirs, data, scale)
        yield from _floors(ours, data, scale)
        yield from _writes(ours, theirs, data, scale)
        yield from _versioned(Path(folder), scale)


def _reads(ours: _Ours, theirs: _Ladybug, data: _Data, scale: Scale) -> Iterable[Figure]:
    many, few, once = scale.pick(full=100, quick=40), scale.pick(full=10, quick=5), scale.pick(full=3, quick=3)
    ten = [data.name(number) for number in range(10)]

    def pair(number: int) -> dict[str, str]:
        return {"a": data.name(number), "b": data.name(number * 13 + 5)}

    works: list[tuple[str, float, int, _Work, _Work]] = [
        (
            "point lookup by key",
            1.0,
            many,
            lambda n: ours.ask("($k: String) { match { $p: Person { name: $k } } return { $p.age } }", k=data.name(n)),
            lambda n: theirs.ask("MATCH (p:Person {name: $k}) RETURN p.age", k=data.name(n)),
        ),
        (
            "one-hop neighbours of a key with one property",
            0.7,
            many,
            lambda n: ours.ask(
                "($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.city } }", k=data.name(n)
            ),
            lambda n: theirs.ask("MATCH (p:Person {name: $k})-[:Knows]->(q) RETURN q.city", k=data.name(n)),
        ),
        (
            "two-hop distinct count from one person",
            0.5,
            many,
            lambda n: ours.ask(
                "($k: String) { match { $p: Person { name: $k } $p knows $q $q knows $r } "
                "return { count(distinct $r) as n } }",
                k=data.name(n),
            ),
            lambda n: theirs.ask(
                "MATCH (p:Person {name: $k})-[:Knows]->(q)-[:Knows]->(r) RETURN count(DISTINCT r)", k=data.name(n)
            ),
        ),
        (
            "three-hop count from 10 persons",
            0.5,
            few,
            lambda _: ours.ask(
                "($k: [String]) { match { $p: Person $p.name in $k $p knows $q $q knows $r $r knows $s } "
                "return { count($s) as n } }",
                k=ten,
            ),
            lambda _: theirs.ask(
                "MATCH (p:Person)-[:Knows]->(q)-[:Knows]->(r)-[:Knows]->(s) WHERE p.name IN $k RETURN count(*)", k=ten
            ),
        ),
        (
            "scan with filter, group by, average",
            0.5,
            few,
            lambda _: ours.ask("() { match { $p: Person $p.age > 40 } return { $p.city, avg($p.score) as a } }"),
            lambda _: theirs.ask("MATCH (p:Person) WHERE p.age > 40 RETURN p.city, avg(p.score)"),
        ),
        (
            "filter on edge property + group by + top 10",
            1.0,
            few,
            lambda _: ours.ask(
                "() { match { $a: Person $a $e: knows $b $e.since > 2015 } "
                "return { $b.city as city, count($b) as n } order { n desc, city } limit 10 }"
            ),
            lambda _: theirs.ask(
                "MATCH (a:Person)-[e:Knows]->(b) WHERE e.since > 2015 "
                "RETURN b.city AS city, count(*) AS n ORDER BY n DESC, city LIMIT 10"
            ),
        ),
        (
            "top 10 by degree",
            0.2,
            few,
            lambda _: ours.ask(
                "() { match { $a: Person $a knows $b } return { $a.name as name, count($b) as n } "
                "order { n desc, name } limit 10 }"
            ),
            lambda _: theirs.ask(
                "MATCH (a:Person)-[:Knows]->(b) RETURN a.name AS name, count(*) AS n ORDER BY n DESC, name LIMIT 10"
            ),
        ),
        (
            "all two-hop paths, count",
            0.5,
            few,
            lambda _: ours.ask("() { match { $a: Person $a knows $b $b knows $c } return { count($c) as n } }"),
            lambda _: theirs.ask("MATCH (a:Person)-[:Knows]->(b)-[:Knows]->(c) RETURN count(*)"),
        ),
        (
            "triangles, count",
            1.0,
            once,
            lambda _: ours.ask(
                "() { match { $a: Person $a knows $b $b knows $c $a knows $c } return { count($c) as n } }"
            ),
            lambda _: theirs.ask("MATCH (a:Person)-[:Knows]->(b)-[:Knows]->(c), (a)-[:Knows]->(c) RETURN count(*)"),
        ),
        (
            "shortest path between two persons",
            0.3,
            scale.pick(full=20, quick=10),
            lambda n: ours.ask(
                "($a: String, $b: String) { match { $x: Person { name: $a } $y: Person { name: $b } "
                "shortest $x knows{1,6} $y as $p } return { length($p) as n } }",
                **pair(n),
            ),
            lambda n: theirs.ask(
                "MATCH p = (x:Person {name: $a})-[:Knows* SHORTEST 1..6]->(y:Person {name: $b}) RETURN length(p)",
                **pair(n),
            ),
        ),
    ]
    for name, bar, rounds, mine, other in works:
        for number in range(min(rounds, 3)):
            _same(name, mine(number), other(number))
        (own, own_cpu), (peer, peer_cpu) = _interleaved([mine, other], rounds)
        yield compared(name, own * 1e3, "ms", against="ladybug", other=peer * 1e3, at_most=bar)
        yield compared("  the same in processor time", own_cpu * 1e3, "ms", against="ladybug", other=peer_cpu * 1e3)


def _cold(ours: _Ours, theirs: _Ladybug, data: _Data) -> Iterable[Figure]:
    """The first answer of a freshly opened graph."""
    works: dict[str, tuple[_Work, _Work]] = {
        "cold: open + point lookup": (
            lambda n: ours.ask("($k: String) { match { $p: Person { name: $k } } return { $p.age } }", k=data.name(n)),
            lambda n: theirs.ask("MATCH (p:Person {name: $k}) RETURN p.age", k=data.name(n)),
        ),
        "cold: open + two hops from one person": (
            lambda n: ours.ask(
                "($k: String) { match { $p: Person { name: $k } $p knows $q $q knows $r } "
                "return { count(distinct $r) as n } }",
                k=data.name(n),
            ),
            lambda n: theirs.ask(
                "MATCH (p:Person {name: $k})-[:Knows]->(q)-[:Knows]->(r) RETURN count(DISTINCT r)", k=data.name(n)
            ),
        ),
    }
    for name, (mine, other) in works.items():

        def cold_mine(number: int, work: _Work = mine) -> object:
            ours.reopen()
            return work(number)

        def cold_other(number: int, work: _Work = other) -> object:
            theirs.reopen()
            return work(number)

        (own, _), (peer, _) = _interleaved([cold_mine, cold_other], 3)
        yield compared(name, own * 1e3, "ms", against="ladybug", other=peer * 1e3)


def _floors(ours: _Ours, data: _Data, scale: Scale) -> Iterable[Figure]:
    """What the bare data structures need, to tell our own overhead apart."""
    few = scale.pick(full=10, quick=5)
    ones = np.ones(len(data.sources), np.int64)
    matrix = csr_array((ones, (data.sources, data.targets)), shape=(data.persons, data.persons))
    out, into = np.diff(matrix.indptr), np.bincount(data.targets, minlength=data.persons)
    ask = "() { match { $a: Person $a knows $b $b knows $c } return { count($c) as n } }"
    _same("all two-hop paths", ours.ask(ask), [(int(into @ out),)])
    (own, _), (floor, _) = _interleaved([lambda _: ours.ask(ask), lambda _: into @ np.diff(matrix.indptr)], few)
    yield compared("all two-hop paths, count", own * 1e3, "ms", against="scipy CSR", other=floor * 1e3)
    people = data.people
    with duckdb.connect() as database:
        database.register("people", people)
        sql = "SELECT city, avg(score) FROM people WHERE age > 40 GROUP BY city"
        group = "() { match { $p: Person $p.age > 40 } return { $p.city, avg($p.score) as a } }"
        _same("group by", ours.ask(group), database.execute(sql).fetchall())
        (own, _), (floor, _) = _interleaved(
            [lambda _: ours.ask(group), lambda _: database.execute(sql).fetchall()], few
        )
        yield compared("scan with filter, group by, average", own * 1e3, "ms", against="DuckDB", other=floor * 1e3)


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
    graph = omnigraph.init(
        folder / "v-ours", "node Row { name: String  age: I32 }", options=OpenOptions(durability="process")
    )
    lance_uri, delta_uri = str(folder / "v-lance"), str(folder / "v-delta")
    head = [lance.write_dataset(schema.empty_table(), lance_uri, schema=schema)]
    deltalake.write_deltalake(delta_uri, schema.empty_table())
    library = arcticdb.Arctic(f"lmdb://{folder / 'v-arctic'}").create_library("rows")
    frame = pandas.DataFrame({"name": ["x"], "age": np.array([1], np.int32)})
    library.write("rows", frame)

    def lance_append(_: int) -> None:
        head[0] = lance.write_dataset(row, head[0], mode="append")

    works: dict[str, _Work] = {
        "ours": lambda n: graph.mutate("query a($n: String) { insert Row { name: $n, age: 1 } }", {"n": f"r{n}"}),
        "pylance": lance_append,
        "deltalake": lambda _: deltalake.write_deltalake(delta_uri, row, mode="append"),
        "arcticdb": lambda _: library.append("rows", frame),
    }
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(depth):
        for name, work in works.items():
            started = time.perf_counter()
            work(number)
            times[name].append(time.perf_counter() - started)
    assert graph.count("Row") == depth == head[0].count_rows()
    for label, window in (("10", slice(5, 25)), (f"{depth:,}", slice(depth - 20, depth))):
        medians = {name: median(each[window]) for name, each in times.items()}
        best = min((name for name in medians if name != "ours"), key=medians.__getitem__)
        yield compared(
            f"one-row commit at commit {label}",
            medians["ours"] * 1e3,
            "ms",
            against=f"{best}, the best of pylance, deltalake, arcticdb",
            other=medians[best] * 1e3,
            at_most=1.0,
        )
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


def _same(what: str, mine: object, other: object) -> None:
    assert _plain(mine) == _plain(other), f"{what}: {str(mine)[:200]} is not {str(other)[:200]}"


def _plain(rows: Any) -> list[tuple[str, ...]]:  # noqa: ANN401
    return sorted(tuple(f"{cell:.6g}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows)


if __name__ == "__main__":
    run("query", measure)
