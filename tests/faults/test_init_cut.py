"""Making a graph, cut at every step: either there is one, or making it again works."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support import operations as op
from tests.support.cuts import FOR_EVER, Copies, Cut, at_every_failpoint, at_every_request
from tests.support.write_kinds import SETTINGS, next_write, opened

from omnigraph.errors import AlreadyExistsError, FormatError, GraphError, NotFoundError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage import paths
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext


def made(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=SETTINGS, clock=ManualClock())


def check_made_or_to_be_made_again(cut: Cut) -> str:
    """Look as a new process would; returns what was found at first."""
    try:
        opened(cut.store)
        found = "a graph"
    except NotFoundError:
        found = "nothing"
    except FormatError as fault:
        assert fault.code == "init_unfinished", cut.where
        assert "run init there again" in str(fault)
        found = "an unfinished graph"
    if found == "a graph":
        with pytest.raises(AlreadyExistsError):
            made(cut.store)
    else:
        made(cut.store)
    parts = opened(cut.store)
    assert len(entries(parts)) == 1
    next_write(parts)
    check_graph(parts)
    return found


def test_an_init_that_dies_anywhere_has_made_a_graph_or_can_be_run_again(empty: Copies) -> None:
    places = [place for place in Failpoint if place.startswith("init.")]
    found = [check_made_or_to_be_made_again(cut) for cut in at_every_failpoint(empty, made, places)]
    assert found == ["an unfinished graph", "an unfinished graph", "a graph"]
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER):
        found = [check_made_or_to_be_made_again(cut) for cut in at_every_request(empty, fault, made)]
        assert (
            found
            == {
                Fault.CRASH_BEFORE: ["nothing", "an unfinished graph"],
                Fault.CRASH_AFTER: ["an unfinished graph", "a graph"],
            }[fault]
        )


@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "from_then_on"])
@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.FAIL_BEFORE, Fault.LOSE_ANSWER, Fault.LOSE_REQUEST], ids=str)
def test_an_init_that_meets_an_error_has_made_a_graph_or_can_be_run_again(
    fault: Fault, times: int, empty: Copies
) -> None:
    for cut in at_every_request(empty, fault, made, times=times):
        assert cut.raised is None or isinstance(cut.raised, GraphError), cut.where
        found = check_made_or_to_be_made_again(cut)
        if cut.raised is None:
            assert found == "a graph", cut.where


def test_an_init_over_a_graph_changes_nothing(copies: Copies) -> None:
    store = copies.fresh()
    before = {listed.path: store.get(listed.path) for listed in store.list("")}
    with pytest.raises(AlreadyExistsError, match="already") as refused:
        made(store)
    assert refused.value.code == "already_initialized"
    assert {listed.path: store.get(listed.path) for listed in store.list("")} == before


def test_of_two_inits_of_one_place_at_once_one_makes_the_graph(empty: Copies) -> None:
    for place in (Failpoint.INIT_STAMP_PUT, Failpoint.INIT_TABLES_CREATED):
        store = empty.fresh()

        def other(store: FaultyStore = store) -> None:
            with armed(Failpoint.WRITE_HEALED, lambda: None):
                made(store)

        with armed(place, other), pytest.raises(AlreadyExistsError):
            made(store)
        parts = opened(store)
        assert len(entries(parts)) == 1
        next_write(parts)
        check_graph(parts)


def test_of_many_inits_of_one_place_at_once_one_makes_the_graph(empty: Copies) -> None:
    store = empty.fresh()

    def attempt(_: int) -> bool:
        try:
            made(store)
        except AlreadyExistsError:
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(attempt, range(6))).count(True) == 1
    check_graph(opened(store))


def test_an_init_that_found_anothers_claim_keeps_the_graphs_name(empty: Copies) -> None:
    for cut in at_every_failpoint(empty, made, [Failpoint.INIT_STAMP_PUT]):
        claimed = cut.store.get(paths.STAMP)
        made(cut.store)
        assert cut.store.get(paths.STAMP) == claimed
