"""Death in the middle of a sweep, at every step: what is kept is readable, and the next sweep does the rest."""

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request
from tests.support.interleaving import once
from tests.support.needed_files import AT_ONCE, needless_files, readable
from tests.support.operations import COMPANY, PERSON
from tests.support.write_kinds import SIDE, next_write, opened

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.write import write


@pytest.fixture
def untidy(copies: Copies) -> Copies:
    """Copies of a graph with something of every kind to sweep."""
    store = copies.fresh()
    parts = opened(store, settings=AT_ONCE)
    for number in range(3):
        write(parts, MAIN, op.upsert(PERSON, {"a": number, f"n{number}": 1}))
    write(parts, MAIN, op.build_index(parts, PERSON))
    write(parts, MAIN, op.remove_table(COMPANY))
    write(parts, MAIN, op.upsert(PERSON, {f"n{number}": 5 for number in range(limits.INLINE_FOOTPRINT_TOKENS_MAX)}))
    write(parts, MAIN, op.overwrite(PERSON, {"a": 1}))
    branches.create(parts, "gone")
    write(parts, "gone", op.append(PERSON, {"g": 1}))
    branches.delete(parts, "gone")
    parts.clock.sleep(1)
    prune(parts, MAIN, Policy(keep=1, now=True))
    prune(parts, SIDE, Policy(keep=1, now=True))
    return copies.of(store)


def sweeping(store: FaultyStore) -> None:
    parts = opened(store, settings=AT_ONCE)
    parts.clock.sleep(10)
    sweep(parts, older_than_s=0)


def check(cut: Cut, before: dict[tuple[str, int], object]) -> None:
    parts = opened(cut.store, settings=AT_ONCE)
    after = readable(parts)
    assert {key: after[key] for key in before} == before, cut.where
    next_write(parts)
    sweeping(cut.store)
    assert needless_files(parts) == [], cut.where
    after = readable(opened(cut.store, settings=AT_ONCE))
    assert {key: after[key] for key in before} == before, cut.where


@pytest.fixture
def before(untidy: Copies) -> dict[tuple[str, int], object]:
    """What must stay readable whatever happens."""
    return readable(opened(untidy.fresh(), settings=AT_ONCE))


@pytest.mark.parametrize(
    "fault",
    [
        Fault.CRASH_AFTER,
        Fault.FAIL_BEFORE,
        pytest.param(Fault.CRASH_BEFORE, marks=pytest.mark.torture),
        pytest.param(Fault.LOSE_ANSWER, marks=pytest.mark.torture),
    ],
)
def test_a_sweep_cut_short_after_any_request_loses_nothing_and_is_finished_by_the_next(
    fault: Fault, untidy: Copies, before: dict[tuple[str, int], object]
) -> None:
    cuts = 0
    for cut in at_every_request(untidy, fault, sweeping):
        check(cut, before)
        cuts += 1

    assert cuts > 20


def test_a_sweep_that_dies_between_two_steps_loses_nothing_and_is_finished_by_the_next(
    untidy: Copies, before: dict[tuple[str, int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "SWEEP_BATCH_FILES", 5)
    places = [place for place in Failpoint if place.startswith("sweep.")]

    cuts = 0
    for cut in at_every_failpoint(untidy, sweeping, places):
        check(cut, before)
        cuts += 1

    assert cuts == len(places)


@pytest.mark.parametrize(
    "place",
    [Failpoint.SWEEP_LISTED, Failpoint.SWEEP_ROOTS_READ, Failpoint.SWEEP_CLASSIFIED, Failpoint.SWEEP_FLOORS_PUT],
)
def test_a_sweep_in_the_middle_of_a_sweep_does_no_harm(
    place: Failpoint, untidy: Copies, before: dict[tuple[str, int], object]
) -> None:
    store = untidy.fresh()

    with armed(place, once(lambda: sweeping(store))):
        sweeping(store)

    check(Cut(f"two sweeps, the other at {place}", store, None), before)
