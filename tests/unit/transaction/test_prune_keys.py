"""A request sent twice under one key is done once, also when the commit of the first was pruned in between."""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import FOR_EVER
from tests.support.operations import PERSON

from omnigraph.branch import branches, tags
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectStore, StoreError
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

KEYED = WriteOptions(idempotency_key="once")


@pytest.fixture
def parts(tmp_path: Path) -> GraphContext:
    settings = Settings(durability="process", protection_s=0, log_cut_s=0)
    return op.new_graph(str(tmp_path), types=[PERSON], settings=settings, clock=ManualClock())


def forget_what_is_old(parts: GraphContext, branch: str = MAIN, *, swept: bool = True) -> None:
    for number in range(3):
        write(parts, branch, op.upsert(PERSON, {"other": number}))
    prune(parts, branch, Policy(keep=1, now=True))
    if swept:
        sweep(parts, older_than_s=0)


def die() -> None:
    raise Crash


def die_at(parts: GraphContext, place: Failpoint, branch: str = MAIN) -> None:
    """Write under the key, and die before the note of it can say how that ended."""
    with suppress(Crash), armed(place, die):
        write(parts, branch, op.append(PERSON, {"a": 1}), KEYED)


def test_the_second_request_gets_the_commit_of_the_first_though_that_was_pruned_and_swept(parts: GraphContext) -> None:
    first = write(parts, MAIN, op.append(PERSON, {"a": 1}), KEYED)
    assert first.entry is not None
    forget_what_is_old(parts)
    assert parts.log.read(MAIN, first.entry.number) is None

    second = write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert second.replayed
    assert second.entry is not None
    assert (second.entry.commit, second.entry.number) == (first.entry.commit, first.entry.number)
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_a_sweep_notes_the_commit_of_a_writer_that_died_before_it_could(parts: GraphContext) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts)

    second = write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert second.replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_an_entry_that_is_kept_below_the_floor_is_noted_too(parts: GraphContext) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    tags.create(parts, "kept", parts.log.live_head(MAIN))
    forget_what_is_old(parts)
    assert parts.log.floors.highest(MAIN) > 2
    assert parts.log.read(MAIN, 2) is not None

    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


@pytest.mark.parametrize("place", [Failpoint.SWEEP_CLASSIFIED, Failpoint.SWEEP_FLOORS_PUT], ids=str)
def test_a_sweep_that_dies_on_the_way_leaves_no_key_in_doubt(parts: GraphContext, place: Failpoint) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)
    with suppress(Crash), armed(place, die):
        sweep(parts, older_than_s=0)

    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_a_log_is_not_cut_where_its_keys_cannot_be_noted(parts: GraphContext) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)
    store = FaultyStore(parts.store)
    faulty = open_root(store, settings=parts.settings, clock=parts.clock)
    store.arm(Fault.NO_SPACE, kind=RequestKind.PUT, path_part=paths.KEYS)
    with pytest.raises(StoreError):
        sweep(faulty, older_than_s=0)
    assert parts.log.read(MAIN, 2) is not None

    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed


@pytest.mark.parametrize("times", [1, FOR_EVER], ids=["once", "for ever"])
@pytest.mark.parametrize("fault", [each for each in Fault if each is not Fault.STALL], ids=str)
def test_whatever_becomes_of_the_note_that_a_sweep_puts_no_key_is_in_doubt(
    parts: GraphContext, fault: Fault, times: int
) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)
    store = FaultyStore(parts.store)
    faulty = open_root(store, settings=parts.settings, clock=parts.clock)
    chosen = store.arm(fault, times=times, kind=RequestKind.PUT, path_part=paths.KEYS)
    with suppress(StoreError, Crash):
        sweep(faulty, older_than_s=0)
    assert chosen.hit.is_set()
    store.disarm()
    sweep(parts, older_than_s=0)
    assert parts.log.read(MAIN, 2) is None

    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


@pytest.mark.parametrize("swept", [False, True], ids=["pruned", "swept"])
def test_a_first_request_that_never_came_to_anything_keeps_nobody_from_sending_it_again(
    parts: GraphContext, swept: bool
) -> None:
    die_at(parts, Failpoint.WRITE_PREPARED)
    forget_what_is_old(parts, swept=swept)

    assert not write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON) == {"b": 1, "other": 2}


def test_as_long_as_pruned_entries_are_in_the_log_they_tell_what_became_of_the_first(parts: GraphContext) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)

    second = write(parts, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert second.replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


def test_a_key_of_an_earlier_life_of_a_branch_is_free_again(parts: GraphContext) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.append(PERSON, {"a": 1}), KEYED)
    branches.delete(parts, "side")
    branches.create(parts, "side")
    forget_what_is_old(parts, "side")

    assert not write(parts, "side", op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON, "side") == {"b": 1, "other": 2}


def test_what_a_key_did_in_an_earlier_life_of_a_branch_does_not_hide_what_it_did_in_this_one(
    parts: GraphContext,
) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.append(PERSON, {"a": 1}), KEYED)
    branches.delete(parts, "side")
    branches.create(parts, "side")
    for number in range(10):
        write(parts, "side", op.upsert(PERSON, {"other": number}))
    write(parts, "side", op.append(PERSON, {"b": 1}), KEYED)
    sweep(parts, older_than_s=0)  # cuts the earlier life away
    assert parts.log.read("side", 2) is None
    forget_what_is_old(parts, "side", swept=False)

    assert write(parts, "side", op.append(PERSON, {"b": 1}), KEYED).replayed


class _Meanwhile(ForwardingStore):
    """Runs something once, when what is at certain paths was looked at in this order; or before the last of them."""

    def __init__(self, inner: ObjectStore, *path_parts: str, act: Callable[[], object], before: bool = False) -> None:
        super().__init__(inner)
        self.left, self._act, self._before = list(path_parts), act, before

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        is_next = bool(self.left) and self.left[0] in path and kind in (RequestKind.GET, RequestKind.LIST)
        if is_next:
            self.left.pop(0)
        acts = is_next and not self.left
        if acts and self._before:
            self._act()
        answer = send()
        if kind is RequestKind.LIST:
            answer = iter(list(answer))  # type: ignore[call-overload]  # a listing: it is told as it was before the act
        if acts and not self._before:
            self._act()
        return answer


@pytest.mark.parametrize("looked_at", [[paths.KEYS], [paths.KEYS, "/floor/"]], ids=["the note", "the floor"])
def test_a_log_that_is_cut_while_somebody_looks_for_a_key_hides_nothing(
    parts: GraphContext, looked_at: list[str]
) -> None:
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT)
    forget_what_is_old(parts, swept=False)
    store = _Meanwhile(parts.store, *looked_at, act=lambda: sweep(parts, older_than_s=0))
    # It trusts what it knows of the log for a while, as processes do.
    slow = open_root(store, settings=replace(parts.settings, log_cut_s=3_600.0), clock=parts.clock)

    second = write(slow, MAIN, op.append(PERSON, {"b": 1}), KEYED)

    assert store.left == [], "it was swept in between"
    assert parts.log.read(MAIN, 2) is None
    assert second.replayed
    assert op.rows_of(parts, PERSON) == {"a": 1, "other": 2}


@pytest.mark.parametrize("swept", [False, True], ids=["written to", "written to, pruned and swept"])
def test_a_sweep_leaves_the_note_of_a_branch_that_was_made_again_while_it_ran(parts: GraphContext, swept: bool) -> None:
    branches.create(parts, "side")
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT, "side")
    write(parts, "side", op.upsert(PERSON, {"other": 0}))
    prune(parts, "side", Policy(keep=1, now=True))

    def made_again() -> None:
        branches.delete(parts, "side")
        branches.create(parts, "side")
        again = write(parts, "side", op.append(PERSON, {"b": 1}), KEYED)
        # Of one digit, like the first: both notes are equally long.
        assert again.entry is not None
        assert again.entry.number < 10
        if swept:
            forget_what_is_old(parts, "side")

    store = _Meanwhile(parts.store, paths.KEYS, act=made_again, before=True)
    sweep(open_root(store, settings=parts.settings, clock=parts.clock), older_than_s=0)
    assert store.left == [], "it was about to look at the note"
    if not swept:
        forget_what_is_old(parts, "side")

    assert write(parts, "side", op.append(PERSON, {"b": 1}), KEYED).replayed


def test_a_note_of_an_earlier_life_is_not_taken_for_that_of_a_writer_that_died_in_this_one(parts: GraphContext) -> None:
    branches.create(parts, "side")
    first = write(parts, "side", op.append(PERSON, {"a": 1}), KEYED)
    branches.delete(parts, "side")
    branches.create(parts, "side")
    die_at(parts, Failpoint.PUBLISH_ENTRY_PUT, "side")
    # Of one digit, like the first: the note that is there is as long as the one that should be.
    assert first.entry is not None
    assert first.entry.number < parts.log.live_head("side").number < 10
    forget_what_is_old(parts, "side")

    assert write(parts, "side", op.append(PERSON, {"b": 1}), KEYED).replayed
    assert op.rows_of(parts, PERSON, "side") == {"a": 1, "other": 2}
