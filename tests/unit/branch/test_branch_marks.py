"""Listing branches: one request, and never a lie, wherever somebody died."""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.api.prune import prune_branches
from omnigraph.branch import branches, marks
from omnigraph.branch.marks import Mark
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import GraphError
from omnigraph.failpoints import Crash, Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import CountingStore, FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

PLACES = [Failpoint.BRANCH_CHANGE_NOTED, Failpoint.BRANCH_ENTRY_PUT]


def die() -> None:
    raise Crash


def marks_of(store: MemoryStore, name: str) -> list[tuple[int, str]]:
    """The marks of a branch, as they lie there."""
    found = [paths.parse_branch_mark(folder) for folder in store.list_folders(paths.LOGS)]
    return sorted(each[1:] for each in found if each is not None and each[0] == name)


def forget_marks(store: MemoryStore) -> None:
    """As in a graph of an earlier release."""
    for folder in list(store.list_folders(paths.LOGS)):
        if paths.parse_branch_mark(folder) is not None:
            store.delete_prefix(f"{paths.LOGS}{folder}/")


def test_many_branches_are_listed_in_one_request(store: MemoryStore, parts: GraphContext) -> None:
    names = [f"b{number:03d}" for number in range(400)]
    for name in names:
        branches.create(parts, name)
    for name in names[::40]:
        branches.delete(parts, name)
    counting = CountingStore(store)
    fresh = open_root(counting, read_only=True)
    counting.reset()
    assert branches.names(fresh) == sorted({MAIN, *names} - set(names[::40]))
    assert counting.counts() == {RequestKind.LIST: 1}


def test_a_graph_made_before_ends_were_announced_is_looked_through_once(
    store: MemoryStore, parts: GraphContext
) -> None:
    for name in ("a", "b", "c"):
        branches.create(parts, name)
    branches.delete(parts, "b")
    forget_marks(store)
    stamp = json.loads(store.get(paths.STAMP))
    assert stamp.pop("branch_ends") == "announced"
    store.put(paths.STAMP, json.dumps(stamp).encode())
    parts = open_root(store)
    looking = open_root(store, read_only=True)
    assert branches.names(looking) == ["a", "c", MAIN]
    assert marks_of(store, "a") == []  # whoever may not write does not repair
    assert branches.names(parts) == ["a", "c", MAIN]
    assert [marks_of(store, name) for name in ("a", "b", "c")] == [[(1, "live")], [(2, "gone")], [(1, "live")]]
    counting = CountingStore(store)
    fresh = open_root(counting, read_only=True)
    counting.reset()
    assert branches.names(fresh) == ["a", "c", MAIN]
    assert counting.counts() == {RequestKind.LIST: 1}


@pytest.mark.parametrize("place", PLACES)
def test_a_death_while_deleting_leaves_no_branch_listed_that_is_not_there(
    store: MemoryStore, parts: GraphContext, place: Failpoint
) -> None:
    branches.create(parts, "side")
    with armed(place, die), pytest.raises(Crash):
        branches.delete(parts, "side")
    for again in (open_root(store, read_only=True), parts, open_root(store)):
        assert ("side" in branches.names(again)) == branches.exists(again, "side")
    assert branches.exists(parts, "side") == (place is Failpoint.BRANCH_CHANGE_NOTED)


@pytest.mark.parametrize("place", PLACES)
def test_a_death_while_a_name_is_used_again_leaves_no_live_branch_out(
    store: MemoryStore, parts: GraphContext, place: Failpoint
) -> None:
    branches.create(parts, "side")
    branches.delete(parts, "side")
    assert marks_of(store, "side") == [(2, "gone")]
    with armed(place, die), pytest.raises(Crash):
        branches.create(parts, "side")
    for again in (open_root(store, read_only=True), parts, open_root(store)):
        assert ("side" in branches.names(again)) == branches.exists(again, "side")
    assert branches.exists(parts, "side") == (place is Failpoint.BRANCH_ENTRY_PUT)


def test_a_death_after_the_first_entry_of_a_fresh_name_leaves_no_live_branch_out(
    store: MemoryStore, parts: GraphContext
) -> None:
    with armed(Failpoint.BRANCH_ENTRY_PUT, die), pytest.raises(Crash):
        branches.create(parts, "side")
    assert marks_of(store, "side") == []
    assert branches.names(open_root(store, read_only=True)) == [MAIN, "side"]


def test_a_deleter_that_slept_long_cannot_make_others_believe_what_is_not_so(
    store: MemoryStore, parts: GraphContext
) -> None:
    branches.create(parts, "side")
    head = parts.log.live_head("side")
    # The doubt is there and the entry is not; others list, which settles nothing above it.
    marks.announce(parts, "side", head.number + 1)
    assert branches.names(parts) == [MAIN, "side"]
    assert (head.number + 1, "changing") in marks_of(store, "side")
    branches.delete(open_root(store), "side")
    assert branches.names(parts) == [MAIN]


def test_a_repairer_that_is_late_is_outranked_by_what_happened_meanwhile(
    store: MemoryStore, parts: GraphContext
) -> None:
    branches.create(parts, "side")
    branches.delete(parts, "side")
    branches.create(parts, "side")
    marks.settle(parts, "side", 2, Mark.GONE)  # by somebody who read entry 2 long ago
    assert branches.names(parts) == [MAIN, "side"]
    branches.delete(parts, "side")
    marks.settle(parts, "side", 3, Mark.LIVE)
    assert branches.names(parts) == [MAIN]


def test_a_deleter_that_lost_its_place_to_a_write_takes_its_doubt_back_and_tries_the_next(
    store: MemoryStore, parts: GraphContext
) -> None:
    branches.create(parts, "side")
    other = open_root(store)
    raced: list[object] = []

    def race() -> None:
        if not raced:
            raced.append(write(other, "side", op.insert(PERSON, {"a": 1})))

    with armed(Failpoint.BRANCH_CHANGE_NOTED, race):
        assert branches.delete(parts, "side").number == 3
    assert branches.names(parts) == [MAIN]
    assert not [each for each in marks_of(store, "side") if each[1] == Mark.CHANGING]


@pytest.mark.parametrize("ending", [True, False])
def test_one_who_lost_a_race_to_end_or_begin_a_branch_leaves_no_lie_when_the_winner_dies(
    store: MemoryStore, parts: GraphContext, *, ending: bool
) -> None:
    branches.create(parts, "side")
    if not ending:
        branches.delete(parts, "side")
    act, winner = branches.delete if ending else branches.create, open_root(store)
    raced: list[str] = []

    def race() -> None:
        if not raced:
            raced.append("side")
            with armed(Failpoint.BRANCH_ENTRY_PUT, die), suppress(Crash):
                act(winner, "side")

    with armed(Failpoint.BRANCH_CHANGE_NOTED, race), pytest.raises(GraphError):
        act(parts, "side")
    assert raced
    assert branches.exists(parts, "side") is not ending
    assert ("side" in branches.names(open_root(store, read_only=True))) is not ending


def test_marks_that_mean_nothing_any_more_are_taken_away_by_listings(store: MemoryStore, parts: GraphContext) -> None:
    for _ in range(3):
        branches.create(parts, "side")
        branches.delete(parts, "side")
    branches.create(parts, "side")
    branches.names(parts)
    assert marks_of(store, "side") == [(7, "live")]


@pytest.mark.parametrize("lost", [".live", ".gone", ".changing", ".0"])
def test_marks_that_cannot_be_put_or_taken_away_make_nobody_believe_what_is_not_so(
    store: MemoryStore, lost: str
) -> None:
    op.new_graph(store)
    faulty = FaultyStore(store)
    parts = open_root(faulty)
    steps: list[Callable[[GraphContext, str], object]] = [branches.create, branches.delete] * 2
    for kind in (RequestKind.PUT, RequestKind.DELETE):
        for step in steps:
            # Announcing must come through, or nothing is done.
            faulty.arm(Fault.NO_SPACE, kind=kind, path_part=lost, times=99)
            with suppress(GraphError):
                step(parts, "side")
            assert ("side" in branches.names(parts)) == branches.exists(parts, "side")
            faulty.disarm()
            assert ("side" in branches.names(parts)) == branches.exists(parts, "side")
            assert ("side" in branches.names(open_root(store))) == branches.exists(parts, "side")


def test_a_mark_of_a_deletion_that_somebody_took_away_is_put_again_by_upkeep(
    store: MemoryStore, parts: GraphContext
) -> None:
    branches.create(parts, "side")
    branches.create(parts, "gone")
    branches.delete(parts, "gone")
    forget_marks(store)
    assert branches.names(parts) == ["gone", MAIN, "side"]
    assert not branches.exists(parts, "gone")

    assert [head.branch for head in branches.heads(open_root(store, read_only=True))] == [MAIN, "side"]
    assert [head.branch for head in branches.heads(parts)] == [MAIN, "side"]

    assert branches.names(parts) == [MAIN, "side"]
    assert marks_of(store, "gone") == [(2, "gone")]


def test_what_somebody_else_left_under_a_name_is_listed_and_stands_in_nobodys_way(
    store: MemoryStore, parts: GraphContext
) -> None:
    store.put(f"{paths.LOGS}nothing/README", b"")
    assert branches.names(parts) == [MAIN, "nothing"]
    assert not branches.exists(parts, "nothing")
    report = prune_branches(parts, None, keep=1, older_than=None, commits=(), now=True, dry_run=False, actor=None)
    assert [each.branch for each in report.branches] == [MAIN]
    assert not sweep(parts, older_than_s=0).errors
    branches.create(parts, "nothing")
    assert branches.exists(parts, "nothing")


def test_folders_that_are_no_branches_are_passed_over(store: MemoryStore, parts: GraphContext) -> None:
    branches.create(parts, "side")
    store.put(f"{paths.LOGS}raw name/x", b"")
    store.put(f"{paths.LOGS}side.{1:020d}.strange/mark", b"")
    store.put(f"{paths.LOGS}side.12.live/mark", b"")
    store.put(paths.branch_mark("ghost", 4, Mark.LIVE), b"")
    assert branches.names(parts) == [MAIN, "side"]
    with pytest.raises(ObjectNotFound):
        store.get(paths.hint("ghost"))
