"""A proposal of an agent: a branch is made for it and then written to, and between the two anything may happen."""

from pathlib import Path

import pytest
from tests.support.cuts import FOR_EVER, Copies, at_every_request
from tests.support.interleaving import RacingStore

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.errors import ConstraintError
from omnigraph.mcp.tools import Permissions, Tools
from omnigraph.storage.object_store import ObjectStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

QUIET = OpenOptions(durability="process", auto_compact=False)
SCHEMA = """
node City { name: String @key }
edge Twin: City -> City
"""
ADDS = 'query q() { insert City { name: "Ulm" } }'


@pytest.fixture
def graphs(folder: Path) -> Copies:
    """Copies of a graph that has only `main`."""
    omnigraph.init(folder / "cities", SCHEMA, options=QUIET).close()
    return Copies(folder / "cities", folder)


def opened(store: ObjectStore) -> Graph:
    return omnigraph.open(store, options=QUIET, clock=ManualClock())


def propose(graph: Graph, query: str = ADDS) -> dict[str, object]:
    return Tools(graph, Permissions(writes=True)).propose(query, None, name=None, branch="idea", message=None)


@pytest.mark.parametrize(
    ("fault", "times"),
    [
        (Fault.CRASH_BEFORE, FOR_EVER),
        (Fault.FAIL_BEFORE, FOR_EVER),
        (Fault.NO_SPACE, FOR_EVER),
        (Fault.FAIL_AFTER, 1),
        (Fault.LOSE_ANSWER, 1),
        (Fault.LOSE_REQUEST, FOR_EVER),
    ],
    ids=["death", "failure", "no space", "failure after", "lost answer", "lost requests"],
)
def test_a_proposal_cut_anywhere_can_be_made_again_and_is_there_once(fault: Fault, times: int, graphs: Copies) -> None:
    def work(store: FaultyStore) -> None:
        with opened(store) as graph:
            propose(graph)

    cuts = 0
    found = set()
    for cut in at_every_request(graphs, fault, work, times=times):
        cuts += 1
        with opened(cut.store) as graph:
            there = graph.count("City", branch="idea") if "idea" in graph.branches else None
            found.add(there)
            assert there == 1 or cut.raised is not None, "what was acknowledged is there"
            propose(graph)
            assert graph.count("City", branch="idea") == 1, cut.where
            assert graph.count("City") == 0
            assert graph.verify(deep=True).is_whole, cut.where
    assert cuts >= 2, "the branch, and what is written to it"
    # A branch that cannot be taken back stays, empty, and the next proposal finds it.
    assert found == ({1} if times == 1 else {None, 0})


def test_of_two_proposals_for_a_branch_that_is_not_there_both_are_made(graphs: Copies) -> None:
    store = graphs.fresh()
    first: list[dict[str, object]] = []
    with (
        opened(store) as other,
        opened(RacingStore(store, [lambda: first.append(propose(other, ADDS.replace("Ulm", "Bonn")))])) as graph,
    ):
        second = propose(graph)

        assert [each["branch_created"] for each in (*first, second)] == [True, False]
        assert graph.count("City", branch="idea") == 2
        assert graph.count("City") == 0


def test_a_proposal_that_fails_takes_nothing_back_of_one_that_came_first(graphs: Copies) -> None:
    store = graphs.fresh()
    with opened(store) as other, opened(RacingStore(store, [lambda: propose(other)])) as graph:
        with pytest.raises(ConstraintError, match="Nobody"):
            propose(graph, 'query q() { insert Twin { from: "Ulm", to: "Nobody" } }')

        assert graph.count("City", branch="idea") == 1
