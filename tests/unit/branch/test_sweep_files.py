"""Every kind of file goes with the last that needs it, on every kind of store; what nobody knows stays."""

import os
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.needed_files import AT_ONCE, grow, swept
from tests.support.operations import COMPANY, KNOWS, PERSON

from omnigraph import limits
from omnigraph.branch import tags
from omnigraph.branch.sweep.files import FileKind, Verdict
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.model.commit import MAIN
from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalStore(tmp_path, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=AT_ONCE, clock=ManualClock())


def test_the_tables_of_dropped_types_go_with_the_last_commit_that_had_them(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(COMPANY, {"x": 1}))
    table = parts.log.live_head(MAIN).tables[COMPANY].table
    write(parts, MAIN, op.remove_table(COMPANY))
    swept(parts)
    assert list(parts.store.list(f"{table}/"))

    prune(parts, MAIN, Policy(keep=1, now=True))
    done = swept(parts)

    assert list(parts.store.list(f"{table}/")) == []
    assert "no commit that is kept has its table" in {item.reason for item in done.of(Verdict.ORPHAN)}


def test_index_files_and_their_folders_go_with_the_versions_that_had_them(parts: GraphContext, tmp_path: Path) -> None:
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert FileKind.INDEX in done.bytes_by_kind
    folder = tmp_path / parts.log.live_head(MAIN).tables[PERSON].table / "_indices"
    assert len(list(folder.iterdir())) == 1


def test_change_and_footprint_files_go_with_their_commits(parts: GraphContext) -> None:
    large = {f"n{each}": each for each in range(limits.INLINE_FOOTPRINT_TOKENS_MAX + 1)}
    for _ in range(2):
        write(parts, MAIN, op.upsert(PERSON, large))
    assert len(list(parts.store.list(paths.CHANGES))) == 4
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert done.files_by_kind[FileKind.CHANGES] == 2


def test_files_that_no_commit_ever_named_go(parts: GraphContext) -> None:
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


def test_files_under_way_of_writers_that_died_go_and_those_of_the_living_stay(
    parts: GraphContext, tmp_path: Path
) -> None:
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
    parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = f"{paths.SPILL}01KDVDNA00AAAAAAAAAAAAAAAA/Person/part-0.parquet"
    parts.store.put(frame, b"x")
    assert frame not in {file.path for file in sweep(parts, older_than_s=0).deleted}

    monkeypatch.setattr(limits, "SPILL_KEPT_S", 0.0)

    assert frame in {file.path for file in sweep(parts, older_than_s=0).deleted}


def test_what_nobody_knows_is_left_alone(parts: GraphContext) -> None:
    foreign = ["notes.txt", "nodes/README", "__manifest/log/main/README", "__manifest/other/file", "exports/a.parquet"]
    for path in foreign:
        parts.store.put(path, b"x")

    sweep(parts, older_than_s=0)

    assert [path for path in foreign if not parts.store.get(path)] == []


def test_adjacency_goes_with_the_version_it_was_made_for(parts: GraphContext) -> None:
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


def test_checkpoints_go_when_all_their_entries_have(parts: GraphContext, monkeypatch: pytest.MonkeyPatch) -> None:
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
