"""Death in the middle of a write, at every step it takes: the state before or the state after, and work goes on."""

from pathlib import Path

import pytest

from omnigraph import limits
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.testing.cuts import Copies, Cut, at_every_failpoint, at_every_request
from omnigraph.testing.faults import Fault
from omnigraph.testing.faulty_store import FaultyStore
from omnigraph.testing.invariants import Observed, check_graph, observed
from omnigraph.testing.kinds import KINDS, NOTED, SETTINGS, Kind, next_write, opened, prepare
from omnigraph.transaction.parts import Settings
from omnigraph.transaction.recovery import Healed, heal

CASES = [pytest.param(kind, SETTINGS, id=kind.name) for kind in KINDS] + [
    pytest.param(kind, NOTED, id=f"{kind.name}-noted") for kind in KINDS if kind.leaves_intents
]


@pytest.fixture
def copies(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Copies:
    # Every commit writes a hint, so that those steps are cut too.
    monkeypatch.setattr(limits, "HINT_EVERY_ENTRIES", 1)
    prepare(folder / "template")
    return Copies(folder / "template", folder)


def before_and_after(copies: Copies, kind: Kind, settings: Settings) -> tuple[Observed, Observed]:
    parts = opened(copies.fresh(), settings=settings)
    before = observed(parts)
    kind.act(parts)
    check_graph(parts)
    after = observed(parts)
    assert before != after
    return before, after


def check_after_death(cut: Cut, before: Observed, after: Observed) -> Observed:
    parts = opened(cut.store)
    seen = observed(parts)
    assert seen in (before, after), cut.where
    next_write(parts)
    assert heal(parts) == Healed(), cut.where
    check_graph(parts)
    return seen


@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_a_write_that_dies_at_a_request_is_there_whole_or_not_at_all(
    kind: Kind, settings: Settings, copies: Copies
) -> None:
    before, after = before_and_after(copies, kind, settings)

    def work(store: FaultyStore) -> None:
        kind.act(opened(store, settings=settings))

    seen = [
        check_after_death(cut, before, after)
        for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)
        for cut in at_every_request(copies, fault, work)
    ]
    assert before in seen
    assert after in seen


@pytest.mark.parametrize(("kind", "settings"), CASES)
def test_a_write_that_dies_between_two_steps_is_there_whole_or_not_at_all(
    kind: Kind, settings: Settings, copies: Copies
) -> None:
    before, after = before_and_after(copies, kind, settings)

    def work(store: FaultyStore) -> None:
        kind.act(opened(store, settings=settings))

    for cut in at_every_failpoint(copies, work):
        check_after_death(cut, before, after)
    for cut in at_every_request(copies, Fault.CRASH_BEFORE, work, kind=RequestKind.MAKE_DURABLE):
        check_after_death(cut, before, after)
