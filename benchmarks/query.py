"""Reads of a power-law graph: against ladybug (a graph database in process), DuckDB (SQL), and scipy as a floor.

Every side answers through its own Python API. Before anything is timed, all sides must give the same answer. Sides take
turns, so that the machine's moods fall on all alike; what takes a few milliseconds is asked several times in a turn.
Figures are medians of turns. Processor time is told beside the time that passed: ladybug and DuckDB work on all cores,
ours on one.

"with a parameter": the same text each time, the key beside it. "in the text": another text each time.

Memory is that of a process of its own which opens the graph and asks everything but triangles and paths once.
"""

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.graphs import POWER_LAW_SCHEMA, power_law

import omnigraph
from benchmarks.apart.reads import first_answers, memory
from benchmarks.report import Figure, Scale, alone, compared, run

_COLD_TURNS = 3
_PAIRS = 20
_HOPS = 6

# Their stubs, where there are any, do not matter here.
_ladybug: Any = None
_duckdb: Any = None
_sparse: Any = None

Answer = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class People:
    """The graph, in the forms the sides need."""

    persons: int
    names: list[str]
    table: pa.Table
    edges: pa.Table
    sources: "np.typing.NDArray[np.int64]"
    targets: "np.typing.NDArray[np.int64]"

    def name(self, number: int) -> str:
        """Some person's name; another one for each number."""
        return self.names[number * 7_919 % self.persons]

    def fill_ladybug(self, connection: Any, folder: Path) -> None:  # noqa: ANN401  (it comes without types)
        """Load the graph into ladybug."""
        ends = self.edges.rename_columns({"src": "from", "dst": "to"})
        pq.write_table(self.table.select(["name", "age", "city", "score"]), folder / "person.parquet")
        pq.write_table(ends.select(["from", "to", "since"]), folder / "knows.parquet")
        for statement in (
            "create node table Person(name string primary key, age int32, city string, score double)",
            "create rel table Knows(from Person to Person, since int32)",
            f"copy Person from '{folder / 'person.parquet'}'",
            f"copy Knows from '{folder / 'knows.parquet'}'",
        ):
            connection.execute(statement)


@dataclass(frozen=True, slots=True)
class Work:
    """One thing to do, on every side that can.

    Attributes:
        name: what it is.
        sides: by side, what answers the n-th time it is asked.
        bar: how many times ladybug's time ours may be.
        times: how often it is asked in one turn.
        turns: how many turns.
        checked: how many answers are compared before.
    """

    name: str
    sides: dict[str, Callable[[int], Answer]]
    bar: float | None
    times: int = 1
    turns: int = 7
    checked: int = 3


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    global _ladybug, _duckdb, _sparse  # imported only when they are needed
    _ladybug, _duckdb, _sparse = (import_module(name) for name in ("ladybug", "duckdb", "scipy.sparse"))
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        people = make_people(scale.pick(full=100_000, quick=10_000), scale.pick(full=2_000_000, quick=100_000))
        sides = _Sides(folder, people)
        yield alone("edges in the graph", people.edges.num_rows, "edges")
        yield from sides.first_answers()
        for work in _works(sides, people, scale):
            yield from _figures(work)
        kept = sides.ours.stats().cache
        yield alone("kept in memory by our reads", kept.bytes / 2**20, "MiB")
        sides.close()
        yield from first_answers(folder, [people.name(turn) for turn in range(_COLD_TURNS)])
        yield from memory(folder, people.name(1))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_people(persons: int, knows: int) -> People:
    """Make a power-law graph without parallel edges, which mean different things to different products."""
    graph = power_law(persons, knows)
    _, first = np.unique(graph.sources * persons + graph.targets, return_index=True)
    edges = graph.tables["edge:Knows"].take(np.sort(first))
    first.sort()
    table = graph.tables["node:Person"].drop_columns(["id"])
    names = [str(name) for name in table.column("name").to_pylist()]
    return People(persons, names, table, edges.drop_columns(["id"]), graph.sources[first], graph.targets[first])


# --- sides ------------------------------------------------------------------------------------------------------------


class _Sides:
    """The same graph in every product."""

    def __init__(self, folder: Path, people: People) -> None:
        self._people = people
        self.ours = omnigraph.init(str(folder / "ours"), POWER_LAW_SCHEMA)
        self.ours.write({"Person": people.table}, {"Knows": people.edges})
        self._database = _ladybug.Database(str(folder / "ladybug"))
        self.ladybug = _ladybug.Connection(self._database)
        people.fill_ladybug(self.ladybug, folder)
        self.duckdb = _duckdb.connect()
        self._fill_duckdb()
        self.cities = np.array(people.table.column("city").to_pylist())
        ones = np.ones(len(people.sources), dtype=np.int64)
        self.matrix = _sparse.csr_matrix((ones, (people.sources, people.targets)), shape=(people.persons,) * 2)

    def _fill_duckdb(self) -> None:
        """On the same small numbers that we compute with."""
        people = self._people
        numbers = {
            "src": pa.array(people.sources.astype(np.int32)),
            "dst": pa.array(people.targets.astype(np.int32)),
            "since": people.edges.column("since"),
        }
        self.duckdb.register("person_rows", people.table.append_column("number", pa.array(np.arange(people.persons))))
        self.duckdb.register("knows_rows", pa.table(numbers))
        self.duckdb.execute("create table person as select * from person_rows")
        self.duckdb.execute("create table knows as select * from knows_rows")

    def first_answers(self) -> Iterable[Figure]:
        """What the first query after a load costs us: adjacency is made from all edges, and kept beside the graph."""
        started, burnt = time.perf_counter(), time.process_time()
        self.ours.query("query q() { match { $a: Person $a knows $b } return { count(*) as n } }")
        yield alone("our first query after the load, adjacency made", (time.perf_counter() - started) * 1e3, "ms")
        yield alone("… processor time", (time.process_time() - burnt) * 1e3, "ms")

    def our(self, text: str, params: dict[str, object] | None = None) -> Answer:
        """Ask us."""
        table = self.ours.query(text, params).to_arrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def theirs(self, text: str, params: dict[str, object] | None = None) -> Answer:
        """Ask ladybug."""
        return [tuple(row) for row in self.ladybug.execute(text, params or {}).get_all()]

    def sql(self, text: str) -> Answer:
        """Ask DuckDB."""
        found: Answer = self.duckdb.execute(text).fetchall()
        return found

    def close(self) -> None:
        """Let go of the files."""
        self.ours.close()
        self.ladybug.close()
        self._database.close()


# --- work -------------------------------------------------------------------------------------------------------------


def _works(sides: _Sides, people: People, scale: Scale) -> Iterable[Work]:
    yield from _lookups(sides, people)
    yield from _hops(sides, people)
    yield from _scans(sides, scale)
    yield from _wholes(sides, scale)
    yield _paths(sides, people)


def _lookups(sides: _Sides, people: People) -> Iterable[Work]:
    point = "query q($k: String) { match { $p: Person { name: $k } } return { $p.age } }"
    their_point = "match (p:Person {name: $k}) return p.age"
    yield Work(
        "point lookup by key, with a parameter",
        {
            "ours": lambda i: sides.our(point, {"k": people.name(i)}),
            "ladybug": lambda i: sides.theirs(their_point, {"k": people.name(i)}),
        },
        bar=None,
        times=50,
    )
    yield Work(
        "point lookup by key, in the text",
        {
            "ours": lambda i: sides.our(point.replace("$k: String", "").replace("$k", f'"{people.name(i)}"')),
            "ladybug": lambda i: sides.theirs(their_point.replace("$k", f"'{people.name(i)}'")),
        },
        bar=1.0,
        times=50,
    )
    near = "query q($k: String) { match { $p: Person { name: $k } $p knows $q } return { $q.city } }"
    their_near = "match (p:Person {name: $k})-[:Knows]->(q:Person) return q.city"
    yield Work(
        "neighbours of a key with a property, with a parameter",
        {
            "ours": lambda i: sides.our(near, {"k": people.name(i)}),
            "ladybug": lambda i: sides.theirs(their_near, {"k": people.name(i)}),
            "scipy": lambda i: [(city,) for city in sides.cities[sides.matrix[i * 7_919 % people.persons].indices]],
        },
        bar=None,
        times=50,
    )
    yield Work(
        "neighbours of a key with a property, in the text",
        {
            "ours": lambda i: sides.our(near.replace("$k: String", "").replace("$k", f'"{people.name(i)}"')),
            "ladybug": lambda i: sides.theirs(their_near.replace("$k", f"'{people.name(i)}'")),
        },
        bar=0.7,
        times=50,
    )


def _hops(sides: _Sides, people: People) -> Iterable[Work]:
    two = (
        "query q($k: String) { match { $p: Person { name: $k } $p knows $q $q knows $r } "
        "return { count(distinct $r) as n } }"
    )
    yield Work(
        "two hops from one person, different people counted",
        {
            "ours": lambda i: sides.our(two, {"k": people.name(i)}),
            "ladybug": lambda i: sides.theirs(
                "match (p:Person {name: $k})-[:Knows]->(q:Person)-[:Knows]->(r:Person) return count(distinct r)",
                {"k": people.name(i)},
            ),
            "scipy": lambda i: [(int((sides.matrix[i * 7_919 % people.persons] @ sides.matrix).nnz),)],
        },
        bar=0.5,
        times=10,
    )
    ten = [[people.name(10 * i + at) for at in range(10)] for i in range(100)]
    three = (
        "query q($k: [String]) { match { $p: Person $p.name in $k $p knows $q $q knows $r $r knows $s } "
        "return { count($s) as n } }"
    )
    yield Work(
        "three hops from ten persons, paths counted",
        {
            "ours": lambda i: sides.our(three, {"k": ten[i % 100]}),
            "ladybug": lambda i: sides.theirs(
                "match (p:Person)-[:Knows]->(q:Person)-[:Knows]->(r:Person)-[:Knows]->(s:Person) "
                "where p.name in $k return count(*)",
                {"k": ten[i % 100]},
            ),
        },
        bar=0.5,
        times=3,
    )


def _scans(sides: _Sides, scale: Scale) -> Iterable[Work]:
    times = scale.pick(full=3, quick=5)
    yield Work(
        "scan with a filter, grouped, average",
        {
            "ours": lambda _: sides.our(
                "query q() { match { $p: Person $p.age > 40 } return { $p.city, avg($p.score) as a } }"
            ),
            "ladybug": lambda _: sides.theirs("match (p:Person) where p.age > 40 return p.city, avg(p.score)"),
            "duckdb": lambda _: sides.sql("select city, avg(score) from person where age > 40 group by city"),
        },
        bar=0.5,
        times=times,
    )
    yield Work(
        "filter on an edge property, grouped, top 10",
        {
            "ours": lambda _: sides.our(
                "query q() { match { $a: Person $a $e: knows $b $e.since > 2015 } "
                "return { $b.city as c, count($e.since) as n } order { n desc } limit 10 }"
            ),
            "ladybug": lambda _: sides.theirs(
                "match (a:Person)-[e:Knows]->(b:Person) where e.since > 2015 "
                "return b.city as c, count(*) as n order by n desc, c limit 10"
            ),
            "duckdb": lambda _: sides.sql(
                "select city, count(*) n from knows join person on dst = number where since > 2015 "
                "group by city order by n desc, city limit 10"
            ),
        },
        bar=1.0,
        times=times,
    )
    yield Work(
        "top 10 by degree",
        {
            "ours": lambda _: sides.our(
                "query q() { match { $a: Person $a knows $b } "
                "return { $a.name as a, count($b) as n } order { n desc } limit 10 }"
            ),
            "ladybug": lambda _: sides.theirs(
                "match (a:Person)-[:Knows]->(b:Person) return a.name as a, count(*) as n order by n desc, a limit 10"
            ),
            "duckdb": lambda _: sides.sql(
                "select name, n from (select src, count(*) n from knows group by src) join person on src = number "
                "order by n desc, name limit 10"
            ),
        },
        bar=0.2,
        times=times,
    )


def _wholes(sides: _Sides, scale: Scale) -> Iterable[Work]:
    yield Work(
        "all two-hop paths counted",
        {
            "ours": lambda _: sides.our(
                "query q() { match { $a: Person $a knows $b $b knows $c } return { count(*) as n } }"
            ),
            "ladybug": lambda _: sides.theirs(
                "match (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) return count(*)"
            ),
            "scipy": lambda _: [(int(sides.matrix.sum(axis=0).A1 @ sides.matrix.sum(axis=1).A1),)],
        },
        bar=0.5,
        times=scale.pick(full=3, quick=5),
    )
    yield Work(
        "triangles counted",
        {
            "ours": lambda _: sides.our(
                "query q() { match { $a: Person $a knows $b $b knows $c $a knows $c } return { count(*) as n } }"
            ),
            "ladybug": lambda _: sides.theirs(
                "match (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person), (a)-[:Knows]->(c) return count(*)"
            ),
        },
        bar=1.0,
        turns=scale.pick(full=3, quick=5),
        checked=1,
    )


def _paths(sides: _Sides, people: People) -> Work:
    ours = (
        "query q($a: String, $b: String) { match { $x: Person { name: $a } $y: Person { name: $b } "
        f"shortest $x knows{{1,{_HOPS}}} $y as $p }} return {{ length($p) as l }} }}"
    )
    theirs = (
        f"match p = (x:Person {{name: $a}})-[:Knows* SHORTEST 1..{_HOPS}]->(y:Person {{name: $b}}) return length(p)"
    )
    chance = np.random.default_rng(7)
    ends = [[people.names[at] for at in chance.choice(people.persons, 2, replace=False)] for _ in range(_PAIRS)]

    def each(ask: Callable[[str, dict[str, object]], Answer], text: str) -> Callable[[int], Answer]:
        return lambda _: [row for a, b in ends for row in ask(text, {"a": a, "b": b}) or [(None,)]]

    return Work(
        f"shortest paths between {_PAIRS} pairs",
        {"ours": each(sides.our, ours), "ladybug": each(sides.theirs, theirs)},
        bar=0.3,
        checked=1,
        turns=3,
    )


# --- measuring --------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Times:
    passed: list[float] = field(default_factory=list)
    burnt: list[float] = field(default_factory=list)


def _figures(work: Work) -> Iterable[Figure]:
    _check(work)
    times = {side: _Times() for side in work.sides}
    for turn in range(work.turns):
        for side, answers in work.sides.items():
            started, burnt = time.perf_counter(), time.process_time()
            for at in range(work.times):
                answers(turn * work.times + at)
            times[side].burnt.append((time.process_time() - burnt) / work.times)
            times[side].passed.append((time.perf_counter() - started) / work.times)
    median = {side: statistics.median(each.passed) * 1e3 for side, each in times.items()}
    for other, value in median.items():
        if other != "ours":
            bar = work.bar if other == "ladybug" else None
            yield compared(work.name, median["ours"], "ms", against=other, other=value, at_most=bar)
    ours, theirs = (statistics.median(times[side].burnt) * 1e3 for side in ("ours", "ladybug"))
    yield compared("… processor time", ours, "ms", against="ladybug", other=max(theirs, 1e-6))


def _check(work: Work) -> None:
    """All sides must say the same before it matters who says it sooner."""
    for at in range(work.checked):
        answers = {side: _comparable(answer(at)) for side, answer in work.sides.items()}
        expected = answers["ours"]
        for side, found in answers.items():
            assert found == expected, f"{work.name}: {side} says {found[:3]}, we say {expected[:3]}"


def _comparable(answer: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
    rows = [tuple(round(each, 9) if isinstance(each, float) else each for each in row) for row in answer]
    return sorted(rows, key=repr)


if __name__ == "__main__":
    run("query", measure)
