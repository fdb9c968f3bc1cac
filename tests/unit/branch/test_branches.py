"""Branches: entries of logs of their own, made and ended by one put each."""

from collections.abc import Callable

import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, PERSON, rows_of

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.errors import AlreadyExistsError, InvalidRequestError, NotFoundError, PermissionDeniedError
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

GOOD_NAMES = [
    "side",
    "Side",
    "a/b",
    "a",
    "a//b",
    "..",
    ".",
    "../../etc/passwd",
    "100%",
    "%2F",
    "a%2Fb",
    "with space",
    "größe/图/🚀",
    "e\u0301",
    "\u00e9",
    "\u202eright to left",
    "quote'\"`$(x)",
    "back\\slash",
    "#7",
    "name#7",
    "*?[x]",
    "-rf",
    "~",
    "CON",
    "x" * limits.NAME_SEGMENT_BYTES_MAX,
]
BAD_NAMES = [
    "",
    " ",
    "\t\n",
    "\u2028",
    "a\nb",
    "a\x00b",
    "\x7f",
    "a\x1fb",
    "\ud800",
    "x" * (limits.NAME_SEGMENT_BYTES_MAX + 1),
    "ü" * limits.NAME_SEGMENT_BYTES_MAX,
    "__schema_apply_lock__",
]


def test_every_name_that_can_be_one_names_a_branch_of_its_own(parts: GraphContext) -> None:
    for number, name in enumerate(GOOD_NAMES):
        branches.create(parts, name)
        write(parts, name, op.insert(PERSON, {"who": number}))
    assert branches.names(parts) == sorted([*GOOD_NAMES, MAIN])
    fresh = open_root(parts.store)
    for number, name in enumerate(GOOD_NAMES):
        assert rows_of(fresh, PERSON, name) == {"who": number}
        assert paths.unsegment(paths.segment(name)) == name
        assert "/" not in paths.segment(name)
    check_graph(fresh)


@pytest.mark.parametrize("name", BAD_NAMES, ids=range(len(BAD_NAMES)))
def test_a_name_that_cannot_be_one_is_refused_wherever_it_is_said_and_nothing_changes(
    parts: GraphContext, name: str
) -> None:
    before = {listed.path for listed in parts.store.list("")}
    for attempt in (
        lambda: branches.create(parts, name),
        lambda: branches.delete(parts, name),
        lambda: branches.create(parts, "new", source=name),
        lambda: write(parts, name, op.insert(PERSON, {"a": 1})),
    ):
        with pytest.raises(InvalidRequestError, match="branch"):
            attempt()
    assert {listed.path for listed in parts.store.list("")} == before


def test_a_name_is_trimmed(parts: GraphContext) -> None:
    branches.create(parts, "  side\n")
    write(parts, "side ", op.insert(PERSON, {"a": 1}))
    assert branches.names(parts) == [MAIN, "side"]
    with pytest.raises(AlreadyExistsError):
        branches.create(parts, "side")


def test_a_branch_shows_the_state_of_its_source_and_goes_its_own_way(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    head = parts.log.live_head(MAIN)
    first = branches.create(parts, "side", actor="ada")
    assert (first.kind, first.number, first.actor) == (CommitKind.FORK, 1, "ada")
    assert (first.fork_of, first.fork_number, first.tables) == (MAIN, head.number, head.tables)
    assert first.head_commit == head.commit
    write(parts, "side", op.insert(PERSON, {"b": 2}))
    write(parts, MAIN, op.insert(PERSON, {"c": 3}))
    assert rows_of(parts, PERSON, "side") == {"a": 1, "b": 2}
    assert rows_of(parts, PERSON) == {"a": 1, "c": 3}
    check_graph(parts)


def test_a_branch_can_be_made_from_a_branch_and_outlives_it(parts: GraphContext) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.insert(PERSON, {"a": 1}))
    branches.create(parts, "side/side", source="side")
    branches.delete(parts, "side")
    write(parts, "side/side", op.insert(PERSON, {"b": 2}))
    assert rows_of(parts, PERSON, "side/side") == {"a": 1, "b": 2}
    assert branches.names(parts) == [MAIN, "side/side"]
    check_graph(parts)


def test_the_head_commit_of_a_fresh_branch_can_be_named_as_a_condition(parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    head = branches.create(parts, "side").head_commit
    write(parts, "side", op.insert(PERSON, {"b": 2}), WriteOptions(if_commit=head))
    assert rows_of(parts, PERSON, "side") == {"a": 1, "b": 2}


def test_a_name_used_again_goes_on_counting_and_has_nothing_of_its_earlier_life(parts: GraphContext) -> None:
    branches.create(parts, "side")
    write(parts, "side", op.insert(PERSON, {"a": 1}))
    branches.delete(parts, "side")
    write(parts, MAIN, op.insert(COMPANY, {"x": 1}))
    again = branches.create(parts, "side")
    assert again.number == 4
    assert [entry.kind for entry in entries(parts, "side")] == [
        CommitKind.FORK,
        CommitKind.MUTATION,
        CommitKind.DELETE,
        CommitKind.FORK,
    ]
    assert rows_of(parts, PERSON, "side") == {}
    assert rows_of(parts, COMPANY, "side") == {"x": 1}
    check_graph(parts)


def test_ids_and_times_rise_along_a_log_whatever_the_clocks_of_its_writers_say(
    store: MemoryStore, parts: GraphContext, clock: ManualClock
) -> None:
    branches.create(parts, "side")
    clock.advance(3_600)
    write(parts, "side", op.insert(PERSON, {"a": 1}))
    branches.delete(parts, "side")
    behind = open_root(store, clock=ManualClock())
    branches.create(behind, "side")
    write(behind, "side", op.insert(PERSON, {"b": 1}))
    branches.create(behind, "other", source="side")
    branches.delete(behind, "side")
    check_graph(behind)


def test_what_is_not_there_or_there_already_is_said_by_name(parts: GraphContext) -> None:
    branches.create(parts, "side")
    with pytest.raises(AlreadyExistsError, match="'side'") as taken:
        branches.create(parts, "side")
    assert taken.value.code == "branch_exists"
    for attempt in (
        lambda: branches.create(parts, "new", source="ghost"),
        lambda: branches.delete(parts, "ghost"),
        lambda: write(parts, "ghost", op.insert(PERSON, {"a": 1})),
    ):
        with pytest.raises(NotFoundError, match="'ghost'") as missing:
            attempt()
        assert missing.value.code == "branch_not_found"
    assert branches.names(parts) == [MAIN, "side"]


def test_a_deleted_branch_is_not_there(parts: GraphContext) -> None:
    branches.create(parts, "side")
    branches.delete(parts, "side")
    attempts: list[Callable[[], object]] = [
        lambda: branches.delete(parts, "side"),
        lambda: branches.create(parts, "new", source="side"),
        lambda: write(parts, "side", op.insert(PERSON, {"a": 1})),
    ]
    for attempt in attempts:
        with pytest.raises(NotFoundError):
            attempt()


def test_main_can_neither_be_made_nor_deleted(parts: GraphContext) -> None:
    attempts: list[Callable[[], object]] = [
        lambda: branches.create(parts, MAIN),
        lambda: branches.delete(parts, f" {MAIN}"),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidRequestError, match="'main'"):
            attempt()


def test_a_graph_opened_for_reading_has_its_branches_left_alone(store: MemoryStore, parts: GraphContext) -> None:
    branches.create(parts, "side")
    looking = open_root(store, read_only=True)
    attempts: list[Callable[[], object]] = [
        lambda: branches.create(looking, "new"),
        lambda: branches.delete(looking, "side"),
    ]
    for attempt in attempts:
        with pytest.raises(PermissionDeniedError, match="read-only"):
            attempt()
    assert branches.names(looking) == [MAIN, "side"]


def test_making_and_deleting_a_branch_is_one_entry_each_and_marks(store: MemoryStore, parts: GraphContext) -> None:
    write(parts, MAIN, op.insert(PERSON, {"a": 1}))
    counting = CountingStore(store)
    counted = open_root(counting)
    counted.log.live_head(MAIN)
    counting.reset()
    branches.create(counted, "side")
    # The source's head before, and after, that it was not pruned meanwhile.
    assert counting.reset() == {RequestKind.GET: 2, RequestKind.PUT_IF_ABSENT: 1}
    branches.delete(counted, "side")
    # The doubt before the entry, what is certain after it, and the doubt taken back.
    marks = {RequestKind.PUT: 2, RequestKind.DELETE: 1}
    assert counting.reset() == {RequestKind.GET: 1, RequestKind.PUT_IF_ABSENT: 1} | marks
