"""Losing power for real, on a file system of its own: what survives is a whole graph, short of its newest commits."""

import errno
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.power_loss import Disk, unavailable

import omnigraph
from omnigraph import OpenOptions, OutcomeUnknownError

SCHEMA = "node Person { name: String @key  age: I32? }"
ALL = "query q() { match { $p: Person } return { $p.age as age } }"
PROCESS = OpenOptions(durability="process")
ENOUGH_S = 2.5
"""For the journal to be committed twice: names of the first writes are on the disk, those of the last are not."""


@pytest.fixture(params=["ext4", "xfs"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Disk:
    """A disk whose power can be cut."""
    missing = unavailable(request.param)
    if missing:
        pytest.skip(missing)
    return Disk(tmp_path, request.param)


def ages() -> Iterator[int]:
    """One after the other, for as long as the journal needs."""
    until = time.monotonic() + ENOUGH_S
    age = 0
    while time.monotonic() < until:
        yield age
        age += 1


def check_survivor(disk: Disk, folder: Path, *, at_least: int, of: int) -> None:
    """What is left is the first of these commits, all of them up to some number, and it can be written to."""
    with disk.after_power_cut(folder).mounted() as mounted, omnigraph.open(str(mounted / "graph")) as graph:
        left = sorted(row["age"] for row in graph.query(ALL))
        assert left == list(range(len(left)))
        assert at_least <= len(left) <= of
        assert graph.verify(deep=True).is_whole
        graph.write({"Person": [{"name": "after", "age": 0}]})
        assert len(graph.query(ALL)) == len(left) + 1


def test_takes_only_the_newest_commits_of_a_writer_that_did_not_wait_for_the_disk(disk: Disk, tmp_path: Path) -> None:
    with disk.mounted() as mounted, omnigraph.init(str(mounted / "graph"), SCHEMA, options=PROCESS) as graph:
        for age in ages():
            graph.write({"Person": [{"name": f"p{age}", "age": age}]})
        check_survivor(disk, tmp_path, at_least=0, of=age + 1)


def test_takes_nothing_up_to_the_last_commit_that_waited_for_the_disk(disk: Disk, tmp_path: Path) -> None:
    with disk.mounted() as mounted:
        address = str(mounted / "graph")
        with omnigraph.init(address, SCHEMA, options=PROCESS) as quick, omnigraph.open(address) as careful:
            kept = 0
            for age in ages():
                graph = careful if age % 10 == 5 else quick
                graph.write({"Person": [{"name": f"p{age}", "age": age}]})
                kept = age + 1 if graph is careful else kept
            check_survivor(disk, tmp_path, at_least=kept, of=age + 1)


def test_takes_no_branch_whose_commit_waited_though_its_source_did_not(disk: Disk, tmp_path: Path) -> None:
    with disk.mounted() as mounted:
        address = str(mounted / "graph")
        with omnigraph.init(address, SCHEMA, options=PROCESS) as quick, omnigraph.open(address) as careful:
            quick.write({"Person": [{"name": "p0", "age": 0}]})
            quick.branches.create("agent")
            quick.write({"Person": [{"name": "p1", "age": 1}]}, branch="agent")
            careful.write({"Person": [{"name": "p2", "age": 2}]}, branch="agent")
            cut = disk.after_power_cut(tmp_path)
    with cut.mounted() as mounted, omnigraph.open(str(mounted / "graph")) as graph:
        assert len(graph.query(ALL)) == 1
        assert len(graph.query(ALL, branch="agent")) == 3
        graph.merge("agent")
        assert graph.verify(deep=True).is_whole


def test_a_log_that_fails_to_sync_once_is_not_acknowledged_because_a_second_sync_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = omnigraph.init(str(tmp_path / "graph"), SCHEMA)
    real = os.fsync
    failed: list[Path] = []

    def sync(handle: int) -> None:
        place = Path(f"/proc/self/fd/{handle}").readlink()
        if place.name == "main" and not failed:
            failed.append(place)
            raise OSError(errno.EIO, "pages were lost")
        real(handle)

    monkeypatch.setattr(os, "fsync", sync)
    with pytest.raises(OutcomeUnknownError):
        graph.write({"Person": [{"name": "p0", "age": 0}]})
    assert failed
    with pytest.raises(omnigraph.GraphError, match="open the graph again"):
        graph.write({"Person": [{"name": "p1", "age": 1}]})
    with omnigraph.open(str(tmp_path / "graph")) as again:
        again.write({"Person": [{"name": "p1", "age": 1}]})
