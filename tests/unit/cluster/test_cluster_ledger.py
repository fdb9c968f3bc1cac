"""The ledger: of several writers one, whatever dies."""

import json
from dataclasses import replace

import pytest

from omnigraph import limits
from omnigraph.cluster import layout
from omnigraph.cluster.ledger import Ledger, StoredState
from omnigraph.cluster.state import LedgerFaultError, State, read_state
from omnigraph.failpoints import Crash
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore

DIGEST = "0" * 64


@pytest.fixture
def store() -> FaultyStore:
    return FaultyStore(MemoryStore())


def after(written: StoredState, **members: object) -> State:
    """The state that follows, with some members another way."""
    return replace(written.state, revision=written.state.revision + 1, **members)  # type: ignore[arg-type]  # members by name, of their own types


def revisions(store: FaultyStore) -> int:
    return len(list(store.list(layout.REVISIONS)))


def test_what_was_written_is_read(store: FaultyStore) -> None:
    ledger = Ledger(store)
    assert not ledger.read().exists
    assert not ledger.exists()
    written = ledger.write(ledger.read(), State(1, resources={"graph.g": {"digest": DIGEST}}))
    assert ledger.read() == written
    assert ledger.exists()
    assert store.get(layout.STATE) == written.body


def test_of_two_writers_that_read_the_same_one_is_refused(store: FaultyStore) -> None:
    first, second = Ledger(store), Ledger(store)
    base = first.write(first.read(), State(1))
    read = second.read()
    won = first.write(base, after(base, config_digest="a"))
    with pytest.raises(LedgerFaultError) as caught:
        second.write(read, after(read, config_digest="b"))
    assert caught.value.code == "state_cas_mismatch"
    assert first.read() == won


def test_of_two_writers_that_looked_at_the_same_moment_one_is_refused_by_the_store(store: FaultyStore) -> None:
    base = Ledger(store).write(StoredState(State()), State(1))

    class Late(Ledger):
        """Looks, and then another writer is faster."""

        def read(self) -> StoredState:
            found = super().read()
            if found == base:
                Ledger(store).write(base, after(base, config_digest="a"))
            return found

    with pytest.raises(LedgerFaultError) as caught:
        Late(store).write(base, after(base, config_digest="b"))
    assert caught.value.code == "state_cas_mismatch"
    assert Ledger(store).read().state.config_digest == "a"


def test_a_writer_that_died_before_the_copy_was_made_has_written_all_the_same(store: FaultyStore) -> None:
    base = Ledger(store).write(StoredState(State()), State(1))
    store.arm(Fault.CRASH_BEFORE, kind=RequestKind.PUT, path_part=layout.STATE)
    with pytest.raises(Crash):
        Ledger(store).write(base, after(base, config_digest="a"))
    found = Ledger(store).read()
    assert (found.state.revision, found.state.config_digest) == (2, "a")
    again = Ledger(store).write(found, after(found, config_digest="b"))
    assert store.get(layout.STATE) == again.body


def test_a_writer_that_died_before_the_first_copy_was_made_has_begun_the_ledger(store: FaultyStore) -> None:
    store.arm(Fault.CRASH_BEFORE, kind=RequestKind.PUT, path_part=layout.STATE)
    with pytest.raises(Crash):
        Ledger(store).write(StoredState(State()), State(1))
    assert Ledger(store).read().exists
    assert Ledger(store).exists()


def test_a_slow_writer_that_makes_its_copy_last_does_not_bring_the_past_back(store: FaultyStore) -> None:
    ledger = Ledger(store)
    old = ledger.write(StoredState(State()), State(1))
    new = ledger.write(old, after(old, config_digest="a"))
    assert old.body is not None
    store.put(layout.STATE, old.body)
    assert ledger.read() == replace(new, is_mirrored=False)
    ledger.update_mirror(ledger.read())
    assert store.get(layout.STATE) == new.body
    assert ledger.read() == new


@pytest.mark.parametrize("fault", [Fault.LOSE_ANSWER, Fault.LOSE_REQUEST])
def test_a_put_whose_answer_was_lost_counts_once(store: FaultyStore, fault: Fault) -> None:
    store.arm(fault, kind=RequestKind.PUT_IF_ABSENT)
    written = Ledger(store).write(StoredState(State()), State(1))
    assert Ledger(store).read() == written
    assert revisions(store) == 1


def test_a_ledger_that_was_edited_by_hand_is_believed_and_never_written_over_unseen(store: FaultyStore) -> None:
    ledger = Ledger(store)
    written = ledger.write(StoredState(State()), State(1))
    edited = replace(written.state, config_digest="by hand").to_bytes()
    store.put(layout.STATE, edited)
    with pytest.raises(LedgerFaultError) as caught:
        ledger.write(written, after(written))
    assert caught.value.code == "state_cas_mismatch"
    assert ledger.read().state.config_digest == "by hand"


def test_old_states_are_forgotten_and_the_newest_is_still_read(store: FaultyStore) -> None:
    ledger = Ledger(store)
    written = ledger.read()
    for _ in range(limits.CLUSTER_REVISIONS_KEPT + 4):
        written = ledger.write(written, after(written))
    assert revisions(store) == limits.CLUSTER_REVISIONS_KEPT
    assert ledger.read() == written


def test_a_store_that_refuses_is_told_as_what_it_is(store: FaultyStore) -> None:
    written = Ledger(store).write(StoredState(State()), State(1))
    store.arm(Fault.NO_SPACE, kind=RequestKind.PUT_IF_ABSENT)
    with pytest.raises(LedgerFaultError) as caught:
        Ledger(store).write(written, after(written))
    assert caught.value.code == "state_write_error"
    store.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET)
    with pytest.raises(LedgerFaultError) as caught:
        Ledger(store).read()
    assert caught.value.code == "state_read_error"


def test_a_state_is_the_same_after_it_was_stored() -> None:
    state = State(
        7,
        "a" * 64,
        {"policy.p": {"digest": DIGEST, "applies_to": ["g"]}, "provider.embedding.d": {"digest": DIGEST}},
        {"policy.p": {"status": "applied"}},
        {"01": {"approved_by": "x"}},
        {"02": {"outcome": "rolled_forward"}},
        {"graph.g": {"schema_digest": DIGEST}},
    )
    assert read_state(state.to_bytes()) == state


def _with(**members: object) -> bytes:
    document = json.loads(State(1, resources={"graph.g": {"digest": DIGEST}}).to_bytes())
    return json.dumps({**document, **members}).encode()


def _holding(address: str, digest: object) -> bytes:
    return _with(applied_revision={"resources": {address: {"digest": digest}}})


NO_ADDRESSES = ("graph.../../etc", "query.g...x", "policy./x", "graph.g.h", "x", "query.g.a/b", "graph.policies")
NO_DIGESTS = ("../../x", None, "F" * 64, "")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "invalid_state_json"),
        (b"[]", "invalid_state_json"),
        (b"\xff", "invalid_state_json"),
        (_with(version=2), "unsupported_state_version"),
        (_with(state_revision=-1), "invalid_state_json"),
        (_with(applied_revision=[]), "invalid_state_json"),
        (_with(resource_statuses={"graph.g": 1}), "invalid_state_json"),
        *((_holding(address, DIGEST), "invalid_state_json") for address in NO_ADDRESSES),
        *((_holding("graph.g", digest), "invalid_state_json") for digest in NO_DIGESTS),
    ],
)
def test_what_is_no_ledger_is_refused_before_its_names_become_paths(body: bytes, code: str) -> None:
    with pytest.raises(LedgerFaultError) as caught:
        read_state(body)
    assert caught.value.code == code
