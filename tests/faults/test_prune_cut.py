"""Death in the middle of a prune, at every step it takes: marked or not, and whatever was kept is readable."""

from collections.abc import Callable

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies, Cut, at_every_failpoint, at_every_request
from tests.support.needed_files import AT_ONCE, needless_files, readable
from tests.support.operations import PERSON
from tests.support.write_kinds import next_write, opened

from omnigraph.branch.sweep.sweep import sweep
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.write import write

NOTED = Settings(durability="process", protection_s=0, log_cut_s=0, stale_s=0, intent_rows_min=0)
FAULTS = [Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.FAIL_BEFORE, Fault.LOSE_ANSWER]


def pruning(store: FaultyStore) -> None:
    prune(opened(store, settings=AT_ONCE), MAIN, Policy(keep=1, now=True))


def pruning_write(store: FaultyStore) -> None:
    write(opened(store, settings=AT_ONCE), MAIN, op.upsert(PERSON, {"a": 7}), WriteOptions(prune_previous=True))


def noted_pruning_write(store: FaultyStore) -> None:
    write(opened(store, settings=NOTED), MAIN, op.upsert(PERSON, {"a": 7}), WriteOptions(prune_previous=True))


WORK = [pruning, pruning_write, noted_pruning_write]


def check(cut: Cut) -> bool:
    """The mark is there with all that belongs to it or not at all; returns which."""
    parts = opened(cut.store, settings=AT_ONCE)
    head = parts.log.live_head(MAIN)
    marked = head.pruned.through > 0
    if marked:
        assert not head.pruned.is_listed(head.pruned.through), cut.where
    rows = op.rows_of(parts, PERSON)
    before = readable(parts)
    next_write(parts)
    prune(parts, MAIN, Policy(keep=2, now=True))
    kept = {
        key: rows for key, rows in before.items() if key[0] != MAIN or parts.log.live_head(MAIN).pruned.is_kept(key[1])
    }
    sweep(parts, older_than_s=0)
    assert needless_files(parts) == [], cut.where
    fresh = opened(cut.store, settings=AT_ONCE)
    after = readable(fresh)
    assert {key: after[key] for key in kept} == kept, cut.where
    assert op.rows_of(fresh, PERSON) == rows, cut.where
    return marked


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("work", WORK, ids=lambda each: each.__name__)
def test_a_prune_cut_short_after_any_request_has_marked_everything_or_nothing(
    work: Callable[[FaultyStore], None], fault: Fault, copies: Copies
) -> None:
    seen = [check(cut) for cut in at_every_request(copies, fault, work)]

    if fault is Fault.CRASH_BEFORE:
        assert seen[0] is False
    if fault is Fault.CRASH_AFTER:
        assert seen[-1] is True


@pytest.mark.parametrize("work", WORK, ids=lambda each: each.__name__)
def test_a_prune_that_dies_between_two_steps_has_marked_everything_or_nothing(
    work: Callable[[FaultyStore], None], copies: Copies
) -> None:
    places = [place for place in Failpoint if place.startswith(("prune.", "write.", "publish."))]

    seen = [check(cut) for cut in at_every_failpoint(copies, work, places)]

    assert seen.count(True) >= 1


def test_whoever_finishes_a_pruning_write_marks_what_it_was_to_mark(copies: Copies) -> None:
    for cut in at_every_failpoint(copies, noted_pruning_write, [Failpoint.WRITE_INTENT_COMPLETED]):
        head = opened(cut.store, settings=AT_ONCE).log.live_head(MAIN)

        assert head.recovery is not None
        assert (head.pruned.through, head.pruned.floor) == (head.number - 1, head.number - 1)
        return
    raise AssertionError("the write never came to its intent")
