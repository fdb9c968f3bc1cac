"""One request sent several times under one key is done once, whatever happened to the first."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies, at_every_failpoint, at_every_request
from tests.support.operations import PERSON
from tests.support.paused_work import OtherProcess
from tests.support.write_kinds import NOTED, SETTINGS, SIDE, opened

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.errors import ConflictError, InvalidRequestError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import CountingStore, FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Receipt, write

ONCE = WriteOptions(idempotency_key="once", actor="ada")
BOTH = pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])
SENT = op.append(PERSON, {"sent": 1})


def send(parts: GraphContext, branch: str = MAIN, options: WriteOptions = ONCE) -> Receipt:
    return write(parts, branch, SENT, options)


def carried(parts: GraphContext, branch: str = MAIN, key: str = "once") -> list[int]:
    """The numbers of the entries that carry the key."""
    return [entry.number for entry in entries(parts, branch) if entry.idempotency_key == key]


@BOTH
def test_the_second_request_gets_the_first_ones_commit_and_does_nothing(root: Path, settings: Settings) -> None:
    parts = opened(LocalStore(root, durability=Durability.PROCESS), settings=settings)
    first = send(parts)
    write(parts, MAIN, op.insert(PERSON, {"later": 1}))
    for handle in (parts, opened(parts.store)):
        again = send(handle)
        assert again.replayed
        assert not first.replayed
        assert (again.entry and again.entry.commit) == (first.entry and first.entry.commit)
    assert len(carried(parts)) == 1
    check_graph(parts)


def test_a_second_request_that_would_now_be_refused_still_gets_the_first_ones_commit(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    options = WriteOptions(idempotency_key="once", if_commit=head.commit)
    first = write(parts, MAIN, op.insert(PERSON, {"n": 1}), options)
    again = write(parts, MAIN, op.insert(PERSON, {"n": 1}), options)
    assert again.replayed
    assert again.entry == first.entry


def test_a_key_means_something_else_on_another_branch_and_other_keys_something_else_here(parts: GraphContext) -> None:
    assert not send(parts).replayed
    assert not send(parts, SIDE).replayed
    assert not write(parts, MAIN, op.append(PERSON, {"two": 2}), WriteOptions(idempotency_key="Once")).replayed
    assert send(parts).replayed
    assert send(parts, SIDE).replayed
    assert (len(carried(parts)), len(carried(parts, SIDE)), len(carried(parts, key="Once"))) == (1, 1, 1)
    check_graph(parts)


def test_a_key_used_in_an_earlier_life_of_a_branch_name_is_free_in_the_next(parts: GraphContext) -> None:
    assert not send(parts, SIDE).replayed
    branches.delete(parts, SIDE)
    branches.create(parts, SIDE)
    assert not send(parts, SIDE).replayed
    assert send(parts, SIDE).replayed
    assert len(carried(parts, SIDE)) == 2
    check_graph(parts)


def test_a_request_that_changed_nothing_is_free_to_be_sent_again(parts: GraphContext) -> None:
    nothing = op.delete(PERSON, ["nobody"])
    assert write(parts, MAIN, nothing, ONCE).entry is None
    assert write(parts, MAIN, nothing, ONCE).entry is None
    assert not send(parts).replayed
    assert send(parts).replayed


def test_a_request_that_was_refused_is_free_to_be_sent_again(parts: GraphContext) -> None:
    with pytest.raises(ConflictError):
        write(parts, MAIN, op.insert(PERSON, {"a": 1}), ONCE)
    assert not send(parts).replayed
    check_graph(parts)


@BOTH
def test_a_request_sent_again_after_a_death_anywhere_is_done_once(copies: Copies, settings: Settings) -> None:
    def work(store: FaultyStore) -> None:
        send(opened(store, settings=settings))

    cuts = 0
    places = [place for place in Failpoint if place.startswith(("write.", "publish."))]
    for every in (
        at_every_request(copies, Fault.CRASH_AFTER, work),
        at_every_request(copies, Fault.CRASH_BEFORE, work),
        at_every_failpoint(copies, work, places),
    ):
        for cut in every:
            parts = opened(cut.store, settings=settings)
            done = bool(carried(parts))
            assert send(parts).replayed is done, cut.where
            assert send(parts).replayed, cut.where
            assert len(carried(parts)) == 1, cut.where
            check_graph(parts)
            cuts += 1
    assert cuts > 6


def test_of_many_threads_that_send_one_request_at_once_one_does_it(root: Path) -> None:
    together = threading.Barrier(6)

    def attempt(_: int) -> tuple[str, bool]:
        parts = opened(LocalStore(root, durability=Durability.PROCESS))
        together.wait()
        receipt = send(parts)
        assert receipt.entry is not None
        return receipt.entry.commit, receipt.replayed

    with ThreadPoolExecutor(6) as pool:
        told = list(pool.map(attempt, range(6)))
    assert len({commit for commit, _ in told}) == 1
    assert [replayed for _, replayed in told].count(False) == 1
    check_graph(opened(LocalStore(root)))


def send_in(root: str) -> tuple[str, bool]:
    """What the other process does. Returns the commit it was told of, and whether it was another's."""
    receipt = send(open_root(root, settings=SETTINGS))
    assert receipt.entry is not None
    return receipt.entry.commit, receipt.replayed


def test_of_two_processes_that_send_one_request_at_once_one_does_it(root: Path, parts: GraphContext) -> None:
    # The other one has looked for the key, found nothing and staged its rows when we come.
    other = OtherProcess(send_in, str(root), at=Failpoint.WRITE_TABLES_STAGED)
    other.wait_until_parked()
    mine = send(parts)
    assert mine.entry is not None
    assert not mine.replayed
    other.go_on()
    assert other.result() == (mine.entry.commit, True)
    assert len(carried(parts)) == 1
    check_graph(parts)


@pytest.mark.parametrize(
    "note", [b"", b"{", b"[]", b"{}", b'{"number": "x"}', b'{"number": -5}', b'{"number": 0}', b"\xff"]
)
def test_a_scribbled_note_of_a_key_does_not_hide_its_commit(parts: GraphContext, note: bytes) -> None:
    send(parts)
    [path] = [listed.path for listed in parts.store.list(paths.KEYS)]
    parts.store.put(path, note)
    assert send(parts).replayed
    assert len(carried(parts)) == 1


def test_looking_for_a_key_costs_the_same_however_long_the_history_is(root: Path) -> None:
    store = CountingStore(LocalStore(root, durability=Durability.PROCESS))
    parts = opened(store)
    send(parts)
    store.reset()
    send(parts, options=WriteOptions(idempotency_key="another"))
    first = store.reset()
    for number in range(20):
        write(parts, MAIN, op.append(PERSON, {f"n{number}": 1}))
    store.reset()
    send(parts, options=WriteOptions(idempotency_key="a third"))
    assert store.reset() == first
    assert first[RequestKind.PUT_IF_ABSENT] == 2


@pytest.mark.parametrize(
    "key", ["x", "a/b", "ü" * 100, "\ud800", "with space\n", "k" * limits.IDEMPOTENCY_KEY_BYTES_MAX]
)
def test_a_key_may_be_any_text(parts: GraphContext, key: str) -> None:
    options = WriteOptions(idempotency_key=key)
    assert not send(parts, options=options).replayed
    assert send(opened(parts.store), options=options).replayed
    check_graph(parts)


@pytest.mark.parametrize(
    "key", ["", "k" * (limits.IDEMPOTENCY_KEY_BYTES_MAX + 1), "\ud800" * limits.IDEMPOTENCY_KEY_BYTES_MAX]
)
def test_a_key_that_is_empty_or_too_long_is_refused_before_anything_is_done(parts: GraphContext, key: str) -> None:
    before = {listed.path for listed in parts.store.list("")}
    with pytest.raises(InvalidRequestError, match=r"1 to \d+ bytes; this one has \d+"):
        send(parts, options=WriteOptions(idempotency_key=key))
    assert {listed.path for listed in parts.store.list("")} == before
