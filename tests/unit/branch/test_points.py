"""Points in the history: by branch, number, commit, tag and time."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone

import pytest
from tests.support import operations as op
from tests.support.histories import grow_history
from tests.support.operations import PERSON, rows_at, rows_of

from omnigraph.branch import branches, tags
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.lineage import Line, birth, lines
from omnigraph.branch.point import HEAD_OF_MAIN, Point, instant_us
from omnigraph.errors import InvalidRequestError, NotFoundError
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write


def put(parts: GraphContext, branch: str, name: str, v: int = 1) -> Record:
    """One more row, as one commit."""
    entry = write(parts, branch, op.upsert(PERSON, {name: v})).entry
    assert entry is not None
    return entry


def text(us: int) -> str:
    """A time as people write it."""
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=us)).isoformat()


def test_a_state_is_found_by_commit_number_tag_and_time(parts: GraphContext, clock: ManualClock) -> None:
    made = []
    for number in range(5):
        clock.advance(60)
        made.append(put(parts, MAIN, f"p{number}"))
    tags.create(parts, "v2", made[2])
    for number, entry in enumerate(made):
        points = [
            Point(commit=entry.commit),
            Point(number=entry.number),
            Point(branch=MAIN, number=entry.number),
            Point(at=text(entry.created_at_us)),
            Point(at=text(entry.created_at_us + 59_000_000)),
        ]
        for point in points:
            assert entry_at(parts, point) == entry
            assert rows_at(parts, PERSON, entry_at(parts, point)) == {f"p{each}": 1 for each in range(number + 1)}
    assert entry_at(parts, Point(tag="v2")) == made[2]
    assert entry_at(parts, HEAD_OF_MAIN) == made[4]
    assert entry_at(parts, Point(at=text(made[4].created_at_us + 10**12))) == made[4]


def test_a_time_before_a_branch_began_is_a_time_of_the_line_it_came_from(
    parts: GraphContext, clock: ManualClock
) -> None:
    clock.advance(60)
    first = put(parts, MAIN, "a")
    clock.advance(60)
    branches.create(parts, "side")
    clock.advance(60)
    branches.create(parts, "deep", source="side")
    clock.advance(60)
    late = put(parts, MAIN, "late")
    clock.advance(60)
    mine = put(parts, "deep", "mine")
    for us, expected in [
        (mine.created_at_us, {"a": 1, "mine": 1}),
        (late.created_at_us, {"a": 1}),  # what main got later is not there
        (first.created_at_us, {"a": 1}),
        (first.created_at_us - 1, {}),
    ]:
        assert rows_at(parts, PERSON, entry_at(parts, Point(branch="deep", at=text(us)))) == expected
    with pytest.raises(NotFoundError, match="has no commit as old as 1999-01-01"):
        entry_at(parts, Point(branch="deep", at="1999-01-01"))


def test_a_branch_starts_at_any_point_and_inherits_its_past(parts: GraphContext, clock: ManualClock) -> None:
    made = []
    for number in range(4):
        clock.advance(60)
        made.append(put(parts, MAIN, f"p{number}"))
    tags.create(parts, "v1", made[1])
    starts = {
        "by commit": Point(commit=made[1].commit),
        "by tag": Point(tag="v1"),
        "by number": Point(number=made[1].number),
        "by time": Point(at=text(made[1].created_at_us)),
    }
    for name, point in starts.items():
        fork = branches.create(parts, name, point=point)
        assert (fork.parent, fork.fork_of, fork.fork_number) == (made[1].commit, MAIN, made[1].number)
        assert rows_of(parts, PERSON, name) == {"p0": 1, "p1": 1}
        put(parts, name, "own")
        head = parts.log.live_head(name)
        assert list(lines(parts, head)) == [Line(name, 1, 2), Line(MAIN, 1, made[1].number)]


def test_numbers_of_an_earlier_life_of_a_name_are_not_numbers_of_the_branch(parts: GraphContext) -> None:
    branches.create(parts, "side")
    old = put(parts, "side", "a")
    branches.delete(parts, "side")
    branches.create(parts, "side")
    new = put(parts, "side", "b")
    assert entry_at(parts, Point(branch="side", number=new.number)) == new
    assert entry_at(parts, Point(branch="side", number=4)).kind == "fork"
    for number in (0, old.number, 3, new.number + 1, -1):
        with pytest.raises(NotFoundError, match=f"has no commit number {number}; its newest is 5"):
            entry_at(parts, Point(branch="side", number=number))
    # By its id it is still the commit it was.
    assert entry_at(parts, Point(commit=old.commit)) == old


def test_where_a_life_began_is_found_in_the_log_where_a_record_does_not_tell(parts: GraphContext) -> None:
    branches.create(parts, "side")
    branches.delete(parts, "side")
    branches.create(parts, "side")
    put(parts, "side", "a")
    head = parts.log.live_head("side")
    assert head.born == birth(parts, head) == 3
    grow_history(parts, 9, branch="side")
    newest = parts.log.live_head("side")
    without = Record(**{name: getattr(newest, name) for name in newest.__slots__} | {"born": None})
    assert birth(parts, without) == 3


@pytest.mark.parametrize(
    "point",
    [
        Point(branch=MAIN, commit="x"),
        Point(commit="x", number=1),
        Point(commit="x", tag="t"),
        Point(commit="x", at="2026-01-01"),
        Point(tag="t", branch=MAIN),
        Point(tag="t", number=1),
        Point(tag="t", at="2026-01-01"),
        Point(number=1, at="2026-01-01"),
        Point(at="yesterday"),
        Point(at=""),
    ],
)
def test_a_point_named_in_two_ways_or_in_none_is_refused(parts: GraphContext, point: Point) -> None:
    with pytest.raises(InvalidRequestError):
        entry_at(parts, point)


def test_what_is_not_there_is_said_by_name(parts: GraphContext) -> None:
    missing: list[tuple[Callable[[], object], str]] = [
        (
            lambda: entry_at(parts, Point(commit="01ARZ3NDEKTSV4RRFFQ69G5FAV")),
            "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not",
        ),
        (lambda: entry_at(parts, Point(tag="ghost")), "tag 'ghost' not found"),
        (lambda: entry_at(parts, Point(branch="ghost")), "branch 'ghost' not found"),
        (lambda: branches.create(parts, "new", point=Point(tag="ghost")), "tag 'ghost' not found"),
    ]
    for attempt, message in missing:
        with pytest.raises(NotFoundError, match=message):
            attempt()


def test_times_are_read_in_any_zone_and_without_one_are_utc() -> None:
    noon = datetime(2026, 1, 31, 12, tzinfo=UTC)
    us = instant_us(noon)
    assert instant_us("2026-01-31T12:00:00Z") == us
    assert instant_us("2026-01-31 12:00") == us
    assert instant_us("2026-01-31T13:00:00.000001+01:00") == us + 1
    assert instant_us(datetime(2026, 1, 31, 12)) == us  # noqa: DTZ001  (this is what the test is about)
    assert instant_us(noon.astimezone(timezone(timedelta(hours=-7)))) == us


def test_a_commit_of_any_branch_is_found_by_its_id_alone(parts: GraphContext) -> None:
    found = {}
    for name in ("a", "b/c", "ended"):
        branches.create(parts, name)
        found[name] = put(parts, name, name)
    branches.delete(parts, "ended")
    for entry in found.values():
        assert entry_at(parts, Point(commit=entry.commit)) == entry


def test_a_time_is_found_in_a_logarithm_of_requests(
    store: MemoryStore, parts: GraphContext, clock: ManualClock
) -> None:
    clock.advance(60)
    early = put(parts, MAIN, "a")
    clock.advance(60)
    grow_history(parts, 1_000)
    counting = CountingStore(store)
    fresh = open_root(counting, read_only=True)
    fresh.log.live_head(MAIN)
    counting.reset()
    assert entry_at(fresh, Point(at=text(early.created_at_us))) == early
    assert counting.counts()[RequestKind.GET] <= 12
    assert counting.total == counting.counts()[RequestKind.GET]


def test_tags_are_listed_in_one_request_whatever_became_of_their_names(store: MemoryStore, parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    for number in range(30):
        tags.create(parts, f"v{number:02d}", head)
    for number in range(0, 30, 3):
        tags.delete(parts, f"v{number:02d}")
    for number in range(0, 30, 6):
        tags.create(parts, f"v{number:02d}", head)
    counting = CountingStore(store)
    fresh = open_root(counting, read_only=True)
    counting.reset()
    expected = [f"v{number:02d}" for number in range(30) if number % 3 or number % 6 == 0]
    assert tags.names(fresh) == expected
    assert counting.counts() == {RequestKind.LIST: 1}
    assert [tags.read(parts, name).name for name in expected] == expected
