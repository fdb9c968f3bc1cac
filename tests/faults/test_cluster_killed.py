"""Whoever dies with a cluster's lock keeps nobody out: the next one takes it over, and only from the dead."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.cuts import Copies, at_every_request
from tests.support.small_cluster import Cluster, codes

from omnigraph import limits
from omnigraph.cluster import layout
from omnigraph.cluster.diagnostics import Diagnostics
from omnigraph.cluster.lock import Lock, LockFaultError, LockRecord
from omnigraph.errors import UnavailableError
from omnigraph.ids import UlidSource
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

# Applies a cluster and is killed just before a file is put whose path has a part.
DOOMED = """
import os, signal, sys
from pathlib import Path
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.faults import Faults
from omnigraph.testing.stores import FaultyStore
from tests.support.small_cluster import Cluster

class Killing(Faults):
    def around(self, kind, path, send):
        if sys.argv[2] in path and kind.startswith("put"):
            os.kill(os.getpid(), signal.SIGKILL)
        return send()

faults = Killing()
Cluster(Path(sys.argv[1]), lambda uri: FaultyStore(LocalStore(uri), faults)).apply()
"""


@pytest.mark.parametrize("before", ["__schema/", layout.REVISIONS])
def test_an_apply_that_is_killed_keeps_nobody_out_and_is_finished_by_the_next(tmp_path: Path, before: str) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.begin().is_ok
    ended = subprocess.run([sys.executable, "-c", DOOMED, str(tmp_path), before], check=False)
    assert ended.returncode == -signal.SIGKILL
    left = cluster.status().document["state_observations"]
    assert left["locked"] is True

    outcome = cluster.apply()

    assert outcome.document["converged"], outcome.lines()
    assert "state_lock_inherited" in codes(outcome, "warning")
    assert cluster.status().document["state_observations"]["locked"] is False
    assert cluster.files("holders") == cluster.files("recoveries") == []


# --- of another host --------------------------------------------------------------------------------------------------


def silent(sign: Path, seconds: float) -> None:
    """Let a sign of life have been put so long ago."""
    shown = sign.stat().st_mtime - seconds
    os.utime(sign, (shown, shown))


class Elsewhere:
    """A lock on disk whose holder is, or was, on another host."""

    def __init__(self, folder: Path) -> None:
        self.store = FaultyStore(LocalStore(str(folder)))
        self.clock = ManualClock()
        self.lock = Lock(self.store, clock=self.clock, ids=UlidSource(self.clock))
        self.held = LockRecord("01J9ZB6V3N4Q5R6S7T8V9W0X1Y", "apply", "2026-01-01T00:00:00Z", 1)
        self.sign = folder / layout.heartbeat(self.held.lock_id)
        self.store.put(layout.LOCK, self.held.to_bytes())
        document = {"host": "elsewhere.example", "pid": 1, "started": "long ago"}
        self.store.put(layout.heartbeat(self.held.lock_id), json.dumps(document).encode())

    def fall_silent(self, seconds: float) -> None:
        """Let the last sign of life have been so long ago."""
        silent(self.sign, seconds)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Elsewhere:
    return Elsewhere(tmp_path)


def test_whoever_shows_life_on_another_host_keeps_the_lock_for_as_long_as_it_likes(elsewhere: Elsewhere) -> None:
    elsewhere.clock.advance(100 * limits.CLUSTER_LOCK_SILENT_S)
    with pytest.raises(LockFaultError, match="if it is dead, try again in 60 s") as caught:
        elsewhere.lock.acquire("apply")
    assert caught.value.code == "state_lock_held"
    assert elsewhere.lock.read() == elsewhere.held
    assert [each.path for each in elsewhere.store.list(layout.HOLDERS)] == [layout.heartbeat(elsewhere.held.lock_id)]


def test_whoever_shows_none_for_a_minute_has_lost_it(elsewhere: Elsewhere) -> None:
    elsewhere.fall_silent(limits.CLUSTER_LOCK_STALE_S)
    said = Diagnostics()
    own = elsewhere.lock.acquire("apply", said)
    assert elsewhere.lock.read() == own
    assert [each.code for each in said] == ["state_lock_inherited"]
    with pytest.raises(LockFaultError) as caught:
        elsewhere.lock.check(elsewhere.held)
    assert caught.value.code == "state_lock_id_mismatch"
    elsewhere.lock.release(elsewhere.held, said)
    assert elsewhere.lock.read() == own, "who comes back takes nothing away"
    elsewhere.lock.release(own, said)
    assert list(elsewhere.store.list("__cluster/")) == []


def test_of_several_heirs_one_takes_it(elsewhere: Elsewhere) -> None:
    elsewhere.fall_silent(limits.CLUSTER_LOCK_STALE_S)
    stalled = elsewhere.store.arm(Fault.STALL, kind=RequestKind.DELETE, path_part=layout.LOCK)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(elsewhere.lock.acquire, "plan")
        assert stalled.hit.wait(30)  # it has the claim, and has looked again
        with pytest.raises(LockFaultError) as caught:
            elsewhere.lock.acquire("apply")
        stalled.released.set()
    assert caught.value.code == "state_lock_held"
    assert elsewhere.lock.read() == first.result()


def test_an_heir_that_comes_late_leaves_the_lock_to_whoever_has_it_by_then(elsewhere: Elsewhere) -> None:
    elsewhere.fall_silent(limits.CLUSTER_LOCK_STALE_S)
    slow = elsewhere.store.arm(Fault.STALL, kind=RequestKind.PUT_IF_ABSENT, path_part=".taken")
    with ThreadPoolExecutor(1) as pool:
        late = pool.submit(elsewhere.lock.acquire, "plan")
        assert slow.hit.wait(30)  # it knows that the holder is dead
        taken = elsewhere.lock.acquire("apply")
        slow.released.set()
        ended = late.exception(30)
    assert isinstance(ended, LockFaultError)
    assert ended.code == "state_lock_held"
    assert elsewhere.lock.read() == taken


def heir(elsewhere: Elsewhere) -> Path:
    """Let somebody else have begun to inherit the lock; its sign of life."""
    other = LockRecord("01J9ZB6V3N4Q5R6S7T8V9W0X2Z", "plan", "2026-01-01T00:00:00Z", 2)
    elsewhere.store.put(layout.takeover_claim(elsewhere.held.lock_id), other.to_bytes())
    document = {"host": "elsewhere.example", "pid": 2, "started": "long ago"}
    elsewhere.store.put(layout.heartbeat(other.lock_id), json.dumps(document).encode())
    return Path(elsewhere.store.uri) / layout.heartbeat(other.lock_id)


def test_an_heir_that_dies_while_it_inherits_is_inherited_from(elsewhere: Elsewhere) -> None:
    elsewhere.fall_silent(limits.CLUSTER_LOCK_STALE_S)
    sign = heir(elsewhere)
    with pytest.raises(LockFaultError):
        elsewhere.lock.acquire("apply")
    silent(sign, limits.CLUSTER_LOCK_STALE_S)
    own = elsewhere.lock.acquire("apply")
    assert elsewhere.lock.read() == own


def dead_heir(elsewhere: Elsewhere) -> None:
    """Let an heir have died, too."""
    elsewhere.fall_silent(limits.CLUSTER_LOCK_STALE_S)
    silent(heir(elsewhere), limits.CLUSTER_LOCK_STALE_S)


def test_of_several_heirs_of_an_heir_one_takes_it(elsewhere: Elsewhere) -> None:
    dead_heir(elsewhere)
    slow = elsewhere.store.arm(Fault.STALL, kind=RequestKind.LIST, path_part=layout.HOLDERS, at=2)
    late = elsewhere.store.arm(Fault.STALL, kind=RequestKind.DELETE, path_part=layout.LOCK)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(elsewhere.lock.acquire, "plan")
        assert slow.hit.wait(30)  # it has met the heir, and is about to find out that it is dead
        second = pool.submit(elsewhere.lock.acquire, "apply")
        assert late.hit.wait(30)  # it knows that already, and is about to take the lock away from the dead
        slow.released.set()
        ended = first.exception(30)
        late.released.set()
        taken = second.result(30)
    assert isinstance(ended, LockFaultError)
    assert ended.code == "state_lock_held"
    assert elsewhere.lock.read() == taken


def test_heirs_that_were_each_taken_for_dead_by_the_other_keep_nobody_out(elsewhere: Elsewhere) -> None:
    dead_heir(elsewhere)
    elsewhere.store.put(layout.takeover_claim("01J9ZB6V3N4Q5R6S7T8V9W0X2Z"), elsewhere.held.to_bytes())
    own = elsewhere.lock.acquire("apply")
    assert elsewhere.lock.read() == own


FAULTS = [each for each in Fault if each is not Fault.STALL]


@pytest.mark.parametrize("is_heir_dead", [False, True], ids=["from the dead", "from a dead heir"])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
def test_whoever_fails_anywhere_while_it_takes_over_keeps_nobody_out_and_nothing_stays(
    fault: Fault, is_heir_dead: bool, tmp_path: Path
) -> None:
    template = Elsewhere(tmp_path / "template")
    if is_heir_dead:
        dead_heir(template)
    else:
        template.fall_silent(limits.CLUSTER_LOCK_STALE_S)

    def lock_of(store: FaultyStore) -> Lock:
        return Lock(store, clock=template.clock, ids=UlidSource(template.clock))

    def work(store: FaultyStore) -> None:
        try:
            lock_of(store).acquire("plan")
        except LockFaultError as refused:
            raise UnavailableError(str(refused)) from refused

    cuts = 0
    for cut in at_every_request(Copies(tmp_path / "template", tmp_path), fault, work):
        cuts += 1
        lock, said = lock_of(cut.store), Diagnostics()
        if cut.raised is None:
            there = lock.read()
            assert there is not None, cut.where
            lock.release(there, said)
        own = lock.acquire("apply")
        assert lock.read() == own, cut.where
        lock.release(own, said)
        assert list(said) == []
        for left in (Path(cut.store.uri) / layout.HOLDERS).iterdir():
            silent(left, limits.CLUSTER_LOCK_SILENT_S)
        lock.release(lock.acquire("apply"), said)
        assert list(cut.store.list("__cluster/")) == [], cut.where
    assert cuts > 5


def test_a_lock_without_any_sign_counts_for_an_hour(elsewhere: Elsewhere) -> None:
    elsewhere.sign.unlink()
    elsewhere.clock.advance(limits.CLUSTER_LOCK_SILENT_S - 1)
    with pytest.raises(LockFaultError):
        elsewhere.lock.acquire("apply")
    elsewhere.clock.advance(1)
    own = elsewhere.lock.acquire("apply")
    assert elsewhere.lock.read() == own


def test_an_apply_whose_lock_was_taken_away_does_nothing_more(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    assert cluster.begin().is_ok
    before = cluster.state()
    stores = cluster.environment.stores

    class Robbed(FaultyStore):
        def put(self, path: str, body: bytes) -> None:
            super().put(path, body)
            if path.startswith(layout.RECOVERIES):  # it is about to make the graph
                (tmp_path / layout.LOCK).unlink()

    cluster.environment = type(cluster.environment)(
        lambda uri: Robbed(stores(uri)), cluster.clock, cluster.environment.ids
    )
    outcome = cluster.apply()
    assert "state_lock_id_mismatch" in codes(outcome, "error")
    assert outcome.document["state_written"] is False
    assert cluster.state() == before
    cluster.environment = type(cluster.environment)(stores, cluster.clock, cluster.environment.ids)
    assert cluster.apply().document["converged"]
