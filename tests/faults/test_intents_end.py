"""Every interrupted write comes to an end, whatever was pruned, cut away, deleted or made again meanwhile."""

import random  # noqa: TID251  (seeded: every walk can be taken again)
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import once
from tests.support.interrupted_writes import interrupt, move_to_another_host, noted_intents, recovered
from tests.support.needed_files import AT_ONCE, needless_files, readable
from tests.support.operations import COMPANY, PERSON

from omnigraph.branch import branches, tags
from omnigraph.branch.marks import live_branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.errors import GraphError
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, RecoveryKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

LARGE = op.upsert(PERSON, {"a": 7, "n": 1})
# Those who take a silent writer of another host for dead only after long.
PATIENT = replace(AT_ONCE, stale_s=600)
PLACES = [
    Failpoint.WRITE_INTENT_PUT,
    Failpoint.WRITE_TABLES_STAGED,
    Failpoint.WRITE_INTENT_COMPLETED,
    Failpoint.PUBLISH_ENTRY_PUT,
]


@pytest.fixture
def parts(tmp_path: Path) -> GraphContext:
    """A graph whose first entry is its head, and in which nothing has to grow old first."""
    return op.new_graph(LocalStore(tmp_path, durability=Durability.PROCESS), settings=AT_ONCE, clock=ManualClock())


def patient(parts: GraphContext) -> GraphContext:
    return open_root(parts.store, settings=PATIENT, clock=ManualClock())


def others_go_on(parts: GraphContext) -> None:
    """Write, prune all but the newest, and cut the log of main."""
    other = patient(parts)
    for number in range(4):
        write(other, MAIN, op.upsert(COMPANY, {"x": number}))
    prune(other, MAIN, Policy(keep=1, now=True))
    sweep(other, older_than_s=0)


def after(operation: Operation, action: Callable[[], None]) -> Operation:
    """The same operation, before whose first run something happens."""
    first = once(action)

    def run(staging: WriteSet) -> None:
        first()
        operation.run(staging)

    return replace(operation, run=run)


def check_nothing_is_held(parts: GraphContext) -> None:
    assert noted_intents(parts) == []
    parts.clock.sleep(1)  # branches that were deleted this moment are not forgotten yet
    assert sweep(parts, older_than_s=0).held_by == ()
    sweep(parts, older_than_s=0)
    assert needless_files(parts) == []
    assert readable(parts)


def test_one_on_a_branch_that_was_deleted_ends_though_the_log_of_main_was_cut(parts: GraphContext) -> None:
    branches.create(parts, "side")
    intent = interrupt(parts, LARGE, branch="side")
    move_to_another_host(parts, intent)
    branches.delete(patient(parts), "side")
    others_go_on(parts)
    assert noted_intents(parts) == [intent]

    assert heal(parts).ended == (intent,)

    assert [entry.recovery.kind for entry in recovered(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    check_nothing_is_held(parts)


@pytest.mark.parametrize("tagged", [False, True], ids=["first", "tagged"])
@pytest.mark.parametrize("at", [Failpoint.WRITE_INTENT_PUT, Failpoint.WRITE_INTENT_COMPLETED])
def test_one_whose_base_outlived_the_entries_behind_it_is_undone(
    at: Failpoint, parts: GraphContext, *, tagged: bool
) -> None:
    if tagged:
        write(parts, MAIN, op.upsert(COMPANY, {"y": 1}))
        tags.create(parts, "kept", parts.log.live_head(MAIN))

    intent = interrupt(parts, after(LARGE, lambda: others_go_on(parts)), at=at)

    assert heal(parts).ended == (intent,)
    assert [entry.recovery.kind for entry in recovered(parts) if entry.recovery] == [RecoveryKind.UNDONE]
    check_nothing_is_held(parts)


def test_one_that_was_published_is_never_undone_though_its_entry_was_pruned(parts: GraphContext) -> None:
    intent = interrupt(parts, LARGE, at=Failpoint.PUBLISH_ENTRY_PUT)
    move_to_another_host(parts, intent)
    others_go_on(parts)

    assert heal(parts).ended == (intent,)

    assert op.rows_of(parts, PERSON) == {"a": 7, "n": 1}
    check_nothing_is_held(parts)


def test_a_sweep_names_the_writes_that_hold_files(parts: GraphContext) -> None:
    intent = interrupt(parts, LARGE)
    move_to_another_host(parts, intent)

    [held_by] = sweep(patient(parts), older_than_s=0).held_by

    assert intent in held_by
    assert "by ada" in held_by
    assert f"branch '{MAIN}'" in held_by


@pytest.mark.parametrize("seed", range(10))
def test_whatever_happens_every_intent_ends_and_nothing_stays_held(seed: int, parts: GraphContext) -> None:
    chance = random.Random(seed)
    for step in range(30):
        with suppress(GraphError):
            take_a_step(chance, parts, step)

    heal(parts)

    check_nothing_is_held(parts)


def take_a_step(chance: random.Random, parts: GraphContext, step: int) -> None:
    other = patient(parts)
    branch = chance.choice(live_branches(other))
    match chance.randrange(8):
        case 0 | 1:
            write(other, branch, op.upsert(chance.choice((PERSON, COMPANY)), {f"s{step}": step, "a": step}))
        case 2 | 3:
            intent = interrupt(other, LARGE, branch=branch, at=chance.choice(PLACES))
            if chance.random() < 0.7:
                move_to_another_host(other, intent)
        case 4:
            branches.create(other, chance.choice(("left", "right")), source=branch)
        case 5 if branch != MAIN:
            branches.delete(other, branch)
        case 6:
            tags.create(other, f"t{step}", other.log.live_head(branch))
        case _:
            prune(other, branch, Policy(keep=1, now=True))
            sweep(other, older_than_s=0)
