"""Pruning marks commits in one entry: what is shown, what is kept, and what it costs."""

from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.histories import grow_history
from tests.support.interleaving import once
from tests.support.operations import PERSON

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import InvalidRequestError, NotFoundError, PermissionDeniedError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.model.retention import Pruned
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

PRUNING = WriteOptions(prune_previous=True)
SETTINGS = Settings(durability="process")
EAGER = Settings(durability="process", protection_s=0)


def graph(root: Path, clock: ManualClock, settings: Settings = SETTINGS) -> GraphContext:
    return op.new_graph(str(root), types=[PERSON], settings=settings, clock=clock)


def commit(parts: GraphContext, number: int, *, prune_previous: bool = False, branch: str = MAIN) -> Record:
    """One more commit, of which `number` says something."""
    options = PRUNING if prune_previous else None
    receipt = write(parts, branch, op.upsert(PERSON, {f"p{number}": number}), options)
    assert receipt.entry is not None
    return receipt.entry


def grown(
    root: Path, clock: ManualClock, commits: int, *, every_s: float = 0, settings: Settings = SETTINGS
) -> GraphContext:
    """A graph with so many entries, the first of which made it."""
    parts = graph(root, clock, settings)
    for number in range(2, commits + 1):
        clock.advance(every_s)
        commit(parts, number)
    return parts


def test_one_entry_holds_the_new_head_the_marks_and_the_floor_right_below_what_is_retained(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 7)
    clock.advance(1_000)
    for number in (8, 9, 10):
        commit(parts, number)
        clock.advance(1)

    eleventh = commit(parts, 11, prune_previous=True)

    assert (eleventh.number, eleventh.kind) == (11, CommitKind.MUTATION)
    assert (eleventh.pruned.floor, eleventh.pruned.through, eleventh.pruned.single) == (8, 10, ())
    assert eleventh == parts.log.live_head(MAIN) == parts.log.read(MAIN, 11)


def test_young_commits_keep_their_data_though_only_the_newest_is_shown(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 5, every_s=10)

    sixth = commit(parts, 6, prune_previous=True)

    assert [number for number in range(1, 7) if sixth.pruned.is_listed(number)] == [6]
    assert all(sixth.pruned.is_kept(number) for number in range(1, 7))


def test_without_a_window_the_anchor_still_keeps_its_data(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 5, settings=EAGER)

    for number in (6, 7, 8):
        entry = commit(parts, number, prune_previous=True)

        assert (entry.pruned.floor, entry.pruned.through) == (number - 1, number - 1)


def test_what_was_young_in_a_burst_goes_below_the_floor_with_a_later_prune(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = graph(tmp_path, clock)
    for number in range(2, 7):
        clock.advance(1)
        assert commit(parts, number, prune_previous=True).pruned.floor == 1
    clock.advance(601)

    assert commit(parts, 7, prune_previous=True).pruned.floor == 6


def test_in_a_steady_stream_the_floor_follows_the_window_and_the_entry_stays_small(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = graph(tmp_path, clock)
    for number in range(2, 140):
        clock.advance(10)
        last = commit(parts, number, prune_previous=True)

    inside = int(limits.PROTECTION_WINDOW_S / 10)
    assert last.number - inside - inside / 4 <= last.pruned.floor <= last.number - inside
    assert len(last.pruned.ages) <= limits.PRUNED_AGES_MAX


def test_the_anchor_is_the_entry_the_log_ends_with_not_what_was_marked_by_itself(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 3, settings=EAGER)
    prune(parts, MAIN, Policy(numbers=(2,)))

    entry = commit(parts, 5, prune_previous=True)

    assert entry.pruned == Pruned(floor=4, through=4, ages=entry.pruned.ages)
    assert op.rows_at(parts, PERSON, entry) == {"p2": 2, "p3": 3, "p5": 5}


def test_a_commit_marked_by_itself_is_not_shown_and_keeps_its_data(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 4)

    done = prune(parts, MAIN, Policy(numbers=(2,)), actor="ada")

    assert done.entry is not None
    assert (done.entry.kind, done.entry.actor, done.entry.is_commit) == (CommitKind.PRUNE, "ada", False)
    assert [number for number in range(1, 5) if done.after.is_listed(number)] == [1, 3, 4]
    assert done.after.is_kept(2)
    assert op.rows_at(parts, PERSON, parts.log.between(MAIN, 2, 2)[0]) == {"p2": 2}


def test_marks_made_one_by_one_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PRUNED_SINGLE_MAX", 2)
    parts = grown(tmp_path, ManualClock(), 6)

    prune(parts, MAIN, Policy(numbers=(2, 3)))
    with pytest.raises(InvalidRequestError, match="one by one"):
        prune(parts, MAIN, Policy(numbers=(4,)))


@pytest.mark.parametrize(
    ("policy", "shown", "kept"),
    [
        pytest.param(Policy(keep=3), [8, 9, 10], 8, id="the newest three"),
        pytest.param(Policy(keep=1), [10], 9, id="the newest, and the anchor without being shown"),
        pytest.param(Policy(keep=0), [10], 9, id="the head stays even where none shall"),
        pytest.param(Policy(keep=1, now=True), [10], 10, id="the newest alone"),
        pytest.param(Policy(now=True), [10], 10, id="now, with nothing else said"),
        pytest.param(Policy(keep=50), list(range(1, 11)), 1, id="more than there are"),
        pytest.param(Policy(older_than_s=450), [6, 7, 8, 9, 10], 6, id="the young ones"),
        pytest.param(Policy(older_than_s=0), [10], 9, id="none is young enough, but the head"),
        pytest.param(Policy(keep=2, older_than_s=450), [6, 7, 8, 9, 10], 6, id="either: age"),
        pytest.param(Policy(keep=7, older_than_s=450), [4, 5, 6, 7, 8, 9, 10], 4, id="either: number"),
    ],
)
def test_a_policy_says_what_is_shown_and_the_window_and_the_anchor_what_is_kept(
    policy: Policy, shown: list[int], kept: int, tmp_path: Path
) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 10, every_s=100, settings=EAGER)

    done = prune(parts, MAIN, policy)

    assert [number for number in range(1, 11) if done.after.is_listed(number)] == shown
    assert done.after.floor == kept
    assert op.rows_of(parts, PERSON) == {f"p{number}": number for number in range(2, 11)}


def test_the_window_keeps_data_that_a_policy_marks_unless_it_shall_be_now(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 10, every_s=100)

    done = prune(parts, MAIN, Policy(keep=1))
    assert (done.after.floor, done.after.through) == (4, 9)

    again = prune(parts, MAIN, Policy(keep=1))
    assert again.entry is None, "nothing was left to be marked"

    at_once = prune(parts, MAIN, Policy(keep=1, now=True))
    assert (at_once.after.floor, at_once.after.through) == (10, 9)


def test_marked_commits_go_below_the_floor_once_they_are_old_enough(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 10, every_s=100)
    prune(parts, MAIN, Policy(keep=1))
    clock.advance(10_000)

    assert prune(parts, MAIN, Policy(keep=1)).after.floor == 9


def test_later_writes_take_the_marks_on_and_floors_never_sink(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 6, settings=EAGER)
    done = prune(parts, MAIN, Policy(keep=2))

    later = commit(parts, 8)

    assert later.pruned == done.after
    late = open_root(str(tmp_path), settings=SETTINGS, clock=clock)
    assert commit(late, 9, prune_previous=True).pruned.floor == done.after.floor


def test_a_dry_run_says_what_would_be_marked_and_writes_nothing(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 6, settings=EAGER)

    planned = prune(parts, MAIN, Policy(keep=2), dry_run=True)

    assert (planned.entry, planned.after.floor, planned.after.through) == (None, 5, 4)
    assert parts.log.live_head(MAIN).number == 6
    read_only = open_root(str(tmp_path), read_only=True, settings=EAGER)
    assert prune(read_only, MAIN, Policy(keep=2), dry_run=True).after == planned.after
    with pytest.raises(PermissionDeniedError):
        prune(read_only, MAIN, Policy(keep=2))


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (Policy(), "at least one of --keep or --older-than"),
        (Policy(keep=-1), "cannot be -1"),
        (Policy(older_than_s=-2), "cannot be -2 seconds"),
        (Policy(keep=1, numbers=(2,)), "not both"),
    ],
)
def test_a_policy_that_says_nothing_is_refused(policy: Policy, told: str, tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 3)

    with pytest.raises(InvalidRequestError, match=told):
        prune(parts, MAIN, policy)

    assert parts.log.live_head(MAIN).number == 3


def test_a_branch_that_is_not_there_cannot_be_pruned(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="'nowhere'"):
        prune(graph(tmp_path, ManualClock()), "nowhere", Policy(keep=1))


def test_a_fresh_branch_has_nothing_to_prune_and_main_is_left_alone(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 5, settings=EAGER)
    branches.create(parts, "side")

    assert prune(parts, "side", Policy(keep=1, now=True)).entry is None
    commit(parts, 1, branch="side")
    commit(parts, 2, branch="side")
    assert prune(parts, "side", Policy(keep=1, now=True)).after.floor == 3
    assert parts.log.live_head(MAIN).pruned == Pruned()


def test_a_name_used_again_takes_the_floor_on_and_is_pruned_from_its_new_beginning(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 3, settings=EAGER)
    branches.create(parts, "side")
    commit(parts, 1, branch="side")
    commit(parts, 2, branch="side")
    prune(parts, "side", Policy(keep=1, now=True))
    branches.delete(parts, "side")
    branches.create(parts, "side")

    head = parts.log.live_head("side")
    assert (head.number, head.pruned.floor) == (6, 3)
    commit(parts, 7, branch="side")
    assert prune(parts, "side", Policy(keep=5)).entry is None
    commit(parts, 8, branch="side")
    # The entry it began with, and one commit: those of the branch that had the name before were shown to nobody.
    assert prune(parts, "side", Policy(keep=1, now=True), dry_run=True).marked == 2
    assert commit(parts, 9, branch="side", prune_previous=True).pruned.floor == 8


def test_it_is_told_how_many_marked_commits_keep_their_data_and_a_later_prune_passes_them(tmp_path: Path) -> None:
    clock = ManualClock()
    parts = grown(tmp_path, clock, 6)

    done = prune(parts, MAIN, Policy(keep=2))
    clock.advance(SETTINGS.protection_s + 1)
    later = prune(parts, MAIN, Policy(keep=2))

    assert (done.marked, done.waiting) == (4, 4)
    assert (later.marked, later.waiting, later.after.floor) == (0, 0, 5)


def test_the_floor_does_not_pass_the_base_of_a_write_that_left_an_intent(tmp_path: Path) -> None:
    parts = grown(tmp_path, ManualClock(), 3, settings=EAGER)
    floors = []

    def others() -> None:
        faster = open_root(str(tmp_path), settings=EAGER)
        for number in range(4, 8):
            commit(faster, number)
        floors.append(prune(faster, MAIN, Policy(keep=1, now=True)).after.floor)
        floors.append(commit(faster, 9, prune_previous=True).pruned.floor)

    with armed(Failpoint.WRITE_INTENT_COMPLETED, once(others)):
        write(parts, MAIN, op.noted(op.insert(PERSON, {"x": 1})))

    assert floors == [3, 3]
    assert prune(parts, MAIN, Policy(keep=1, now=True)).after.floor == 10


def test_what_is_still_to_be_swept_is_carried_on_from_entry_to_entry_until_a_sweep_has_cut_it(tmp_path: Path) -> None:
    at_once = Settings(durability="process", protection_s=0, log_cut_s=0)
    parts = grown(tmp_path, ManualClock(), 6, settings=at_once)

    def pending(pruned: Pruned) -> tuple[int, int]:
        return pruned.unswept, pruned.floor

    assert pending(prune(parts, MAIN, Policy(keep=2)).after) == (1, 5)
    # Whoever was to sweep died. Neither a write nor a later prune forgets where to begin.
    assert pending(commit(parts, 8).pruned) == (1, 5)
    assert pending(commit(parts, 9, prune_previous=True).pruned) == (1, 8)
    assert pending(prune(parts, MAIN, Policy(keep=1, now=True)).after) == (1, 9)

    sweep(parts, older_than_s=0)
    commit(parts, 11)
    commit(parts, 12)
    assert pending(prune(parts, MAIN, Policy(keep=1, now=True)).after) == (9, 13)
    assert pending(commit(parts, 15, prune_previous=True).pruned) == (9, 14)


@pytest.mark.parametrize("window_s", [0.0, 600.0])
@pytest.mark.parametrize("depth", [1, 10, 100, 1_000])
def test_a_write_that_prunes_asks_for_the_same_however_long_the_history(
    depth: int, window_s: float, tmp_path: Path
) -> None:
    made = graph(tmp_path, ManualClock())
    commit(made, 2)
    grow_history(made, depth)
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    parts = open_root(counted, settings=Settings(durability="process", protection_s=window_s), clock=ManualClock())
    parts.log.live_head(MAIN)
    counts = []
    for number in (3, 4, 5):
        counted.reset()
        commit(parts, number, prune_previous=True)
        counts.append({kind: times for kind, times in counted.reset().items() if kind is not RequestKind.MAKE_DURABLE})

    one_write = {RequestKind.LIST: 1, RequestKind.GET: 1, RequestKind.PUT_IF_ABSENT: 1}
    # Without a window, one more look for writes under way; with one, at the oldest entry.
    more = RequestKind.GET if window_s else RequestKind.LIST
    assert counts == [one_write | {more: 2}] * 3


def test_where_the_window_cuts_through_a_long_history_the_look_for_its_edge_is_bounded(tmp_path: Path) -> None:
    clock = ManualClock()
    made = graph(tmp_path, clock)
    commit(made, 2)
    grow_history(made, 1_000)
    clock.advance(10_000)
    for number in range(3):
        commit(made, number)
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    parts = open_root(counted, settings=SETTINGS, clock=clock)
    before = parts.log.live_head(MAIN).number
    counted.reset()

    entry = commit(parts, 9, prune_previous=True)

    assert entry.pruned.floor == before - 2
    assert counted.counts()[RequestKind.GET] <= 14
