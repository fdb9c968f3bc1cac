"""Whose root it is: a stamp that cannot be read makes nobody believe anything, and stops nobody for good."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON, rows_of

from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, NotFoundError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreTransient
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.log import Log
from omnigraph.transaction.write import write

SETTINGS = Settings(durability="process")


class Far(FaultyStore):
    """A store that tells nothing without being asked."""

    def identity(self, path: str) -> None:
        """Nothing."""


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store(tmp_path: Path) -> Far:
    return Far(LocalStore(tmp_path, durability=Durability.PROCESS))


@pytest.fixture
def parts(store: Far, clock: ManualClock) -> GraphContext:
    made = op.new_graph(store, types=[PERSON], settings=SETTINGS, clock=clock)
    write(made, MAIN, op.append(PERSON, {"a": 1}))
    return made


def emptied(stamp: Path) -> None:
    stamp.write_bytes(b"")


def cut(stamp: Path) -> None:
    stamp.write_bytes(stamp.read_bytes()[:-5])


def removed(stamp: Path) -> None:
    stamp.unlink()


@pytest.mark.parametrize(
    ("damage", "told"),
    [(emptied, FormatError), (cut, FormatError), (removed, NotFoundError)],
    ids=lambda each: each.__name__,
)
def test_a_stamp_that_is_gone_or_damaged_is_told_by_whoever_reads_it(
    damage: Callable[[Path], None], told: type[Exception], tmp_path: Path, parts: GraphContext
) -> None:
    stamp = tmp_path / paths.STAMP
    body = stamp.read_bytes()
    damage(stamp)

    for _ in range(2):
        with pytest.raises(told):
            parts.log.confirm_root()

    stamp.write_bytes(body)
    parts.log.confirm_root()
    write(parts, MAIN, op.append(PERSON, {"b": 1}))
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 1}


def test_a_look_that_failed_is_not_taken_for_one_that_succeeded(store: Far, parts: GraphContext) -> None:
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part=paths.STAMP, times=2)
    for _ in range(2):
        with pytest.raises(StoreTransient):
            parts.log.confirm_root()

    parts.log.confirm_root()

    store.delete(paths.STAMP)
    with pytest.raises(NotFoundError):
        parts.log.confirm_root()


def test_until_it_is_said_which_graph_it_is_every_graph_is_right(store: Far, clock: ManualClock) -> None:
    log = Log(store, clock=clock)
    log.confirm_root()
    log.expect("01KDVDNA00XME2QRZEW7WBS5HN")
    with pytest.raises(NotFoundError):
        log.confirm_root()


def test_a_sweep_looks_whose_root_it_is_however_short_a_time_ago_it_knew(
    tmp_path: Path, store: Far, parts: GraphContext, clock: ManualClock
) -> None:
    write(parts, MAIN, op.append(PERSON, {"b": 1}))  # it has just looked
    shutil.rmtree(tmp_path)
    other = op.new_graph(store, types=[PERSON], settings=SETTINGS, clock=clock)
    for name in ("c", "d", "e", "f"):
        write(other, MAIN, op.append(PERSON, {name: 1}))
    before = {path for path in tmp_path.rglob("*") if path.is_file()}

    with pytest.raises(NotFoundError) as refused:
        sweep(parts, older_than_s=0)

    assert refused.value.code == "graph_replaced"
    assert {path for path in tmp_path.rglob("*") if path.is_file()} >= before
    assert rows_of(other, PERSON).keys() == {"c", "d", "e", "f"}
