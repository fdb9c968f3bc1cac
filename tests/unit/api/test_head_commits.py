"""The commit that a branch shows is listed and can be read by its id, whatever was pruned where it was made."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions

SET = 'query q($age: I32) { insert P { name: "a", age: $age } }'


@pytest.fixture
def graph() -> Iterator[Graph]:
    options = OpenOptions(durability="process", protection_s=0)
    with omnigraph.init("memory://", "node P { name: String @key  age: I32? }", options=options) as made:
        for age in range(3):
            made.mutate(SET, {"age": age})
        yield made


def ages(graph: Graph, *, branch: str | None = None, commit: str | None = None, tag: str | None = None) -> list[object]:
    snapshot = graph.snapshot(branch=branch, commit=commit, tag=tag)
    return [row["age"] for row in snapshot.query("query q() { match { $p: P } return { $p.age as age } }")]


def check_head(graph: Graph, branch: str, commit: str, age: int) -> None:
    newest = graph.commits.list(branch)[0]
    assert (newest.id, newest.kind) == (commit, "mutation")
    assert [each.id for each in graph.commits.list(branch, limit=1)] == [commit]
    assert graph.commits.show(commit).id == commit
    assert ages(graph, commit=commit) == ages(graph, branch=branch) == [age]
    assert graph.changes.drain(branch, start=f"after:{commit}").blocks == []
    assert graph.tags.create("named", commit=commit).commit == commit
    assert graph.branches.create("another", commit=commit) == commit
    assert ages(graph, tag="named") == ages(graph, branch="another") == [age]


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_branch_lists_its_head_commit_after_its_source_was_pruned(graph: Graph, is_swept: bool) -> None:
    head = graph.branches.create("side")
    graph.mutate(SET, {"age": 3})
    graph.prune("main", keep=1, now=True)
    if is_swept:
        graph.sweep(older_than=0)
    check_head(graph, "side", head, 2)


@pytest.mark.parametrize("is_swept", [False, True])
def test_a_branch_made_from_a_tag_lists_the_commit_of_the_tag(graph: Graph, is_swept: bool) -> None:
    tagged = graph.commits.list()[1].id
    graph.tags.create("kept", commit=tagged)
    graph.prune("main", commits=[tagged], now=True)
    graph.branches.create("side", tag="kept")
    graph.tags.delete("kept")
    if is_swept:
        graph.sweep(older_than=0)
    check_head(graph, "side", tagged, 1)


def test_a_branch_of_a_branch_without_commits_lists_the_commit_that_both_show(graph: Graph) -> None:
    head = graph.branches.create("side")
    graph.prune("side", keep=1, now=True)  # a mark in the log between the fork and what is made from it
    graph.branches.create("child", source="side")
    graph.mutate(SET, {"age": 3})
    graph.cleanup(keep=1, confirm=True)
    graph.branches.delete("side")
    graph.sweep(older_than=0)
    check_head(graph, "child", head, 2)


def test_a_filter_for_commits_holds_for_the_head_commit_too(graph: Graph) -> None:
    head = graph.branches.create("side")
    graph.mutate(SET, {"age": 3})
    graph.prune("main", keep=1, now=True)
    assert [each.id for each in graph.commits.list("side", kind="mutation")] == [head]
    assert graph.commits.list("side", kind="merge") == []
    made = graph.commits.show(head).created_at_us
    before = datetime.fromtimestamp(made / 1_000_000, UTC) - timedelta(milliseconds=1)
    assert graph.commits.list("side", until=before) == []


def test_a_commit_that_was_pruned_singly_is_not_among_those_to_keep(graph: Graph) -> None:
    newest, single, third, *_ = (each.id for each in graph.commits.list())
    graph.prune("main", commits=[single])
    graph.prune("main", keep=2)
    assert [each.id for each in graph.commits.list()] == [newest, third]
