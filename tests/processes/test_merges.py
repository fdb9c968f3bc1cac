"""Two processes merge into one branch at once while a third writes there: one after the other, and nothing is lost."""

import json
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.model.commit import CommitKind
from omnigraph.testing.invariants import check_graph, entries

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge LivesIn: Person -> City
edge Knows: Person -> Person { @key(src, dst) }
"""
BRANCHES, WRITES = 4, 8

# Waits until everybody is there, then does its work and says what came of it.
WORKER = """
import json, sys, time
from pathlib import Path
import omnigraph

uri, folder, name, *work = sys.argv[1:]
graph = omnigraph.open(uri)
(Path(folder) / name).touch()
while not (Path(folder) / "start").exists():
    time.sleep(0.005)
done = []
for each in work:
    if each.startswith("write "):
        person = each.removeprefix("write ")
        made = graph.write({"Person": [{"name": person, "age": 1}]}, {"Knows": [{"from": person, "to": "Ann"}]})
        done.append(["written", made.commit])
    else:
        made = graph.merge(each)
        done.append([made.outcome, made.commit])
print(json.dumps(done))
"""


def prepare(uri: str) -> None:
    with omnigraph.init(uri, SCHEMA) as graph:
        graph.write({"Person": [{"name": "Ann"}, {"name": "Ben"}], "City": [{"name": "Oslo"}]})
        for branch in (*(f"b{number}" for number in range(BRANCHES)), "shared"):
            graph.branches.create(branch)
            for part in range(2):
                person = f"{branch}-{part}"
                graph.write(
                    {"Person": [{"name": person, "age": part}]},
                    {"LivesIn": [{"from": person, "to": "Oslo"}], "Knows": [{"from": person, "to": "Ann"}]},
                    branch=branch,
                )
            # The same fact on every branch.
            graph.write({}, {"Knows": [{"from": "Ann", "to": "Ben"}]}, mode="merge", branch=branch)


def at_once(uri: str, folder: Path, work: Sequence[Sequence[str]]) -> list[list[list[Any]]]:
    """Everybody's work, begun at the same moment; returns what each said."""
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, uri, str(folder), f"worker-{number}", *each],
            stdout=subprocess.PIPE,
            text=True,
        )
        for number, each in enumerate(work)
    ]
    try:
        while len(list(folder.glob("worker-*"))) < len(work):
            assert all(process.poll() is None for process in running), "a worker ended before the work began"
        (folder / "start").touch()
        said = [process.communicate(timeout=240)[0] for process in running]
    finally:
        for process in running:
            process.kill()
    assert [process.returncode for process in running] == [0] * len(work)
    return [json.loads(each) for each in said]


def names(graph: Graph, type_name: str) -> list[str]:
    column = "id" if type_name == "Person" else "src"
    return sorted(row[column] for row in graph.export_arrow(type_name).read_all().to_pylist())


def test_merges_and_writes_of_three_processes_come_one_after_the_other(tmp_path: Path) -> None:
    uri, folder = str(tmp_path / "graph"), tmp_path / "signs"
    folder.mkdir()
    prepare(uri)
    writes = [f"write w{number}" for number in range(WRITES)]
    evens, odds = ([f"b{number}" for number in range(first, BRANCHES, 2)] for first in (0, 1))
    first, second, third = at_once(uri, folder, [[*evens, "shared"], ["shared", *odds], writes])
    with omnigraph.open(uri) as graph:
        branches = [f"b{number}" for number in range(BRANCHES)]
        brought = [f"{branch}-{part}" for branch in (*branches, "shared") for part in range(2)]
        written = [f"w{number}" for number in range(WRITES)]
        assert names(graph, "Person") == sorted(["Ann", "Ben", *brought, *written])
        assert names(graph, "LivesIn") == sorted(brought)
        assert names(graph, "Knows") == sorted(["Ann", *brought, *written])
        # Both brought in the shared branch: once it was news.
        outcomes = [said[0] for said in (*first, *second)]
        assert outcomes.count("already_up_to_date") == 1
        log = entries(graph._parts)
        acknowledged = {said[1] for said in (*first, *second, *third) if said[1] is not None}
        assert acknowledged <= {entry.commit for entry in log}
        merges = [entry for entry in log if entry.kind is CommitKind.MERGE]
        heads = {graph.snapshot(branch=branch).commit for branch in (*branches, "shared")}
        assert sorted(str(entry.merged_parent) for entry in merges) == sorted(heads)
        # Each commit is the one before it and its own changes, no more and no less.
        for earlier, later in pairwise(log):
            stats = graph.diff(at(earlier.number), at(later.number)).stats
            told = {key: (each.inserted, each.updated, each.deleted) for key, each in stats.items()}
            said = {key: (each.inserted, each.updated, each.deleted) for key, each in later.changes.types.items()}
            assert told == said, later.number
        check_graph(graph._parts)


def at(number: int) -> omnigraph.Point:
    return omnigraph.Point(branch="main", number=number)
