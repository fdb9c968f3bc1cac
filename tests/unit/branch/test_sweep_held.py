"""What those at work hold stays; and where something cannot be read, nothing is deleted on a guess."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interrupted_writes import interrupt, move_to_another_host, noted_intents
from tests.support.needed_files import AT_ONCE, grow, readable, swept
from tests.support.operations import COMPANY, PERSON

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.sweep.files import FileKind, Verdict
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, ReclaimedError, UnavailableError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, Pin
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.tables.tables import Tables
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.leases import leased
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalStore(tmp_path, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=AT_ONCE, clock=ManualClock())


def test_a_lease_holds_a_commit_that_was_pruned_until_it_is_given_back(parts: GraphContext) -> None:
    entry = grow(parts, times=2)
    with leased(parts, entry, 60):
        grow(parts)
        prune(parts, MAIN, Policy(keep=1, now=True))
        sweep(parts, older_than_s=0)
        assert op.rows_at(parts, PERSON, entry)["a"] == 1
        fresh = open_root(parts.store, settings=AT_ONCE, clock=ManualClock())
        assert op.rows_at(fresh, PERSON, entry)["a"] == 1

    swept(parts)
    assert parts.log.read(MAIN, entry.number) is None


def test_a_lease_that_comes_too_late_is_told_and_leaves_nothing(parts: GraphContext) -> None:
    entry = grow(parts, times=2)
    grow(parts)

    def pruned_first() -> None:
        prune(parts, MAIN, Policy(keep=1, now=True))
        sweep(parts, older_than_s=0)

    with armed(Failpoint.LEASE_PUT, pruned_first), pytest.raises(ReclaimedError), leased(parts, entry, 60):
        pytest.fail("nobody shall rely on it")
    assert list(parts.store.list(paths.LEASES)) == []


def test_the_lease_of_a_dead_holder_runs_out(parts: GraphContext) -> None:
    entry = grow(parts, times=2)
    lease = {"format": 1, "id": "dead", "branch": MAIN, "number": entry.number, "commit": entry.commit, "seconds": 0.0}
    parts.store.put(paths.lease("dead"), json.dumps(lease).encode())
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert done.files_by_kind[FileKind.LEASE] == 1


def test_files_and_the_base_of_an_interrupted_write_elsewhere_stay_until_it_is_ended(parts: GraphContext) -> None:
    slow = open_root(
        parts.store, settings=Settings(durability="process", protection_s=0, log_cut_s=0), clock=ManualClock()
    )
    grow(parts)
    intent = interrupt(parts, op.insert(PERSON, {"x": 1}))
    move_to_another_host(parts, intent)
    staged = {listed.path for listed in parts.store.list("nodes/")}

    done = sweep(slow, older_than_s=0)

    assert noted_intents(parts) == [intent]
    assert {file.path for file in done.deleted if file.kind is not FileKind.TRANSACTION} & staged == set()
    assert open_root(parts.store, settings=AT_ONCE, clock=ManualClock()).log.live_head(MAIN).recovery is not None
    assert op.rows_of(parts, PERSON)["x"] == 1


@pytest.mark.parametrize("moment", [Failpoint.SWEEP_LISTED, Failpoint.SWEEP_ROOTS_READ])
def test_an_intent_that_appears_while_a_sweep_runs_is_seen(moment: Failpoint, parts: GraphContext) -> None:
    slow = open_root(
        parts.store, settings=Settings(durability="process", protection_s=0, log_cut_s=0), clock=ManualClock()
    )
    grow(parts)
    intents: list[str] = []

    def begin() -> None:
        if not intents:
            intents.append(interrupt(parts, op.insert(PERSON, {"x": 1})))
            move_to_another_host(parts, intents[0])

    with armed(moment, begin):
        sweep(slow, older_than_s=0)

    assert noted_intents(parts) == intents
    assert open_root(parts.store, settings=AT_ONCE, clock=ManualClock()).log.live_head(MAIN).recovery is not None
    assert op.rows_of(parts, PERSON)["x"] == 1


# -- when something cannot be read ------------------------------------------------------------------------------------


def damaged_entry(parts: GraphContext) -> str:
    path = paths.entry("side", 2)
    parts.store.put(path, b"{")
    return path


def damaged_tag(parts: GraphContext) -> str:
    path = paths.tag_entry("bad", 1)
    parts.store.put(path, b"{")
    return path


def damaged_lease(parts: GraphContext) -> str:
    path = paths.lease("bad")
    parts.store.put(path, b"{")
    return path


@pytest.mark.parametrize(
    "damage",
    [damaged_entry, damaged_tag, damaged_lease],
    ids=lambda each: each.__name__,
)
def test_a_sweep_that_cannot_read_what_is_needed_deletes_nothing(
    damage: Callable[[GraphContext], str], parts: GraphContext
) -> None:
    grow(parts)
    branches.create(parts, "side")
    grow(parts, branch="side", times=2)
    prune(parts, MAIN, Policy(keep=1, now=True))
    damage(parts)
    fresh = open_root(parts.store, read_only=True, settings=AT_ONCE, clock=ManualClock())
    before = {listed.path for listed in parts.store.list("") if not listed.path.startswith(paths.LOGS)}

    with pytest.raises(FormatError):
        sweep(replace(fresh, read_only=False), older_than_s=0)

    assert {listed.path for listed in parts.store.list("") if not listed.path.startswith(paths.LOGS)} >= before


def test_a_damaged_version_keeps_the_sweep_from_its_own_table_only(parts: GraphContext) -> None:
    grow(parts)
    branches.create(parts, "side")
    grow(parts, branch="side", times=2)
    write(parts, MAIN, op.upsert(COMPANY, {"x": 1}))
    write(parts, MAIN, op.upsert(COMPANY, {"x": 2}))
    prune(parts, MAIN, Policy(keep=1, now=True))
    people, companies = (parts.log.live_head("side").tables[key] for key in (PERSON, COMPANY))
    parts.store.delete(f"{people.table}/_versions/d{people.version}.manifest")

    done = sweep(open_root(parts.store, settings=AT_ONCE, clock=ManualClock()), older_than_s=0)

    doubtful = done.of(Verdict.INDETERMINATE)
    assert {item.file.owner for item in doubtful} == {people.table}
    assert str(people.version) in doubtful[0].reason
    taken = {file.owner for file in done.deleted if file.is_staged}
    assert companies.table in taken
    assert people.table not in taken


@pytest.mark.parametrize(("silences", "is_told"), [(limits.STORE_RETRY_ATTEMPTS_MAX - 1, True), (99, False)])
def test_a_version_that_cannot_be_read_at_once_is_asked_for_again_before_its_table_is_spared(
    parts: GraphContext, monkeypatch: pytest.MonkeyPatch, silences: int, *, is_told: bool
) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    silent, read = iter(range(silences)), Tables.files

    def now_and_then(tables: Tables, pin: Pin) -> frozenset[str]:
        if next(silent, None) is not None:
            raise UnavailableError("the store does not answer")
        return read(tables, pin)

    monkeypatch.setattr(Tables, "files", now_and_then)
    done = sweep(parts, older_than_s=0)

    assert (done.of(Verdict.INDETERMINATE) == []) is is_told
    assert any(file.kind is FileKind.DATA for file in done.deleted) is is_told


def test_a_store_that_does_not_answer_ends_the_sweep_before_anything_is_deleted(
    parts: GraphContext, store: FaultyStore
) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    store.arm(Fault.FAIL_BEFORE, times=1_000, kind=RequestKind.GET, path_part="/log/")

    with pytest.raises(UnavailableError):
        sweep(parts, older_than_s=0)
    store.disarm()

    assert readable(parts)
    swept(parts)


def test_a_file_that_cannot_be_deleted_is_told_and_stops_nothing_else(parts: GraphContext, store: FaultyStore) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    store.arm(Fault.FAIL_BEFORE, times=2, kind=RequestKind.DELETE, path_part="/data/")  # in its batch, and alone

    done = sweep(parts, older_than_s=0)

    assert list(done.errors or ()) == [parts.log.live_head(MAIN).tables[PERSON].table]
    assert len(done.deleted) == len(done.of(Verdict.ORPHAN)) - 1
    swept(parts)
