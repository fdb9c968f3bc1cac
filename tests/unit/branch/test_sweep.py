"""Sweeping deletes what nothing reaches, and nothing else; every file has its reason."""

from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.needed_files import AT_ONCE, grow, kept_entries, swept
from tests.support.operations import PERSON

from omnigraph.branch import branches, tags
from omnigraph.branch.sweep.files import FileKind, Verdict
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import InvalidRequestError, PermissionDeniedError
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

PRUNING = WriteOptions(prune_previous=True)


@pytest.fixture
def store(tmp_path: Path) -> FaultyStore:
    return FaultyStore(LocalStore(tmp_path, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: FaultyStore) -> GraphContext:
    return op.new_graph(store, settings=AT_ONCE, clock=ManualClock())


def test_nothing_goes_from_a_graph_in_which_everything_is_needed(parts: GraphContext) -> None:
    grow(parts)
    write(parts, MAIN, op.build_index(parts, PERSON))
    branches.create(parts, "side")
    grow(parts, branch="side")

    done = swept(parts)

    assert {file.kind for file in done.deleted} <= {FileKind.TRANSACTION}


def test_pruned_commits_give_back_data_manifests_and_entries_and_the_rest_stays_readable(parts: GraphContext) -> None:
    grow(parts, times=8)
    prune(parts, MAIN, Policy(keep=1, now=True))

    done = swept(parts)

    assert {FileKind.MANIFEST, FileKind.RECORD, FileKind.DELETIONS, FileKind.DATA} <= set(done.bytes_by_kind)
    assert sum(done.bytes_by_kind.values()) == sum(file.size for file in done.deleted) > 0
    log = [paths.entry_number(listed.path) for listed in parts.store.list(paths.log_folder(MAIN))]
    assert log == [11, 10, 9, 2, 1], "the commit, the prune and the barrier; the first, which keeps the name; a mark"


def test_after_pruning_writes_only_the_anchor_and_the_newest_have_data(parts: GraphContext) -> None:
    grow(parts)
    head = grow(parts, times=3, options=PRUNING)

    swept(parts)

    assert sorted(entry.number for entry in kept_entries(parts)) == [head.number - 1, head.number, head.number + 1]
    manifests = [each for each in parts.store.list(f"{head.tables[PERSON].table}/_versions/") if "/d" in each.path]
    assert len(manifests) == 2


def test_marking_deletes_nothing(parts: GraphContext) -> None:
    grow(parts)
    before = {listed.path for listed in parts.store.list("")}

    grow(parts, times=3, options=PRUNING)

    assert before <= {listed.path for listed in parts.store.list("")}


def test_rows_that_a_pruned_commit_wrote_stay_where_a_kept_one_inherits_them(parts: GraphContext) -> None:
    write(parts, MAIN, op.append(PERSON, {"old": 1}))
    write(parts, MAIN, op.append(PERSON, {"new": 2}))
    prune(parts, MAIN, Policy(keep=1, now=True))

    swept(parts)

    assert op.rows_of(parts, PERSON) == {"old": 1, "new": 2}


def test_what_a_tag_names_stays_until_the_tag_goes(parts: GraphContext) -> None:
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


def test_what_a_branch_was_made_from_stays_as_long_as_the_branch(parts: GraphContext) -> None:
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


def test_two_branches_hold_what_either_inherits(parts: GraphContext) -> None:
    grow(parts, times=1)
    branches.create(parts, "old")
    grow(parts, times=2)
    branches.create(parts, "newer")
    grow(parts, times=2)
    prune(parts, MAIN, Policy(older_than_s=0, now=True))

    swept(parts)

    assert op.rows_of(parts, PERSON, "old") == {"a": 0, "b": 0}
    assert op.rows_of(parts, PERSON, "newer")["a"] == 1


def test_a_deleted_branch_gives_back_everything_it_had_alone_and_its_name_can_be_used_again(
    parts: GraphContext,
) -> None:
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


def test_a_branch_deleted_a_moment_ago_is_kept_for_as_long_as_files_are(parts: GraphContext) -> None:
    branches.create(parts, "side")
    last = grow(parts, branch="side")
    branches.delete(parts, "side")

    done = sweep(parts, older_than_s=600)

    assert done.deleted == ()
    assert op.rows_at(parts, PERSON, last)["a"] == 4


def test_what_a_tag_names_on_a_deleted_branch_stays(parts: GraphContext) -> None:
    branches.create(parts, "side")
    named = grow(parts, branch="side", times=2)
    tags.create(parts, "named", named)
    branches.delete(parts, "side")
    parts.clock.sleep(1)

    swept(parts)

    assert op.rows_at(parts, PERSON, named)["a"] == 1


def test_a_dry_run_gives_every_file_a_reason_and_deletes_nothing(parts: GraphContext, tmp_path: Path) -> None:
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


def test_young_files_are_spared_by_default_and_no_writer_is_disturbed(parts: GraphContext) -> None:
    grow(parts)
    prune(parts, MAIN, Policy(keep=1, now=True))
    head = parts.log.live_head(MAIN).number

    done = sweep(parts)

    assert done.deleted == ()
    assert done.barriers == 0
    assert parts.log.live_head(MAIN).number == head
    assert done.of(Verdict.SPARED)
    assert all("younger than" in item.reason for item in done.of(Verdict.SPARED))


def test_an_eager_sweep_puts_a_barrier_only_while_there_is_something_young_to_delete(parts: GraphContext) -> None:
    grow(parts)
    branches.create(parts, "side")
    prune(parts, MAIN, Policy(keep=1, now=True))

    assert sweep(parts, older_than_s=0).barriers == 2
    assert [parts.log.live_head(name).kind for name in (MAIN, "side")] == [CommitKind.BARRIER] * 2
    assert sweep(parts, older_than_s=0).barriers == 0


def test_an_age_cannot_be_negative(parts: GraphContext) -> None:
    with pytest.raises(InvalidRequestError):
        sweep(parts, older_than_s=-1)


# -- what those at work hold ------------------------------------------------------------------------------------------
