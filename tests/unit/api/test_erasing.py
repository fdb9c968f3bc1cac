"""Values that shall leave the store: pruned commits by name, deleted rows, and dropped data, under default options."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.errors import ReclaimedError
from omnigraph.failpoints import Failpoint, armed

SCHEMA = """\
node Person { name: String @key  note: String? @index  bio: String? }
edge Knows: Person -> Person { word: String? }
"""
SECRET = "xyzzy-1815"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", SCHEMA)


def on_disk(graph: Graph) -> list[Path]:
    return [path for path in Path(graph.uri).rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


def write(graph: Graph, branch: str = "main", **notes: str | None) -> str:
    people = [{"name": name, "note": note} for name, note in notes.items()]
    commit = graph.write({"Person": people}, mode="merge", branch=branch).commit
    assert commit is not None
    return commit


def people(graph: Graph, **at: str | None) -> dict[str, str | None]:
    at_point: dict[str, Any] = {**at}
    rows = graph.query("query q() { match { $p: Person } return { $p.name as name, $p.note as note } }", **at_point)
    return {row["name"]: row["note"] for row in rows.to_pylist()}


def check(graph: Graph) -> None:
    assert graph.verify(deep=True).findings == ()
    assert graph.sweep(older_than=0).deleted_files == 0
    with omnigraph.open(graph.uri) as fresh:
        for commit in fresh.commits.list():
            assert people(fresh, commit=commit.id) == people(graph, commit=commit.id)


def test_commits_that_are_named_and_pruned_now_leave_nothing(graph: Graph) -> None:
    write(graph, Ada="fine")
    held = [write(graph, Bob=SECRET), write(graph, Cid="more")]
    graph.sweep(older_than=0)  # its barrier shows the same versions
    after = write(graph, Bob="better")
    write(graph, Dan="last")
    assert on_disk(graph)

    report = graph.prune(commits=held, now=True)
    graph.sweep(older_than=0)

    assert (report.marked, report.waiting, report.shared_with) == (2, 0, ())
    assert on_disk(graph) == []
    assert people(graph, commit=after) == {"Ada": "fine", "Bob": "better", "Cid": "more"}
    for commit in held:
        with pytest.raises(ReclaimedError):
            people(graph, commit=commit)
    assert not {event.commit for event in graph.log_of("Person", "Bob")} - {after}, "no other commit is blamed for it"
    check(graph)


def test_files_that_later_commits_share_are_rewritten_and_those_commits_named(graph: Graph) -> None:
    first = write(graph, Ada="fine", Bob=SECRET, Cid="more")
    deleting = graph.mutate('query q() { delete Person where name = "Bob" }').commit
    last = write(graph, Dan="last")

    report = graph.prune(commits=[first], now=True)
    assert report.shared_with == (deleting, last)
    graph.sweep(older_than=0)
    assert on_disk(graph), "commits that are kept need the file"
    assert people(graph, commit=deleting) == {"Ada": "fine", "Cid": "more"}

    assert graph.prune(commits=report.shared_with, now=True).shared_with == ()
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Cid": "more", "Dan": "last"}
    check(graph)


def test_deleted_rows_leave_with_a_purge_and_a_prune_of_what_came_before(graph: Graph) -> None:
    write(graph, **{f"p{number}": "fine" for number in range(50)}, Bob=SECRET)
    graph.mutate('query q() { delete Person where name = "Bob" }')
    graph.optimize()
    graph.optimize(purge=True)
    number = graph.snapshot().number
    graph.optimize(purge=True)
    assert graph.snapshot().number == number, "there is nothing more to do"
    graph.cleanup(keep=1, confirm=True)
    assert on_disk(graph) == []
    assert len(people(graph)) == 50
    check(graph)


@pytest.mark.parametrize(
    ("hold", "let_go"),
    [
        (lambda graph, commit: graph.tags.create("t", commit=commit), lambda graph: graph.tags.delete("t")),
        (
            lambda graph, commit: graph.branches.create("b", commit=commit),
            lambda graph: graph.branches.delete("b"),
        ),
    ],
)
def test_what_somebody_holds_stays_until_it_is_let_go(
    graph: Graph, hold: Callable[[Graph, str], object], let_go: Callable[[Graph], object]
) -> None:
    write(graph, Ada="fine")
    commit = write(graph, Bob=SECRET)
    hold(graph, commit)
    write(graph, Bob="better")
    graph.prune(commits=[commit], now=True)
    graph.sweep(older_than=0)
    at = {"tag": "t"} if graph.tags.list() else {"branch": "b"}
    assert people(graph, **at) == {"Ada": "fine", "Bob": SECRET}
    check(graph)
    let_go(graph)
    graph.cleanup(keep=5, confirm=True)
    assert on_disk(graph) == []
    check(graph)


def test_a_merge_over_a_pruned_commit_brings_what_it_would_have_brought(graph: Graph) -> None:
    write(graph, Ada="fine", Bob="old")
    graph.branches.create("side")
    many = {f"p{number}": SECRET for number in range(2_000)}  # a change set in a file of its own
    commit = write(graph, "side", **many)
    write(graph, "side", **dict.fromkeys(many, "fine"))
    write(graph, Cid="main")
    graph.prune("side", commits=[commit], now=True)
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    graph.merge("side")
    assert people(graph) == {**dict.fromkeys(many, "fine"), "Ada": "fine", "Bob": "old", "Cid": "main"}
    assert graph.verify(deep=True).findings == ()


def test_a_write_whose_base_is_pruned_and_swept_runs_again(graph: Graph) -> None:
    base = write(graph, Ada="fine")
    once = iter([True])

    def overtake() -> None:
        for _ in once:
            write(graph, Bob="fine")
            graph.prune(commits=[base], now=True)
            graph.sweep(older_than=0)

    with armed(Failpoint.WRITE_TABLES_STAGED, overtake):
        write(graph, Cid="late")
    assert people(graph) == {"Ada": "fine", "Bob": "fine", "Cid": "late"}
    check(graph)


def test_without_now_named_commits_keep_their_data_for_the_window(graph: Graph) -> None:
    write(graph, Ada="fine")
    commit = write(graph, Bob=SECRET)
    write(graph, Bob="better")
    write(graph, Cid="last")
    assert graph.prune(commits=[commit]).waiting == 1
    graph.sweep(older_than=0)
    assert on_disk(graph)
    with omnigraph.open(graph.uri, options=OpenOptions(protection_s=0)) as later:
        assert later.prune(commits=[commit]).waiting == 0
        later.sweep(older_than=0)
        assert on_disk(graph) == []
    check(graph)


@pytest.mark.parametrize("is_indexed", [False, True])
def test_what_a_schema_drops_hard_leaves_with_a_sweep(graph: Graph, *, is_indexed: bool) -> None:
    graph.write(
        {"Person": [{"name": "Ada", "note": "fine", "bio": SECRET}, {"name": "Bob", "note": "also"}]},
        edges={"Knows": [{"src": "Ada", "dst": "Bob", "word": SECRET}]},
    )
    if is_indexed:
        graph.optimize()
        graph.query(f'query q() {{ match {{ $p: Person  search($p.bio, "{SECRET}") }} return {{ $p.name }} }}')
    graph.schema_apply(SCHEMA.replace("  bio: String?", "").replace("word: String?", ""), allow_data_loss=True)
    graph.sweep(older_than=0)
    assert on_disk(graph) == []
    assert people(graph) == {"Ada": "fine", "Bob": "also"}
    assert graph.count("Knows") == 1
    check(graph)
