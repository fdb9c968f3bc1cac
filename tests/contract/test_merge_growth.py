"""What decisions cost grows with how many there are, not with how many others there are."""

import time
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions

SMALL, LARGE = 2_000, 16_000
KINDS: dict[str, object] = {
    "a side": "source",
    "a row": {"n": 7},
    "properties": {"$properties": {"n": "source", "m": {"value": 5}}},
    "deleted": None,
}


def conflicting(count: int) -> Graph:
    options = OpenOptions(durability="process")
    graph = omnigraph.init(f"memory://growth-{omnigraph.ids.UlidSource().new()}", SCHEMA, options=options)
    graph.branches.create("side")
    for branch, value in (("side", 1), ("main", 2)):
        graph.write({"P": [{"name": f"p{number}", "n": value} for number in range(count)]}, branch=branch)
    return graph


SCHEMA = "node P { name: String @key  n: I32?  m: I32? }"


@pytest.fixture(scope="module")
def graphs() -> Any:  # noqa: ANN401  (by their sizes)
    made = {count: conflicting(count) for count in (SMALL, LARGE)}
    yield made
    for graph in made.values():
        graph.close()


@pytest.mark.parametrize("kind", KINDS)
def test_eight_times_as_many_decisions_take_about_eight_times_as_long(graphs: dict[int, Graph], kind: str) -> None:
    """By the time of this thread, the least of three; compared one by one they would take sixty-four times as long."""
    took = {}
    for count, graph in graphs.items():
        decided = {"P": {f"p{number}": KINDS[kind] for number in range(count)}}
        times = []
        for _ in range(3):
            began = time.thread_time()
            seen = graph.merge("side", resolutions=decided, preview=True)
            times.append(time.thread_time() - began)
            assert (seen.resolved, seen.conflicts) == (count, ())
        took[count] = min(times)
    assert took[LARGE] < 20 * took[SMALL] + 0.1
