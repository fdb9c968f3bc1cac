"""The feed of whole graphs: beside writers, through merges, upkeep, loads and reverts."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.branch.history_values import Block
from omnigraph.errors import ChangeRefusedError
from omnigraph.ids import UlidSource

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
Rows = dict[tuple[str, str], dict[str, Any]]


@pytest.fixture
def uri() -> str:
    return f"memory://feed-{UlidSource().new()}"


@pytest.fixture
def graph(uri: str) -> Graph:
    graph = omnigraph.init(uri, SCHEMA)
    graph.write(
        nodes={"Person": [{"name": each, "age": 1} for each in "abcd"]},
        edges={"Knows": [{"from": "a", "to": "b", "since": 1}, {"from": "b", "to": "c"}]},
    )
    return graph


def do(graph: Graph, *statements: str, branch: str = "main") -> None:
    assert graph.mutate(f"query q() @ordered {{ {' '.join(statements)} }}", branch=branch).commit is not None


def rows(graph: Graph, branch: str = "main") -> Rows:
    """Everything on a branch, by type and id."""
    found = {}
    for name in ("Person", "Knows"):
        for row in graph.export_arrow(name, branch=branch).read_all().to_pylist():
            found[name, row["id"]] = {key: value for key, value in row.items() if key != "id"}
    return found


def follow(state: Rows, blocks: list[Block]) -> None:
    """Do what blocks say; whatever they say was there before must have been."""
    for block in blocks:
        for change in block.changes:
            key = (change.type_name, change.id)
            assert (key in state) == (change.before is not None)
            for image, is_before in ((change.before, True), (change.after, False)):
                if image is None:
                    continue
                row = dict(image.properties)
                if image.source is not None:
                    row |= {"src": image.source, "dst": image.target}
                if is_before:
                    assert state[key] == row
                else:
                    state[key] = row
            if change.after is None:
                del state[key]


def polled(graph: Graph, cursor: str | None, branch: str = "main", limit: int = 3) -> Iterator[tuple[list[Block], str]]:
    """Blocks and the cursor after them, page by page, until the feed has caught up."""
    while True:
        page = graph.changes.drain(branch, cursor=cursor, limit=limit, start="beginning" if cursor is None else None)
        assert page.cursor is not None
        cursor = page.cursor
        yield page.blocks, cursor
        if page.caught_up:
            return


def test_a_follower_keeps_up_with_everything_that_can_happen_to_a_branch(graph: Graph) -> None:
    state: Rows = {}
    cursor: str | None = None

    def caught_up() -> None:
        nonlocal cursor
        for blocks, after in polled(graph, cursor):
            follow(state, blocks)
            cursor = after
        assert state == rows(graph)

    caught_up()
    graph.branches.create("side")
    do(graph, 'update Person set { age: 2 } where name = "a"', 'delete Person where name = "d"', branch="side")
    graph.merge("side")  # only the side had moved
    caught_up()
    do(graph, 'insert Person { name: "s" }', 'insert Knows { from: "s", to: "a" }', branch="side")
    do(graph, 'update Person set { age: 5 } where name = "b"', 'delete Knows where from = "b"')
    merged = graph.merge("side").commit  # both had
    caught_up()
    graph.optimize()
    caught_up()
    assert merged is not None
    graph.revert(merged)
    caught_up()
    graph.write(nodes={"Person": [{"name": "z", "age": 9}]}, mode="append")
    graph.write(edges={"Knows": [{"from": "z", "to": "a"}]}, mode="overwrite")
    caught_up()
    kinds = {commit.kind for commit in graph.commits.list()}
    assert kinds >= {"mutation", "load", "merge", "revert", "init"}


def test_a_change_of_schema_stops_the_feed_and_a_baseline_starts_it_again(graph: Graph) -> None:
    cursor = graph.changes.poll().cursor
    graph.schema_apply(SCHEMA + "node Place { name: String @key }")  # nothing that has entities changes
    do(graph, 'insert Place { name: "ulm" }')
    page = graph.changes.drain(cursor=cursor)
    assert [[change.id for change in block.changes] for block in page.blocks] == [[], ["ulm"]]
    graph.schema_apply(SCHEMA.replace("age: I32?", "age: I32?  city: String?") + "node Place { name: String @key }")
    do(graph, 'update Person set { city: "ulm" } where name = "a"')
    with pytest.raises(ChangeRefusedError, match="cross an unprovable schema boundary at type 'Person'"):
        graph.changes.poll(cursor=page.cursor)
    fresh = graph.changes.baseline()
    do(graph, 'update Person set { city: "bern" } where name = "a"')
    [block] = graph.changes.poll(cursor=fresh.resume_cursor).blocks
    assert block.changes[0].before is not None
    assert block.changes[0].before.properties["city"] == "ulm"


def test_a_follower_beside_writers_sees_every_commit_once_and_in_order(graph: Graph, uri: str) -> None:
    baseline = graph.changes.baseline()
    state, cursor, seen = rows(graph), baseline.resume_cursor, []
    done = threading.Event()

    def write(name: str) -> None:
        mine = omnigraph.open(uri)
        for number in range(8):
            do(mine, f'insert Person {{ name: "{name}{number}", age: {number} }}')
            if number % 3 == 2:
                do(mine, f'delete Person where name = "{name}{number - 1}"')

    writers = [threading.Thread(target=write, args=(name,)) for name in ("x", "y")]
    for writer in writers:
        writer.start()

    def wait() -> None:
        for writer in writers:
            writer.join()
        done.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    reader = omnigraph.open(uri, read_only=True)
    while True:
        was_done = done.is_set()
        for blocks, after in polled(reader, cursor, limit=2):
            follow(state, blocks)
            seen += [block.entry.commit for block in blocks]
            cursor = after
        if was_done:
            break
    waiting.join()
    listed = [commit.id for commit in graph.commits.list()]
    assert seen == listed[: listed.index(baseline.commit)][::-1]
    assert len(seen) == 2 * (8 + 2)
    assert state == rows(graph)
