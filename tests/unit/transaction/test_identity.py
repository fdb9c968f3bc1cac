"""Whose root it is: a stamp that cannot be read makes nobody believe anything, and stops nobody for good."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from omnigraph import limits
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import FormatError, NotFoundError, UnavailableError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import StoreTransient
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing import operations as op
from omnigraph.testing.faults import Fault
from omnigraph.testing.faulty_store import FaultyStore
from omnigraph.testing.manual_clock import ManualClock
from omnigraph.testing.operations import PERSON, rows_of
from omnigraph.transaction.identity import Identity
from omnigraph.transaction.parts import Parts, Settings
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
def parts(store: Far, clock: ManualClock) -> Parts:
    made = op.new_graph(store, types=[PERSON], settings=SETTINGS, clock=clock)
    write(made, MAIN, op.append(PERSON, {"a": 1}))
    clock.advance(limits.ROOT_TRUSTED_S)
    return made


def test_a_store_that_does_not_tell_stops_the_write_and_not_the_next(store: Far, parts: Parts) -> None:
    log = store.list(paths.log_folder(MAIN))
    before = [each.path for each in log]
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part=paths.STAMP, times=1_000)

    with pytest.raises(UnavailableError):
        write(parts, MAIN, op.append(PERSON, {"lost": 1}))

    assert [each.path for each in store.list(paths.log_folder(MAIN))] == before
    store.disarm()
    write(parts, MAIN, op.append(PERSON, {"b": 1}))
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 1}


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
def test_a_stamp_that_is_gone_or_damaged_stops_every_write_until_it_is_back(
    damage: Callable[[Path], None], told: type[Exception], tmp_path: Path, parts: Parts
) -> None:
    stamp = tmp_path / paths.STAMP
    body = stamp.read_bytes()
    damage(stamp)

    for _ in range(2):
        with pytest.raises(told):
            write(parts, MAIN, op.append(PERSON, {"lost": 1}))

    stamp.write_bytes(body)
    write(parts, MAIN, op.append(PERSON, {"b": 1}))
    assert op.rows_of(parts, PERSON) == {"a": 1, "b": 1}


def test_a_look_that_failed_is_not_taken_for_one_that_succeeded(store: Far, parts: Parts, clock: ManualClock) -> None:
    identity = Identity(store, clock=clock)
    identity.expect(parts.graph, None)
    identity.confirm()
    clock.advance(limits.ROOT_TRUSTED_S)
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, path_part=paths.STAMP, times=2)
    for _ in range(2):
        with pytest.raises(StoreTransient):
            identity.confirm()

    identity.confirm()

    store.delete(paths.STAMP)
    identity.confirm()  # it was seen this moment
    clock.advance(limits.ROOT_TRUSTED_S)
    with pytest.raises(NotFoundError):
        identity.confirm()


def test_until_it_is_said_which_graph_it_is_every_graph_is_right(store: Far, clock: ManualClock) -> None:
    identity = Identity(store, clock=clock)
    identity.confirm()
    identity.expect("", None)
    identity.confirm()
    identity.expect("01KDVDNA00XME2QRZEW7WBS5HN", None)
    clock.advance(limits.ROOT_TRUSTED_S)
    with pytest.raises(NotFoundError):
        identity.confirm()


def test_a_sweep_looks_whose_root_it_is_however_short_a_time_ago_it_knew(
    tmp_path: Path, store: Far, parts: Parts, clock: ManualClock
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
