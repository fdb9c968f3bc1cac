"""Who makes way for a write that asks for it, for how long, and what is left when the one who asks dies or fails."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import die_in, noted_intents, recovered
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import SETTINGS, SIDE, opened

from omnigraph import limits
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, CommitKind, RecoveryKind
from omnigraph.model.intent import Intent, Writer
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.read import intent_bytes
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

ASKED_S = 7.0
ROW = op.insert(PERSON, {"n": 1})


class Watch(ManualClock):
    """A clock on which something else happens once somebody has waited for so long."""

    def __init__(self, at_s: float = 0.0, then: Callable[[], None] = lambda: None) -> None:
        super().__init__()
        self._at_s = at_s
        self._then = then

    def sleep(self, seconds: float) -> None:
        before = self.monotonic()
        super().sleep(seconds)
        if before < self._at_s <= self.monotonic():
            self._then()


def store_of(root: Path) -> LocalStore:
    return LocalStore(root, durability=Durability.PROCESS)


def asks(parts: GraphContext, *types: str, branch: str = MAIN, seconds: float = ASKED_S) -> str:
    """What a writer on another host has put a moment ago."""
    head = parts.log.live_head(branch)
    intent = Intent(
        id=parts.ids.new(),
        kind=CommitKind.LOAD,
        branch=branch,
        base_number=head.number,
        base_commit=head.commit,
        actor=None,
        writer=Writer("another-host", 1, "1"),
        tables={key: head.tables[key] for key in types},
        created_at_us=parts.clock.now_us(),
        pause_s=seconds,
    )
    parts.store.put(paths.intent(intent.id), intent_bytes(intent))
    return intent.id


def waited_s(root: Path, operation: Operation, clock: ManualClock) -> float:
    """How long a write waits, on its own clock."""
    parts = open_root(store_of(root), settings=SETTINGS, clock=clock)
    before = clock.monotonic()
    write(parts, MAIN, operation)
    return clock.monotonic() - before


def overtaken(
    parts: GraphContext, root: Path, times: int, *, took_s: float = 0.0, seen: list[Intent] | None = None
) -> Operation:
    """A write that rests on all companies, while so many times somebody else writes one."""
    beside = opened(store_of(root))
    left = list(range(times))

    def run(staging: WriteSet) -> None:
        if seen is not None:
            seen.extend(each.intent for each in parts.intents.everything())
        staging.read_whole(COMPANY)
        ROW.run(staging)
        if took_s:
            parts.clock.sleep(took_s)
        if left:
            write(beside, MAIN, op.insert(COMPANY, {f"beside-{left.pop()}": 0}))

    return replace(ROW, run=run)


def test_a_write_waits_as_long_as_it_is_asked_to_and_then_goes_on(root: Path, parts: GraphContext) -> None:
    asks(parts, PERSON)
    waited = waited_s(root, ROW, ManualClock())
    assert ASKED_S <= waited <= ASKED_S + 1
    assert rows_of(parts, PERSON)["n"] == 1


def test_nobody_waits_longer_than_the_limit(root: Path, parts: GraphContext) -> None:
    asks(parts, PERSON, seconds=3 * limits.STARVED_PAUSE_S_MAX)
    assert waited_s(root, ROW, ManualClock()) <= limits.STARVED_PAUSE_S_MAX + 1


def test_who_has_waited_for_a_request_does_not_wait_for_it_again(root: Path, parts: GraphContext) -> None:
    asks(parts, PERSON)
    clock = ManualClock()
    other = open_root(store_of(root), settings=SETTINGS, clock=clock)
    write(other, MAIN, ROW)
    before = clock.monotonic()
    write(other, MAIN, op.insert(PERSON, {"m": 1}))
    assert clock.monotonic() == before


def test_all_writers_of_a_process_wait_for_a_request_that_one_of_them_waits_for(
    root: Path, parts: GraphContext
) -> None:
    asks(parts, PERSON)
    done_at: list[float] = []

    def write_too() -> None:
        write(other, MAIN, op.insert(PERSON, {"m": 1}))
        done_at.append(clock.monotonic())

    clock = Watch(2.0, write_too)
    other = open_root(store_of(root), settings=SETTINGS, clock=clock)
    begun = clock.monotonic()
    write(other, MAIN, ROW)
    (at,) = done_at
    assert ASKED_S <= at - begun <= ASKED_S + 1
    assert clock.monotonic() - begun <= ASKED_S + 1  # and none any longer for that


def test_a_write_goes_on_as_soon_as_the_request_is_gone(root: Path, parts: GraphContext) -> None:
    asked = asks(parts, PERSON)
    clock = Watch(2.0, lambda: parts.intents.clear(asked))
    assert 2.0 <= waited_s(root, ROW, clock) < ASKED_S


@pytest.mark.parametrize(
    ("types", "branch", "operation"),
    [
        pytest.param((COMPANY,), MAIN, ROW, id="other types"),
        pytest.param((PERSON,), SIDE, ROW, id="another branch"),
        pytest.param((PERSON,), MAIN, replace(ROW, queued=False), id="upkeep"),
    ],
)
def test_who_is_not_concerned_does_not_wait(
    root: Path, parts: GraphContext, types: tuple[str, ...], branch: str, operation: Operation
) -> None:
    asks(parts, *types, branch=branch)
    assert waited_s(root, operation, ManualClock()) == 0


def test_an_intent_that_asks_for_nothing_is_not_waited_for(root: Path, parts: GraphContext) -> None:
    asks(parts, PERSON, seconds=0.0)
    assert waited_s(root, ROW, ManualClock()) == 0


def test_a_write_asks_after_its_third_loss_and_takes_the_request_back(root: Path) -> None:
    seen: list[Intent] = []
    parts = opened(store_of(root))
    receipt = write(parts, MAIN, overtaken(parts, root, limits.STARVED_AFTER_LOSSES, seen=seen))
    assert receipt.attempts == limits.STARVED_AFTER_LOSSES + 1
    (asked,) = seen
    assert (asked.branch, asked.pause_s) == (MAIN, limits.STARVED_PAUSE_S_MIN)
    assert asked.tables.keys() == {PERSON, COMPANY}
    assert noted_intents(parts) == []


def test_what_takes_long_asks_for_long_and_again_once_that_time_is_over(root: Path) -> None:
    seen: list[Intent] = []
    parts = open_root(store_of(root), settings=SETTINGS, clock=ManualClock())
    attempts = limits.STARVED_AFTER_LOSSES + limits.STARVED_PAUSE_ATTEMPTS + 1
    write(parts, MAIN, overtaken(parts, root, attempts - 1, took_s=10.0, seen=seen))
    assert len({each.id for each in seen}) == 2  # one at a time, and never more
    assert len(seen) == attempts - limits.STARVED_AFTER_LOSSES
    assert {round(each.pause_s) for each in seen} == {10 * limits.STARVED_PAUSE_ATTEMPTS}
    assert noted_intents(parts) == []


def test_a_request_whose_writer_died_is_ended_and_not_waited_for(root: Path, parts: GraphContext) -> None:
    asking = overtaken(parts, root, limits.STARVED_AFTER_LOSSES)
    asked = die_in(parts, lambda: write(parts, MAIN, asking), at=Failpoint.STARVATION_PAUSE_REQUESTED)
    assert waited_s(root, op.insert(PERSON, {"m": 1}), ManualClock()) == 0
    assert noted_intents(parts) == []
    (audit,) = recovered(parts)
    assert audit.recovery is not None
    assert (audit.recovery.intent, audit.recovery.kind) == (asked, RecoveryKind.UNDONE)
    assert "n" not in rows_of(parts, PERSON)
    check_graph(parts)


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault.NO_SPACE, RequestKind.PUT_IF_ABSENT),
        (Fault.LOSE_ANSWER, RequestKind.PUT_IF_ABSENT),
        (Fault.LOSE_REQUEST, RequestKind.PUT_IF_ABSENT),
        (Fault.FAIL_AFTER, RequestKind.DELETE),
    ],
)
def test_a_write_that_cannot_ask_or_take_it_back_goes_on_without(root: Path, fault: Fault, kind: RequestKind) -> None:
    store = FaultyStore(store_of(root))
    parts = opened(store)
    trouble = store.arm(fault, kind=kind, path_part=paths.RECOVERY, times=limits.PUBLISH_ATTEMPTS_MAX)
    receipt = write(parts, MAIN, overtaken(parts, root, limits.STARVED_AFTER_LOSSES))
    assert receipt.entry is not None
    assert trouble.hit.is_set()
    store.disarm()
    write(parts, MAIN, op.insert(PERSON, {"m": 1}))
    assert rows_of(parts, PERSON)["n"] == 1
    assert noted_intents(parts) == []
