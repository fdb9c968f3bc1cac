"""Three processes walk at random over one graph while a fourth sweeps: nothing acknowledged is lost or damaged."""

from pathlib import Path

import pytest
from tests.support.fast_folder import fast_folder
from tests.support.shared_walk import OPTIONS, SCHEMA, VALUES, Order, sweep, walk
from tests.support.whole_system.base import left_by_a_sweep

import omnigraph


def run_walks(folder: Path, seed: int, steps: int) -> None:
    uri = str(folder / "graph")
    omnigraph.init(uri, SCHEMA, options=OPTIONS).close()
    walkers = [Order(uri, str(folder), f"w{number}", seed * 10 + number, steps) for number in range(3)]
    sweeper = Order(uri, str(folder), "sweeper", seed, 0)
    running = [order.start(walk) for order in walkers]
    sweeping = sweeper.start(sweep)
    try:
        for process in running:
            process.join()
        sweeper.stop.touch()
        sweeping.join()
        ended = {process.name: process.exitcode for process in (*running, sweeping)}
        assert set(ended.values()) == {0}, f"seed {seed}: {ended}; what each said is above"
    finally:
        for process in (*running, sweeping):
            process.kill()
            process.join()
    with omnigraph.open(uri, options=OPTIONS) as graph:
        for _ in range(2):
            report = graph.verify(deep=True)
            assert report.is_whole, f"seed {seed}: {report.findings}"
            found = {row["name"]: row["value"] for row in graph.query(VALUES)}
            for order in walkers:
                newest = {row: value for row, value, _ in order.acknowledged()}
                wrong = {row: (found.get(row), value) for row, value in newest.items() if found.get(row) != value}
                assert newest and not wrong, f"seed {seed}, {order.name}: {wrong}"
            graph.sweep(older_than=0)
            assert left_by_a_sweep(graph) == {}


@pytest.mark.parametrize("seed", [1])
def test_nothing_acknowledged_is_lost_beside_a_sweeper(seed: int) -> None:
    with fast_folder() as folder:
        run_walks(folder, seed, 25)


@pytest.mark.torture
@pytest.mark.timeout(3_600)
@pytest.mark.parametrize("seed", range(100, 130))
def test_nothing_acknowledged_is_lost_for_long(seed: int) -> None:
    print(f"seed {seed}")
    with fast_folder() as folder:
        run_walks(folder, seed, 300)
