import pytest
from tests.support.small_cluster import Cluster, codes

from omnigraph.cluster import layout
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.lock import Lock, LockFaultError, LockRecord
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(MemoryStore())


@pytest.fixture
def lock(store: FaultyStore, clock: ManualClock) -> Lock:
    return Lock(store, clock=clock, ids=UlidSource(clock))


def test_only_one_holds_it_until_it_is_given_back(lock: Lock, clock: ManualClock) -> None:
    own = lock.acquire("apply")
    clock.advance(90)
    with pytest.raises(LockFaultError, match=f"holds the lock {own.lock_id} .* 90 s ago") as caught:
        lock.acquire("plan")
    assert caught.value.code == "state_lock_held"
    lock.release(own, Diagnostics())
    assert lock.read() is None
    assert lock.acquire("plan").operation == "plan"


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
def test_a_lock_whose_answer_was_lost_is_ours(lock: Lock, store: FaultyStore, fault: Fault) -> None:
    store.arm(fault, kind=RequestKind.PUT_IF_ABSENT)
    own = lock.acquire("apply")
    assert lock.read() == own


def test_only_ones_own_lock_is_given_back(lock: Lock) -> None:
    own = lock.acquire("apply")
    lock.force_unlock(own.lock_id)
    other = lock.acquire("apply")
    lock.release(own, Diagnostics())
    assert lock.read() == other


def test_a_lock_that_cannot_be_given_back_is_said_to_be_left(lock: Lock, store: FaultyStore) -> None:
    own = lock.acquire("apply")
    store.arm(Fault.NO_SPACE, kind=RequestKind.DELETE)
    said = Diagnostics()
    lock.release(own, said)
    assert [each.code for each in said] == ["state_lock_error"]
    assert said.is_ok


def test_a_lock_is_broken_only_by_its_id(lock: Lock) -> None:
    with pytest.raises(LockFaultError) as caught:
        lock.force_unlock("x")
    assert caught.value.code == "state_lock_missing"
    own = lock.acquire("apply")
    with pytest.raises(LockFaultError) as caught:
        lock.force_unlock("x")
    assert caught.value.code == "state_lock_id_mismatch"
    lock.force_unlock(own.lock_id)
    assert lock.read() is None


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_state_lock"),
        (b"{}", "invalid_state_lock"),
        (
            LockRecord("a", "b", "c", 1).to_bytes().replace(b'"version": 1', b'"version": 9'),
            "unsupported_state_lock_version",
        ),
    ],
)
def test_what_is_no_lock_is_told_as_what_it_is(lock: Lock, store: FaultyStore, body: bytes, code: str) -> None:
    store.put(layout.LOCK, body)
    with pytest.raises(LockFaultError) as caught:
        lock.acquire("apply")
    assert caught.value.code == code


def test_every_command_that_writes_waits_for_nobody_and_says_who_is_at_work(applied_cluster: Cluster) -> None:
    cluster = applied_cluster
    held = LockRecord("01J9ZB6V3N4Q5R6S7T8V9W0X1Y", "apply", "2025-12-31T23:59:00Z", 4711)
    path = cluster.folder / "__cluster" / "lock.json"
    path.write_bytes(held.to_bytes())
    before = cluster.state()
    for command in (cluster.plan, cluster.apply, cluster.refresh, cluster.begin):
        outcome = command()
        assert codes(outcome) == {"state_lock_held"}
        seen = outcome.document["state_observations"]
        assert seen["locked"] is True
        assert (seen["lock_id"], seen["lock_pid"], seen["lock_age_seconds"]) == (held.lock_id, 4711, 60)
        assert seen["lock_acquired"] is False
    status = cluster.status()
    assert status.is_ok
    assert status.document["state_observations"]["locked"] is True
    assert cluster.state() == before
    assert cluster.force_unlock(held.lock_id).document["lock_removed"] is True
    assert not path.exists()
    assert cluster.apply().is_ok


def test_a_cluster_may_do_without_the_lock_and_is_told_so(applied_cluster: Cluster) -> None:
    applied_cluster.declare(state={"lock": False})
    outcome = applied_cluster.apply()
    assert outcome.is_ok
    assert codes(outcome) == {"state_lock_disabled"}
    assert outcome.document["state_observations"]["lock_acquired"] is False
