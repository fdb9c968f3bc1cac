"""What branches cost: making them, bringing them together, telling them apart, and writing many of them at once.

Every figure is a ratio of two things measured in the same run, turn by turn: what a large graph takes over what a small
one takes for the same change.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph import Graph, OpenOptions
from omnigraph.branch.diff import Diff

_PROCESSES = 8
_WORKER = "--worker"
_OPTIONS = OpenOptions(auto_compact=False)
_SCHEMA = "node Person { name: String @key  age: I64?  note: String? }\nnode City { name: String @key }\n"


# How many differ; and every entity that does, as it was and as it is.
_DIFFED: dict[str, Callable[[Diff], int]] = {"counted": len, "in full": lambda diff: len(diff.to_pylist())}


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        root = Path(folder)
        yield from _branch_create(root, scale)
        yield from _disjoint_merge(root, scale)
        yield from _over_table_size(root, scale)
        yield from _many_branches(root, scale)


def _branch_create(root: Path, scale: Scale) -> Iterator[Figure]:
    rounds = scale.pick(full=300, quick=100)
    graphs = {}
    for types in (1, 100):
        schema = "\n".join(f"node T{number} {{ name: String @key }}" for number in range(types))
        graphs[types] = omnigraph.init(root / f"types-{types}", schema, options=_OPTIONS)
        graphs[types].write({"T0": [{"name": "a"}]})
    times = _interleaved({str(types): partial(_fork, graph, count(1)) for types, graph in graphs.items()}, rounds)
    yield compared(
        "branch create, 100 types",
        times["100"] * 1e3,
        "ms",
        against="1 type",
        other=times["1"] * 1e3,
        at_most=1.1,
    )


def _disjoint_merge(root: Path, scale: Scale) -> Iterator[Figure]:
    """One branch changed one type, the other another: versions are taken over, and nobody reads a row."""
    rounds = scale.pick(full=100, quick=40)
    graph = omnigraph.init(root / "disjoint", _SCHEMA, options=_OPTIONS)
    graph.write({"Person": _people(10_000)})
    graph.write({"City": [{"name": "Oslo"}]})
    graph.branches.create("target")
    names = count(1)
    times: dict[str, list[float]] = {"create": [], "merge": []}
    for number in range(rounds):
        source = f"source-{number}"
        graph.branches.create(source, source="target")
        graph.write({"City": [{"name": f"C{number}"}]}, branch=source)
        graph.write({"Person": [{"name": f"new-{number}"}]}, branch="target")
        for kind, work in (
            ("create", partial(_fork, graph, names)),
            ("merge", partial(graph.merge, source, into="target")),
        ):
            started = time.perf_counter()
            work()
            times[kind].append(time.perf_counter() - started)
    assert graph.count("City", branch="target") == rounds + 1, "a merge lost a city"
    yield compared(
        "merge of two branches that changed different types",
        median(times["merge"]) * 1e3,
        "ms",
        against="branch create",
        other=median(times["create"]) * 1e3,
        at_most=3.0,
    )


def _over_table_size(root: Path, scale: Scale) -> Iterator[Figure]:
    """The same number of changed rows in a small table and in a large one."""
    large, small, changed = scale.pick(full=1_000_000, quick=300_000), 10_000, 10_000
    rounds = scale.pick(full=7, quick=3)
    graphs = {rows: omnigraph.init(root / f"rows-{rows}", _SCHEMA, options=_OPTIONS) for rows in (small, large)}
    for rows, graph in graphs.items():
        graph.write({"Person": _people(rows)})
    merges: dict[int, list[float]] = {rows: [] for rows in graphs}
    diffs: dict[tuple[str, str, int], list[float]] = {
        (how, kind, rows): [] for how in _DIFFED for kind in ("neighbours", "scattered") for rows in graphs
    }
    for number in range(rounds):
        for rows, graph in graphs.items():
            source, target = f"source-{number}", f"target-{number}"
            for branch in (source, target):
                graph.branches.create(branch)
            step = rows // changed
            graph.write({"Person": _people(changed, step=step, age=number + 1)}, mode="merge", branch=source)
            graph.write({"Person": [{"name": f"only here {each}"} for each in range(100)]}, branch=target)
            before = graph.snapshot(branch=target)
            started = time.perf_counter()
            done = graph.merge(source, into=target)
            merges[rows].append(time.perf_counter() - started)
            assert done.changes["node:Person"].updated == changed, done
            for kind, apart in (("neighbours", 1), ("scattered", rows // 100)):
                few = f"{kind}-{number}"
                graph.branches.create(few)
                graph.write({"Person": _people(100, step=apart, age=-1)}, mode="merge", branch=few)
                main = graph.snapshot()
                for how, asked in _DIFFED.items():
                    started = time.perf_counter()
                    found = asked(graph.diff(main, few))
                    diffs[how, kind, rows].append(time.perf_counter() - started)
                    assert found == 100, found
            assert before.count("Person") == rows + 100
    yield compared(
        f"merge of {changed:,} changed rows in {large:,}",
        median(merges[large]) * 1e3,
        "ms",
        against=f"in {small:,}",
        other=median(merges[small]) * 1e3,
        at_most=3.0,
    )
    for how in _DIFFED:
        for kind in ("neighbours", "scattered"):
            yield compared(
                f"diff of 100 changes, {kind}, {how}, in {large:,} rows",
                median(diffs[how, kind, large]) * 1e3,
                "ms",
                against=f"in {small:,}",
                other=median(diffs[how, kind, small]) * 1e3,
                at_most=2.0,
            )


def _many_branches(root: Path, scale: Scale) -> Iterator[Figure]:
    """Each process writes branches of its own, all of one graph."""
    branches, writes = scale.pick(full=100, quick=24), 10
    uri = str(root / "many")
    graph = omnigraph.init(uri, _SCHEMA, options=_OPTIONS)
    graph.write({"Person": _people(100)})
    for number in range(branches):
        graph.branches.create(f"b{number}")
    started = time.perf_counter()
    running = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.branch", _WORKER, uri, str(each), str(branches), str(writes)]
        )
        for each in range(_PROCESSES)
    ]
    assert [process.wait() for process in running] == [0] * _PROCESSES, "a process failed"
    seconds = time.perf_counter() - started
    landed = sum(graph.count("Person", branch=f"b{number}") - 100 for number in range(branches))
    yield alone(f"{branches} branches × {writes} writes by {_PROCESSES} processes", seconds, "s")
    yield alone("of these writes, the share that landed", landed / (branches * writes), "", at_least=1.0)


def _work(uri: str, worker: int, branches: int, writes: int) -> None:
    graph = omnigraph.open(uri, options=_OPTIONS)
    for number in range(writes):
        for branch in range(worker, branches, _PROCESSES):
            graph.write({"Person": [{"name": f"w{number}"}]}, branch=f"b{branch}")


def _fork(graph: Graph, names: Iterator[int]) -> None:
    graph.branches.create(f"b{next(names)}")


def _people(rows: int, *, step: int = 1, age: int = 0) -> pa.Table:
    numbers = np.arange(rows, dtype=np.int64) * step
    names = pa.array([f"person-{number:09d}" for number in numbers.tolist()], pa.string())
    # Values that differ, as those of people do: a column of one value would be kept, and fetched, as nothing else is.
    notes = pa.array([f"a few words about number {number * 7_919 % 1_000_003}" for number in numbers.tolist()])
    return pa.table({"name": names, "age": pa.array(numbers * 31 % 90 + age), "note": notes})


def _interleaved(works: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Turn by turn, so that whatever else the machine does meets all of them alike; the first turns do not count."""
    times: dict[str, list[float]] = {name: [] for name in works}
    for number in range(rounds + 5):
        for name, work in works.items():
            started = time.perf_counter()
            work()
            if number >= 5:
                times[name].append(time.perf_counter() - started)
    return {name: median(each) for name, each in times.items()}


if __name__ == "__main__":
    if _WORKER in sys.argv:
        uri, *numbers = sys.argv[sys.argv.index(_WORKER) + 1 :]
        _work(uri, *map(int, numbers))
    else:
        run("branch", measure)
