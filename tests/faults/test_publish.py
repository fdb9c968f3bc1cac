"""From a prepared write to its entry in the log: what must be so before, and what is never done twice."""

import json
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies
from tests.support.interleaving import RacingStore, once
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_of
from tests.support.write_kinds import KINDS, NOTED, SETTINGS, Kind, next_write, opened

from omnigraph import limits
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import ConflictError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.model.conflict import ExpectedVersionMismatch
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.stage import at_hand

OF_A_WRITE = [place for place in Failpoint if place.startswith("write.")]


def store_of(root: Path) -> LocalStore:
    return LocalStore(root, durability=Durability.PROCESS)


# -- what is on the store before the entry -----------------------------------------------------------------------------


class DurabilityLog(ForwardingStore):
    """Keeps what was made durable before the first log entry was put."""

    def __init__(self, inner: ObjectStore) -> None:
        super().__init__(inner)
        self.durable: set[str] = set()
        self.published = False

    def make_durable(self, paths: object) -> None:
        if not self.published:
            self.durable.update(paths)  # type: ignore[arg-type]  # paths, whatever holds them

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind is RequestKind.PUT_IF_ABSENT and path.startswith(paths.LOGS):
            self.published = True
        return send()

    def holds(self, file: str) -> bool:
        return any(path == file or (path.endswith("/") and file.startswith(path)) for path in self.durable)


@pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.leaves_intents], ids=lambda kind: kind.name)
def test_every_file_a_commit_needs_is_durable_before_its_entry_is_put(
    root: Path, kind: Kind, settings: Settings
) -> None:
    store = DurabilityLog(store_of(root))
    parts = opened(store, settings=settings)
    heads = {name: parts.log.live_head(name) for name in parts.log.branch_names() if name != "ended"}
    kind.act(parts)
    brought = set()
    for name, before in heads.items():
        old = {file for pin in before.tables.values() for file in parts.tables.files(pin)}
        for pin in parts.log.live_head(name).tables.values():
            for file in parts.tables.files(pin) - old:
                brought |= {each.path for each in parts.store.list(file)} if file.endswith("/") else {file}
    assert bool(brought) is (kind.name not in ("load_of_nothing", "remove_table"))
    assert [path for path in sorted(brought) if not store.holds(path)] == []


def test_every_file_of_a_rebased_commit_is_durable_before_its_entry_is_put(root: Path) -> None:
    other = opened(store_of(root))
    recording = DurabilityLog(store_of(root))
    parts = opened(RacingStore(recording, [lambda: write(other, MAIN, op.upsert(PERSON, {"b": 9}))]))
    put_again = once(lambda: setattr(recording, "published", False))
    with armed(Failpoint.PUBLISH_REFUSED, put_again):
        write(parts, MAIN, op.update(PERSON, ["a"], 5))
    theirs, ours = entries(parts)[-2:]
    new = parts.tables.files(ours.tables[PERSON]) - parts.tables.files(theirs.tables[PERSON])
    assert len(new) > 1
    assert [file for file in sorted(new) if not recording.holds(file)] == []


def test_a_write_of_many_statements_makes_one_version_of_each_table(parts: GraphContext) -> None:
    def versions(type_key: str) -> set[str]:
        table = parts.log.live_head(MAIN).tables[type_key].table
        return {listed.path for listed in parts.store.list(f"{table}/_versions/")}

    before = {key: versions(key) for key in (PERSON, COMPANY, KNOWS)}
    statements = op.both(
        op.both(op.insert(PERSON, {"n": 1}), op.insert(PERSON, {"o": 2})),
        op.both(op.upsert(PERSON, {"n": 3, "a": 4}), op.insert(COMPANY, {"n": 1})),
    )
    receipt = write(parts, MAIN, statements)
    assert {key: len(versions(key) - before[key]) for key in before} == {PERSON: 1, COMPANY: 1, KNOWS: 0}
    assert receipt.entry is not None
    assert receipt.entry.number == len(entries(parts))


# -- writes that change nothing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
@pytest.mark.parametrize(
    "operation",
    [
        op.delete(PERSON, ["nobody"]),
        op.update_where(PERSON, "v = 12345", 1),
        op.both(op.insert(PERSON, {"n": 1}), op.delete(PERSON, ["n"])),
        op.delete_where(PERSON, "false"),
    ],
    ids=["delete", "update", "insert_and_delete", "delete_where"],
)
def test_a_write_that_changes_nothing_makes_no_commit(root: Path, operation: Operation, settings: Settings) -> None:
    parts = opened(store_of(root), settings=settings)
    head = parts.log.live_head(MAIN)
    receipt = write(parts, MAIN, operation)
    assert receipt.entry is None
    assert receipt.head == head == parts.log.live_head(MAIN)
    check_graph(parts)


def test_a_load_makes_a_commit_even_when_it_changes_nothing(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    receipt = write(parts, MAIN, op.upsert_many({PERSON: {}}))
    assert receipt.entry is not None
    assert (receipt.entry.kind, receipt.entry.tables) == (CommitKind.LOAD, head.tables)
    assert receipt.entry.changes.types == {}
    check_graph(parts)


def test_an_operation_that_raises_leaves_no_trace(parts: GraphContext) -> None:
    def run(staging: WriteSet) -> None:
        staging.insert(PERSON, op.table_of({"eve": 1}))
        raise ConflictError("the other end is not there")

    files = {listed.path for listed in parts.store.list("")}
    with pytest.raises(ConflictError, match="the other end"):
        write(parts, MAIN, Operation(CommitKind.MUTATION, frozenset({PERSON}), run, redoable=True))
    assert {listed.path for listed in parts.store.list("")} == files
    assert write(parts, MAIN, op.insert(PERSON, {"eve": 2})).attempts == 1


@pytest.mark.parametrize("place", OF_A_WRITE)
@pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
def test_a_write_cancelled_before_it_is_published_leaves_nothing_anybody_could_see(
    root: Path, place: Failpoint, settings: Settings
) -> None:
    def cancel() -> None:
        raise KeyboardInterrupt

    parts = opened(store_of(root), settings=settings)
    before = observed(parts)
    if settings is SETTINGS and place in (Failpoint.WRITE_INTENT_PUT, Failpoint.WRITE_INTENT_COMPLETED):
        place = Failpoint.WRITE_TABLES_STAGED
    with armed(place, cancel), pytest.raises(KeyboardInterrupt):
        write(parts, MAIN, op.upsert_many({PERSON: {"a": 0}, COMPANY: {"n": 1}}))
    assert observed(parts) == before
    assert list(parts.store.list(paths.RECOVERY)) == []
    next_write(parts)
    assert [entry for entry in entries(parts) if entry.recovery] == []
    check_graph(parts)


# -- staging again -----------------------------------------------------------------------------------------------------


class Dawdling:
    """A handle that is swept past between staging and publishing; it keeps which files were there at that moment."""

    def __init__(self, root: Path, settings: Settings = SETTINGS) -> None:
        self._store = store_of(root)
        self.parts = opened(self._store, settings=settings, clock=ManualClock())
        self._before = self._files()
        self.staged_first: set[str] = set()

    def write(self, operation: Operation) -> Record:
        with armed(Failpoint.WRITE_MADE_DURABLE, once(self._dawdle)):
            receipt = write(self.parts, MAIN, operation)
        assert receipt.entry is not None
        return receipt.entry

    def _dawdle(self) -> None:
        self.staged_first = self._files() - self._before
        sweep(opened(self._store), older_than_s=0)

    def _files(self) -> set[str]:
        return {listed.path for listed in self.parts.store.list("")}

    def uses_what_was_staged_first(self, entry: Record) -> bool:
        used = self.parts.tables.files(entry.tables[PERSON]) | {entry.changes.file, entry.footprint.file}
        return bool(used & self.staged_first)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (op.insert(PERSON, {"n": 1}), {"n": 1}),
        (op.append(PERSON, {"n": 1}), {"n": 1}),
        (op.upsert(PERSON, {"a": 5, "n": 1}), {"a": 5, "n": 1}),
        (op.update_where(PERSON, "v > 3", 0), {"a": 0, "d": 0}),
        (op.overwrite(PERSON, {"z": 26}), {"z": 26}),
    ],
    ids=["insert", "append", "upsert", "update", "overwrite"],
)
def test_a_small_write_that_dawdles_is_staged_again_without_running_again(
    root: Path, operation: Operation, expected: dict[str, int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Changes and footprints lie in files of their own, which a sweep may take as well.
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 0)
    monkeypatch.setattr(limits, "INLINE_FOOTPRINT_TOKENS_MAX", 0)
    dawdling = Dawdling(root)
    counted = op.Counted(operation)
    entry = dawdling.write(counted.operation)
    assert counted.runs == 1
    assert dawdling.staged_first
    assert not dawdling.uses_what_was_staged_first(entry)
    rows = rows_of(dawdling.parts, PERSON)
    assert {key: rows[key] for key in expected} == expected
    assert entry.changes.file is not None
    told = read_change_file(dawdling.parts.store.get(entry.changes.file), path="")[PERSON]
    assert (told.inserted, told.updated, told.deleted) == (
        entry.changes.types[PERSON].inserted,
        entry.changes.types[PERSON].updated,
        entry.changes.types[PERSON].deleted,
    )
    check_graph(dawdling.parts)


@pytest.mark.parametrize("name", ["upsert", "compaction", "add_column"])
def test_a_write_under_an_intent_may_dawdle(root: Path, name: str) -> None:
    dawdling = Dawdling(root)
    operation = {
        "upsert": op.noted(op.upsert(PERSON, {"a": 5})),
        "compaction": op.compact(dawdling.parts, PERSON),
        "add_column": op.add_column(dawdling.parts, PERSON, "w"),
    }[name]
    counted = op.Counted(operation)
    entry = dawdling.write(counted.operation)
    assert counted.runs == 1
    assert entry.intent is not None
    assert dawdling.uses_what_was_staged_first(entry)
    check_graph(dawdling.parts)


def test_a_write_whose_rows_were_compacted_meanwhile_is_staged_again_without_running_again(root: Path) -> None:
    other = opened(store_of(root))
    parts = opened(RacingStore(store_of(root), [lambda: write(other, MAIN, op.compact(other, PERSON))]))
    counted = op.Counted(op.update(PERSON, ["a"], 5))
    receipt = write(parts, MAIN, counted.operation)
    assert (counted.runs, receipt.attempts) == (1, 1)
    assert rows_of(parts, PERSON) == {"a": 5, "b": 2, "c": None, "d": 4}
    check_graph(parts)


# -- footprints and changes too large for a record ---------------------------------------------------------------------


@pytest.fixture
def spilling(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing fits into a record."""
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 0)
    monkeypatch.setattr(limits, "INLINE_FOOTPRINT_TOKENS_MAX", 0)


@pytest.mark.usefixtures("spilling")
@pytest.mark.parametrize("clash", [False, True], ids=["other_rows", "the_same_rows"])
def test_a_spilled_footprint_still_tells_a_conflict_from_none(root: Path, clash: bool) -> None:
    other = opened(store_of(root))
    theirs = op.upsert(PERSON, {"a" if clash else "b": 9})
    parts = opened(RacingStore(store_of(root), [lambda: write(other, MAIN, theirs)]))
    if clash:
        with pytest.raises(ConflictError, match=PERSON):
            write(parts, MAIN, op.update(PERSON, ["a"], 5))
    else:
        write(parts, MAIN, op.update(PERSON, ["a"], 5))
    assert rows_of(parts, PERSON) == {"a": 9 if clash else 5, "b": 2 if clash else 9, "c": None, "d": 4}
    head = parts.log.live_head(MAIN)
    document = json.loads(parts.store.get(paths.entry(MAIN, head.number)))
    assert document["footprint"] == {"file": head.footprint.file}
    check_graph(parts)


@pytest.mark.usefixtures("spilling")
def test_spilled_changes_are_counted_in_the_record_and_named_in_the_file(parts: GraphContext) -> None:
    receipt = write(parts, MAIN, op.both(op.upsert(PERSON, {"a": 5, "n": 1}), op.delete(PERSON, ["b"])))
    assert receipt.entry is not None
    found = parts.log.read(MAIN, receipt.entry.number)
    assert found is not None
    change = found.changes.types[PERSON]
    assert (change.inserted, change.updated, change.deleted) == (1, 1, 1)
    assert (change.inserted_ids, change.updated_ids, change.deleted_ids) == (None, None, None)
    assert found.changes.file is not None
    told = read_change_file(parts.store.get(found.changes.file), path="")[PERSON]
    assert (told.inserted_ids, told.updated_ids, told.deleted_ids) == (("n",), ("a",), ("b",))


def test_a_footprint_of_too_many_tokens_says_all_and_still_conflicts(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FOOTPRINT_TOKENS_MAX", 0)
    other = opened(store_of(root))
    parts = opened(RacingStore(store_of(root), [lambda: write(other, MAIN, op.upsert(PERSON, {"b": 9}))]))
    with pytest.raises(ConflictError, match=PERSON):
        write(parts, MAIN, op.update(PERSON, ["a"], 5))
    assert parts.log.live_head(MAIN).footprint.of(PERSON).writes_whole


# -- races -------------------------------------------------------------------------------------------------------------


class Elsewhere(ForwardingStore):
    """The same place under another address, so that its writers share no queue with ours, like those of a process."""

    @property
    def uri(self) -> str:
        return f"{super().uri}/."


def test_of_two_threads_that_expect_one_version_one_wins_a_hundred_times(root: Path) -> None:
    handles = [opened(store_of(root)), opened(Elsewhere(store_of(root)))]
    together = threading.Barrier(2)

    def attempt(number: int, run: int) -> bool:
        parts = handles[number]
        expected = parts.log.live_head(MAIN).tables[PERSON].version
        together.wait()
        try:
            write(
                parts,
                MAIN,
                op.append(PERSON, {f"{run}-{number}": run}),
                WriteOptions(expected_table_versions={PERSON: expected}),
            )
        except ConflictError as lost:
            [mismatch] = lost.conflicts
            assert isinstance(mismatch, ExpectedVersionMismatch)
            assert (mismatch.table_key, mismatch.expected) == (PERSON, expected)
            assert mismatch.actual != expected
            return False
        finally:
            together.wait()
        return True

    with ThreadPoolExecutor(2) as pool:
        for run in range(100):
            won = [each.result() for each in [pool.submit(attempt, 0, run), pool.submit(attempt, 1, run)]]
            assert sorted(won) == [False, True]
    assert len(rows_of(handles[0], PERSON)) == 4 + 100
    check_graph(handles[0])


@pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
def test_a_request_whose_twin_was_published_first_is_given_the_twins_commit(root: Path, settings: Settings) -> None:
    options = WriteOptions(idempotency_key="once")
    other = opened(store_of(root))
    landing = RacingStore(store_of(root), [lambda: write(other, MAIN, op.append(PERSON, {"twin": 1}), options)])
    receipt = write(opened(landing, settings=settings), MAIN, op.append(PERSON, {"n": 1}), options)
    assert receipt.replayed
    assert receipt.entry == other.log.live_head(MAIN)
    assert "n" not in rows_of(other, PERSON)
    check_graph(other)


def test_a_write_is_parented_on_the_commit_it_really_follows(root: Path) -> None:
    other = opened(store_of(root))
    parts = opened(RacingStore(store_of(root), [lambda: write(other, MAIN, op.insert(COMPANY, {"n": 1}))]))
    receipt = write(parts, MAIN, op.insert(PERSON, {"n": 1}), WriteOptions(actor="ada"))
    theirs, ours = entries(parts)[-2:]
    assert receipt.entry == ours
    assert ours.parent == theirs.commit
    assert ours.actor == "ada"


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.leaves_intents], ids=lambda kind: kind.name)
def test_what_the_writer_remembers_is_what_a_new_process_reads(kind: Kind, copies: Copies) -> None:
    store = copies.fresh()
    parts = opened(store)
    kind.act(parts)
    fresh = opened(store)
    for name in parts.log.branch_names():
        remembered, read = parts.log.head(name), fresh.log.head(name)
        assert remembered is not None
        assert read is not None
        assert replace(remembered, footprint=read.footprint) == read
        assert (remembered.footprint.file, at_hand(fresh, read.footprint).types) == (
            read.footprint.file,
            remembered.footprint.types,
        )
    assert observed(parts) == observed(fresh)
