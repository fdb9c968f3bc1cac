"""Ten thousand one-row commits with pruning, sweeping and compaction: what they cost late over what they cost early.

A fixed population is written to over and over, one row at a time, so that whatever grows is ours: versions, fragments,
manifests, log entries, index segments, and what the process keeps. Metadata counts. As a shared machine has its moods,
late and early are measured by turns: when the commits are done, another process makes the same graph anew, up to commit
100. The same run without upkeep shows what is held down.

This is measured in a file system in memory, where there is one. That of a disk may be many times slower at making files
where many were deleted a short time ago, and that says nothing of the graph. What the same commits take on disk is told
beside what a plain file takes there.
"""

import multiprocessing
import os
import resource
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from pathlib import Path
from statistics import median

from tests.support.fast_folder import fast_folder

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph import Graph, Maintenance, OpenOptions
from omnigraph.api.schemas import Schemas
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root

_SCHEMA = "node Person { name: String @key  age: I32?  city: String? }"
_PEOPLE = 1_000
_EARLY = 100
_ROUNDS = 10
_LOOKUPS, _WRITES, _FILES = 10, 5, 5  # in a round
_PASS_EVERY = 50
# No time of grace: otherwise ten minutes of commits would always be there, and all of these take less.
_POLICY = Maintenance(keep=10, now=True, sweep_older_than=0.0)
_SETTINGS = Settings(durability="process", protection_s=0.0, log_cut_s=0.0)


@dataclass(frozen=True, slots=True)
class _State:
    disk_bytes: int
    fragments: int
    lookup_ms: float
    commit_ms: float
    file_ms: float
    user_ms: float


_Round = tuple[list[float], list[float], list[float], list[float]]


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    commits = scale.pick(full=10_000, quick=600)
    name, early = f"commit {commits:,}", f"at commit {_EARLY}"
    with fast_folder() as memory:
        with _graph(memory / "kept", kept=True) as old:
            first = old.up_to(_EARLY).measured()
            old.up_to(commits)
            with _young(memory / "young") as young:
                late, other = _by_turns(old, young)
        yield compared(
            f"disk at {name}", late.disk_bytes / 1e6, "MB", against=early, other=first.disk_bytes / 1e6, at_most=1.5
        )
        yield compared(
            f"point lookup at {name}", late.lookup_ms, "ms", against=early, other=other.lookup_ms, at_most=1.5
        )
        yield compared(
            f"one-row commit at {name}", late.commit_ms, "ms", against=early, other=other.commit_ms, at_most=1.5
        )
        yield alone(f"fragments at {name}", late.fragments, "")
        yield alone("share of the time that maintenance took", 100 * old.upkeep_s / old.took_s, "%")
        without = min(commits, 1_000)
        with _graph(memory / "left", kept=False) as left:
            first = left.up_to(_EARLY).measured()
            late = left.up_to(without).measured()
        yield compared(
            f"without any: point lookup at commit {without:,}", late.lookup_ms, "ms", against=early,
            other=first.lookup_ms,
        )  # fmt: skip
        yield compared(
            f"without any: disk at commit {without:,}", late.disk_bytes / 1e6, "MB", against=early,
            other=first.disk_bytes / 1e6,
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as disk, _graph(Path(disk) / "kept", kept=True) as old:
        first = old.up_to(_EARLY).measured()
        late = old.up_to(commits).measured()
    yield compared("on disk: the same lookup", late.lookup_ms, "ms", against=early, other=first.lookup_ms)
    yield compared("on disk: the same commit", late.commit_ms, "ms", against=early, other=first.commit_ms)
    yield compared("on disk: its processor time", late.user_ms, "ms", against=early, other=first.user_ms)
    yield compared("on disk: making a plain file", late.file_ms, "ms", against=early, other=first.file_ms)


class _Graph:
    """One graph that is written to, row by row."""

    def __init__(self, graph: Graph, root: Path, *, kept: bool) -> None:
        self._graph = graph
        self._root = root
        self._kept = kept
        self._number = self._place = 0
        self.upkeep_s = self.took_s = 0.0

    def up_to(self, commits: int) -> "_Graph":
        """Write until there are so many commits, and look after the graph meanwhile."""
        began = time.perf_counter()
        while self._number < commits:
            self._number += 1
            number = self._number
            self._graph.write({"Person": [_person(number * 7 % _PEOPLE, number)]}, mode="merge")
            if self._kept and number % _PASS_EVERY == 0:
                started = time.perf_counter()
                report = self._graph.maintain_once(_POLICY)
                assert not report.failures, report.failures
                self.upkeep_s += time.perf_counter() - started
        self.took_s += time.perf_counter() - began
        return self

    def size(self) -> tuple[int, int]:
        """Bytes on disk, and fragments of the table."""
        disk = sum((Path(folder) / file).stat().st_size for folder, _, files in os.walk(self._root) for file in files)
        return disk, self._graph.snapshot()._pinned.table("node:Person").layout().fragments

    def round(self) -> _Round:
        """Some lookups, commits and plain files, in seconds each."""
        table = self._graph.snapshot()._pinned.table("node:Person")
        lookups = [_timed(lambda: table.rows_with_ids([_name(self._next())])) for _ in range(_LOOKUPS)]
        used = resource.getrusage(resource.RUSAGE_SELF).ru_utime
        writes = [
            _timed(lambda: self._graph.write({"Person": [_person(self._next() % _PEOPLE, 1)]}, mode="merge"))
            for _ in range(_WRITES)
        ]
        used = resource.getrusage(resource.RUSAGE_SELF).ru_utime - used
        assert self._graph.count("Person") == _PEOPLE, "rows are missing"
        files = [_timed(self._file) for _ in range(_FILES)]
        for file in self._root.glob("plain-*"):
            file.unlink()
        return lookups, writes, files, [used / _WRITES]

    def measured(self) -> _State:
        """What it costs now, alone."""
        size = self.size()
        return _state(size, [self.round() for _ in range(_ROUNDS)])

    def _next(self) -> int:
        self._place += 13
        return self._place

    def _file(self) -> None:
        (self._root / f"plain-{self._next()}").write_bytes(b"x" * 500)


@contextmanager
def _graph(root: Path, *, kept: bool) -> Iterator[_Graph]:
    omnigraph.init(root, _SCHEMA, options=OpenOptions(durability="process")).close()
    parts = open_root(str(root), settings=replace(_SETTINGS, auto_compact=kept))
    with Graph(parts, Schemas(parts)) as graph:
        graph.write({"Person": [_person(number, 0) for number in range(_PEOPLE)]})
        yield _Graph(graph, root, kept=kept)


@contextmanager
def _young(root: Path) -> Iterator[Callable[[], _Round]]:
    """The same graph at an early commit, in a process of its own: does a round whenever it is asked to."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=_be_young, args=(str(root), there), daemon=True)
    process.start()
    there.close()
    try:
        assert here.recv() == "ready"

        def ask() -> _Round:
            here.send("round")
            answer: _Round = here.recv()
            return answer

        yield ask
    finally:
        here.close()
        process.join()


def _be_young(root: str, asked: Connection) -> None:
    with _graph(Path(root), kept=True) as graph:
        graph.up_to(_EARLY)
        asked.send("ready")
        try:
            while asked.recv() == "round":
                asked.send(graph.round())
        except EOFError:
            return


def _by_turns(old: _Graph, young: Callable[[], _Round]) -> tuple[_State, _State]:
    size = old.size()
    rounds = [(old.round(), young()) for _ in range(_ROUNDS)]
    return _state(size, [mine for mine, _ in rounds]), _state((0, 0), [theirs for _, theirs in rounds])


def _state(size: tuple[int, int], rounds: list[_Round]) -> _State:
    figures = ([second for each in rounds for second in each[which]] for which in range(4))
    return _State(*size, *(median(each) * 1e3 for each in figures))


def _timed(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _name(number: int) -> str:
    return f"p{number % _PEOPLE:04d}"


def _person(number: int, age: int) -> dict[str, object]:
    return {"name": _name(number), "age": age, "city": f"city {number % 50}"}


if __name__ == "__main__":
    run("maintain", measure)
