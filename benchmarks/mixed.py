"""Reads after writes, by turns with ladybug: what the first read costs after one node or edge came, changed or went.

Writes are made by this process, by another process, and on two branches that are read in turn. Each figure is a median
over writes, each followed by one read. It is compared with the same read warm, and with ladybug after the same write;
what another process wrote is compared with the warm read only, since ladybug lets one process write at a time.
"""

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from tests.support.graphs import POWER_LAW_SCHEMA

import omnigraph
from benchmarks.query import make_people
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.api.options import OpenOptions

_PERSON, _THEIR_PERSON = "$p: Person { name: $k }", "match (p:Person {name: $k})"


@dataclass(frozen=True, slots=True)
class Read:
    """One question on both sides, and how many times the warm read it may cost after a write."""

    ours: str
    theirs: str
    bar: float


READS = {
    "point lookup": Read(f"match {{ {_PERSON} }} return {{ $p.age }}", f"{_THEIR_PERSON} return p.age", 2.0),
    "one hop": Read(
        f"match {{ {_PERSON} $p knows $q }} return {{ $q.city }}",
        f"{_THEIR_PERSON}-[:Knows]->(q:Person) return q.city",
        2.0,
    ),
    "two hops, distinct": Read(
        f"match {{ {_PERSON} $p knows $q $q knows $r }} return {{ count(distinct $r) as n }}",
        f"{_THEIR_PERSON}-[:Knows]->(q:Person)-[:Knows]->(r:Person) return count(distinct r)",
        2.0,
    ),
    "scan, grouped": Read(
        "match { $p: Person $p.age > 40 } return { $p.city, avg($p.score) as a }",
        "match (p:Person) where p.age > 40 return p.city, avg(p.score)",
        1.2,
    ),
    "filter on an edge property": Read(
        "match { $a: Person $a $e: knows $b $e.since > 2015 } return { count(*) as n }",
        "match (a:Person)-[e:Knows]->(b:Person) where e.since > 2015 return count(*)",
        1.2,
    ),
    "edges counted": Read(
        "match { $a: Person $a knows $b } return { count(*) as n }",
        "match (a:Person)-[:Knows]->(b:Person) return count(*)",
        1.2,
    ),
}
# Parameters: a, a person there is; b, another one; n, a new name.
WRITES = {
    "an inserted edge": (
        "query w($a: String, $b: String) { insert Knows { from: $a, to: $b, since: 2020 } }",
        "match (a:Person {name: $a}), (b:Person {name: $b}) create (a)-[:Knows {since: 2020}]->(b)",
        "ab",
    ),
    "an inserted node": (
        'query w($n: String) { insert Person { name: $n, age: 50, city: "x", score: 1.5 } }',
        "create (:Person {name: $n, age: 50, city: 'x', score: 1.5})",
        "n",
    ),
    "an updated node": (
        "query w($a: String) { update Person set { age: 51 } where name = $a }",
        "match (a:Person {name: $a}) set a.age = 51",
        "a",
    ),
    "a deleted node": (
        "query w($a: String) { delete Person where name = $a }",
        "match (a:Person {name: $a}) detach delete a",
        "a",
    ),
}
# The other process: makes one write for every line it is given.
_WRITER = """
import sys, omnigraph
from omnigraph.api.options import OpenOptions
graph = omnigraph.open(sys.argv[1], options=OpenOptions(durability="process", auto_compact=False))
for line in sys.stdin:
    graph.mutate(sys.argv[2], dict(pair.split("=", 1) for pair in line.split()))
    print("done", flush=True)
"""


class _Sides:
    """The same graph on both sides, and names that no write has used yet."""

    def __init__(self, folder: Path, persons: int, knows: int) -> None:
        people = make_people(persons, knows)
        self.edges = people.edges.num_rows
        self.names = people.names
        self._next = 0
        self.root = str(folder / "ours")
        options = OpenOptions(durability="process", auto_compact=False)
        self.ours = omnigraph.init(self.root, POWER_LAW_SCHEMA, options=options)
        self.ours.write({"Person": people.table}, {"Knows": people.edges})
        # Imported only when it is needed; its stubs, where there are any, do not matter here.
        ladybug: Any = import_module("ladybug")
        self._database = ladybug.Database(str(folder / "ladybug"))
        self._ladybug = ladybug.Connection(self._database)
        people.fill_ladybug(self._ladybug, folder)

    def params(self, names: str) -> dict[str, object]:
        """Parameters of the next write."""
        self._next += 1
        count = len(self.names)
        values = {
            "a": self.names[(self._next * 31 + 17) % count],
            "b": self.names[(self._next * 77 + 5) % count],
            "n": f"new{self._next}",
        }
        return {name: values[name] for name in names}

    def read(self, read: Read, number: int, branch: str | None = None) -> list[tuple[Any, ...]]:
        """Read ours."""
        params = {"k": self.names[number * 7_919 % len(self.names)]} if "$k" in read.ours else {}
        head = "query q($k: String)" if params else "query q()"
        table = self.ours.query(f"{head} {{ {read.ours} }}", params, branch=branch).to_arrow()
        return list(zip(*(column.to_pylist() for column in table.columns), strict=True))

    def read_theirs(self, read: Read, number: int) -> list[tuple[Any, ...]]:
        """Read theirs."""
        params = {"k": self.names[number * 7_919 % len(self.names)]} if "$k" in read.theirs else {}
        return [tuple(row) for row in self._ladybug.execute(read.theirs, params).get_all()]

    def write_theirs(self, text: str, params: dict[str, object]) -> None:
        """Write theirs."""
        self._ladybug.execute(text, params)

    def close(self) -> None:
        """Release the files."""
        self.ours.close()
        self._ladybug.close()
        self._database.close()


@dataclass(frozen=True, slots=True)
class _Cost:
    cpu: float
    wall: float


def _cost(work: Callable[..., object], *arguments: object) -> _Cost:
    burnt, started = time.process_time(), time.perf_counter()
    work(*arguments)
    return _Cost((time.process_time() - burnt) * 1e3, (time.perf_counter() - started) * 1e3)


def _median(costs: list[_Cost]) -> _Cost:
    return _Cost(statistics.median(cost.cpu for cost in costs), statistics.median(cost.wall for cost in costs))


def measure(scale: Scale) -> Iterable[Figure]:
    """Measure reads after writes of this process, of another one, and on two branches in turn."""
    folder = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    turns = scale.pick(full=11, quick=3)
    try:
        sides = _Sides(folder, scale.pick(full=100_000, quick=5_000), scale.pick(full=2_000_000, quick=50_000))
        yield alone("edges in the graph", sides.edges, "edges")
        warm = {name: _warm(sides, read, turns) for name, read in READS.items()}
        for name, cost in warm.items():
            yield alone(f"{name}, warm, processor time", cost.cpu, "ms")
        yield from _own_writes(sides, warm, turns)
        yield from _others_writes(sides, warm, turns)
        yield from _branches(sides, warm, turns)
        sides.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _warm(sides: _Sides, read: Read, turns: int) -> _Cost:
    for number in range(3):
        assert _comparable(sides.read(read, number)) == _comparable(sides.read_theirs(read, number))
    return _median([_cost(sides.read, read, number) for number in range(turns)])


def _own_writes(sides: _Sides, warm: dict[str, _Cost], turns: int) -> Iterable[Figure]:
    for what, (ours, theirs, names) in WRITES.items():
        for name, read in READS.items():
            mine, other = [], []
            for number in range(turns):
                params = sides.params(names)
                sides.ours.mutate(ours, params)
                mine.append(_cost(sides.read, read, number))
                sides.write_theirs(theirs, params)
                other.append(_cost(sides.read_theirs, read, number))
            assert _comparable(sides.read(read, 1)) == _comparable(sides.read_theirs(read, 1)), (what, name)
            yield from _figures(f"{name}, after {what}", _median(mine), warm[name], read, _median(other))


def _others_writes(sides: _Sides, warm: dict[str, _Cost], turns: int) -> Iterable[Figure]:
    text, _, names = WRITES["an inserted edge"]
    command = [sys.executable, "-c", _WRITER, sides.root, text]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        for name, read in READS.items():
            costs = []
            for number in range(turns):
                writer.stdin.write(" ".join(f"{key}={value}" for key, value in sides.params(names).items()) + "\n")
                writer.stdin.flush()
                assert writer.stdout.readline() == "done\n"
                costs.append(_cost(sides.read, read, number))
            yield from _figures(f"{name}, after an edge of another process", _median(costs), warm[name], read)
        writer.stdin.close()


def _branches(sides: _Sides, warm: dict[str, _Cost], turns: int) -> Iterable[Figure]:
    sides.ours.branches.create("other")
    text, _, names = WRITES["an inserted edge"]
    for name, read in READS.items():
        costs = []
        for number in range(2 * turns):
            branch = ("main", "other")[number % 2]
            sides.ours.mutate(text, sides.params(names), branch=branch)
            costs.append(_cost(sides.read, read, number, branch))
        yield from _figures(f"{name}, two branches in turn", _median(costs), warm[name], read)


def _figures(work: str, cost: _Cost, warm: _Cost, read: Read, other: _Cost | None = None) -> Iterable[Figure]:
    yield compared(work, cost.cpu, "ms", against="warm", other=max(warm.cpu, 1e-6), at_most=read.bar)
    if other is not None:
        yield compared("… wall time", cost.wall, "ms", against="ladybug", other=max(other.wall, 1e-6), at_most=1.0)
        yield compared("… processor time", cost.cpu, "ms", against="ladybug", other=max(other.cpu, 1e-6), at_most=1.0)


def _comparable(answer: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    rows = [tuple(round(value, 9) if isinstance(value, float) else value for value in row) for row in answer]
    return sorted(rows, key=repr)


if __name__ == "__main__":
    run("mixed", measure)
