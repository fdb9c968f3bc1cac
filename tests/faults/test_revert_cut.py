"""Death and errors in the middle of a revert, at every request: undone or not at all, and work goes on at once."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.api.options import OpenOptions
from omnigraph.errors import OutcomeUnknownError
from omnigraph.failpoints import Failpoint
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

SCHEMA = "node Person { name: String @key  age: I32? }\nedge Knows: Person -> Person"
PROCESS = OpenOptions(durability="process")
PLACES = [place for place in Failpoint if place.startswith(("write.", "publish.entry_put"))]


@pytest.fixture
def graph(folder: Path) -> Graph:
    """A graph with a commit to undo that touched both types."""
    store = LocalStore(folder / "template", durability=Durability.PROCESS)
    made = omnigraph.init(store, SCHEMA, options=PROCESS)
    made.write(nodes={"Person": [{"name": each} for each in "abc"]}, edges={"Knows": [{"from": "a", "to": "b"}]})
    made.mutate('query q() { delete Person where name = "a" }')
    return made


def counts(graph: Graph) -> tuple[int, int]:
    return graph.count("Person"), graph.count("Knows")


def undoing(commit: str) -> Callable[[FaultyStore], None]:
    def work(store: FaultyStore) -> None:
        omnigraph.open(store, options=PROCESS, clock=ManualClock()).revert(commit)

    return work


def check(cut: Cut) -> bool:
    """Whether it was undone; the graph is whole and can be written at once."""
    again = omnigraph.open(cut.store, options=PROCESS, clock=ManualClock())
    seen = counts(again)
    assert seen in ((2, 0), (3, 1)), cut.where
    kinds = [each.kind for each in again.commits.list()]
    assert kinds.count("revert") == (seen == (3, 1)), cut.where
    again.mutate('query q() { insert Person { name: "next" } }')
    assert counts(again) == (seen[0] + 1, seen[1]), cut.where
    return seen == (3, 1)


def test_a_revert_that_dies_is_there_whole_or_not_at_all(graph: Graph, folder: Path) -> None:
    commit = graph.snapshot().commit
    copies = Copies(folder / "template", folder / "copies")
    undone = [check(cut) for cut in at_every_request(copies, Fault.CRASH_AFTER, undoing(commit))]
    assert undone == sorted(undone)  # from one request on
    assert undone[-1]
    places = [check(cut) for cut in at_every_failpoint(copies, undoing(commit), PLACES)]
    assert True in places
    assert False in places


@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.LOSE_ANSWER, Fault.FAIL_BEFORE])
def test_a_revert_that_meets_an_error_says_truly_what_came_of_it(graph: Graph, folder: Path, fault: Fault) -> None:
    commit = graph.snapshot().commit
    copies = Copies(folder / "template", folder / "copies")
    for cut in at_every_request(copies, fault, undoing(commit)):
        undone = check(cut)
        if not isinstance(cut.raised, OutcomeUnknownError):
            assert undone == (cut.raised is None), cut.where
