"""Processes killed for good at every request they send to a real store, those of the table library included."""

import os
import signal
import threading
from collections.abc import Iterator
from itertools import count

import pytest
from tests.support.killable_writers import KillableWriters, Order, killable_writers
from tests.support.s3_proxy import Cut, S3Proxy
from tests.support.s3_proxy import s3_proxy as running_s3_proxy
from tests.support.s3_server import S3Server
from tests.support.write_kinds import KINDS, next_write, opened, prepare

from omnigraph.storage.object_stores.s3 import S3Store
from omnigraph.testing.invariants import Observed, check_graph, observed
from omnigraph.transaction.recovery import Healed, heal

pytestmark = pytest.mark.s3

BUCKET = "killed-writers"
OFTEN = {("insert", False), ("load_of_two_types", True), ("delete", False)}
ALL = [(kind.name, noted) for kind in KINDS for noted in (False, True) if kind.leaves_intents or not noted]
CASES = [
    pytest.param(
        name,
        noted,
        id=f"{name}{'-noted' if noted else ''}",
        marks=[] if (name, noted) in OFTEN else pytest.mark.torture,
    )
    for name, noted in ALL
]


@pytest.fixture(scope="module")
def ready() -> Iterator[KillableWriters]:
    with killable_writers() as waiting:
        yield waiting


@pytest.fixture(scope="module")
def template(s3_server: S3Server) -> dict[str, bytes]:
    """Every object of the prepared graph."""
    s3_server.create_bucket(BUCKET)
    store = S3Store(BUCKET, "template", options=s3_server.options)
    prepare(store)
    return {listed.path: store.get(listed.path) for listed in store.list("")}


@pytest.fixture(scope="module")
def of_opening(s3_server: S3Server, template: dict[str, bytes]) -> int:
    """How many requests that change something it takes only to open a graph: those are not the write's."""
    assert template
    with running_s3_proxy((s3_server.host, s3_server.port)) as proxy:
        opened(S3Store(BUCKET, "template", options=proxy.options))
        return proxy.mutations


def killed_at(order: Order, mutation: int, cut: Cut, ready: KillableWriters, proxy: S3Proxy) -> bool:
    """Carry out an order and kill whoever does at its n-th request that changes something; False if there is none."""
    born, killed = threading.Event(), threading.Event()
    number = 0

    def birth(process: int) -> None:
        nonlocal number
        number = process
        born.set()

    def kill() -> None:
        assert born.wait(60)
        os.kill(number, signal.SIGKILL)
        killed.set()

    proxy.reset()
    proxy.cut_at(mutation, cut, kill)
    ended = ready.carry_out(order, born=birth)
    assert ended == (-signal.SIGKILL if killed.is_set() else 0)
    return killed.is_set()


@pytest.mark.parametrize("cut", [Cut.BEFORE, pytest.param(Cut.ANSWER, marks=pytest.mark.torture)], ids=str)
@pytest.mark.parametrize(("name", "noted"), CASES)
def test_a_process_killed_at_any_of_its_requests_leaves_the_state_before_or_after(
    *,
    name: str,
    noted: bool,
    cut: Cut,
    ready: KillableWriters,
    template: dict[str, bytes],
    of_opening: int,
    s3_server: S3Server,
    s3_proxy: S3Proxy,
    s3_prefix: str,
) -> None:
    seen: list[Observed] = []
    for mutation in count(of_opening + 1):
        prefix = f"{s3_prefix}/{mutation}"
        store = S3Store(BUCKET, prefix, options=s3_server.options)
        for path, body in template.items():
            store.put(path, body)
        if not seen:
            before = observed(opened(store))
        died = killed_at(Order(s3_proxy.endpoint, BUCKET, prefix, name, noted), mutation, cut, ready, s3_proxy)
        parts = opened(store)
        seen.append(observed(parts))
        next_write(parts)
        assert heal(parts) == Healed()
        check_graph(parts)
        store.delete_prefix("")
        if not died:
            break
    after = seen[-1]
    assert after != before
    assert all(state in (before, after) for state in seen)
    # Some writes are one put: killed once that is answered, they are there.
    assert seen[0] == before if cut is Cut.BEFORE else len(seen) >= 2
    assert len(seen) >= (4 if (name, noted) in OFTEN else 2)
    if noted:
        # Killed at its entry it was finished by the next open; killed at one of two deletes it was there already.
        assert seen.count(after) >= 4
