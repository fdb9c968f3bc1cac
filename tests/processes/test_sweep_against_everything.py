"""Readers, writers, loads, streams, branches, merges, tags and compaction in many processes; others prune and sweep."""

from collections import Counter
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

import pytest
from tests.support.chaos import SCHEMA, Order, Role, names_in, opened, start_file, stop_file, tallied
from tests.support.needed_files import kept_entries, needless_files

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.snapshot import GraphReader, Snapshot
from omnigraph.clock import SystemClock


@dataclass(frozen=True, slots=True)
class Plan:
    """How many do how much, and how often somebody is killed.

    Attributes:
        times: how often those with a number of things to do do them.
        writers: processes that write.
        sweepers: processes that prune and sweep.
        kills: how many times a sweeping process, then a writing one, then a stream, is killed and replaced.
        on_spark: how often one of them streams or loads on Spark, by turns.
    """

    times: int
    writers: int
    sweepers: int
    kills: int
    on_spark: int

    def orders(self, uri: str, folder: Path) -> list[Order]:
        roles = [
            ("stream", Role.STREAMS),
            *(("writer", Role.WRITES) for _ in range(self.writers)),
            ("spark", Role.SPARK),
            ("loader", Role.LOADS),
            ("brancher", Role.BRANCHES),
            ("tagger", Role.TAGS),
            ("reader", Role.READS),
            ("optimizer", Role.OPTIMIZES),
            *(("sweeper", Role.SWEEPS) for _ in range(self.sweepers)),
        ]
        return [
            Order(uri, f"{name}-{number}", role, self.on_spark if role is Role.SPARK else self.times, str(folder))
            for number, (name, role) in enumerate(roles)
        ]


def carried_out(plan: Plan, orders: list[Order], folder: Path) -> None:
    clock = SystemClock()
    running = {order.name: order.start() for order in orders}
    try:
        while not all(order.ready.exists() or not running[order.name].is_alive() for order in orders):
            clock.sleep(0.01)
        start_file(folder).touch()
        victims = [order for order in orders if order.role in (Role.SWEEPS, Role.WRITES, Role.STREAMS)][::-1]
        for number in range(plan.kills):
            victim = victims[number % len(victims)]
            while len(victim.done()) <= number // len(victims) and running[victim.name].is_alive():
                clock.sleep(0.01)
            if running[victim.name].is_alive():
                running[victim.name].kill()
                running[victim.name].join()
                running[victim.name] = victim.start()
        for order in orders:
            if not order.role.is_endless:
                ended(order, running[order.name])
        stop_file(folder).touch()
        for order in orders:
            ended(order, running[order.name])
    finally:
        for process in running.values():
            process.kill()
            process.join()


def ended(order: Order, process: ForkServerProcess) -> None:
    process.join()
    assert process.exitcode == 0, (
        f"{order.name} ended with {process.exitcode}: {order.said.read_text(encoding='utf-8')[-6000:]}"
    )


def check(graph: Graph, orders: list[Order]) -> None:
    parts = graph._open()
    acknowledged = {
        name for order in orders if not order.role.is_endless for line in order.done() for name in line.split()
    }
    there = names_in(graph.snapshot())
    assert acknowledged <= there, f"lost: {sorted(acknowledged - there)[:5]}"
    assert there <= acknowledged, f"nobody's: {sorted(there - acknowledged)[:5]}"
    finite = [order for order in orders if not order.role.is_endless]
    assert [len(order.done()) for order in finite] == [order.times for order in finite]
    for role in (Role.READS, Role.TAGS, Role.OPTIMIZES, Role.SWEEPS):
        lines = sum((tallied(order) for order in orders if order.role is role), start=Counter[str]())
        assert set(lines) - {"overtaken", "0"}, f"nothing ever came of {role}: {lines}"
    graph.prune(keep=2)
    graph.sweep(older_than=0)
    assert graph.sweep(older_than=0).deleted_files == 0
    assert needless_files(parts) == []
    reading = GraphReader(parts, graph._schemas, graph._reader.engine)
    known: dict[str, tuple[int, set[str]]] = {}
    for entry in sorted(kept_entries(parts), key=lambda entry: entry.number):
        # Nobody takes a name back: a later commit of a line holds at least what an earlier one does.
        names = names_in(Snapshot(reading, entry, head_of=None))
        number, before = known.get(entry.branch, (0, set()))
        assert before <= names <= acknowledged, f"entry {entry.number} of {entry.branch}"
        if number == entry.number - 1 > 0:
            told = entry.changes.types.get("node:Person")
            new = 0 if told is None else told.inserted
            assert len(names - before) == new, f"entry {entry.number} of {entry.branch} is not what it says it did"
        known[entry.branch] = (entry.number, names)


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(Plan(times=6, writers=1, sweepers=1, kills=3, on_spark=2), id="nine-processes-and-spark"),
        pytest.param(
            Plan(times=200, writers=4, sweepers=2, kills=60, on_spark=60),
            id="thirteen-processes-and-spark-for-long",
            marks=pytest.mark.torture,
        ),
    ],
)
def test_nothing_that_was_acknowledged_is_lost_and_everything_needless_goes(plan: Plan, tmp_path: Path) -> None:
    root = tmp_path / "graph"
    omnigraph.init(root, SCHEMA).close()
    orders = plan.orders(str(root), tmp_path)

    carried_out(plan, orders, tmp_path)

    with opened(str(root)) as graph:
        check(graph, orders)
