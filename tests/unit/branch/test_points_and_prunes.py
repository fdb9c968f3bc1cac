"""What was pruned is not shown, not read and not forked; what came too late for a prune is taken back."""

from datetime import UTC, datetime, timedelta

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.branch import branches, tags
from omnigraph.branch.find_entry import entry_at, entry_before
from omnigraph.branch.lineage import commits
from omnigraph.branch.point import Point
from omnigraph.errors import NotFoundError, OutcomeUnknownError, ReclaimedError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.faults import Fault
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


@pytest.fixture
def made(parts: GraphContext, clock: ManualClock) -> list[Record]:
    """Six commits on main, a minute apart."""
    found = []
    for number in range(6):
        clock.advance(60)
        entry = write(parts, MAIN, op.insert(PERSON, {f"p{number}": number})).entry
        assert entry is not None
        found.append(entry)
    clock.advance(10_000)
    return found


def at(entry: Record) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=entry.created_at_us)


def pruned(parts: GraphContext, keep: int) -> None:
    prune(parts, MAIN, Policy(keep=keep, now=True))


def test_pruned_commits_are_neither_listed_nor_found(parts: GraphContext, made: list[Record]) -> None:
    tags.create(parts, "kept", made[1])
    pruned(parts, 2)
    assert [each.commit for each in commits(parts, parts.log.live_head(MAIN))] == [made[5].commit, made[4].commit]
    for entry in (made[0], made[3]):
        for point in (Point(number=entry.number), Point(at=at(entry))):
            with pytest.raises(ReclaimedError) as gone:
                entry_at(parts, point)
            assert gone.value.code == "version_reclaimed"
            with pytest.raises(ReclaimedError):
                branches.create(parts, "new", point=point)
        with pytest.raises(NotFoundError):
            entry_at(parts, Point(commit=entry.commit))
    assert entry_at(parts, Point(at=at(made[4]))) == made[4]
    # What a tag names is kept, and found through the tag.
    assert entry_at(parts, Point(tag="kept")) == made[1]
    branches.create(parts, "from tag", point=Point(tag="kept"))
    assert op.rows_of(parts, PERSON, "from tag") == {"p0": 0, "p1": 1}


def test_a_branch_lists_of_its_past_what_its_source_still_shows(parts: GraphContext, made: list[Record]) -> None:
    branches.create(parts, "side", point=Point(commit=made[4].commit))
    own = write(parts, "side", op.insert(PERSON, {"own": 1})).entry
    assert own is not None
    pruned(parts, 3)
    shown = [each.commit for each in commits(parts, parts.log.live_head("side"))]
    assert shown == [own.commit, made[4].commit, made[3].commit]


def written(parts: GraphContext, branch: str, name: str) -> Record:
    entry = write(parts, branch, op.insert(PERSON, {name: 1})).entry
    assert entry is not None
    return entry


def test_the_state_before_a_branchs_first_commit_is_found_where_its_source_shows_it(
    parts: GraphContext, made: list[Record]
) -> None:
    branches.create(parts, "side", point=Point(commit=made[4].commit))
    first = written(parts, "side", "first")
    prune(parts, "side", Policy(keep=1, now=True))  # marks the fork

    before = entry_before(parts, first)

    assert before is not None
    assert (before.head_commit, before.tables) == (made[4].commit, made[4].tables)
    pruned(parts, 1)
    assert entry_before(parts, first) is None


def test_the_state_before_a_commit_is_judged_by_the_prunes_of_its_own_branch(
    parts: GraphContext, made: list[Record], clock: ManualClock
) -> None:
    # Two branches were called "side", one after the other; a third has inherited from the first.
    branches.create(parts, "side", point=Point(commit=made[4].commit))
    own = [written(parts, "side", name) for name in ("first", "second")]
    branches.create(parts, "heir", point=Point(branch="side"))
    branches.delete(parts, "side")
    branches.create(parts, "side")
    clock.advance(10_000)
    written(parts, "side", "third")
    prune(parts, "side", Policy(keep=1, now=True))

    before = entry_before(parts, own[1])

    assert before is not None
    assert before.tables == own[0].tables


@pytest.mark.parametrize("what", ["branch", "tag"])
def test_what_was_pruned_while_it_was_being_named_is_not_named(
    store: MemoryStore, parts: GraphContext, made: list[Record], what: str
) -> None:
    other, late = open_root(store), open_root(store)
    entry = entry_at(late, Point(number=made[1].number))
    if what == "tag":
        pruned(other, 1)
        with pytest.raises(ReclaimedError, match="was pruned") as gone:
            tags.create(late, "late", entry)
        assert gone.value.__notes__ == ["tag 'late' was not made"]
        assert tags.names(other) == []
        return
    with armed(Failpoint.BRANCH_ENTRY_PUT, lambda: pruned(other, 1)), pytest.raises(ReclaimedError) as gone:
        branches.create(late, "late", point=Point(number=made[1].number))
    assert gone.value.__notes__ == ["branch 'late' was not made"]
    assert branches.names(other) == [MAIN]
    assert not branches.exists(other, "late")


def test_a_fork_that_cannot_ask_about_its_source_says_that_it_does_not_know(store: MemoryStore) -> None:
    op.new_graph(store)
    faulty = FaultyStore(store)
    parts = open_root(faulty)

    def fail() -> None:
        faulty.arm(Fault.FAIL_BEFORE, kind=RequestKind.GET, times=99)

    with armed(Failpoint.BRANCH_ENTRY_PUT, fail), pytest.raises(OutcomeUnknownError, match="branch 'side' was made"):
        branches.create(parts, "side")
    faulty.disarm()
    assert branches.names(parts) == [MAIN, "side"]
