"""The change feed: whoever follows it knows the graph, commit by commit, whatever the size of the pages."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, KNOWS, PERSON, contents

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.entity_change import ChangeFilter, Op, change_filter
from omnigraph.branch.feed import Feed, PageBounds, commit_page
from omnigraph.branch.history_values import Block, FeedPage
from omnigraph.branch.lineage import commits
from omnigraph.errors import ChangeGapError, ChangeRefusedError, InvalidRequestError, LimitError, NotFoundError
from omnigraph.ids import UlidSource
from omnigraph.model.commit import MAIN, CommitKind, Record
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.prune import Policy, prune
from omnigraph.transaction.write import Operation, write

State = dict[str, dict[str, int | None]]


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def parts(clock: ManualClock) -> GraphContext:
    return op.new_graph(MemoryStore(f"feed-{UlidSource().new()}"), clock=clock)


def put(parts: GraphContext, operation: Operation, branch: str = MAIN) -> Record:
    """One commit."""
    entry = write(parts, branch, operation).entry
    assert entry is not None
    return entry


def feed(parts: GraphContext, branch: str = MAIN, **filters: list[str]) -> Feed:
    return filtered(parts, filters, branch)


def filtered(parts: GraphContext, filters: dict[str, list[str]], branch: str = MAIN) -> Feed:
    return Feed(parts, branch, change_filter(**filters))


def followed(feed: Feed, start: str = "beginning", *, limit: int = 1_000, commits: int = 128) -> list[Block]:
    """All blocks from a place to the head, with every page fetched and split blocks put together."""
    bounds = PageBounds(changes=limit, commits=commits)
    page = feed.poll(start=start, bounds=bounds)
    found: list[Block] = []
    is_rest = False
    while True:
        assert (page.next_page_token is None) != (page.cursor is None)
        assert sum(len(block.changes) for block in page.blocks) <= limit
        assert len(page.blocks) <= commits
        for block in page.blocks:
            if is_rest:
                found[-1] = Block(block.entry, [*found[-1].changes, *block.changes])
            else:
                found.append(block)
            is_rest = False
        if page.next_page_token is not None:
            is_rest = True
            page = feed.poll(page_token=page.next_page_token, bounds=bounds)
        elif page.caught_up:
            return found
        else:
            page = feed.poll(cursor=page.cursor, bounds=bounds)


def applied(state: State, block: Block) -> None:
    """Do to a state what a block says; every image before must be what was there."""
    for change in block.changes:
        rows = state.setdefault(f"{change.kind}:{change.type_name}", {})
        before = None if change.before is None else change.before.properties["v"]
        assert (change.id in rows) == (change.op is not Op.INSERT)
        assert rows.get(change.id) == before
        if change.after is None:
            del rows[change.id]
        else:
            assert change.before is None or change.after != change.before
            rows[change.id] = change.after.properties["v"]


def shown(state: State) -> State:
    return {key: rows for key, rows in state.items() if rows}


def told(page_or_block: FeedPage | Block) -> list[tuple[str, str]]:
    """What happened, in order, without images."""
    blocks = page_or_block.blocks if isinstance(page_or_block, FeedPage) else [page_or_block]
    return [(change.op.value, change.id) for block in blocks for change in block.changes]


def some_history(parts: GraphContext, seed: int, length: int = 14, branch: str = MAIN) -> None:
    """Writes of every kind, the same for the same seed; some change nothing, some only the layout."""
    chance = np.random.default_rng(seed)
    ids = [f"p{number:02d}" for number in range(12)]

    def some(count: int) -> list[str]:
        return [str(each) for each in chance.choice(ids, count, replace=False)]

    def rows() -> dict[str, int]:
        return {each: int(chance.integers(3)) for each in some(int(chance.integers(1, 6)))}

    kinds: list[Callable[[], Operation]] = [
        lambda: op.upsert(PERSON, rows()),
        lambda: op.upsert_many({PERSON: rows(), COMPANY: rows(), KNOWS: rows()}),
        lambda: op.delete([PERSON, COMPANY][chance.integers(2)], some(4)),
        lambda: op.overwrite(PERSON, rows()),
        lambda: op.both(op.delete(PERSON, some(3)), op.upsert(COMPANY, rows())),
        lambda: op.compact(parts, PERSON),
        lambda: op.build_index(parts, PERSON),
        lambda: op.upsert_many({PERSON: {}}),
    ]
    for _ in range(length):
        write(parts, branch, kinds[chance.integers(len(kinds))]())


@pytest.mark.parametrize("seed", range(4))
def test_whoever_follows_the_feed_has_the_state_of_every_commit(parts: GraphContext, seed: int) -> None:
    some_history(parts, seed)
    branches.create(parts, "side")
    some_history(parts, seed + 100, 6, "side")
    some_history(parts, seed + 200, 3)
    for branch in (MAIN, "side"):
        state: State = {}
        blocks = followed(feed(parts, branch))
        made = list(commits(parts, parts.log.live_head(branch)))
        assert [block.entry.commit for block in blocks] == [each.commit for each in reversed(made[:-1])]
        for block in blocks:
            applied(state, block)
            at = {key: op.rows_at(parts, key, block.entry) for key in block.entry.tables}
            assert shown(state) == shown(at), block.entry.number
        assert shown(state) == shown(contents(parts, branch))


@pytest.mark.parametrize("seed", [1, 2])
def test_pages_of_any_size_tell_the_same(parts: GraphContext, seed: int) -> None:
    some_history(parts, seed)
    whole = followed(feed(parts))
    for limit, most in [(1, 128), (2, 3), (5, 1), (7, 128)]:
        assert followed(feed(parts), limit=limit, commits=most) == whole


def test_changes_too_many_to_be_read_at_once_tell_the_same(
    parts: GraphContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "INLINE_CHANGE_IDS_MAX", 4)
    some_history(parts, 5)
    put(parts, op.upsert_many({PERSON: {f"q{number}": number for number in range(30)}}))
    put(parts, op.both(op.upsert(PERSON, {f"q{number}": 1 for number in range(20)}), op.delete(PERSON, ["q25", "q26"])))
    filters: list[dict[str, list[str]]] = [{}, {"ops": ["update"]}, {"ops": ["insert", "delete"]}]
    whole = [followed(filtered(parts, each)) for each in filters]
    monkeypatch.setattr(limits, "CHANGE_ROWS_AT_ONCE_MAX", 0)
    for each, expected in zip(filters, whole, strict=True):
        for limit in (3, 1_000):
            assert followed(filtered(parts, each), limit=limit) == expected


def test_changes_come_nodes_first_then_by_type_then_by_id(parts: GraphContext) -> None:
    put(parts, op.upsert_many({key: {"b": 1, "a": 1, "ä": 1} for key in (PERSON, COMPANY, KNOWS)}))
    put(parts, op.both(op.upsert(PERSON, {"c": 1, "b": 2}), op.delete(PERSON, ["a"])))
    first, second = followed(feed(parts))
    keys = [(change.kind, change.type_id, change.id) for change in first.changes]
    assert keys == sorted(keys, key=lambda key: (key[0] != "node", key[1], key[2]))
    assert told(second) == [("delete", "a"), ("update", "b"), ("insert", "c")]


def test_what_only_looks_like_a_change_is_none(parts: GraphContext) -> None:
    put(parts, op.upsert(PERSON, {"a": 1, "b": None}))
    put(parts, op.upsert(PERSON, {"a": 1, "b": None}))
    put(parts, op.overwrite(PERSON, {"a": 1, "b": 2}))
    put(parts, op.insert(PERSON, {"c": 3}))
    put(parts, op.compact(parts, PERSON))
    put(parts, op.build_index(parts, PERSON))
    assert [told(block) for block in followed(feed(parts))] == [
        [("insert", "a"), ("insert", "b")],
        [],
        [("update", "b")],
        [("insert", "c")],
        [],
        [],
    ]


def test_a_feed_from_now_has_nothing_until_something_happens(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, {"a": 1}))
    page = feed(parts).poll()
    assert (page.blocks, page.caught_up, page.next_page_token) == ([], True, None)
    again = feed(parts).poll(cursor=page.cursor)
    assert (again.blocks, again.caught_up, again.cursor) == ([], True, page.cursor)
    put(parts, op.insert(PERSON, {"b": 1}))
    assert told(feed(parts).poll(cursor=page.cursor)) == [("insert", "b")]
    assert page.to_dict() == {"blocks": [], "cursor": page.cursor, "caught_up": True}


def test_a_feed_begins_after_a_commit_of_its_chain_and_of_no_other(parts: GraphContext) -> None:
    made = [put(parts, op.insert(PERSON, {each: 1})) for each in "abc"]
    branches.create(parts, "side")
    mine = put(parts, op.insert(PERSON, {"s": 1}), "side")
    late = put(parts, op.insert(PERSON, {"late": 1}))
    assert told(feed(parts).poll(start=f"after:{made[1].commit}")) == [("insert", "c"), ("insert", "late")]
    assert told(feed(parts, "side").poll(start=f"after:{made[1].commit}")) == [("insert", "c"), ("insert", "s")]
    assert told(feed(parts, "side").poll(start=f"after:{mine.commit}")) == []
    for branch, commit in (("side", late.commit), (MAIN, mine.commit)):
        with pytest.raises(InvalidRequestError) as refused:
            feed(parts, branch).poll(start=f"after:{commit}")
        assert str(refused.value) == ("change cursor rejected: start commit is not on this branch's first-parent chain")
    with pytest.raises(NotFoundError, match="commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found"):
        feed(parts).poll(start="after:01ARZ3NDEKTSV4RRFFQ69G5FAV")


def test_a_poll_goes_no_further_than_the_head_it_looked_at(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, {"a": 1, "b": 2}))
    page = feed(parts).poll(start="beginning", bounds=PageBounds(changes=1))
    put(parts, op.insert(PERSON, {"c": 3}))
    assert page.next_page_token is not None
    rest = feed(parts).poll(page_token=page.next_page_token)
    assert (told(rest), rest.caught_up) == ([("insert", "b")], True)
    assert told(feed(parts).poll(cursor=rest.cursor)) == [("insert", "c")]


def test_a_change_larger_than_a_page_comes_alone(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, dict.fromkeys("abc", 1)))
    page = feed(parts).poll(start="beginning", bounds=PageBounds(bytes=1))
    seen = []
    while page.next_page_token is not None:
        seen.append(told(page))
        page = feed(parts).poll(page_token=page.next_page_token, bounds=PageBounds(bytes=1))
    assert [*seen, told(page)] == [[("insert", each)] for each in "abc"]
    assert page.caught_up


def test_filters_leave_out_changes_and_no_commits(parts: GraphContext) -> None:
    put(parts, op.upsert_many({PERSON: {"a": 1}, COMPANY: {"x": 1}, KNOWS: {"k": 1}}))
    put(parts, op.upsert(PERSON, {"a": 2, "b": 1}))
    put(parts, op.delete(COMPANY, ["x"]))
    cases: list[tuple[dict[str, list[str]], list[list[str]]]] = [
        ({"kinds": ["edge"]}, [["k"], [], []]),
        ({"types": ["Person"]}, [["a"], ["a", "b"], []]),
        ({"types": ["Person", "Knows"], "kinds": ["node"]}, [["a"], ["a", "b"], []]),
        ({"ops": ["insert"]}, [["a", "x", "k"], ["b"], []]),
        ({"ops": ["delete", "update"]}, [[], ["a"], ["x"]]),
        ({"types": ["Nobody"]}, [[], [], []]),
    ]
    for filters, expected in cases:
        blocks = followed(filtered(parts, filters), limit=1)
        assert [sorted(change.id for change in block.changes) for block in blocks] == [sorted(e) for e in expected]


def test_a_merge_tells_what_it_brought_in_relative_to_its_first_parent(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, {"a": 1}))
    branches.create(parts, "side")
    put(parts, op.upsert(PERSON, {"a": 2, "s": 1}), "side")
    put(parts, op.insert(COMPANY, {"m": 1}))
    side = parts.log.live_head("side")
    # As a merge leaves it where it wrote down no changes: versions of the other line in the map, and nothing else.
    head = parts.log.live_head(MAIN)
    merged = Record(
        commit=parts.ids.new(),
        branch=MAIN,
        number=head.number + 1,
        kind=CommitKind.MERGE,
        parent=head.commit,
        merged_parent=side.commit,
        schema=head.schema,
        tables=head.tables | {PERSON: side.tables[PERSON]},
        created_at_us=parts.clock.now_us(),
        born=1,
    )
    parts.log.put(merged, after=head)
    last = followed(feed(parts))[-1]
    assert told(last) == [("update", "a"), ("insert", "s")]
    cause = last.to_dict()["cause"]
    assert (cause["parent_commit_id"], cause["merged_parent_commit_id"]) == (head.commit, side.commit)


# -- what is refused --------------------------------------------------------------------------------------------------


def test_the_first_commit_has_no_parent_to_be_compared_with(parts: GraphContext) -> None:
    first = parts.log.live_head(MAIN)
    with pytest.raises(ChangeRefusedError) as refused:
        commit_page(parts, first, ChangeFilter(), page_token=None, bounds=PageBounds())
    assert str(refused.value) == f"commit '{first.commit}' has no first parent; bootstrap from an exact baseline"
    assert refused.value.details == {"reason": "parentless_commit", "graph_commit_id": first.commit}


def test_a_change_of_schema_that_rows_cannot_tell_is_refused_and_others_are_not(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, {"a": 1}))
    put(parts, op.add_table(parts, "node:City", {"p": 1}))  # a new type with rows: inserts
    put(parts, op.add_table(parts, "node:Empty"))
    put(parts, op.remove_table("node:Empty"))
    before = put(parts, op.upsert(PERSON, {"a": 2}))
    assert [told(block) for block in followed(feed(parts))][1:] == [[("insert", "p")], [], [], [("update", "a")]]
    for operation, name in [
        (op.add_column(parts, PERSON, "w"), "Person"),
        (op.rename_column(parts, PERSON, "w", "x"), "Person"),
        (op.drop_column(parts, PERSON, "x"), "Person"),
        (op.remove_table("node:City"), "City"),
    ]:
        entry = put(parts, operation)
        with pytest.raises(ChangeRefusedError) as refused:
            feed(parts).poll(start=f"after:{before.commit}")
        assert str(refused.value) == (
            f"entity changes for commit '{entry.commit}' cross an unprovable schema boundary at type '{name}'"
        )
        assert refused.value.details["type_name"] == name
        before = entry
    put(parts, op.insert(PERSON, {"b": 1}))
    assert told(feed(parts).poll(start=f"after:{before.commit}")) == [("insert", "b")]


def test_history_that_was_pruned_is_a_gap_that_names_the_commit(parts: GraphContext, clock: ManualClock) -> None:
    cursor = feed(parts).poll().cursor
    made = [put(parts, op.insert(PERSON, {each: 1})) for each in "abcd"]
    clock.advance(10_000)
    prune(parts, MAIN, Policy(keep=2, now=True))
    for asked in ({"cursor": cursor}, {"start": "beginning"}):
        with pytest.raises(ChangeGapError) as missing:
            feed(parts).poll(**asked)
        assert missing.value.details["first_unreadable_commit_id"] == made[0].commit
        assert str(missing.value) == f"change feed gap at commit '{made[0].commit}'"
    # The oldest commit that is kept cannot be compared with what was before it.
    with pytest.raises(ChangeGapError, match=made[2].commit):
        commit_page(parts, made[2], ChangeFilter(), page_token=None, bounds=PageBounds())
    page = commit_page(parts, made[3], ChangeFilter(), page_token=None, bounds=PageBounds())
    assert [change.id for change in page.changes] == ["d"]
    # Begun anew it goes on.
    fresh = feed(parts).cursor_at(parts.log.live_head(MAIN))
    put(parts, op.insert(PERSON, {"e": 1}))
    assert told(feed(parts).poll(cursor=fresh)) == [("insert", "e")]


def test_a_cursor_is_bound_to_its_graph_branch_life_and_filter(parts: GraphContext) -> None:
    branches.create(parts, "side")
    cursor = feed(parts, "side").poll().cursor
    other = op.new_graph(MemoryStore(f"feed-{UlidSource().new()}"))
    branches.create(other, "side")
    mistakes = [
        (feed(other, "side"), "a different graph"),
        (feed(parts, MAIN), "a different branch"),
        (feed(parts, "side", ops=["insert"]), "different filters"),
    ]
    for wrong, reason in mistakes:
        with pytest.raises(InvalidRequestError) as refused:
            wrong.poll(cursor=cursor)
        assert str(refused.value) == f"change cursor rejected: change feed cursor belongs to {reason}"
    branches.delete(parts, "side")
    with pytest.raises(NotFoundError):
        feed(parts, "side").poll(cursor=cursor)
    branches.create(parts, "side")
    with pytest.raises(InvalidRequestError, match="belongs to an earlier branch of that name"):
        feed(parts, "side").poll(cursor=cursor)


def test_the_order_in_which_filters_are_named_does_not_matter(parts: GraphContext) -> None:
    cursor = feed(parts, ops=["insert", "delete"], types=["B", "A"]).poll().cursor
    assert feed(parts, ops=["delete", "insert"], types=["A", "B", "A"]).poll(cursor=cursor).caught_up


def test_a_text_that_is_no_cursor_is_refused_with_its_reason(parts: GraphContext) -> None:
    put(parts, op.insert(PERSON, {"a": 1, "b": 1}))
    cursor = feed(parts).poll().cursor
    page = feed(parts).poll(start="beginning", bounds=PageBounds(changes=1))
    assert cursor is not None
    assert page.next_page_token is not None
    for text, reason in [
        ("", "invalid change feed cursor checksum"),
        ("!", "invalid change feed cursor encoding"),
        ("ü", "invalid change feed cursor encoding"),
        (cursor[:-3], "invalid change feed cursor "),
        (f"{cursor[:-1]}{'A' if cursor[-1] != 'A' else 'B'}", "invalid change feed cursor "),
        ("A" + cursor[1:], "invalid change feed cursor checksum"),
        ("x" * 5_000, "change feed cursor is longer than 4096 characters"),
        (page.next_page_token, "a change feed page token cannot be used as a change feed cursor"),
    ]:
        with pytest.raises(InvalidRequestError) as refused:
            feed(parts).poll(cursor=text)
        assert str(refused.value).startswith(f"change cursor rejected: {reason}")
        assert refused.value.code == "change_cursor_rejected"
    head = parts.log.live_head(MAIN)
    with pytest.raises(InvalidRequestError) as refused:
        commit_page(parts, head, ChangeFilter(), page_token=cursor, bounds=PageBounds())
    assert str(refused.value) == (
        "change cursor rejected: a change feed cursor cannot be used as a commit changes page token"
    )


def test_pages_of_a_commit_are_bound_to_it_and_to_the_filter(parts: GraphContext) -> None:
    one = put(parts, op.insert(PERSON, dict.fromkeys("abc", 1)))
    other = put(parts, op.upsert(PERSON, dict.fromkeys("abc", 2)))
    page = commit_page(parts, one, ChangeFilter(), page_token=None, bounds=PageBounds(changes=2))
    assert [change.id for change in page.changes] == ["a", "b"]
    token = page.next_page_token
    assert token is not None
    rest = commit_page(parts, one, ChangeFilter(), page_token=token, bounds=PageBounds())
    assert ([change.id for change in rest.changes], rest.next_page_token) == (["c"], None)
    assert "next_page_token" not in rest.to_dict()
    for entry, wanted, reason in [
        (other, ChangeFilter(), "a different commit"),
        (one, change_filter(ops=["insert"]), "different filters"),
    ]:
        with pytest.raises(InvalidRequestError, match=f"commit changes page token belongs to {reason}"):
            commit_page(parts, entry, wanted, page_token=token, bounds=PageBounds())


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"start": "yesterday"}, "start must be now | beginning | after:<commit_id>"),
        ({"start": "after:"}, "start must be now | beginning | after:<commit_id>"),
        ({"start": "now", "cursor": "x"}, "cursor, start, and page_token are mutually exclusive"),
        ({"cursor": "x", "page_token": "x"}, "cursor, start, and page_token are mutually exclusive"),
        ({"bounds": PageBounds(changes=0)}, "change page limit must be greater than zero"),
    ],
)
def test_a_poll_that_cannot_be_meant_is_refused(parts: GraphContext, asked: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidRequestError) as refused:
        feed(parts).poll(**asked)  # type: ignore[arg-type]  # wrong on purpose
    assert str(refused.value) == message


def test_unknown_words_in_filters_are_refused() -> None:
    with pytest.raises(InvalidRequestError) as refused:
        change_filter(kinds=["nodes"])
    assert str(refused.value) == "unknown kind 'nodes' (expected node | edge)"
    with pytest.raises(InvalidRequestError) as refused:
        change_filter(ops=["upsert"])
    assert str(refused.value) == "unknown op 'upsert' (expected insert | update | delete)"


@pytest.mark.parametrize(
    ("bounds", "resource", "limit"),
    [
        (PageBounds(changes=8_193), "commit_changes_page_changes", 8_192),
        (PageBounds(bytes=32 * 1024**2 + 1), "commit_changes_page_bytes", 32 * 1024**2),
        (PageBounds(commits=513), "change_feed_commits_per_poll", 512),
    ],
)
def test_pages_larger_than_pages_may_be_are_refused(
    parts: GraphContext, bounds: PageBounds, resource: str, limit: int
) -> None:
    with pytest.raises(LimitError) as refused:
        feed(parts).poll(bounds=bounds)
    assert refused.value.details == {"resource": resource, "limit": limit, "actual": limit + 1}
