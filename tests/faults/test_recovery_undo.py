"""Interrupted writes that cannot be finished: the log says that they are dead, and then nothing is left of them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import interrupt, recovered, set_aside
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import SIDE, next_write, opened

from omnigraph.branch import branches
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, RECOVERY_ACTOR, CommitKind, Pin, RecoveryKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.write import write

TWO_TYPES = op.upsert_many({PERSON: {"a": 0, "n": 1}, COMPANY: {"z": 3}})


def files_below(parts: GraphContext, *prefixes: str) -> set[str]:
    return {listed.path for prefix in prefixes for listed in parts.store.list(prefix)}


# -- undoing -----------------------------------------------------------------------------------------------------------


def conflicting(parts: GraphContext) -> str:
    """An interrupted write, staged whole, that a later commit stands against."""
    intent = interrupt(parts, op.both(op.update(PERSON, ["a"], 5), op.insert(COMPANY, {"n": 1})))
    with set_aside(parts, intent):
        write(parts, MAIN, op.upsert(PERSON, {"a": 77}))
    return intent


def half_staged(parts: GraphContext) -> str:
    """An interrupted write of which nobody knows what it has staged."""
    return interrupt(parts, TWO_TYPES, at=Failpoint.WRITE_TABLE_STAGED)


def damaged(parts: GraphContext) -> str:
    """An interrupted write, staged whole, of which a file is gone."""
    intent = interrupt(parts, op.insert(PERSON, {"n": 1}))
    staged = json.loads(parts.store.get(paths.intent_completed(intent)))["tables"][PERSON]
    pin = Pin(staged["table"], int(staged["version"]))
    [data] = [path for path in parts.tables.discard(parts.log.live_head(MAIN).tables[PERSON], pin) if "/data/" in path]
    parts.store.delete(data)
    return intent


def moved_away(parts: GraphContext) -> str:
    """An interrupted write, staged whole, whose rows were moved to other files by a compaction."""
    intent = interrupt(parts, op.update(PERSON, ["a"], 5))
    with set_aside(parts, intent):
        write(parts, MAIN, op.compact(parts, PERSON))
    return intent


def under_another_schema(parts: GraphContext) -> str:
    """An interrupted write, staged whole, under which the schema changed."""
    intent = interrupt(parts, op.insert(PERSON, {"n": 1}))
    with set_aside(parts, intent):
        write(parts, MAIN, op.add_column(parts, COMPANY, "w"))
    return intent


HOPELESS = (conflicting, half_staged, damaged, moved_away, under_another_schema)


@pytest.mark.parametrize("leave", HOPELESS, ids=lambda leave: leave.__name__)
def test_what_cannot_be_finished_is_undone_at_once_by_the_next_write(
    parts: GraphContext, leave: Callable[[GraphContext], str]
) -> None:
    intent = leave(parts)
    before = observed(parts)
    next_write(parts)
    undone, written = entries(parts)[-2:]
    assert undone.recovery is not None
    assert undone.recovery.kind is RecoveryKind.UNDONE
    assert undone.recovery.kind.value == "RolledBack"
    assert (undone.aborted, undone.actor, undone.intent) == ((intent,), RECOVERY_ACTOR, None)
    assert {(each.from_version, each.to_version) for each in undone.recovery.tables} == {
        (each.from_version, each.from_version) for each in undone.recovery.tables
    }
    assert undone.tables == entries(parts)[-3].tables
    assert observed(parts).branches[MAIN][PERSON] == before.branches[MAIN][PERSON]
    assert observed(parts).branches[MAIN][COMPANY] == before.branches[MAIN][COMPANY]
    assert written.kind is CommitKind.MUTATION
    check_graph(parts)


def test_the_log_says_it_is_dead_before_anything_of_it_is_deleted(root: Path) -> None:
    store = CountingStore(LocalStore(root, durability=Durability.PROCESS))
    parts = opened(store)
    conflicting(parts)
    store.reset()
    heal(parts)
    changing = [(kind, path) for kind, path in store.requests() if kind not in (RequestKind.GET, RequestKind.LIST)]
    assert changing[0][0] is RequestKind.PUT_IF_ABSENT
    assert changing[0][1].startswith(paths.log_folder(MAIN))
    assert [kind for kind, _ in changing[1:]] == [RequestKind.DELETE] * (len(changing) - 1)
    assert changing[-1][1].endswith(".json")


def test_every_file_it_had_staged_is_gone_afterwards(parts: GraphContext) -> None:
    large = op.insert(PERSON, {f"n{each}": each for each in range(400)})
    before = files_below(parts, paths.NODES, paths.EDGES, paths.CHANGES)
    intent = interrupt(parts, op.both(large, op.update(COMPANY, ["x"], 5)))
    during = files_below(parts, paths.NODES, paths.EDGES, paths.CHANGES)
    assert {path for path in during - before if path.startswith(paths.CHANGES)}
    with set_aside(parts, intent):
        write(parts, MAIN, op.upsert(COMPANY, {"x": 77}))
    kept = files_below(parts, paths.NODES, paths.EDGES, paths.CHANGES) - during
    heal(parts)
    assert files_below(parts, paths.NODES, paths.EDGES, paths.CHANGES) == before | kept
    check_graph(parts)


def test_a_write_undone_again_and_again_can_be_done_in_the_end(parts: GraphContext) -> None:
    for _ in range(3):
        interrupt(parts, op.add_column(parts, PERSON, "w"), at=Failpoint.WRITE_TABLES_STAGED)
        heal(parts)
    write(parts, MAIN, op.noted(op.add_column(parts, PERSON, "w")))
    assert [entry.recovery.kind for entry in recovered(parts) if entry.recovery] == [RecoveryKind.UNDONE] * 3
    assert parts.snapshot(parts.log.live_head(MAIN)).table(PERSON).schema.names == ["id", "v", "w"]
    check_graph(parts)


# -- branches that are gone --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", [Failpoint.WRITE_INTENT_COMPLETED, Failpoint.WRITE_INTENT_PUT])
def test_a_write_whose_branch_was_deleted_is_undone_and_main_says_so(parts: GraphContext, at: Failpoint) -> None:
    intent = interrupt(parts, TWO_TYPES, branch=SIDE, at=at)
    branches.delete(parts, SIDE)
    next_write(parts)
    [audit] = recovered(parts, MAIN)
    assert audit.aborted == (intent,)
    assert recovered(parts, SIDE) == []
    assert heal(parts) == Healed()
    check_graph(parts)


def test_a_write_whose_branch_was_made_anew_is_undone_there(parts: GraphContext) -> None:
    intent = interrupt(parts, TWO_TYPES, branch=SIDE)
    branches.delete(parts, SIDE)
    branches.create(parts, SIDE)
    before = rows_of(parts, PERSON, SIDE)
    next_write(parts)
    [audit] = recovered(parts, SIDE)
    assert audit.aborted == (intent,)
    assert rows_of(parts, PERSON, SIDE) == before
    check_graph(parts)


def test_a_write_published_on_a_branch_that_was_deleted_since_does_not_stop_anybody(parts: GraphContext) -> None:
    interrupt(parts, TWO_TYPES, branch=SIDE, at=Failpoint.PUBLISH_ENTRY_PUT)
    branches.delete(parts, SIDE)
    next_write(parts)
    [audit] = recovered(parts, MAIN)
    assert audit.recovery is not None
    assert audit.recovery.kind is RecoveryKind.FINISHED
    check_graph(parts)


def test_an_interrupted_write_on_a_branch_moves_no_other_branch(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    interrupt(parts, TWO_TYPES, branch=SIDE)
    heal(parts)
    assert parts.log.live_head(MAIN) == head
    assert rows_of(parts, PERSON, SIDE)["n"] == 1


# -- conditions and keys -----------------------------------------------------------------------------------------------


def test_a_write_that_required_a_head_is_not_finished_on_another(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    intent = interrupt(parts, op.insert(PERSON, {"n": 1}), options=WriteOptions(if_commit=head.commit))
    with set_aside(parts, intent):
        write(parts, MAIN, op.insert(COMPANY, {"n": 1}))
    heal(parts)
    assert "n" not in rows_of(parts, PERSON)
    [audit] = recovered(parts)
    assert audit.aborted == (intent,)


def test_a_write_that_expected_a_version_is_not_finished_on_another(parts: GraphContext) -> None:
    expected = {PERSON: parts.log.live_head(MAIN).tables[PERSON].version}
    options = WriteOptions(expected_table_versions=expected)
    intent = interrupt(parts, op.insert(PERSON, {"n": 1}), options=options)
    with set_aside(parts, intent):
        receipt = write(parts, MAIN, op.insert(PERSON, {"m": 1}), options)
    assert receipt.entry is not None
    heal(parts)
    assert set(rows_of(parts, PERSON)) == {"a", "b", "c", "d", "m"}
    [audit] = recovered(parts)
    assert audit.aborted == (intent,)


def test_a_write_that_expected_a_version_is_finished_where_it_still_holds(parts: GraphContext) -> None:
    expected = {PERSON: parts.log.live_head(MAIN).tables[PERSON].version}
    intent = interrupt(parts, op.insert(PERSON, {"n": 1}), options=WriteOptions(expected_table_versions=expected))
    with set_aside(parts, intent):
        write(parts, MAIN, op.insert(COMPANY, {"n": 1}))
    heal(parts)
    assert "n" in rows_of(parts, PERSON)


def test_a_request_repeated_under_its_key_while_the_first_lies_interrupted_is_done_once(parts: GraphContext) -> None:
    options = WriteOptions(idempotency_key="once")
    intent = interrupt(parts, op.append(PERSON, {"first": 1}), options=options)
    with set_aside(parts, intent):
        write(parts, MAIN, op.append(PERSON, {"second": 1}), options)
    heal(parts)
    assert set(rows_of(parts, PERSON)) == {"a", "b", "c", "d", "second"}
    check_graph(parts)


def test_a_request_finished_by_recovery_is_not_done_again_under_its_key(parts: GraphContext) -> None:
    options = WriteOptions(idempotency_key="once")
    interrupt(parts, op.append(PERSON, {"n": 1}), options=options)
    receipt = write(parts, MAIN, op.append(PERSON, {"n": 1}), options)
    assert receipt.replayed
    assert receipt.entry == recovered(parts)[0]
    check_graph(parts)
