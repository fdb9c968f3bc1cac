"""Maintenance: each step stands by itself, within limits, pass after pass until told to stop."""

import threading
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, Maintenance, OpenOptions, PermissionDeniedError
from omnigraph.testing.clock import ManualClock

SCHEMA = "node Person { name: String @key  age: I32? }\nnode Company { name: String @key }"
QUIET = OpenOptions(durability="process", auto_compact=False)
NOW = Maintenance(keep=1, sweep_older_than=0.0)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def graph(clock: ManualClock) -> Iterator[Graph]:
    with omnigraph.init("memory://", SCHEMA, options=QUIET, clock=clock) as made:
        yield made


def add(graph: Graph, *names: str, branch: str = "main") -> None:
    for name in names:
        graph.write({"Person": [{"name": name, "age": len(name)}]}, branch=branch)


def fragments(graph: Graph, branch: str = "main") -> int:
    return graph.snapshot(branch=branch)._pinned.table("node:Person").layout().fragments


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def test_a_pass_optimizes_every_branch_prunes_and_sweeps(graph: Graph) -> None:
    add(graph, "a", "b", "c")
    graph.branches.create("side")
    add(graph, "d", "e", branch="side")
    report = graph.maintain_once(NOW)
    assert (report.failures, report.left) == ([], [])
    assert {each.branch: each.commit is not None for each in report.optimized} == {"main": True, "side": True}
    assert (fragments(graph), fragments(graph, "side")) == (1, 1)
    assert report.pruned is not None
    assert report.pruned.marked > 0
    assert report.swept is not None
    assert (graph.count("Person"), graph.count("Person", branch="side")) == (3, 5)


def test_without_a_policy_nothing_is_pruned(graph: Graph) -> None:
    add(graph, "a", "b")
    before = graph.snapshot().commit
    report = graph.maintain_once()
    assert report.pruned is None
    assert graph.snapshot(commit=before).count("Person") == 2
    assert report.swept is not None


def test_what_does_not_fit_the_limits_is_left_and_told(graph: Graph, clock: ManualClock) -> None:
    add(graph, "a", "b", "c")
    graph.write({"Company": [{"name": "x"}]})
    graph.write({"Company": [{"name": "y"}]})
    tables = graph.snapshot().record.tables
    report = graph.maintain_once(Maintenance(bytes_max=tables["node:Company"].bytes, sweep=False))
    assert [table.type_key for table in report.optimized[0].tables] == ["node:Company"]
    assert report.left == ["optimize main: node:Person is too large for this pass"]
    assert fragments(graph) == 3
    report = graph.maintain_once(Maintenance(keep=1, seconds_max=0.0))
    steps = ("listing branches", "prune", "sweep", "verify")
    assert report.left == [f"{step}: no time was left" for step in steps]
    assert fragments(graph) == 3


@pytest.mark.parametrize("reads_max", [2_000, 1, None])
def test_a_pass_tells_of_damage_and_changes_nothing(reads_max: int | None, tmp_path: Path) -> None:
    with omnigraph.init(str(tmp_path / "g"), SCHEMA, options=QUIET) as graph:
        add(graph, "a", "b")
        look = Maintenance(optimize=False, sweep=False, verify_reads_max=reads_max)
        report = graph.maintain_once(look)
        assert report.failures == []
        assert report.verified is not None
        assert report.verified.is_whole

        gone = sorted((tmp_path / "g").glob("nodes/*/data/*.lance"))[0]
        gone.unlink()
        before = files(tmp_path / "g")
        passes = [graph.maintain_once(look) for _ in range(3)]
        failures = {failure for report in passes for failure in report.failures}
        assert [failure.partition(": it is")[0] for failure in failures] == [
            f"verify: {gone.relative_to(tmp_path / 'g').as_posix()}"
        ]
        assert max(report.damaged for report in passes) == 1
        assert files(tmp_path / "g") - before <= {"__derived/verified.json"}
        assert before <= files(tmp_path / "g")
        assert graph.maintain_once(Maintenance(optimize=False, sweep=False, verify=False)).verified is None


def test_a_step_that_fails_does_not_keep_the_others_from_being_done(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    add(graph, "a", "b")

    def refused(*_: object, **__: object) -> None:
        raise omnigraph.ConflictError("busy")

    monkeypatch.setattr("omnigraph.api.optimize.optimize", refused)
    report = graph.maintain_once(NOW)
    assert report.failures == ["optimize main: busy"]
    assert report.pruned is not None
    assert report.swept is not None


def test_passes_begin_at_even_intervals_until_told_to_stop(graph: Graph, clock: ManualClock) -> None:
    stop = threading.Event()
    began = []
    for report in graph.maintain(600.0, stop=stop):
        began.append(clock.monotonic())
        assert report.failures == []
        add(graph, f"p{len(began)}")
        if len(began) == 3:
            stop.set()
    assert [round(later - earlier) for earlier, later in pairwise(began)] == [600, 600]


def test_a_graph_that_is_closed_is_maintained_no_more(graph: Graph) -> None:
    passes = 0
    for _ in graph.maintain(1.0):
        passes += 1
        graph.close()
    assert passes == 1


def test_a_graph_opened_for_reading_is_not_maintained() -> None:
    omnigraph.init("memory://maintained", SCHEMA, options=QUIET).close()
    with omnigraph.open("memory://maintained", read_only=True) as reader:
        with pytest.raises(PermissionDeniedError):
            reader.maintain_once()
        with pytest.raises(PermissionDeniedError):
            reader.maintain()
