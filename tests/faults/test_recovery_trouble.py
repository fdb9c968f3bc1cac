"""Trouble with the notes themselves: unreadable, too new, not to be written, not to be deleted, not to be listed."""

import json
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest
from tests.support import operations as op
from tests.support.cuts import FOR_EVER
from tests.support.interrupted_writes import interrupt, noted_intents, recovered
from tests.support.operations import COMPANY, PERSON, rows_of
from tests.support.write_kinds import SETTINGS, next_write, opened

from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, GraphError, UnavailableError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, RecoveryKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.recovery import Healed, heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write
from omnigraph.verification.findings import FindingKind
from omnigraph.verification.verify import verify


class Far(LocalStore):
    """Local disk that does not tell one file from another in its place, as object stores do not."""

    def identity(self, path: str) -> None:
        """Nothing is known for free."""


INSERT = op.noted(op.insert(PERSON, {"n": 1}))
ID = "01KDVDNA00AAAAAAAAAAAAAAAA"


@pytest.fixture
def store(root: Path) -> FaultyStore:
    return FaultyStore(LocalStore(root, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> GraphContext:
    return opened(store)


# -- notes that cannot be read -----------------------------------------------------------------------------------------


def no_schema(digest: str) -> NoReturn:
    """Refuse: these graphs have none."""
    raise AssertionError(digest)


def changed(document: bytes, **members: object) -> bytes:
    return json.dumps(json.loads(document) | members).encode()


SPOILT: dict[str, Callable[[bytes], bytes]] = {
    "no_json": lambda _: b"{not json",
    "no_text": lambda _: b"\xff\xfe\x00",
    "nothing_in_it": lambda _: b"",
    "a_list": lambda _: b"[]",
    "no_version": lambda found: changed(found, schema_version=None),
    "version_in_words": lambda found: changed(found, schema_version="one"),
    "version_of_the_past": lambda found: changed(found, schema_version=-1),
    "member_missing": lambda found: changed(found, tables=None),
    "nested_too_deep": lambda _: b"[" * 100_000,
    "of_another_write": lambda found: changed(found, intent="01KDVDNA00BBBBBBBBBBBBBBBB"),
}


@pytest.mark.parametrize("spoil", SPOILT)
@pytest.mark.parametrize("document", [paths.intent, paths.intent_completed], ids=["note", "staged_note"])
def test_an_unreadable_note_is_put_aside_and_named_and_writes_go_on(
    parts: GraphContext, store: FaultyStore, spoil: str, document: Callable[[str], str]
) -> None:
    path = document(interrupt(parts, INSERT))
    before = observed(parts)
    store.put(path, SPOILT[spoil](store.get(path)))
    spoilt = store.get(path)
    looking = open_root(store.uri, read_only=True, settings=SETTINGS)
    assert observed(looking) == observed(parts) == before
    assert [finding.kind for finding in verify(parts, no_schema).findings] == [FindingKind.INTENT]

    [warning] = write(parts, MAIN, op.insert(COMPANY, {"n": 1})).warnings

    [kept] = [listed.path for listed in store.list(paths.QUARANTINE) if listed.path.endswith(path)]
    assert store.get(kept) == spoilt
    assert paths.QUARANTINE in warning
    assert noted_intents(parts) == []
    found = verify(parts, no_schema)
    assert found.is_whole
    assert any(kept in note for note in found.notes)
    assert write(parts, MAIN, op.insert(COMPANY, {"m": 1})).warnings == ()
    sweep(parts, older_than_s=0)
    check_graph(parts)


def with_pins(document: bytes, change: Callable[[str, dict[str, object]], tuple[str, object]]) -> bytes:
    tables = json.loads(document)["tables"]
    return changed(document, tables=dict(change(key, pin) for key, pin in tables.items()))


SENSELESS: dict[str, Callable[[bytes], bytes]] = {
    "of_another_type": lambda found: with_pins(found, lambda key, pin: (f"{key}X", pin)),
    "of_no_version": lambda found: with_pins(found, lambda key, pin: (key, pin | {"version": "-1"})),
    "of_no_table": lambda found: with_pins(found, lambda key, pin: (key, pin | {"table": ["nodes"]})),
}


@pytest.mark.parametrize("spoil", SENSELESS)
@pytest.mark.parametrize("document", [paths.intent, paths.intent_completed], ids=["note", "staged_note"])
def test_a_note_that_can_be_read_and_makes_no_sense_is_put_aside_too(
    parts: GraphContext, store: FaultyStore, spoil: str, document: Callable[[str], str]
) -> None:
    path = document(interrupt(parts, INSERT))
    store.put(path, SENSELESS[spoil](store.get(path)))

    [warning] = write(parts, MAIN, op.insert(COMPANY, {"n": 1})).warnings

    assert paths.QUARANTINE in warning
    assert write(parts, MAIN, op.insert(COMPANY, {"m": 1})).warnings == ()
    sweep(parts, older_than_s=0)
    check_graph(parts)


def test_a_root_that_cannot_be_confirmed_now_lets_the_interrupted_write_wait_and_no_other(root: Path) -> None:
    store = FaultyStore(Far(root, durability=Durability.PROCESS))
    parts = opened(store)
    intent = interrupt(parts, INSERT)
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part=paths.STAMP)

    [warning] = write(parts, MAIN, op.insert(COMPANY, {"n": 1})).warnings

    assert intent in warning
    assert noted_intents(parts) == [intent]
    assert heal(parts).ended == (intent,)
    check_graph(parts)


@pytest.mark.parametrize("document", [paths.intent, paths.intent_completed], ids=["note", "staged_note"])
def test_a_note_of_a_newer_release_is_left_where_it_is_and_keeps_sweeps_away(
    parts: GraphContext, store: FaultyStore, document: Callable[[str], str]
) -> None:
    path = document(interrupt(parts, INSERT))
    store.put(path, changed(store.get(path), schema_version=99))

    [warning] = write(parts, MAIN, op.insert(COMPANY, {"n": 1})).warnings

    assert re.search(r"schema_version=99, newer than the maximum 1 .*upgrade", warning)
    with pytest.raises(FormatError) as refused:
        sweep(parts, older_than_s=0)
    assert refused.value.code == "format_newer"
    assert json.loads(store.get(path))["schema_version"] == 99


@pytest.mark.parametrize("name", ["README", "note.txt", f"{ID}.tmp", f"{ID}.beat", f"{ID}.staged", "folder/file.json2"])
def test_a_file_in_the_folder_that_is_no_note_stops_nobody(parts: GraphContext, store: FaultyStore, name: str) -> None:
    store.put(f"{paths.RECOVERY}{name}", b"{not json")
    next_write(parts)
    opened(store)
    store.delete(f"{paths.RECOVERY}{name}")
    check_graph(parts)


# -- notes that cannot be written --------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [Fault.NO_SPACE, Fault.FAIL_BEFORE, Fault.LOSE_ANSWER, Fault.LOSE_REQUEST], ids=str)
def test_a_write_that_cannot_leave_its_note_does_nothing_at_all(
    parts: GraphContext, store: FaultyStore, fault: Fault
) -> None:
    before, files = observed(parts), {listed.path for listed in store.list("")}
    store.arm(fault, times=FOR_EVER, path_part=paths.RECOVERY)
    store.arm(Fault.FAIL_BEFORE, times=FOR_EVER, kind=RequestKind.GET, path_part=paths.RECOVERY)
    with pytest.raises(UnavailableError):
        write(parts, MAIN, INSERT)
    store.disarm()
    left = {listed.path for listed in store.list("")} - files
    assert left <= {paths.intent(each) for each in noted_intents(parts)}
    assert observed(parts) == before
    assert write(parts, MAIN, INSERT).attempts == 1
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


def test_a_write_whose_note_cannot_be_completed_publishes_nothing(parts: GraphContext, store: FaultyStore) -> None:
    before = observed(parts)
    store.arm(Fault.NO_SPACE, path_part=".staged")
    with pytest.raises(UnavailableError):
        write(parts, MAIN, INSERT)
    assert observed(parts) == before
    assert noted_intents(parts) == []
    next_write(parts)
    assert recovered(parts) == []
    check_graph(parts)


# -- notes that cannot be deleted --------------------------------------------------------------------------------------


def await_a_beat(store: FaultyStore) -> None:
    """Let a writer go on once it has shown life, so that there is a part of each kind."""
    while not any(listed.path.endswith(".beat") for listed in store.list(paths.RECOVERY)):
        time.sleep(0.001)


@pytest.mark.parametrize("part", [".beat", ".staged", ".json"])
def test_a_note_that_cannot_be_deleted_is_a_warning_and_is_tidied_up_by_the_next_write(
    parts: GraphContext, store: FaultyStore, part: str
) -> None:
    lively = open_root(store, settings=replace(SETTINGS, heartbeat_s=0.001))
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.DELETE, path_part=part)
    with armed(Failpoint.WRITE_INTENT_COMPLETED, lambda: await_a_beat(store)):
        receipt = write(lively, MAIN, INSERT)
    [intent] = noted_intents(parts)
    assert receipt.entry is not None
    [warning] = receipt.warnings
    assert intent in warning
    next_write(parts)
    [audit] = recovered(parts)
    assert audit.recovery is not None
    assert audit.recovery.kind is RecoveryKind.FINISHED
    assert heal(parts) == Healed()
    check_graph(parts)


def test_a_note_that_never_can_be_deleted_is_told_about_once(parts: GraphContext, store: FaultyStore) -> None:
    store.arm(Fault.NO_SPACE, times=FOR_EVER, kind=RequestKind.DELETE, path_part=paths.RECOVERY)
    write(parts, MAIN, INSERT)
    for number in range(3):
        receipt = write(parts, MAIN, op.insert(COMPANY, {f"n{number}": number}))
        assert receipt.entry is not None
        assert len(receipt.warnings) == 1
    store.disarm()
    assert len(recovered(parts)) == 1
    heal(parts)
    check_graph(parts)


def test_a_write_that_failed_and_cannot_take_its_note_back_says_where_to_look(
    parts: GraphContext, store: FaultyStore
) -> None:
    store.arm(Fault.NO_SPACE, kind=RequestKind.PUT_IF_ABSENT, path_part=paths.LOGS)
    store.arm(Fault.NO_SPACE, kind=RequestKind.DELETE, path_part=paths.RECOVERY)
    with pytest.raises(GraphError) as refused:
        write(parts, MAIN, INSERT)
    store.disarm()
    [intent] = noted_intents(parts)
    assert any(intent in note and "look in the log" in note for note in refused.value.__notes__)
    next_write(parts)
    assert rows_of(parts, PERSON)["n"] == 1
    check_graph(parts)


# -- notes that cannot be listed ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [True, False], ids=["with_one_left", "with_none"])
def test_notes_that_cannot_be_listed_stop_writes_and_opens_loudly(
    parts: GraphContext, store: FaultyStore, left: bool
) -> None:
    if left:
        interrupt(parts, INSERT)
    number = parts.log.live_head(MAIN).number
    store.arm(Fault.FAIL_BEFORE, times=FOR_EVER, kind=RequestKind.LIST, path_part=paths.RECOVERY)
    with pytest.raises(UnavailableError, match=paths.RECOVERY):
        write(parts, MAIN, op.insert(COMPANY, {"n": 1}))
    with pytest.raises(UnavailableError, match=paths.RECOVERY):
        opened(store)
    open_root(store, read_only=True)
    store.disarm()
    assert parts.log.live_head(MAIN).number == number
    next_write(parts)
    assert len(entries(parts)) == number + 1 + left
    check_graph(parts)
