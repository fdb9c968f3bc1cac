"""Interrupted writes: what they leave, how they are finished or undone, and what the log says about it afterwards."""

import json
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies
from tests.support.interrupted_writes import die_in, interrupt, open_and_heal, recovered, set_aside
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_of
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, SIDE, Kind, next_write, opened

from omnigraph.errors import FormatError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, RECOVERY_ACTOR, CommitKind, RecoveryKind, TableOutcome
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.write import Operation, write

TWO_TYPES = op.upsert_many({PERSON: {"a": 0, "n": 1}, COMPANY: {"z": 3}})


def files_below(parts: GraphContext, *prefixes: str) -> set[str]:
    return {listed.path for prefix in prefixes for listed in parts.store.list(prefix)}


def documents_of(parts: GraphContext, intent: str) -> set[str]:
    return {path.removeprefix(f"{paths.RECOVERY}{intent}") for path in files_below(parts, paths.RECOVERY)}


# -- the four steps, as they lie on the store --------------------------------------------------------------------------


def test_the_note_is_there_before_the_first_file_is_staged(parts: GraphContext) -> None:
    before = files_below(parts, paths.NODES, paths.EDGES)
    intent = interrupt(parts, TWO_TYPES, at=Failpoint.WRITE_INTENT_PUT)
    assert documents_of(parts, intent) == {".json"}
    assert files_below(parts, paths.NODES, paths.EDGES) == before


def test_the_note_says_who_is_about_to_do_what_from_where(parts: GraphContext) -> None:
    head = parts.log.live_head(SIDE)
    intent = interrupt(parts, TWO_TYPES, branch=SIDE, options=WriteOptions(actor="grace"))
    note = json.loads(parts.store.get(paths.intent(intent)))
    assert note["intent"] == intent
    assert (note["kind"], note["actor"], note["branch"]) == ("load", "grace", SIDE)
    assert (note["base_number"], note["base_commit"]) == (head.number, head.commit)
    assert {key: (pin["table"], pin["version"]) for key, pin in note["tables"].items()} == {
        key: (head.tables[key].table, str(head.tables[key].version)) for key in (PERSON, COMPANY)
    }
    assert note["writer"].keys() == {"host", "pid", "started", "boot", "namespace", "token"}


def test_a_type_that_is_removed_is_named_in_the_note_too(parts: GraphContext) -> None:
    intent = interrupt(parts, op.remove_table(COMPANY))
    note = json.loads(parts.store.get(paths.intent(intent)))
    assert note["tables"].keys() == {COMPANY}


def test_the_note_is_completed_once_every_table_is_staged_and_not_before(parts: GraphContext) -> None:
    intent = interrupt(parts, TWO_TYPES, at=Failpoint.WRITE_MADE_DURABLE)
    assert documents_of(parts, intent) == {".json"}


def test_the_completed_note_names_the_version_staged_for_every_table(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    intent = interrupt(parts, TWO_TYPES)
    assert documents_of(parts, intent) == {".json", ".staged"}
    staged = json.loads(parts.store.get(paths.intent_completed(intent)))
    assert staged["tables"].keys() == {PERSON, COMPANY}
    for key, pin in staged["tables"].items():
        assert int(pin["version"]) != head.tables[key].version
    assert parts.log.live_head(MAIN) == head


def test_one_entry_makes_all_tables_visible_and_carries_the_intent(parts: GraphContext) -> None:
    number = parts.log.live_head(MAIN).number
    intent = interrupt(parts, TWO_TYPES, at=Failpoint.PUBLISH_ENTRY_PUT)
    head = parts.log.live_head(MAIN)
    assert (head.number, head.intent) == (number + 1, intent)
    assert documents_of(parts, intent) == {".json", ".staged"}


def test_nothing_is_left_of_a_note_after_a_write_that_went_well(parts: GraphContext) -> None:
    receipt = write(parts, MAIN, op.noted(TWO_TYPES))
    assert receipt.entry is not None
    assert receipt.entry.intent is not None
    assert files_below(parts, paths.RECOVERY) == set()


def test_nothing_is_left_of_a_note_after_a_write_that_changed_nothing(parts: GraphContext) -> None:
    receipt = write(parts, MAIN, op.noted(op.delete(PERSON, ["nobody"])))
    assert receipt.entry is None
    assert files_below(parts, paths.RECOVERY) == set()


def test_opening_a_healthy_graph_creates_nothing(root: Path) -> None:
    before = sorted(root.rglob("*"))
    opened(LocalStore(root, durability=Durability.PROCESS))
    assert sorted(root.rglob("*")) == before


def test_looking_for_interrupted_writes_costs_a_healthy_graph_one_listing(root: Path) -> None:
    store = CountingStore(LocalStore(root, durability=Durability.PROCESS))
    parts = opened(store)
    store.reset()
    heal(parts)
    assert store.counts() == {RequestKind.LIST: 1}
    store.reset()
    write(parts, MAIN, op.append(PERSON, {"n": 1}))
    assert store.counts()[RequestKind.LIST] == 1


# -- finishing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.leaves_intents], ids=lambda kind: kind.name)
def test_whatever_was_staged_whole_is_finished_by_the_next_open(kind: Kind, root: Path, folder: Path) -> None:
    copies = Copies(root, folder)
    done = opened(copies.fresh(), settings=NOTED)
    kind.act(done)
    store = copies.fresh()
    died = opened(store, settings=NOTED)
    die_in(died, lambda: kind.act(died))
    healed = opened(store)
    assert observed(healed) == observed(done)
    assert len([entry for branch in (MAIN, SIDE) for entry in recovered(healed, branch)]) == 1
    check_graph(healed)


@pytest.mark.parametrize(
    "following",
    [
        op.insert(KNOWS, {"later": 1}),
        op.insert(PERSON, {"later": 1}),
        op.upsert_many({COMPANY: {"later": 1}}),
        op.noted(op.insert(KNOWS, {"later": 1})),
    ],
    ids=["another_type", "the_same_type", "a_load", "under_an_intent"],
)
def test_the_next_write_on_the_same_handle_finishes_it_first(parts: GraphContext, following: Operation) -> None:
    interrupt(parts, TWO_TYPES)
    receipt = write(parts, MAIN, following)
    assert receipt.attempts == 1
    assert receipt.warnings == ()
    assert rows_of(parts, PERSON)["n"] == 1
    assert rows_of(parts, COMPANY)["z"] == 3
    finished, written = entries(parts)[-2:]
    assert finished.recovery is not None
    assert written == receipt.entry
    check_graph(parts)


def test_the_next_write_on_another_branch_finishes_it_too(parts: GraphContext) -> None:
    interrupt(parts, TWO_TYPES)
    write(parts, SIDE, op.insert(PERSON, {"later": 1}))
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_what_is_finished_is_told_with_its_first_actor_its_kind_and_every_table(parts: GraphContext) -> None:
    base = parts.log.live_head(MAIN)
    intent = interrupt(parts, TWO_TYPES, options=WriteOptions(actor="grace", message="both at once"))
    heal(parts)
    head = parts.log.live_head(MAIN)
    assert head.recovery is not None
    assert (head.kind, head.actor, head.intent) == (CommitKind.RECOVER, RECOVERY_ACTOR, intent)
    assert head.message == "both at once"
    assert head.recovery.kind is RecoveryKind.FINISHED
    assert head.recovery.kind.value == "RolledForward"
    assert (head.recovery.intent, head.recovery.operation, head.recovery.for_actor) == (
        intent,
        CommitKind.LOAD,
        "grace",
    )
    assert head.recovery.tables == tuple(
        TableOutcome(key, base.tables[key].version, head.tables[key].version) for key in (COMPANY, PERSON)
    )
    change = head.changes.types[PERSON]
    assert (change.inserted_ids, change.updated_ids) == (("n",), ("a",))


def test_the_first_actor_may_be_nobody(parts: GraphContext) -> None:
    interrupt(parts, TWO_TYPES, options=WriteOptions())
    heal(parts)
    [audit] = recovered(parts)
    assert audit.recovery is not None
    assert audit.recovery.for_actor is None


def test_recoveries_are_found_in_the_log_by_their_actor(parts: GraphContext) -> None:
    interrupt(parts, TWO_TYPES)
    next_write(parts)
    by_recovery = [entry.number for entry in entries(parts) if entry.actor == RECOVERY_ACTOR]
    assert by_recovery == [entry.number for entry in recovered(parts)]
    assert len(by_recovery) == 1


CHANGES_OF_A: dict[str, tuple[Operation, dict[str, int | None]]] = {
    "insert": (op.insert(PERSON, {"n": 1}), {"a": 10, "n": 1}),
    "upsert": (op.upsert(PERSON, {"a": 5, "n": 1}), {"a": 5, "n": 1}),
    "update": (op.update(PERSON, ["a"], 5), {"a": 5}),
    "delete": (op.delete(PERSON, ["a"]), {}),
}
CHANGES_OF_B: dict[str, tuple[Operation, dict[str, int | None]]] = {
    "of_another_type": (op.upsert(COMPANY, {"x": 9}), {"b": 2}),
    "of_other_rows": (op.upsert(PERSON, {"b": 9, "m": 9}), {"b": 9, "m": 9}),
    "deleting_other_rows": (op.delete(PERSON, ["b"]), {}),
}


@pytest.mark.parametrize("mine", CHANGES_OF_A)
@pytest.mark.parametrize("theirs", CHANGES_OF_B)
def test_it_is_finished_on_top_of_what_others_wrote_meanwhile(parts: GraphContext, mine: str, theirs: str) -> None:
    interrupted, rows_of_mine = CHANGES_OF_A[mine]
    foreign, rows_of_theirs = CHANGES_OF_B[theirs]
    base = parts.log.live_head(MAIN)
    intent = interrupt(parts, interrupted)
    with set_aside(parts, intent):
        write(parts, MAIN, foreign)
    heal(parts)
    assert rows_of(parts, PERSON) == {"c": None, "d": 4, **rows_of_mine, **rows_of_theirs}
    head = parts.log.live_head(MAIN)
    assert (head.number, head.intent) == (base.number + 2, intent)
    assert head.recovery is not None
    assert head.recovery.tables == (TableOutcome(PERSON, base.tables[PERSON].version, head.tables[PERSON].version),)
    check_graph(parts)


def test_an_overwrite_is_finished_only_over_the_content_it_replaced(parts: GraphContext) -> None:
    interrupt(parts, op.overwrite(PERSON, {"z": 26}))
    heal(parts)
    assert rows_of(parts, PERSON) == {"z": 26}
    intent = interrupt(parts, op.overwrite(PERSON, {"y": 25}))
    with set_aside(parts, intent):
        write(parts, MAIN, op.insert(PERSON, {"m": 9}))
    heal(parts)
    assert rows_of(parts, PERSON) == {"m": 9, "z": 26}
    check_graph(parts)


def test_a_write_already_published_is_only_tidied_up_and_told_once(parts: GraphContext) -> None:
    base = parts.log.live_head(MAIN)
    intent = interrupt(parts, TWO_TYPES, at=Failpoint.PUBLISH_ENTRY_PUT)
    published = parts.log.live_head(MAIN)
    assert heal(parts).ended == (intent,)
    [audit] = recovered(parts)
    assert audit.recovery is not None
    assert audit.recovery.kind is RecoveryKind.FINISHED
    assert audit.recovery.tables == tuple(
        TableOutcome(key, base.tables[key].version, published.tables[key].version) for key in (COMPANY, PERSON)
    )
    assert audit.tables == published.tables
    assert heal(parts) == Healed()
    check_graph(parts)


# -- who heals and who does not ----------------------------------------------------------------------------------------


def test_a_read_only_open_touches_nothing(parts: GraphContext, root: Path) -> None:
    interrupt(parts, TWO_TYPES)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    looking, healed = open_and_heal(str(root), read_only=True, settings=SETTINGS)
    assert healed == Healed()
    assert "n" not in rows_of(looking, PERSON)
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_readers_see_the_state_before_until_somebody_writes(parts: GraphContext) -> None:
    before = observed(parts)
    interrupt(parts, TWO_TYPES)
    assert observed(parts) == before


def test_several_interrupted_writes_end_in_the_order_in_which_they_began(parts: GraphContext) -> None:
    first = interrupt(parts, op.insert(PERSON, {"n": 1}))
    with set_aside(parts, first):
        second = interrupt(parts, op.insert(PERSON, {"o": 2}))
    with set_aside(parts, first), set_aside(parts, second):
        third = interrupt(parts, op.upsert(PERSON, {"n": 3}))
    assert heal(parts).ended == tuple(sorted([first, second, third]))
    assert sorted([first, second, third]) == [first, second, third]
    # Each was judged on what the one before had made of the branch.
    assert [entry.intent or entry.aborted for entry in recovered(parts)] == [first, second, (third,)]
    assert rows_of(parts, PERSON) == {"a": 10, "b": 2, "c": None, "d": 4, "n": 1, "o": 2}
    check_graph(parts)


def test_a_damaged_branch_log_keeps_only_its_own_interrupted_writes_waiting(parts: GraphContext) -> None:
    intent = interrupt(parts, TWO_TYPES, branch=SIDE)
    entry = paths.entry(SIDE, parts.log.live_head(SIDE).number)
    whole = parts.store.get(entry)
    parts.store.put(entry, b"{")
    fresh = opened(parts.store)
    [warning] = heal(fresh).warnings
    assert intent in warning
    next_write(fresh)
    with pytest.raises(FormatError):
        fresh.log.head(SIDE)
    parts.store.put(entry, whole)
    assert heal(fresh).ended == (intent,)
    check_graph(fresh)
