"""Healing beside writers that live, or may live: in this process, in another one, on another host."""

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import (
    interrupt,
    let_it_grow_old,
    move_to_another_host,
    noted_intents,
    open_and_heal,
    recovered,
    set_aside,
)
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_of
from tests.support.paused_work import OtherProcess, paused
from tests.support.write_kinds import SIDE, next_write, opened

from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, CommitKind, RecoveryKind
from omnigraph.model.conflict import DeclaredDead
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.testing.stores import CountingStore, FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

IMPATIENT = Settings(durability="process", stale_s=0.0)
INSERT = op.noted(op.insert(PERSON, {"n": 1}))


def store_of(root: Path) -> LocalStore:
    return LocalStore(root, durability=Durability.PROCESS)


# -- in this process ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "at",
    [Failpoint.WRITE_INTENT_PUT, Failpoint.WRITE_TABLES_STAGED, Failpoint.WRITE_INTENT_COMPLETED],
)
def test_a_writer_at_work_in_this_process_is_left_alone_whatever_handle_it_uses(
    root: Path, parts: GraphContext, at: Failpoint
) -> None:
    with paused(lambda: write(parts, MAIN, INSERT), at=at) as writing:
        other, healed = open_and_heal(store_of(root), settings=IMPATIENT)
        assert healed == Healed()
        receipt = write(other, MAIN, op.insert(COMPANY, {"n": 1}))
        assert receipt.warnings == ()
        assert len(noted_intents(other)) == 1
    published = writing.result().entry
    assert published is not None
    assert published.kind is CommitKind.MUTATION
    assert recovered(parts) == []
    check_graph(parts)


@pytest.mark.parametrize("at", [Failpoint.PUBLISH_ENTRY_PUT, Failpoint.PUBLISH_INTENT_CLEARED])
def test_a_writer_that_has_published_and_is_still_clearing_its_note_needs_no_healer(
    root: Path, parts: GraphContext, at: Failpoint
) -> None:
    with paused(lambda: write(parts, MAIN, INSERT), at=at) as writing:
        other, healed = open_and_heal(store_of(root), settings=IMPATIENT)
        assert healed == Healed()
        next_write(other)
    assert writing.result().warnings == ()
    assert recovered(parts) == []
    check_graph(parts)


@pytest.mark.parametrize("at", [1, 2], ids=["after_it_was_listed", "after_it_was_read_once"])
@pytest.mark.parametrize("died_at", [Failpoint.PUBLISH_ENTRY_PUT, Failpoint.WRITE_INTENT_COMPLETED])
def test_a_note_that_vanishes_under_the_healer_had_a_writer_that_came_to_its_end(
    root: Path, parts: GraphContext, at: int, died_at: Failpoint
) -> None:
    intent = interrupt(parts, INSERT, at=died_at)
    before = entries(parts)
    store = FaultyStore(store_of(root))
    reading = store.arm(Fault.STALL, at=at, kind=RequestKind.GET, path_part=paths.intent(intent))
    with ThreadPoolExecutor(1) as pool:
        healing = pool.submit(opened, store)
        assert reading.hit.wait(60)
        parts.intents.clear(intent)
        reading.released.set()
        healed = healing.result()
    assert entries(healed) == before
    check_graph(healed)


# -- in another process ------------------------------------------------------------------------------------------------


def insert_in(root: str) -> tuple[str, CommitKind]:
    """What the other process does: one write under an intent. Returns the commit it was told of, and its kind."""
    receipt = write(open_root(root), MAIN, INSERT)
    assert receipt.entry is not None
    return receipt.entry.commit, receipt.entry.kind


def conflict_in(root: str) -> tuple[str, str]:
    """The same, expecting to be refused. Returns what the conflict says."""
    with pytest.raises(ConflictError) as refused:
        insert_in(root)
    [conflict] = refused.value.conflicts
    assert isinstance(conflict, DeclaredDead)
    return conflict.intent, conflict.by_commit


def test_a_writer_at_work_in_another_process_is_left_alone_until_it_is_killed(root: Path, parts: GraphContext) -> None:
    writer = OtherProcess(insert_in, str(root), at=Failpoint.WRITE_INTENT_COMPLETED)
    writer.wait_until_parked()
    [intent] = noted_intents(parts)
    before = observed(parts)
    [warning] = heal(parts).warnings
    assert intent in warning
    assert "at work" in warning
    assert observed(parts) == before
    # Nobody waits for it: not other types, not its own, not other branches.
    for branch, operation in (
        (MAIN, op.insert(COMPANY, {"n": 1})),
        (MAIN, op.insert(PERSON, {"o": 2})),
        (SIDE, op.insert(PERSON, {"o": 2})),
    ):
        receipt = write(parts, branch, operation)
        assert receipt.entry is not None
        assert receipt.warnings == (warning,)
    writer.kill()
    assert heal(parts).ended == (intent,)
    [audit] = recovered(parts)
    assert audit.intent == intent
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_a_slow_writer_that_was_declared_dead_is_told_so_and_publishes_nothing(root: Path, parts: GraphContext) -> None:
    writer = OtherProcess(conflict_in, str(root), at=Failpoint.WRITE_TABLES_STAGED)
    writer.wait_until_parked()
    [intent] = noted_intents(parts)
    _, healed = open_and_heal(store_of(root), settings=IMPATIENT)
    assert healed.ended == (intent,)
    [audit] = recovered(parts)
    assert audit.aborted == (intent,)
    writer.go_on()
    assert writer.result() == (intent, audit.commit)
    assert "n" not in rows_of(parts, PERSON)
    next_write(parts)
    check_graph(parts)


def test_a_slow_writer_whose_work_was_finished_by_another_reports_success(root: Path, parts: GraphContext) -> None:
    writer = OtherProcess(insert_in, str(root), at=Failpoint.WRITE_INTENT_COMPLETED)
    writer.wait_until_parked()
    _, healed = open_and_heal(store_of(root), settings=IMPATIENT)
    assert len(healed.ended) == 1
    [audit] = recovered(parts)
    assert audit.recovery is not None
    assert audit.recovery.kind is RecoveryKind.FINISHED
    writer.go_on()
    assert writer.result() == (audit.commit, CommitKind.RECOVER)
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


# -- on another host ---------------------------------------------------------------------------------------------------


def test_a_writer_on_another_host_counts_as_alive_until_it_has_been_silent_for_long(parts: GraphContext) -> None:
    intent = interrupt(parts, INSERT)
    move_to_another_host(parts, intent)
    [warning] = heal(parts).warnings
    assert intent in warning
    let_it_grow_old(parts, intent)
    assert heal(parts).ended == (intent,)
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_a_long_write_elsewhere_costs_the_writes_of_others_the_same_however_long_it_takes(root: Path) -> None:
    store = CountingStore(store_of(root))
    parts = opened(store)
    intent = interrupt(parts, op.insert(COMPANY, {"n": 1}))
    move_to_another_host(parts, intent)
    costs = []
    for number in range(12):
        store.reset()
        assert len(write(parts, MAIN, op.append(PERSON, {f"n{number}": 1})).warnings) == 1
        costs.append(store.total)
    assert costs[1:] == [costs[0] - 1] * 11, "its note is read once"


def test_any_sign_of_life_of_a_writer_on_another_host_counts(parts: GraphContext) -> None:
    intent = interrupt(parts, INSERT)
    move_to_another_host(parts, intent)
    let_it_grow_old(parts, intent)
    parts.store.put(paths.intent_heartbeat(intent), b"")
    assert len(heal(parts).warnings) == 1


def test_a_writer_with_an_intent_shows_life_while_it_works_and_not_afterwards(root: Path) -> None:
    lively = Settings(durability="process", heartbeat_s=0.001)
    parts = open_root(store_of(root), settings=lively)
    beat = paths.RECOVERY
    with paused(lambda: write(parts, MAIN, INSERT), at=Failpoint.WRITE_TABLES_STAGED) as writing:
        seen: set[str] = set()
        while not any(path.endswith(".beat") for path in seen):
            seen = {listed.path for listed in parts.store.list(beat)}
    assert writing.result().entry is not None
    assert list(parts.store.list(beat)) == []


def test_a_heartbeat_that_stands_still_is_judged_by_the_time_of_who_looks(root: Path) -> None:
    clock = ManualClock()
    parts = opened(store_of(root), clock=clock)
    intent = interrupt(parts, INSERT)
    move_to_another_host(parts, intent)
    stale_s = parts.settings.stale_s

    assert len(heal(parts).warnings) == 1
    clock.advance(stale_s - 1)
    assert len(heal(parts).warnings) == 1
    parts.store.put(paths.intent_heartbeat(intent), b"")
    os.utime(root / paths.intent_heartbeat(intent), (1, 1))  # whatever time the store gives it
    clock.advance(stale_s - 1)
    assert len(heal(parts).warnings) == 1, "it has changed since, so it is counted from here on"
    clock.advance(stale_s - 1)
    assert len(heal(parts).warnings) == 1
    clock.advance(1)
    assert heal(parts).ended == (intent,)


def test_threads_that_meet_a_dead_load_do_not_fail(root: Path) -> None:
    parts, loader = opened(store_of(root)), opened(store_of(root))
    others = [f"node:T{number}" for number in range(8)]
    for type_key in others:
        write(parts, MAIN, op.add_table(parts, type_key, {"x": 0}))
    for number in range(6):
        intent = interrupt(loader, op.upsert(PERSON, {f"p{row}": number for row in range(600)}))
        with set_aside(parts, intent):  # the load must be moved on top of this
            write(parts, MAIN, op.append(PERSON, {f"o{number}": 1}))
        rows = {f"n{number}": 1}
        with ThreadPoolExecutor(len(others)) as pool:
            writing = [pool.submit(write, parts, MAIN, op.append(type_key, rows)) for type_key in others]
        assert [done.result().entry for done in writing if done.result().entry is None] == []
        heal(parts)
        assert intent not in noted_intents(parts)
        assert rows_of(parts, PERSON)["p599"] == number
    check_graph(parts)


# -- when the store does not say for certain ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [RequestKind.GET, RequestKind.LIST], ids=str)
def test_an_interrupted_write_that_cannot_be_looked_at_now_waits_and_nobody_else_does(
    root: Path, kind: RequestKind
) -> None:
    store = FaultyStore(store_of(root))
    parts = opened(store)
    intent = interrupt(parts, INSERT)
    before = observed(parts)
    waits = 0
    # Its note, its second document, its base, what others wrote since, its tables: each fails once.
    for at in range(1, 20):
        trouble = store.arm(Fault.FAIL_BEFORE, at=at if kind is RequestKind.GET else at + 1, kind=kind)
        healed = heal(parts)
        store.disarm()
        if not trouble.hit.is_set():
            break
        [warning] = healed.warnings
        assert intent in warning
        assert noted_intents(parts) == [intent]
        assert observed(parts) == before
        waits += 1
    assert waits
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_trouble_with_one_interrupted_write_keeps_no_other_from_being_healed(parts: GraphContext) -> None:
    first = interrupt(parts, op.insert(PERSON, {"n": 1}))
    with set_aside(parts, first):
        second = interrupt(parts, op.insert(KNOWS, {"o": 2}))
    move_to_another_host(parts, first)
    healed = heal(parts)
    assert healed.ended == (second,)
    assert len(healed.warnings) == 1
    assert noted_intents(parts) == [first]


def test_a_write_says_what_it_left_for_later(parts: GraphContext) -> None:
    intent = interrupt(parts, INSERT)
    move_to_another_host(parts, intent)
    [warning] = write(parts, MAIN, op.insert(COMPANY, {"later": 1})).warnings
    assert intent in warning
