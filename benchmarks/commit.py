"""What one small commit costs: over history, over its floor, and with many writers at once.

The floor is what any design with these parts must pay: write one fragment, make one detached version, put one entry.
Ours adds: looking at the head, one listing for interrupted writes, the footprint and the record, reading nothing back.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from statistics import median

import lance
from lance import Session  # type: ignore[attr-defined]  # public, missing from its __all__
from lance.fragment import write_fragments
from tests.support.operations import COLUMNS, PERSON, append, new_graph, rows_of, table_of, upsert_many

from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph.branch import branches
from omnigraph.clock import SystemClock
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

_PROCESSES = 8
_WORKER = "--worker"


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        root = Path(folder)
        yield from _over_history(root / "history", scale)
        yield from _over_floor(root / "floor-process", scale, Durability.PROCESS)
        yield from _over_floor(root / "floor-power", scale, Durability.POWER)
        yield from _branch_create(root, scale)
        yield from _many_processes(root, scale)


def _over_history(root: Path, scale: Scale) -> Iterable[Figure]:
    """The same one-row append on two graphs that differ only in how long their log is, turn by turn."""
    rounds = scale.pick(full=200, quick=60)
    graphs = {depth: _graph(root / str(depth), Durability.PROCESS) for depth in (10, 10_000)}
    for depth, parts in graphs.items():
        _grow_history(parts, depth)
    reopened = {depth: _open(root / str(depth), Durability.PROCESS) for depth in graphs}
    times = _interleaved({str(depth): _appender(parts, f"h{depth}") for depth, parts in reopened.items()}, rounds)
    for depth, parts in reopened.items():
        assert len(rows_of(parts, PERSON)) == rounds, f"history {depth}: rows are missing"
    yield compared(
        "one-row append at history 10,000",
        times["10000"] * 1e3,
        "ms",
        against="at history 10",
        other=times["10"] * 1e3,
        at_most=1.2,
    )
    cold = _interleaved({str(depth): partial(_cold_head, root / str(depth)) for depth in graphs}, rounds // 4)
    yield compared(
        "cold open + head at history 10,000", cold["10000"] * 1e3, "ms", against="at history 10", other=cold["10"] * 1e3
    )


def _over_floor(root: Path, scale: Scale, durability: Durability) -> Iterable[Figure]:
    rounds = scale.pick(full=200, quick=60)
    parts = _graph(root / "ours", durability)
    floor = _Floor(root / "floor", durability)
    times = _interleaved({"ours": _appender(parts, "f"), "floor": floor.commit}, rounds)
    assert len(rows_of(parts, PERSON)) == floor.rows() == rounds, "the two sides hold different numbers of rows"
    yield compared(
        f"one-row append, durability {durability.value}",
        times["ours"] * 1e3,
        "ms",
        against="fragment + version + put" + (" + syncs" if durability is Durability.POWER else ""),
        other=times["floor"] * 1e3,
        at_most=1.5,
    )


class _Floor:
    """The same effects with nothing around them."""

    def __init__(self, root: Path, durability: Durability) -> None:
        self._root = root
        self._store = LocalStore(root, durability=durability)
        self._dataset = lance.write_dataset(
            COLUMNS.empty_table(), str(root / "table"), schema=COLUMNS, session=Session()
        )
        self._number = 0

    def commit(self) -> None:
        self._number += 1
        fragments = write_fragments(table_of({f"f{self._number}": self._number}), self._dataset)
        self._dataset = lance.LanceDataset.commit(
            self._dataset, lance.LanceOperation.Append(fragments), read_version=self._dataset.version, detached=True
        )
        version = self._dataset.version
        files = [f"table/data/{file.path}" for fragment in fragments for file in fragment.files]
        self._store.make_durable([*files, f"table/_versions/d{version}.manifest"])
        self._store.put_if_absent(f"log/{self._number:020d}.json", json.dumps({"version": str(version)}).encode())

    def rows(self) -> int:
        return int(self._dataset.count_rows())


def _branch_create(root: Path, scale: Scale) -> Iterable[Figure]:
    rounds = scale.pick(full=200, quick=60)
    graphs = {
        types: new_graph(
            str(root / f"types-{types}"),
            types=[f"node:T{number}" for number in range(types)],
            settings=Settings(durability=Durability.PROCESS.value),
        )
        for types in (1, 100)
    }
    numbers = count()
    times = _interleaved(
        {str(types): partial(_create_branch, parts, numbers) for types, parts in graphs.items()}, rounds
    )
    yield compared("branch create at 100 types", times["100"] * 1e3, "ms", against="at 1 type", other=times["1"] * 1e3)


def _create_branch(parts: GraphContext, numbers: Iterator[int]) -> None:
    branches.create(parts, f"b{next(numbers)}")


def _many_processes(root: Path, scale: Scale) -> Iterable[Figure]:
    """Throughput of one process, of eight on a branch each, and of eight on one branch with rows of their own."""
    seconds = scale.pick(full=8, quick=4)
    one = _race(root / "one", ["main"], seconds)
    apart = _race(root / "apart", [f"b{number}" for number in range(_PROCESSES)], seconds)
    together = _race(root / "together", ["main"] * _PROCESSES, seconds)
    yield alone("one process on one branch", one, "commits/s")
    yield compared("8 processes on 8 branches", apart, "commits/s", against="one process", other=one, at_least=1.5)
    yield compared(
        "8 processes on one branch, disjoint rows, none failed",
        together,
        "commits/s",
        against="one process",
        other=one,
        at_least=0.5,
    )


def _race(root: Path, branch_names: list[str], seconds: int) -> float:
    """Commits per second of one process per name; each counts its own after a common start, and all are checked."""
    parts = _graph(root, Durability.PROCESS)
    for name in sorted(set(branch_names) - {MAIN}):
        branches.create(parts, name)
    # By the clock on the wall: a start all processes agree on.
    start = SystemClock().now_us() + int((2.5 + 0.5 * len(branch_names)) * 1_000_000)
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-m",
                "benchmarks.commit",
                _WORKER,
                str(root),
                name,
                str(number),
                str(start),
                str(seconds),
            ],
            stdout=subprocess.PIPE,
        )
        for number, name in enumerate(branch_names)
    ]
    answers = [json.loads(worker.communicate()[0]) for worker in workers]
    failed = [answer["failed"] for answer in answers if answer["failed"]]
    assert not failed, f"commits failed: {failed[0]}"
    acknowledged = sum(int(answer["commits"]) for answer in answers)
    stored = sum(len(rows_of(parts, PERSON, name)) for name in set(branch_names))
    assert stored == acknowledged, f"{acknowledged} commits were acknowledged, {stored} are stored"
    return acknowledged / seconds


def _work(root: str, branch: str, number: str, start: str, seconds: str) -> None:
    """One racing process: prints how many commits it made and what failed."""
    parts = _open(Path(root), Durability.PROCESS)
    commit = _appender(parts, f"w{number}", branch=branch)
    made, failed = 0, ""
    clock = SystemClock()
    while clock.now_us() < int(start):
        time.sleep(0.001)
    end = time.perf_counter() + float(seconds)
    try:
        while time.perf_counter() < end:
            commit()
            made += 1
    except Exception as error:  # noqa: BLE001  (whatever it is, the parent reports it and stops)
        failed = f"{type(error).__name__}: {error}"
    print(json.dumps({"commits": made, "failed": failed}))


def _appender(parts: GraphContext, prefix: str, *, branch: str = MAIN) -> Callable[[], object]:
    numbers = count()

    def commit() -> object:
        number = next(numbers)
        return write(parts, branch, append(PERSON, {f"{prefix}-{os.getpid()}-{number}": number}))

    return commit


def _interleaved(work: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """The median time of each, measured in turns, so that the machine's moods fall on all alike."""
    times: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds):
        for name, one in work.items():
            started = time.perf_counter()
            one()
            times[name].append(time.perf_counter() - started)
    return {name: median(each) for name, each in times.items()}


def _graph(root: Path, durability: Durability) -> GraphContext:
    return new_graph(str(root), types=[PERSON], settings=Settings(durability=durability.value))


def _open(root: Path, durability: Durability) -> GraphContext:
    return open_root(str(root), settings=Settings(durability=durability.value))


def _cold_head(root: Path) -> None:
    open_root(str(root), read_only=True).log.live_head(MAIN)


def _grow_history(parts: GraphContext, depth: int) -> None:
    """Real commits that change nothing, up to the depth wanted."""
    nothing = replace(upsert_many({}), always_commits=True)
    while parts.log.live_head(MAIN).number < depth:
        write(parts, MAIN, nothing)


if __name__ == "__main__":
    if sys.argv[1:2] == [_WORKER]:
        _work(*sys.argv[2:])
    else:
        run("commit", measure)
