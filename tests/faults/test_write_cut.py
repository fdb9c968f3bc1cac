"""Death in the middle of a write, at every step it takes: the state before or the state after, and work goes on."""

from collections.abc import Callable, Iterable
from itertools import chain, islice

import pytest
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, Kind, next_write, opened

from omnigraph import limits
from omnigraph.failpoints import Failpoint
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import Observed, check_graph, observed
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.recovery import Healed, heal

SMALL = [pytest.param(kind, SETTINGS, id=kind.name) for kind in KINDS]
UNDER_INTENT = [pytest.param(kind, NOTED, id=f"{kind.name}-noted") for kind in KINDS if kind.leaves_intents]
# These come through every place there is; all others come through some of the same.
THROUGH_EVERY_PLACE = [
    pytest.param(kind, NOTED, id=kind.name)
    for kind in KINDS
    if kind.name in ("two_statements", "add_table_with_rows", "compaction", "write_with_a_key")
]
OF_A_WRITE = [place for place in Failpoint if place.startswith(("write.", "publish.entry_put", "publish.intent"))]


@pytest.fixture(autouse=True)
def _hints_with_every_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that those steps are cut too."""
    monkeypatch.setattr(limits, "HINT_EVERY_ENTRIES", 1)


def before_and_after(copies: Copies, kind: Kind, settings: Settings) -> tuple[Observed, Observed]:
    store = copies.fresh()
    parts = opened(store, settings=settings)
    before = observed(parts)
    kind.act(parts)
    check_graph(parts)
    after = observed(parts)
    assert before != after
    copies.throw_away(store)
    return before, after


def doing(kind: Kind, settings: Settings) -> Callable[[FaultyStore], None]:
    def work(store: FaultyStore) -> None:
        kind.act(opened(store, settings=settings))

    return work


def check_after_death(cuts: Iterable[Cut], before: Observed, after: Observed) -> list[Observed]:
    """Open each graph again as a new process would; returns which of both states it was in."""
    found = []
    for cut in cuts:
        parts = opened(cut.store)
        seen = observed(parts)
        assert seen in (before, after), cut.where
        next_write(parts)
        assert heal(parts) == Healed(), cut.where
        check_graph(parts)
        found.append(seen)
    return found


@pytest.mark.parametrize(("kind", "settings"), SMALL + UNDER_INTENT)
def test_a_write_that_dies_after_a_request_is_there_whole_or_not_at_all(
    kind: Kind, settings: Settings, copies: Copies
) -> None:
    before, after = before_and_after(copies, kind, settings)
    work = doing(kind, settings)
    # To have died before a request is to have died after the one before it; only the first has none before.
    untouched = islice(at_every_request(copies, Fault.CRASH_BEFORE, work), 1)
    seen = check_after_death(chain(untouched, at_every_request(copies, Fault.CRASH_AFTER, work)), before, after)
    assert seen[0] == before
    assert seen[-1] == after


@pytest.mark.parametrize(("kind", "settings"), THROUGH_EVERY_PLACE)
def test_a_write_that_dies_between_two_steps_is_there_whole_or_not_at_all(
    kind: Kind, settings: Settings, copies: Copies
) -> None:
    before, after = before_and_after(copies, kind, settings)
    work = doing(kind, settings)
    cuts = list(check_after_death(at_every_failpoint(copies, work, OF_A_WRITE), before, after))
    assert len(cuts) == len(OF_A_WRITE)
    check_after_death(at_every_request(copies, Fault.CRASH_BEFORE, work, kind=RequestKind.MAKE_DURABLE), before, after)


@pytest.mark.torture
@pytest.mark.parametrize(("kind", "settings"), SMALL + UNDER_INTENT)
def test_a_write_that_dies_anywhere_is_there_whole_or_not_at_all(
    kind: Kind, settings: Settings, copies: Copies
) -> None:
    before, after = before_and_after(copies, kind, settings)
    work = doing(kind, settings)
    check_after_death(at_every_request(copies, Fault.CRASH_BEFORE, work), before, after)
    # What only moves names has nothing to make durable.
    syncs = at_every_request(copies, Fault.CRASH_BEFORE, work, kind=RequestKind.MAKE_DURABLE, or_none=True)
    check_after_death(syncs, before, after)
    check_after_death(at_every_failpoint(copies, work, or_none=kind.name.startswith("tag_")), before, after)
