"""Sweeping deletes what nothing reaches, and nothing else; every file has its reason."""

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from omnigraph import limits
from omnigraph.branch import branches, tags
from omnigraph.branch.sweep.files import FileKind
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.branch.sweep.worklist import Swept, Verdict
from omnigraph.errors import FormatError, InvalidRequestError, PermissionDeniedError, UnavailableError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, CommitKind, Pin, Record
from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.tables.tables import Tables
from omnigraph.testing import operations as op
from omnigraph.testing.faults import Fault
from omnigraph.testing.faulty_store import FaultyStore
from omnigraph.testing.interrupted import interrupt, move_to_another_host, noted_intents
from omnigraph.testing.manual_clock import ManualClock
from omnigraph.testing.operations import COMPANY, KNOWS, PERSON
from omnigraph.testing.sweeping import kept_entries, needless_files
from omnigraph.transaction.leases import leased
from omnigraph.transaction.parts import Parts, Settings
from omnigraph.transaction.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import WriteOptions, write

# Nothing has to grow old first.
AT_ONCE = Settings(durability="process", protection_s=0, log_cut_s=0, stale_s=0)
PRUNING = WriteOptions(prune_previous=True)


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalStore(tmp_path, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> Iterator[Parts]:
    yield op.new_graph(store, settings=AT_ONCE, clock=ManualClock())


def grow(parts: Parts, *, branch: str = MAIN, times: int = 5, options: WriteOptions | None = None) -> Record:
    for number in range(times):
        # Of rows written together, some are replaced and then the others: deletion vectors and data files come and go.
        rows = {"a": number, "b": number} if number % 3 == 0 else {"a": number}
        receipt = write(parts, branch, op.upsert_many({PERSON: rows}), options)
    assert receipt.entry is not None
    return receipt.entry


def readable(parts: Parts) -> dict[tuple[str, int], object]:
    """Everything that every kept entry shows."""
    return {
        (entry.branch, entry.number): {key: op.rows_at(parts, key, entry) for key in entry.tables}
        for entry in kept_entries(parts)
    }


def swept(parts: Parts) -> Swept:
    """Sweep, and see that the right files are left, that all of it is readable, and that nothing is left to do."""
    before = readable(parts)
    done = sweep(parts, older_than_s=0)
    assert not done.errors
    assert needless_files(parts) == []
    fresh = open_root(parts.store, settings=AT_ONCE, clock=ManualClock())
    after = readable(fresh)
    assert {key: after[key] for key in before} == before
    again = sweep(fresh, older_than_s=0)
    assert [file.path for file in again.deleted] == []
    return done


def test_nothing_goes_from_a_graph_in_which_everything_is_needed(parts: Parts) -> None:
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    branches.create(parts, "side")
    grow(parts, branch="side")

    done = swept(parts)

    assert {file.kind for file in done.deleted} <= {FileKind.TRANSACTION}


def test_pruned_commits_give_back_data_manifests_and_entries_and_the_rest_stays_readable(parts: Parts) -> None:
    grow(parts, times=8)
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert {FileKind.MANIFEST, FileKind.RECORD, FileKind.DELETIONS, FileKind.DATA} <= set(done.bytes_by_kind)
    assert sum(done.bytes_by_kind.values()) == sum(file.size for file in done.deleted) > 0
    log = [paths.entry_number(listed.path) for listed in parts.store.list(paths.log_folder(MAIN))]
    assert log == [11, 10, 9, 1], "the commit, the prune and the barrier; and the first, which keeps the name"


def test_after_pruning_writes_only_the_anchor_and_the_newest_have_data(parts: Parts) -> None:
    grow(parts)
    head = grow(parts, times=3, options=PRUNING)

    swept(parts)

    assert sorted(entry.number for entry in kept_entries(parts)) == [head.number - 1, head.number, head.number + 1]
    manifests = [each for each in parts.store.list(f"{head.tables[PERSON].table}/_versions/") if "/d" in each.path]
    assert len(manifests) == 2


def test_marking_deletes_nothing(parts: Parts) -> None:
    grow(parts)
    before = {listed.path for listed in parts.store.list("")}

    grow(parts, times=3, options=PRUNING)

    assert before <= {listed.path for listed in parts.store.list("")}


def test_rows_that_a_pruned_commit_wrote_stay_where_a_kept_one_inherits_them(parts: Parts) -> None:
    write(parts, MAIN, op.append(PERSON, {"old": 1}))
    write(parts, MAIN, op.append(PERSON, {"new": 2}))
    prune(parts, MAIN, Policy(keep=1, now=True))

    swept(parts)

    assert op.rows_of(parts, PERSON) == {"old": 1, "new": 2}


def test_what_a_tag_names_stays_until_the_tag_goes(parts: Parts) -> None:
    second = grow(parts, times=1)
    tags.create(parts, "named", second)
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    swept(parts)
    assert op.rows_at(parts, PERSON, second) == {"a": 0, "b": 0}
    assert parts.log.read(MAIN, second.number) == second

    tags.delete(parts, "named")
    swept(parts)
    assert parts.log.read(MAIN, second.number) is None


def test_what_a_branch_was_made_from_stays_as_long_as_the_branch(parts: Parts) -> None:
    origin = grow(parts, times=1)
    branches.create(parts, "side")
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    grow(parts, branch="side")
    prune(parts, "side", Policy(keep=1, now=True))

    swept(parts)
    assert parts.log.read(MAIN, origin.number) == origin
    assert op.rows_at(parts, PERSON, origin) == {"a": 0, "b": 0}

    branches.delete(parts, "side")
    parts.clock.sleep(1)
    swept(parts)
    assert parts.log.read(MAIN, origin.number) is None


def test_two_branches_hold_what_either_inherits(parts: Parts) -> None:
    grow(parts, times=1)
    branches.create(parts, "old")
    grow(parts, times=2)
    branches.create(parts, "newer")
    grow(parts, times=2)
    prune(parts, MAIN, Policy(older_than_s=0, now=True))

    swept(parts)

    assert op.rows_of(parts, PERSON, "old") == {"a": 0, "b": 0}
    assert op.rows_of(parts, PERSON, "newer")["a"] == 1


def test_a_deleted_branch_gives_back_everything_it_had_alone_and_its_name_can_be_used_again(parts: Parts) -> None:
    grow(parts)
    branches.create(parts, "side")
    alone = grow(parts, branch="side", times=3, options=PRUNING)
    branches.delete(parts, "side")
    parts.clock.sleep(1)

    swept(parts)

    assert all(pin not in alone.tables.values() for entry in kept_entries(parts) for pin in [entry.tables[PERSON]])
    assert not [
        each
        for each in parts.store.list(alone.tables[PERSON].table + "/")
        if str(alone.tables[PERSON].version) in each.path
    ]
    branches.create(parts, "side")
    assert parts.log.live_head("side").number == alone.number + 2
    swept(parts)


def test_a_branch_deleted_a_moment_ago_is_kept_for_as_long_as_files_are(parts: Parts) -> None:
    branches.create(parts, "side")
    last = grow(parts, branch="side")
    branches.delete(parts, "side")

    done = sweep(parts, older_than_s=600)

    assert done.deleted == ()
    assert op.rows_at(parts, PERSON, last)["a"] == 4


def test_what_a_tag_names_on_a_deleted_branch_stays(parts: Parts) -> None:
    branches.create(parts, "side")
    named = grow(parts, branch="side", times=2)
    tags.create(parts, "named", named)
    branches.delete(parts, "side")
    parts.clock.sleep(1)

    swept(parts)

    assert op.rows_at(parts, PERSON, named)["a"] == 1


def test_the_tables_of_dropped_types_go_with_the_last_commit_that_had_them(parts: Parts) -> None:
    write(parts, MAIN, op.insert(COMPANY, {"x": 1}))
    table = parts.log.live_head(MAIN).tables[COMPANY].table
    write(parts, MAIN, op.remove_table(COMPANY))
    swept(parts)
    assert list(parts.store.list(f"{table}/"))

    prune(parts, MAIN, Policy(keep=1, now=True))
    done = swept(parts)

    assert list(parts.store.list(f"{table}/")) == []
    assert "no commit that is kept has its table" in {item.reason for item in done.of(Verdict.ORPHAN)}


def test_index_files_and_their_folders_go_with_the_versions_that_had_them(parts: Parts, tmp_path: Path) -> None:
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert FileKind.INDEX in done.bytes_by_kind
    folder = tmp_path / parts.log.live_head(MAIN).tables[PERSON].table / "_indices"
    assert len(list(folder.iterdir())) == 1


def test_change_and_footprint_files_go_with_their_commits(parts: Parts) -> None:
    large = {f"n{each}": each for each in range(limits.INLINE_FOOTPRINT_TOKENS_MAX + 1)}
    for _ in range(2):
        write(parts, MAIN, op.upsert(PERSON, large))
    assert len(list(parts.store.list(paths.CHANGES))) == 4
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert done.files_by_kind[FileKind.CHANGES] == 2


def test_files_that_no_commit_ever_named_go(parts: Parts) -> None:
    grow(parts)
    table = parts.log.live_head(MAIN).tables[PERSON].table
    stray = [
        f"{table}/data/of-a-dead-task.lance",
        f"{table}/_deletions/0-1-2.arrow",
        f"{table}/_indices/0b8ad2f2-0000-0000-0000-000000000000/page.idx",
        f"{table}/_versions/d9223372036854775999.manifest",
        "nodes/01KDVDNA00AAAAAAAAAAAAAAAA/data/x.lance",
        f"{paths.CHANGES}01KDVDNA00AAAAAAAAAAAAAAAA.arrow",
        f"{paths.RECOVERY}01KDVDNA00AAAAAAAAAAAAAAAA.beat",
        f"{paths.RECOVERY}01KDVDNA00AAAAAAAAAAAAAAAA.now",
        f"{derived.adjacency_folder('edges/01KDVDNA00AAAAAAAAAAAAAAAA', 7)}head.json",
        paths.digests("nodes/01KDVDNA00AAAAAAAAAAAAAAAA"),
    ]
    for path in stray:
        parts.store.put(path, b"x")

    done = swept(parts)

    assert set(stray) <= {file.path for file in done.deleted}


def test_files_under_way_of_writers_that_died_go_and_those_of_the_living_stay(parts: Parts, tmp_path: Path) -> None:
    grow(parts)
    data = tmp_path / parts.log.live_head(MAIN).tables[PERSON].table / "data"
    dead, living = data / "x.lance#12", tmp_path / "__manifest" / "log" / "main" / "hint#345"
    for file in (dead, living):
        file.write_bytes(b"half")
    os.utime(dead, (1_000_000_000, 1_000_000_000))

    planned = sweep(parts, older_than_s=0, dry_run=True)
    assert dead.exists()
    done = sweep(parts, older_than_s=0)

    for found in ([item.file for item in planned.items], done.deleted):
        assert [file.path for file in found if file.kind is FileKind.TEMPORARY] == [str(dead.relative_to(tmp_path))]
    assert (dead.exists(), living.exists()) == (False, True)


def test_frames_that_a_dead_job_laid_down_go_when_no_job_can_still_need_them(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = f"{paths.SPILL}01KDVDNA00AAAAAAAAAAAAAAAA/Person/part-0.parquet"
    parts.store.put(frame, b"x")
    assert frame not in {file.path for file in sweep(parts, older_than_s=0).deleted}

    monkeypatch.setattr(limits, "SPILL_KEPT_S", 0.0)

    assert frame in {file.path for file in sweep(parts, older_than_s=0).deleted}


def test_what_nobody_knows_is_left_alone(parts: Parts) -> None:
    foreign = ["notes.txt", "nodes/README", "__manifest/log/main/README", "__manifest/other/file", "exports/a.parquet"]
    for path in foreign:
        parts.store.put(path, b"x")

    sweep(parts, older_than_s=0)

    assert [path for path in foreign if not parts.store.get(path)] == []


def test_adjacency_goes_with_the_version_it_was_made_for(parts: Parts) -> None:
    write(parts, MAIN, op.insert(KNOWS, {"k": 1}))
    older = parts.log.live_head(MAIN).tables[KNOWS]
    write(parts, MAIN, op.insert(KNOWS, {"l": 1}))
    newer = parts.log.live_head(MAIN).tables[KNOWS]
    files = [f"{derived.adjacency_folder(pin.table, pin.version)}head.json" for pin in (older, newer)]
    for path in files:
        parts.store.put(path, b"{}")
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert [file.path for file in done.deleted if file.kind is FileKind.ADJACENCY] == files[:1]


def test_checkpoints_go_when_all_their_entries_have(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CHECKPOINT_ENTRIES", 4)
    grow(parts, times=13)
    assert parts.log.fold(MAIN) == 3
    prune(parts, MAIN, Policy(keep=4, now=True))

    done = swept(parts)

    assert done.files_by_kind[FileKind.CHECKPOINT] == 2
    assert [entry.number for entry in parts.log.since(MAIN, 0)] == [11, 12, 13, 14, 15, 16]


def test_entries_from_which_others_count_their_table_maps_stay(
    store: FaultyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "WHOLE_MAP_TYPES_MAX", 2)
    monkeypatch.setattr(limits, "WHOLE_MAP_EVERY_ENTRIES", 6)
    parts = op.new_graph(store, settings=AT_ONCE, clock=ManualClock())
    grow(parts, times=10)
    tags.create(parts, "named", parts.log.between(MAIN, 6, 6)[0])
    prune(parts, MAIN, Policy(keep=1, now=True))

    sweep(parts, older_than_s=0)

    fresh = open_root(store, settings=AT_ONCE, clock=ManualClock())
    assert set(fresh.log.live_head(MAIN).tables) == set(op.TYPES)
    assert set(fresh.log.between(MAIN, 6, 6)[0].tables) == set(op.TYPES)


def test_a_dry_run_gives_every_file_a_reason_and_deletes_nothing(parts: Parts, tmp_path: Path) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    before = {listed.path for listed in parts.store.list("")}

    planned = sweep(parts, older_than_s=0, dry_run=True)

    assert {listed.path for listed in parts.store.list("")} == before
    assert planned.deleted == ()
    assert all(item.reason for item in planned.items)
    done = sweep(parts, older_than_s=0)
    assert {item.file.path for item in planned.of(Verdict.ORPHAN)} <= {file.path for file in done.deleted}
    read_only = open_root(str(tmp_path), read_only=True, settings=AT_ONCE)
    assert sweep(read_only, older_than_s=0, dry_run=True).of(Verdict.INDETERMINATE) == []
    with pytest.raises(PermissionDeniedError):
        sweep(read_only, older_than_s=0)


def test_young_files_are_spared_by_default_and_no_writer_is_disturbed(parts: Parts) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    head = parts.log.live_head(MAIN).number

    done = sweep(parts)

    assert done.deleted == ()
    assert done.barriers == 0
    assert parts.log.live_head(MAIN).number == head
    assert done.of(Verdict.SPARED)
    assert all("younger than" in item.reason for item in done.of(Verdict.SPARED))


def test_an_eager_sweep_puts_a_barrier_only_while_there_is_something_young_to_delete(parts: Parts) -> None:
    grow(parts)
    branches.create(parts, "side")
    prune(parts, MAIN, Policy(keep=1, now=True))

    assert sweep(parts, older_than_s=0).barriers == 2
    assert [parts.log.live_head(name).kind for name in (MAIN, "side")] == [CommitKind.BARRIER] * 2
    assert sweep(parts, older_than_s=0).barriers == 0


def test_an_age_cannot_be_negative(parts: Parts) -> None:
    with pytest.raises(InvalidRequestError):
        sweep(parts, older_than_s=-1)


# -- what those at work hold ------------------------------------------------------------------------------------------


def test_a_lease_holds_a_commit_that_was_pruned_until_it_is_given_back(parts: Parts) -> None:
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


def test_the_lease_of_a_dead_holder_runs_out(parts: Parts) -> None:
    entry = grow(parts, times=2)
    lease = {"format": 1, "id": "dead", "branch": MAIN, "number": entry.number, "commit": entry.commit, "seconds": 0.0}
    parts.store.put(paths.lease("dead"), json.dumps(lease).encode())
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert done.files_by_kind[FileKind.LEASE] == 1


def test_a_job_that_stages_under_a_lease_keeps_its_files(parts: Parts) -> None:
    entry = grow(parts)
    path = f"{entry.tables[PERSON].table}/data/staged-by-a-task.lance"
    with leased(parts, entry, 60, stages=True):
        parts.store.put(path, b"x")
        assert path not in {file.path for file in sweep(parts, older_than_s=0).deleted}

    assert path in {file.path for file in swept(parts).deleted}


def test_files_and_the_base_of_an_interrupted_write_elsewhere_stay_until_it_is_ended(parts: Parts) -> None:
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
def test_an_intent_that_appears_while_a_sweep_runs_is_seen(moment: Failpoint, parts: Parts) -> None:
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


def destroyed_version(parts: Parts) -> str:
    table = parts.log.live_head("side").tables[PERSON]
    path = f"{table.table}/_versions/d{table.version}.manifest"
    parts.store.delete(path)
    return path


def damaged_entry(parts: Parts) -> str:
    path = paths.entry("side", 2)
    parts.store.put(path, b"{")
    return path


def damaged_tag(parts: Parts) -> str:
    path = paths.tag_entry("bad", 1)
    parts.store.put(path, b"{")
    return path


def damaged_lease(parts: Parts) -> str:
    path = paths.lease("bad")
    parts.store.put(path, b"{")
    return path


def damaged_intent(parts: Parts) -> str:
    path = paths.intent("01KDVDNA00AAAAAAAAAAAAAAAA")
    parts.store.put(path, b"{")
    return path


@pytest.mark.parametrize(
    "damage",
    [destroyed_version, damaged_entry, damaged_tag, damaged_lease, damaged_intent],
    ids=lambda each: each.__name__,
)
def test_a_sweep_that_cannot_read_what_is_needed_deletes_nothing(damage: Callable[[Parts], str], parts: Parts) -> None:
    grow(parts)
    branches.create(parts, "side")
    grow(parts, branch="side", times=2)
    prune(parts, MAIN, Policy(keep=1, now=True))
    damage(parts)
    fresh = open_root(parts.store, read_only=True, settings=AT_ONCE, clock=ManualClock())
    before = {listed.path for listed in parts.store.list("") if not listed.path.startswith(paths.LOGS)}

    with pytest.raises(FormatError) as caught:
        sweep(replace(fresh, read_only=False), older_than_s=0)

    assert {listed.path for listed in parts.store.list("") if not listed.path.startswith(paths.LOGS)} >= before
    if damage is destroyed_version:
        assert "branch 'side'" in caught.value.message
        assert PERSON not in caught.value.message
        assert parts.log.live_head("side").tables[PERSON].table in caught.value.message


@pytest.mark.parametrize(("silences", "is_told"), [(limits.STORE_RETRY_ATTEMPTS_MAX - 1, True), (99, False)])
def test_a_version_that_cannot_be_read_at_once_is_asked_for_again_before_its_table_is_spared(
    parts: Parts, monkeypatch: pytest.MonkeyPatch, silences: int, *, is_told: bool
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
    parts: Parts, store: FaultyStore
) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    store.arm(Fault.FAIL_BEFORE, times=1_000, kind=RequestKind.GET, path_part="/log/")

    with pytest.raises(UnavailableError):
        sweep(parts, older_than_s=0)
    store.disarm()

    assert readable(parts)
    swept(parts)


def test_a_file_that_cannot_be_deleted_is_told_and_stops_nothing_else(parts: Parts, store: FaultyStore) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.DELETE, path_part="/data/")

    done = sweep(parts, older_than_s=0)

    assert list(done.errors or ()) == [parts.log.live_head(MAIN).tables[PERSON].table]
    assert len(done.deleted) == len(done.of(Verdict.ORPHAN)) - 1
    swept(parts)


def test_sweeping_works_on_a_graph_in_memory() -> None:
    parts = op.new_graph("memory://swept", settings=AT_ONCE, clock=ManualClock())
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))

    assert FileKind.MANIFEST in swept(parts).bytes_by_kind


@pytest.mark.s3
def test_sweeping_works_on_s3(s3_store: ObjectStore) -> None:
    parts = op.new_graph(s3_store, settings=AT_ONCE, clock=ManualClock())
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))

    assert FileKind.MANIFEST in swept(parts).bytes_by_kind
