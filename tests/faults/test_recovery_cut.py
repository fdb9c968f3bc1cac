"""Death in the middle of healing, and two healers at once: the same ending, told exactly once."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies, at_every_failpoint, at_every_request
from tests.support.interrupted_writes import interrupt, recovered, set_aside
from tests.support.operations import COMPANY, PERSON
from tests.support.write_kinds import SIDE, next_write, opened

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.failpoints import Failpoint, armed
from omnigraph.storage import paths
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, observed
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.write import write

SPILLING = op.insert(PERSON, {"n": 1, "o": 2})


@pytest.fixture(autouse=True)
def _nothing_fits_into_a_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that changes and footprints lie in files of their own, however small."""
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 0)
    monkeypatch.setattr(limits, "INLINE_FOOTPRINT_TOKENS_MAX", 0)


def to_be_finished(parts: GraphContext) -> None:
    interrupt(parts, op.both(SPILLING, op.update(COMPANY, ["x"], 5)), options=WriteOptions(idempotency_key="once"))


def to_be_rebased(parts: GraphContext) -> None:
    intent = interrupt(parts, op.both(op.update(PERSON, ["a"], 5), op.insert(COMPANY, {"n": 1})))
    with set_aside(parts, intent):
        write(parts, "main", op.upsert(PERSON, {"b": 9}))


def to_be_undone(parts: GraphContext) -> None:
    intent = interrupt(parts, op.both(SPILLING, op.update(COMPANY, ["x"], 5)))
    with set_aside(parts, intent):
        write(parts, "main", op.upsert(COMPANY, {"x": 9}))


def to_be_undone_half_staged(parts: GraphContext) -> None:
    interrupt(parts, SPILLING, at=Failpoint.WRITE_INTENT_PUT)


def to_be_tidied_up(parts: GraphContext) -> None:
    interrupt(parts, SPILLING, at=Failpoint.PUBLISH_ENTRY_PUT)


def to_be_undone_on_main(parts: GraphContext) -> None:
    interrupt(parts, op.update(PERSON, ["a"], 5), branch=SIDE)
    branches.delete(parts, SIDE)


def two_at_once(parts: GraphContext) -> None:
    first = interrupt(parts, op.insert(PERSON, {"n": 1}))
    with set_aside(parts, first):
        interrupt(parts, op.insert(PERSON, {"o": 2}))


LEFT: tuple[Callable[[GraphContext], None], ...] = (
    to_be_finished,
    to_be_rebased,
    to_be_undone,
    to_be_undone_half_staged,
    to_be_tidied_up,
    to_be_undone_on_main,
    two_at_once,
)


def left(copies: Copies, leave: Callable[[GraphContext], None]) -> Copies:
    """Copies of a graph with interrupted writes in it."""
    store = copies.fresh()
    leave(opened(store))
    return copies.of(store)


def files(parts: GraphContext) -> set[str]:
    return {listed.path for prefix in (paths.NODES, paths.EDGES, paths.CHANGES) for listed in parts.store.list(prefix)}


def audits(parts: GraphContext) -> list[str]:
    found = [entry.recovery for branch in ("main", SIDE) for entry in recovered(parts, branch)]
    return sorted(f"{audit.intent} {audit.kind}" for audit in found if audit is not None)


@pytest.mark.parametrize("leave", LEFT, ids=lambda leave: leave.__name__)
def test_healing_that_dies_at_any_step_comes_to_the_same_end(
    leave: Callable[[GraphContext], None], copies: Copies
) -> None:
    spoilt = left(copies, leave)
    healed = opened(spoilt.fresh())
    expected, told, kept = observed(healed), audits(healed), files(healed)
    assert told
    cuts = 0
    for every in (
        at_every_request(spoilt, Fault.CRASH_AFTER, opened),
        at_every_failpoint(spoilt, opened, [place for place in Failpoint if place.startswith("recovery.")]),
    ):
        for cut in every:
            parts = opened(cut.store)
            assert observed(parts) == expected, cut.where
            assert audits(parts) == told, cut.where
            if leave in (to_be_undone, to_be_undone_on_main):
                assert files(parts) == kept, f"something of it is left: {cut.where}"
            assert heal(parts) == Healed(), cut.where
            next_write(parts)
            check_graph(parts)
            cuts += 1
    assert cuts > 3


@pytest.mark.parametrize("leave", LEFT, ids=lambda leave: leave.__name__)
@pytest.mark.parametrize(
    "fault",
    [
        Fault.NO_SPACE,
        pytest.param(Fault.LOSE_ANSWER, marks=pytest.mark.torture),
        pytest.param(Fault.FAIL_BEFORE, marks=pytest.mark.torture),
        pytest.param(Fault.FAIL_AFTER, marks=pytest.mark.torture),
        pytest.param(Fault.LOSE_REQUEST, marks=pytest.mark.torture),
    ],
)
def test_healing_that_meets_an_error_fails_no_write_and_comes_to_the_same_end(
    leave: Callable[[GraphContext], None], fault: Fault, copies: Copies
) -> None:
    spoilt = left(copies, leave)
    healed = opened(spoilt.fresh())
    expected, told = observed(healed), audits(healed)
    opened_parts: list[GraphContext] = []

    def work(store: FaultyStore) -> None:
        opened_parts.append(opened(store))

    for cut in at_every_request(spoilt, fault, work):
        assert cut.raised is None, cut.where
        parts = opened_parts[-1]
        heal(parts)
        assert observed(parts) == expected, cut.where
        assert audits(parts) == told, cut.where
        next_write(parts)
        check_graph(parts)


@pytest.mark.parametrize("leave", LEFT, ids=lambda leave: leave.__name__)
@pytest.mark.parametrize(
    "place",
    [Failpoint.RECOVERY_JUDGED, pytest.param(Failpoint.RECOVERY_ENTRY_PUT, marks=pytest.mark.torture)],
)
def test_two_healers_at_once_come_to_one_end_and_tell_it_once(
    leave: Callable[[GraphContext], None], place: Failpoint, copies: Copies
) -> None:
    spoilt = left(copies, leave)
    alone = opened(spoilt.fresh())
    store = spoilt.fresh()
    # Both reach the place before either goes on, where both come to it at all.
    meeting = threading.Barrier(2)

    def meet() -> None:
        with suppress(threading.BrokenBarrierError):
            meeting.wait(timeout=0.2)

    def healing() -> GraphContext:
        with armed(place, meet):
            return opened(store)

    with ThreadPoolExecutor(2) as pool:
        first, second = [each.result() for each in [pool.submit(healing), pool.submit(healing)]]
    assert observed(first) == observed(second) == observed(alone)
    assert audits(first) == audits(alone)
    next_write(second)
    check_graph(first)
