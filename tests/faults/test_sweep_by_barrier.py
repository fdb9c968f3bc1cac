"""A sweep deletes no file that an unpublished write may still name, however late that write arrives."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import RacingStore
from tests.support.operations import COMPANY, PERSON
from tests.support.paused_work import paused
from tests.support.write_kinds import prepare

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep.files import Swept
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction import queues
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write

PLACES = [
    Failpoint.WRITE_PREPARED,
    Failpoint.WRITE_TABLE_STAGED,
    Failpoint.WRITE_TABLES_STAGED,
    Failpoint.WRITE_MADE_DURABLE,
]
OPERATIONS = {
    "append": op.append(PERSON, {"n": 1}),
    "insert with files of its own": op.insert(PERSON, {f"n{number}": number for number in range(600)}),
    "update": op.update_where(PERSON, "v = 2", 3),
    "delete": op.both(op.append(PERSON, {"n": 1}), op.delete(COMPANY, ["x"])),
    "noted": op.noted(op.upsert(PERSON, {"a": 7, "n": 1})),
}


@pytest.fixture(autouse=True)
def _as_in_many_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who are parked make nobody else in this process wait."""

    @contextmanager
    def nobody_waits(_root: str, branch: str, type_keys: frozenset[str]) -> Iterator[queues.Held]:
        yield queues.Held(branch, type_keys)

    monkeypatch.setattr(queues, "held", nobody_waits)


@pytest.fixture(params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)])
def store(request: pytest.FixtureRequest, folder: Path) -> ObjectStore:
    """A prepared graph, in the default durability."""
    made: ObjectStore
    match request.param:
        case "local":
            made = LocalStore(folder / "graph")
        case "memory":
            made = MemoryStore(f"barriers-{UlidSource().new()}")
        case _:
            made = request.getfixturevalue("s3_store")
    prepare(made)
    return made


@pytest.fixture
def local(folder: Path) -> LocalStore:
    """Likewise, on a disk where files can be made to look old."""
    made = LocalStore(folder / "graph")
    prepare(made)
    return made


def opened(store: ObjectStore, settings: Settings | None = None) -> GraphContext:
    """A handle whose clock stands still, as that of a suspended host does."""
    return open_root(store, settings=settings or Settings(), clock=ManualClock())


def swept_when_all_is_old(store: LocalStore) -> Swept:
    """The default sweep of another host, long after everything was written."""
    for file in Path(store.uri).rglob("*"):
        if file.is_file():
            past = file.stat().st_mtime - 100 * limits.SWEEP_GRACE_S
            os.utime(file, (past, past))
    return sweep(opened(store))


def check(store: ObjectStore, expected: op.Rows) -> None:
    """Every row is readable, and all is swept but for what is needed."""
    fresh = opened(store)
    rows = op.rows_of(fresh, PERSON)
    assert {key: rows[key] for key in expected} == expected
    sweep(fresh, older_than_s=0)
    again = sweep(fresh, older_than_s=0)
    assert (again.deleted, again.barriers) == ((), 0)
    assert op.rows_of(opened(store), PERSON) == rows


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("at", PLACES)
def test_a_write_that_stood_still_for_long_is_whole(at: Failpoint, name: str, local: LocalStore) -> None:
    parts = opened(local)
    with paused(lambda: write(parts, MAIN, OPERATIONS[name]), at=at) as writing:
        swept_when_all_is_old(local)

    assert writing.result().entry is not None
    check(local, {})


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_put_that_arrives_long_after_the_sweep_makes_the_write_stage_again(name: str, local: LocalStore) -> None:
    # As of a put that is sent again and again for a quarter of an hour, or of a process frozen before the link.
    parts = opened(RacingStore(local, [lambda: swept_when_all_is_old(local)]))

    assert write(parts, MAIN, OPERATIONS[name]).entry is not None
    check(local, {})


@pytest.mark.parametrize("name", OPERATIONS)
@pytest.mark.parametrize("at", PLACES)
def test_an_eager_sweep_lets_no_write_fail(at: Failpoint, name: str, store: ObjectStore) -> None:
    parts = opened(store)
    with paused(lambda: write(parts, MAIN, OPERATIONS[name]), at=at) as writing:
        sweep(opened(store), older_than_s=0)

    assert writing.result().entry is not None
    check(store, {})


@pytest.mark.parametrize("others", [1, 3])
def test_an_eager_sweep_between_others_writes_lets_no_write_fail(others: int, store: ObjectStore) -> None:
    def meanwhile() -> None:
        other = opened(store)
        for number in range(others):
            write(other, MAIN, op.append(PERSON, {f"o{number}": 1}))
        sweep(other, older_than_s=0)
        write(other, MAIN, op.append(PERSON, {"last": 1}))

    parts = opened(RacingStore(store, [meanwhile]))
    receipt = write(parts, MAIN, op.append(PERSON, {"n": 1}))

    assert receipt.attempts == 1, "staged again, not run again"
    check(store, {"n": 1, "o0": 1, "last": 1})


def test_a_write_without_rows_to_stage_again_runs_again(local: LocalStore) -> None:
    parts = opened(local)
    adding = op.add_table(parts, "node:City", {"p": 1})
    with paused(lambda: write(parts, MAIN, adding), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        swept_when_all_is_old(local)

    entry = writing.result().entry
    assert entry is not None
    assert op.rows_at(opened(local), "node:City", entry) == {"p": 1}


@pytest.mark.parametrize("made_again", [False, True])
def test_a_write_onto_a_branch_that_was_deleted_never_names_what_was_swept(
    *, made_again: bool, local: LocalStore
) -> None:
    parts = opened(local)
    branches.create(parts, "side")
    operation = op.append(PERSON, {"n": 1})

    with paused(lambda: write(parts, "side", operation), at=Failpoint.WRITE_MADE_DURABLE) as writing:
        other = opened(local)
        branches.delete(other, "side")
        swept_when_all_is_old(local)
        if made_again:
            branches.create(other, "side")

    with pytest.raises(GraphError):
        writing.result()
    if made_again:
        assert "n" not in op.rows_of(opened(local), PERSON, "side")
    check(local, {})


def test_a_branch_made_while_the_sweep_runs_is_as_safe(local: LocalStore) -> None:
    def meanwhile() -> Operation:
        other = opened(local)
        branches.create(other, "new")
        write(other, "new", op.append(PERSON, {"n": 1}))
        return op.append(PERSON, {"m": 1})

    write(opened(local), MAIN, op.append(PERSON, {"garbage": 1}))
    with paused(lambda: swept_when_all_is_old(local), at=Failpoint.SWEEP_ROOTS_READ) as sweeping:
        later = meanwhile()
    sweeping.result()
    write(opened(local), "new", later)

    assert op.rows_of(opened(local), PERSON, "new").keys() >= {"n", "m", "garbage"}


def test_a_barrier_stands_on_every_live_branch_before_anything_staged_is_deleted(local: LocalStore) -> None:
    parts = opened(local)
    for name in ("left", "right", "gone"):
        branches.create(parts, name)
    branches.delete(parts, "gone")
    write(parts, MAIN, op.compact(parts, PERSON))
    interrupted(parts, op.append(PERSON, {"n": 1}))

    done = swept_when_all_is_old(local)

    assert any(file.is_staged for file in done.deleted)
    live = live_branches(parts)
    assert {MAIN, "left", "right"} <= set(live)
    assert done.barriers == len(live)
    for name in live:
        assert parts.log.live_head(name).kind is CommitKind.BARRIER
    again = swept_when_all_is_old(local)
    assert (again.deleted, again.barriers) == ((), 0)


def test_a_sweep_without_staged_files_to_delete_puts_no_barrier(local: LocalStore) -> None:
    assert list(opened(local).store.list(paths.RECOVERY)) == []
    swept_when_all_is_old(local)

    done = swept_when_all_is_old(local)

    assert (done.deleted, done.barriers) == ((), 0)


def interrupted(parts: GraphContext, operation: Operation) -> None:
    """Leave the files of a write that ended before it was published."""

    def cut() -> None:
        raise KeyboardInterrupt

    with armed(Failpoint.WRITE_MADE_DURABLE, cut), pytest.raises(KeyboardInterrupt):
        write(parts, MAIN, operation)
