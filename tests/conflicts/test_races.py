"""Races and retries that once went wrong, each as a plain test."""

from contextlib import suppress
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import once
from tests.support.interrupted_writes import move_to_another_host
from tests.support.operations import PERSON

from omnigraph.branch import branches, tags
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN, CommitKind, RecoveryKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

SETTINGS = Settings(durability="process")
ONCE = WriteOptions(idempotency_key="once")


def die() -> None:
    raise Crash


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalStore(tmp_path / "graph", durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=SETTINGS, clock=ManualClock())


def interrupted(parts: GraphContext, operation: Operation, options: WriteOptions | None = None) -> str:
    """A write that died when everything was staged; returns its intent, as if its process were gone."""
    with armed(Failpoint.WRITE_INTENT_COMPLETED, die), pytest.raises(Crash):
        write(parts, MAIN, op.noted(operation), options)
    [intent_id] = parts.intents.listed()
    return intent_id


def test_a_key_used_in_an_earlier_life_of_a_branch_name_is_free_in_the_next(parts: GraphContext) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.insert(PERSON, {"a": 1}), ONCE)
    branches.delete(parts, "side")
    branches.create(parts, "side")

    receipt = write(parts, "side", op.insert(PERSON, {"a": 1}), ONCE)

    assert not receipt.replayed
    assert op.rows_of(parts, PERSON, "side") == {"a": 1}
    assert write(parts, "side", op.insert(PERSON, {"a": 1}), ONCE).replayed
    check_graph(parts)


def test_a_key_whose_note_was_lost_on_the_way_is_noted_all_the_same(parts: GraphContext, store: FaultyStore) -> None:
    store.arm(Fault.LOSE_REQUEST, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.KEYS)
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.PUT, path_part=paths.KEYS)

    first = write(parts, MAIN, op.append(PERSON, {"a": 1}), ONCE)
    again = write(parts, MAIN, op.append(PERSON, {"b": 1}), ONCE)

    assert again.replayed
    assert again.entry == first.entry
    assert op.rows_of(parts, PERSON) == {"a": 1}


def test_an_interrupted_write_is_not_finished_once_its_request_was_sent_again(parts: GraphContext) -> None:
    intent_id = interrupted(parts, op.append(PERSON, {"a": 1}), ONCE)
    move_to_another_host(parts, intent_id)
    assert not write(parts, MAIN, op.append(PERSON, {"b": 1}), ONCE).replayed

    open_root(parts.store, settings=Settings(durability="process", stale_s=0), clock=parts.clock)

    assert op.rows_of(parts, PERSON) == {"b": 1}
    assert [entry.recovery.kind for entry in entries(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    check_graph(parts)


def test_an_interrupted_write_whose_rows_were_compacted_meanwhile_is_undone(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    write(parts, MAIN, op.insert(PERSON, {"b": 1}))
    intent_id = interrupted(parts, op.upsert(PERSON, {"a": 2}))
    move_to_another_host(parts, intent_id)
    write(parts, MAIN, op.compact(parts, PERSON))

    reopened = open_root(parts.store, settings=Settings(durability="process", stale_s=0), clock=parts.clock)

    assert reopened.intents.listed() == []
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 1}
    assert [entry.recovery.kind for entry in entries(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    check_graph(parts)


def test_an_interrupted_append_is_finished_across_a_compaction(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    write(parts, MAIN, op.insert(PERSON, {"b": 1}))
    intent_id = interrupted(parts, op.append(PERSON, {"c": 1}))
    move_to_another_host(parts, intent_id)
    write(parts, MAIN, op.compact(parts, PERSON))

    open_root(parts.store, settings=Settings(durability="process", stale_s=0), clock=parts.clock)

    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 1, "c": 1}
    check_graph(parts)


def test_the_first_entry_of_a_name_used_again_follows_the_last_one_of_its_earlier_life(store: FaultyStore) -> None:
    clock = ManualClock()
    parts = op.new_graph(store, settings=SETTINGS, clock=clock)
    ahead = ManualClock(start_us=clock.now_us() + 3_600_000_000)
    other = open_root(store, settings=SETTINGS, clock=ahead)
    branches.create(other, "side")
    branches.delete(other, "side")

    branches.create(parts, "side")

    check_graph(parts)


def test_a_blind_delete_sees_an_insert_that_came_first(parts: GraphContext) -> None:
    def run(staging: WriteSet) -> None:
        staging.delete(PERSON, ["a"])
        staging.upsert(PERSON, op.table_of({"b": 1}))

    deleting = Operation(CommitKind.MUTATION, frozenset({PERSON}), run, redoable=True)

    with armed(Failpoint.WRITE_PREPARED, once(lambda: write(parts, MAIN, op.insert(PERSON, {"a": 1})))):
        receipt = write(parts, MAIN, deleting)

    assert receipt.attempts == 2
    assert op.rows_of(parts, PERSON) == {"b": 1}


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
def test_a_tag_whose_answer_was_lost_is_made_and_taken_back(
    parts: GraphContext, store: FaultyStore, fault: Fault
) -> None:
    store.arm(fault, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.TAGS)
    tag = tags.create(parts, "named", parts.log.live_head(MAIN))
    assert tags.read(parts, "named") == tag

    store.arm(fault, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.TAGS)
    tags.delete(parts, "named")
    assert tags.names(parts) == []


def test_healing_twice_changes_nothing_more(parts: GraphContext) -> None:
    interrupted(parts, op.insert(PERSON, {"a": 1}))
    heal(parts)
    before = entries(parts)

    assert heal(parts).ended == ()
    assert entries(parts) == before
    assert op.rows_of(parts, PERSON) == {"a": 1}


def test_a_commit_that_compacts_a_table_and_writes_to_it_says_what_it_changed(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    write(parts, MAIN, op.insert(PERSON, {"b": 1}))

    entry = write(parts, MAIN, op.both(op.compact(parts, PERSON), op.upsert(PERSON, {"b": 2, "c": 3}))).entry

    assert entry is not None
    assert entry.changes.types[PERSON].inserted_ids == ("c",)
    assert entry.changes.types[PERSON].updated_ids == ("b",)
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 2, "c": 3}
    check_graph(parts)


def test_an_interrupted_write_with_nothing_to_change_is_not_finished_as_a_commit(parts: GraphContext) -> None:
    for place in (Failpoint.WRITE_MADE_DURABLE, Failpoint.WRITE_INTENT_COMPLETED):
        with armed(place, die), suppress(Crash):
            assert write(parts, MAIN, op.noted(op.delete(PERSON, ["nobody"]))).entry is None

    heal(parts)

    assert [entry.recovery.kind for entry in entries(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    assert parts.intents.listed() == []
