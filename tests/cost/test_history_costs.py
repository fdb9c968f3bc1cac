"""Requests of looking back: they follow what is asked for, not how long the history or how large the tables are."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support import operations as op
from tests.support.histories import grow_history
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_server import S3Server

from omnigraph.api.schemas import Schemas
from omnigraph.branch import branches, tags
from omnigraph.branch.entity_change import ChangeFilter, change_filter
from omnigraph.branch.entity_log import Entity, events
from omnigraph.branch.feed import Feed, PageBounds, commit_page
from omnigraph.branch.find_entry import entry_at
from omnigraph.branch.lineage import commits
from omnigraph.branch.point import Point
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN, Record
from omnigraph.storage.object_stores import S3Store
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

GET, LIST = RequestKind.GET, RequestKind.LIST
FIRST = "node:T0"
EVERYTHING = ChangeFilter()


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that counts, with a branch, a tag and three new commits at the head of main."""

    store: CountingStore
    parts: GraphContext
    cursor: str
    newest: list[Record]

    def counted(self, act: Callable[[GraphContext], object]) -> dict[RequestKind, int]:
        """The requests of doing something a second time, with whatever is kept in memory at hand."""
        act(self.parts)
        self.store.reset()
        act(self.parts)
        return dict(self.store.counts())


def built(history: int, types: int) -> Graph:
    store = CountingStore(MemoryStore(f"costs-{UlidSource().new()}"))
    parts = op.new_graph(store, types=[f"node:T{number}" for number in range(types)])
    write(parts, MAIN, op.upsert(FIRST, {f"old{number}": number for number in range(50)}))
    grow_history(parts, history)
    parts.log.fold(MAIN)
    branches.create(parts, "side")
    write(parts, "side", op.insert(FIRST, {"side": 1}))
    tags.create(parts, "tag", parts.log.live_head(MAIN))
    cursor = Feed(parts, MAIN, EVERYTHING).poll().cursor
    assert cursor is not None
    newest = [write(parts, MAIN, op.upsert(FIRST, {f"new{number}": 1, "old7": number})).entry for number in range(3)]
    return Graph(store, parts, cursor, [each for each in newest if each is not None])


@pytest.fixture(
    scope="module", params=[(10, 1), (1_000, 10)], ids=lambda shape: f"history {shape[0]}, {shape[1]} types"
)
def graph(request: pytest.FixtureRequest) -> Graph:
    return built(*request.param)


def test_a_poll_without_news_is_one_look_at_the_head(graph: Graph) -> None:
    fresh = Feed(graph.parts, MAIN, EVERYTHING).cursor_at(graph.parts.log.live_head(MAIN))
    assert graph.counted(lambda parts: Feed(parts, MAIN, EVERYTHING).poll(cursor=fresh)) == {GET: 1}
    assert graph.counted(lambda parts: Feed(parts, MAIN, EVERYTHING).poll()) == {GET: 1}


def test_a_poll_reads_the_new_entries_and_the_one_before_them(graph: Graph) -> None:
    def poll(parts: GraphContext) -> None:
        page = Feed(parts, MAIN, EVERYTHING).poll(cursor=graph.cursor)
        assert [len(block.changes) for block in page.blocks] == [2, 2, 2]

    # The head; the three new entries and the one before. What the tables are asked is pinned on the wire below.
    assert graph.counted(poll) == {GET: 5}


def test_the_changes_of_a_commit_need_its_entry_and_the_one_before(graph: Graph) -> None:
    entry = graph.newest[1]
    counted = graph.counted(lambda parts: commit_page(parts, entry, EVERYTHING, page_token=None, bounds=PageBounds()))
    assert counted == {GET: 2}


def _look(parts: GraphContext, point: Point) -> None:
    entry_at(parts, point)


def test_a_state_by_number_or_tag_or_head_takes_the_same_at_any_history(graph: Graph) -> None:
    costs = {
        Point(): {GET: 1},
        Point(number=5): {GET: 2},
        Point(tag="tag"): {LIST: 1, GET: 2},
    }
    for point, expected in costs.items():
        assert graph.counted(partial(_look, point=point)) == expected


def test_the_newest_commits_are_listed_without_reading_the_others(graph: Graph) -> None:
    def newest(parts: GraphContext) -> None:
        head = parts.log.live_head(MAIN)
        found = commits(parts, head, head=head)
        assert [next(found).commit for _ in range(3)] == [each.commit for each in reversed(graph.newest)]

    assert graph.counted(newest)[GET] <= 33


def test_the_whole_history_is_listed_in_one_request_for_many_old_entries(graph: Graph) -> None:
    head = graph.parts.log.live_head(MAIN)
    counted = graph.counted(lambda parts: list(commits(parts, head, head=head)))
    assert counted[GET] <= head.number % 256 + head.number // 256 + 2


def test_names_are_listed_in_one_request(graph: Graph) -> None:
    assert graph.counted(branches.names) == {LIST: 1}
    assert graph.counted(tags.names) == {LIST: 1}


def test_the_log_of_an_entity_opens_tables_only_where_it_changed(graph: Graph) -> None:
    head = graph.parts.log.live_head(MAIN)
    entity = Entity(head.tables[FIRST].table, 1, "old7")

    def log(parts: GraphContext) -> None:
        found = events(parts, Schemas(parts).of, entity, head, head=head)
        assert [next(found).commit for _ in range(3)] == [each.commit for each in reversed(graph.newest)]

    assert graph.counted(log)[GET] <= 33


@pytest.mark.parametrize("rows", [100, 5_000])
def test_the_rows_of_a_change_cost_the_same_on_the_wire_in_small_and_large_tables(
    rows: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    parts = op.new_graph(S3Store("omnigraph-tests", s3_prefix, options=s3_server.options), types=[FIRST])
    write(parts, MAIN, op.upsert(FIRST, {f"old{number:05d}": number for number in range(rows)}))
    for number in range(6):
        write(parts, MAIN, op.insert(FIRST, {f"more{number}": number}))  # each in a fragment of its own
    entry = write(parts, MAIN, op.both(op.upsert(FIRST, {"old00007": 0, "new": 1}), op.delete(FIRST, ["more3"]))).entry
    assert entry is not None
    fresh = open_root(S3Store("omnigraph-tests", s3_prefix, options=s3_proxy.options), read_only=True)
    s3_proxy.reset()
    page = commit_page(fresh, entry, EVERYTHING, page_token=None, bounds=PageBounds())
    assert [(change.op.value, change.id) for change in page.changes] == [
        ("delete", "more3"),
        ("insert", "new"),
        ("update", "old00007"),
    ]
    # Two entries, the newest once more, two versions of the table, what was deleted, and the rows themselves.
    assert s3_proxy.counts() == {
        ("GET", "log"): 3,
        ("HEAD", "versions"): 2,
        ("GET", "versions"): 2,
        ("GET", "deletions"): 1,
        ("GET", "data"): 2,
    }

    # Where no change is wanted, no table is opened.
    again = open_root(S3Store("omnigraph-tests", s3_prefix, options=s3_proxy.options), read_only=True)
    s3_proxy.reset()
    for wanted in (change_filter(kinds=["edge"]), change_filter(types=["Other"])):
        assert commit_page(again, entry, wanted, page_token=None, bounds=PageBounds()).changes == []
    assert s3_proxy.counts() == {("GET", "log"): 6}
