"""Ten thousand one-row commits with pruning, sweeping and compaction: what they cost late over what they cost early.

A fixed population is written to over and over, one row at a time, so that whatever grows is ours: versions, fragments,
manifests, log entries, index segments. Metadata counts. The same run without upkeep shows what is held down.
"""

import os
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import omnigraph
from benchmarks.report import Figure, Scale, alone, compared, run
from omnigraph import Graph, Maintenance, OpenOptions
from omnigraph.api.schemas import Schemas
from omnigraph.transaction.parts import Settings
from omnigraph.transaction.root import open_root

_SCHEMA = "node Person { name: String @key  age: I32?  city: String? }"
_PEOPLE = 1_000
_EARLY = 100
_SAMPLE = 50
_PASS_EVERY = 50
# No time of grace: otherwise ten minutes of commits would always be there, and all of these take less.
_POLICY = Maintenance(keep=10, now=True, sweep_older_than=0.0)
_SETTINGS = Settings(durability="process", protection_s=0.0, log_cut_s=0.0)


@dataclass(frozen=True, slots=True)
class _State:
    disk_bytes: int
    lookup_ms: float
    commit_ms: float
    fragments: int


def measure(scale: Scale) -> Iterable[Figure]:
    """Every figure, one after the other."""
    commits = scale.pick(full=10_000, quick=600)
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as folder:
        early, late, upkeep_s, took_s = _commits(Path(folder) / "kept", commits, kept=True)
        name = f"commit {commits:,}"
        yield compared(
            f"disk at {name}", late.disk_bytes / 1e6, "MB", against=f"at commit {_EARLY}", other=early.disk_bytes / 1e6,
            at_most=1.5,
        )  # fmt: skip
        yield compared(
            f"point lookup at {name}", late.lookup_ms, "ms", against=f"at commit {_EARLY}", other=early.lookup_ms,
            at_most=1.5,
        )  # fmt: skip
        yield compared(
            f"one-row commit at {name}", late.commit_ms, "ms", against=f"at commit {_EARLY}", other=early.commit_ms,
            at_most=1.5,
        )  # fmt: skip
        yield alone(f"fragments at {name}", late.fragments, "")
        yield alone("share of the time that maintenance took", 100 * upkeep_s / took_s, "%")
        without = min(commits, 1_000)
        early, late, _, _ = _commits(Path(folder) / "left", without, kept=False)
        yield compared(
            f"without any: point lookup at commit {without:,}", late.lookup_ms, "ms", against=f"at commit {_EARLY}",
            other=early.lookup_ms,
        )  # fmt: skip
        yield compared(
            f"without any: disk at commit {without:,}", late.disk_bytes / 1e6, "MB", against=f"at commit {_EARLY}",
            other=early.disk_bytes / 1e6,
        )  # fmt: skip


def _commits(root: Path, commits: int, *, kept: bool) -> tuple[_State, _State, float, float]:
    omnigraph.init(root, _SCHEMA, options=OpenOptions(durability="process")).close()
    parts = open_root(str(root), settings=replace(_SETTINGS, auto_compact=kept))
    with Graph(parts, Schemas(parts)) as graph:
        graph.write({"Person": [_person(number, 0) for number in range(_PEOPLE)]})
        upkeep_s, began = 0.0, time.perf_counter()
        early: _State | None = None
        for number in range(1, commits + 1):
            graph.write({"Person": [_person(number * 7 % _PEOPLE, number)]}, mode="merge")
            if kept and number % _PASS_EVERY == 0:
                started = time.perf_counter()
                report = graph.maintain_once(_POLICY)
                assert not report.failures, report.failures
                upkeep_s += time.perf_counter() - started
            if number == _EARLY:
                early = _state(graph, root, number)
        took_s = time.perf_counter() - began
        late = _state(graph, root, commits)
        assert graph.count("Person") == _PEOPLE, "rows are missing"
        assert early is not None
        return early, late, upkeep_s, took_s


def _state(graph: Graph, root: Path, number: int) -> _State:
    disk = sum((Path(folder) / file).stat().st_size for folder, _, files in os.walk(root) for file in files)
    tables = graph.snapshot()
    table = tables._pinned.table("node:Person")
    lookups, writes = [], []
    for place in range(_SAMPLE):
        name = f"p{(number * 13 + place * 17) % _PEOPLE:04d}"
        started = time.perf_counter()
        found = table.rows_with_ids([name])
        lookups.append(time.perf_counter() - started)
        assert found.num_rows == 1
    fragments = table.layout().fragments
    for place in range(_SAMPLE // 2):
        started = time.perf_counter()
        graph.write({"Person": [_person(place, number)]}, mode="merge")
        writes.append(time.perf_counter() - started)
    return _State(disk, median(lookups) * 1e3, median(writes) * 1e3, fragments)


def _person(number: int, age: int) -> dict[str, object]:
    return {"name": f"p{number:04d}", "age": age, "city": f"city {number % 50}"}


if __name__ == "__main__":
    run("maintain", measure)
