"""Commits, tags, branches, the past and the feed through the API."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Unpack

import pytest
from tests.support.where import Where

import omnigraph
from omnigraph.api.graph import Graph
from omnigraph.errors import InvalidRequestError, NotFoundError, ParseError
from omnigraph.ids import UlidSource
from omnigraph.testing.clock import ManualClock

SCHEMA = """
node Person { name: String @key  age: I32? }
edge Knows: Person -> Person { since: I32? }
"""
WITH_CITY = SCHEMA.replace("age: I32?", "age: I32?  city: String?")
NAMES = "query q() { match { $p: Person } return { $p.name as name } order { name } }"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def graph(clock: ManualClock) -> Graph:
    return omnigraph.init(f"memory://history-{UlidSource().new()}", SCHEMA, clock=clock)


def add(graph: Graph, name: str, *, branch: str = "main", actor: str | None = None, age: int = 1) -> str:
    commit = graph.mutate(
        "query q($n: String, $a: I32) { insert Person { name: $n, age: $a } }",
        {"n": name, "a": age},
        branch=branch,
        actor=actor,
    ).commit
    assert commit is not None
    return commit


def names(graph: Graph, **where: Unpack[Where]) -> list[str]:
    return [row["name"] for row in graph.query(NAMES, **where)]


def test_every_read_can_be_made_at_a_commit_a_tag_or_a_time(graph: Graph, clock: ManualClock) -> None:
    clock.advance(60)
    first = add(graph, "a")
    graph.tags.create("v1")
    then = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=graph.snapshot().record.created_at_us)
    clock.advance(60)
    add(graph, "b")
    for where in ({"commit": first}, {"tag": "v1"}, {"at": then}, {"at": then.isoformat()}):
        assert names(graph, **where) == ["a"]
        assert graph.count("Person", **where) == 1
        assert graph.export_arrow("Person", **where).read_all()["name"].to_pylist() == ["a"]
        assert graph.snapshot(**where).commit == first
        assert "Person" in graph.explain(NAMES, **where)
    assert names(graph) == ["a", "b"]
    result = graph.query(NAMES, tag="v1")
    assert (result.branch, result.commit) == (None, first)


def test_a_query_at_an_earlier_commit_is_checked_against_the_schema_of_that_commit(graph: Graph) -> None:
    before = add(graph, "a")
    graph.schema_apply(WITH_CITY)
    graph.mutate('query q() { insert Person { name: "b", city: "Ulm" } }')
    cities = "query q() { match { $p: Person } return { $p.city as city } order { city } }"
    assert sorted(str(row["city"]) for row in graph.query(cities)) == ["None", "Ulm"]
    with pytest.raises(ParseError, match="city"):
        graph.query(cities, commit=before)
    assert names(graph, commit=before) == ["a"]


def test_commits_are_listed_newest_first_with_who_and_why(graph: Graph, clock: ManualClock) -> None:
    clock.advance(10)
    a = add(graph, "a", actor="ada")
    graph.branches.create("side")
    clock.advance(10)
    b = add(graph, "b", branch="side", actor="bob")
    clock.advance(10)
    c = add(graph, "c", actor="ada")
    genesis = graph.commits.list()[-1]
    assert (genesis.kind, genesis.parent, genesis.number) == ("init", None, 1)
    assert [each.id for each in graph.commits.list()] == [c, a, genesis.id]
    assert [each.id for each in graph.commits.list("side")] == [b, a, genesis.id]
    assert [each.id for each in graph.commits.list("side", actor="ada")] == [a]
    assert [each.id for each in graph.commits.list(kind="init")] == [genesis.id]
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=graph.commits.show(a).created_at_us)
    assert [each.id for each in graph.commits.list("side", since=at)] == [b, a]
    assert [each.id for each in graph.commits.list("side", until=at)] == [a, genesis.id]
    assert [each.id for each in graph.commits.list(since=at, until=at + timedelta(seconds=15))] == [a]
    assert [each.id for each in graph.commits.list(until=at - timedelta(days=9_000))] == []
    assert graph.commits.show(b).to_dict() == {
        "graph_commit_id": b,
        "graph_branch": "side",
        "graph_manifest_version": 2,
        "parent_commit_id": a,
        "merged_parent_commit_id": None,
        "actor_id": "bob",
        "created_at": graph.commits.show(b).created_at_us,
        "created": "2026-01-01T00:00:20Z",
        "kind": "mutation",
        "message": None,
        "changes": {"node:Person": {"inserted": 1, "updated": 0, "deleted": 0}},
    }
    assert {key: change.inserted for key, change in graph.commits.show(b).changes.items()} == {"node:Person": 1}


def test_a_list_of_commits_comes_in_pages_that_go_on_where_they_were(graph: Graph) -> None:
    made = [add(graph, f"p{number}") for number in range(4)]
    graph.branches.create("side")
    made += [add(graph, f"s{number}", branch="side") for number in range(3)]
    whole = [each.id for each in graph.commits.list("side")]
    assert whole[:-1] == made[::-1]
    for limit in (1, 2, 3, 8):
        found: list[str] = []
        page = graph.commits.list("side", limit=limit)
        while True:
            assert len(page) <= limit
            found += [each.id for each in page]
            if page.next_page_token is None:
                break
            add(graph, UlidSource().new(), branch="side")  # what comes meanwhile does not move the pages
            page = graph.commits.list("side", limit=limit, page_token=page.next_page_token)
        assert found[-len(whole) :] == whole
        whole = [each.id for each in graph.commits.list("side")]
    token = graph.commits.list("side", limit=1).next_page_token
    for wrong in ("main", "side"):
        with pytest.raises(InvalidRequestError, match="page token rejected: it belongs to a list of other commits"):
            graph.commits.list(wrong, limit=1, actor="x" if wrong == "side" else None, page_token=token)
    with pytest.raises(InvalidRequestError, match="page limit must be greater than zero"):
        graph.commits.list(limit=0)
    with pytest.raises(InvalidRequestError, match="unknown kind 'x'"):
        graph.commits.list(kind="x")
    with pytest.raises(NotFoundError, match="branch 'ghost' not found"):
        graph.commits.list("ghost")
    with pytest.raises(NotFoundError, match="commit 'x' not found"):
        graph.commits.show("x")


def test_branches_and_tags_are_listed_in_pages(graph: Graph) -> None:
    for name in ("c", "a", "b/x", "b"):
        graph.branches.create(name)
        graph.tags.create(name)
    for nouns, expected in ((graph.branches, ["a", "b", "b/x", "c", "main"]), (graph.tags, ["a", "b", "b/x", "c"])):
        assert nouns.list() == expected == list(nouns)
        first = nouns.list(limit=2)
        assert first == expected[:2]
        assert nouns.list(page_token=first.next_page_token) == expected[2:]
        assert nouns.list(limit=9).next_page_token is None
        with pytest.raises(InvalidRequestError, match="page token rejected: invalid name list page token checksum"):
            nouns.list(page_token="AAAA")
        with pytest.raises(InvalidRequestError, match="page limit"):
            nouns.list(limit=0)
    assert "a" in graph.branches
    assert "ghost" not in graph.branches
    assert "" not in graph.branches
    assert 7 not in graph.branches


def test_a_branch_is_made_from_a_tag_a_commit_and_a_time(graph: Graph, clock: ManualClock) -> None:
    clock.advance(60)
    first = add(graph, "a")
    tag = graph.tags.create("v1", actor="ada")
    assert (tag.commit, tag.actor) == (first, "ada")
    clock.advance(60)
    add(graph, "b")
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=tag.created_at_us)
    assert graph.branches.create("by-tag", tag="v1") == first
    assert graph.branches.create("by-commit", commit=first) == first
    assert graph.branches.create("by-number", number=2) == first
    assert graph.branches.create("by-time", source="main", at=at) == first
    assert graph.branches.create("by-head") != first
    for name in ("by-tag", "by-commit", "by-number", "by-time"):
        add(graph, name, branch=name)
        assert names(graph, branch=name) == ["a", name]
    assert graph.tags.read("v1").commit == first
    graph.tags.delete("v1")
    assert graph.tags.list() == []
    with pytest.raises(NotFoundError, match="tag 'v1' not found"):
        graph.snapshot(tag="v1")


def test_the_changes_of_a_commit_have_images_with_ends(graph: Graph) -> None:
    graph.write(nodes={"Person": [{"name": "a", "age": 1}, {"name": "b"}]}, edges={"Knows": [{"from": "a", "to": "b"}]})
    gone = graph.mutate('query q() { delete Person where name = "b" }', actor="ada").commit
    assert gone is not None
    page = graph.commits.changes(gone)
    assert page.next_page_token is None
    node, edge = page.to_dict()["changes"]
    assert node["before"] == {"properties": {"age": None, "name": "b"}}
    assert "after" not in node
    assert (edge["kind"], edge["type"]["name"], edge["op"]) == ("edge", "Knows", "delete")
    assert edge["before"] == {"properties": {"since": None}, "endpoints": {"from": "a", "to": "b"}}
    cause = page.to_dict()["cause"]
    assert (cause["graph_commit_id"], cause["authored_branch"], cause["actor_id"]) == (gone, "main", "ada")
    assert "merged_parent_commit_id" not in cause
    assert [each.kind for each in graph.commits.changes(gone, kinds=["edge"]).changes] == ["edge"]


def test_a_baseline_and_its_cursor_leave_nothing_out_and_tell_nothing_twice(graph: Graph) -> None:
    graph.write(nodes={"Person": [{"name": "a"}, {"name": "b"}]}, edges={"Knows": [{"from": "a", "to": "b"}]})
    baseline = graph.changes.baseline()
    add(graph, "late")
    written = io.BytesIO()
    baseline.write(written)
    *rows, end = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [row.get("edge") or row["data"]["name"] for row in rows] == ["Knows", "a", "b"]
    assert end == {"baseline": {"snapshot_commit_id": baseline.commit, "resume_cursor": baseline.resume_cursor}}
    page = graph.changes.poll(cursor=end["baseline"]["resume_cursor"])
    assert [change.id for block in page.blocks for change in block.changes] == ["late"]
    assert page.caught_up
    nodes = graph.changes.baseline(kinds=["node"], types=["Person"])
    assert [json.loads(line).get("type") for line in b"".join(nodes.lines()).splitlines()] == ["Person"] * 3 + [None]
    assert graph.changes.poll(cursor=nodes.resume_cursor, kinds=["node"], types=["Person"]).caught_up


def test_a_drained_feed_has_its_blocks_put_together(graph: Graph) -> None:
    graph.write(nodes={"Person": [{"name": each} for each in "abcde"]})
    add(graph, "f")
    page = graph.changes.drain(start="beginning", limit=2)
    assert [[change.id for change in block.changes] for block in page.blocks] == [["a", "b", "c", "d", "e"], ["f"]]
    assert page.caught_up
    assert graph.changes.drain(cursor=page.cursor).blocks == []
