"""Commits that a merge names: they can be read, or are told to be gone, whatever became of the branch they were on."""

from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, NotFoundError, OpenOptions
from omnigraph.api.schemas import Schemas
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root

SCHEMA = "node Person { name: String @key  age: I32? }"
EAGER = OpenOptions(durability="process", auto_compact=False, protection_s=0)
AT_ONCE = Settings(durability="process", protection_s=0, log_cut_s=0)


def nothing(_: Graph) -> None:
    """The branch is still there."""


def deleted(graph: Graph) -> None:
    graph.branches.delete("side")


def deleted_and_swept(graph: Graph) -> None:
    deleted(graph)
    graph.sweep(older_than=0)


def used_again(graph: Graph) -> None:
    deleted(graph)
    graph.branches.create("side")
    graph.write({"Person": [{"name": "another life"}]}, branch="side")
    graph.sweep(older_than=0)


def pruned_and_swept(graph: Graph) -> None:
    for number in range(3):
        graph.write({"Person": [{"name": f"later-{number}"}]}, branch="side")
    graph.prune(branch="side", keep=1, now=True)
    graph.sweep(older_than=0)


def held_by_a_tag(graph: Graph) -> None:
    graph.tags.create("side", branch="side")
    pruned_and_swept(graph)
    deleted_and_swept(graph)


Fate = Callable[[Graph], None]
KEPT = (nothing, deleted)
FATES = [nothing, deleted, deleted_and_swept, used_again, pruned_and_swept, held_by_a_tag]


def merged(root: Path, fate: Fate, *, cut: bool) -> str:
    """A graph with a merge in it; the commit that it brought in."""
    with omnigraph.init(root, SCHEMA, options=EAGER) as graph:
        graph.write({"Person": [{"name": "ada", "age": 1}]}, actor="founder")
        graph.branches.create("side")
        graph.write({"Person": [{"name": "bob", "age": 2}]}, branch="side", actor="guest")
        graph.write({"Person": [{"name": "cy", "age": 3}]})
        graph.merge("side", actor="host")
        brought = graph.snapshot().record.merged_parent
        assert brought is not None
        fate(graph)
    if cut:
        # With nothing to wait for, the log goes as well.
        parts = open_root(str(root), settings=AT_ONCE)
        graph = Graph(parts, Schemas(parts))
        graph.sweep(older_than=0)
        graph.sweep(older_than=0)
    return brought


@pytest.mark.parametrize("cut", [False, True], ids=["young", "old"])
@pytest.mark.parametrize("fate", FATES, ids=lambda each: each.__name__)
def test_a_commit_that_a_merge_names_is_readable_or_told_to_be_gone(fate: Fate, tmp_path: Path, *, cut: bool) -> None:
    brought = merged(tmp_path / "graph", fate, cut=cut)
    reads: list[Callable[[Graph], object]] = [
        lambda graph: graph.export_arrow("Person", commit=brought).read_all().num_rows,
        lambda graph: graph.snapshot(commit=brought).count("Person"),
        lambda graph: len(list(graph.query("query q() { match { $p: Person } return { $p.name } }", commit=brought))),
        lambda graph: graph.diff(brought, "main").stats["node:Person"].inserted + 1,
    ]
    for read in reads:
        with omnigraph.open(tmp_path / "graph", options=EAGER) as graph:
            if fate in KEPT and not (fate is deleted and cut):
                assert read(graph) == 2
            else:
                try:
                    assert read(graph) == 2
                except NotFoundError as gone:
                    assert gone.code in ("version_reclaimed", "commit_not_found", "point_not_found")


@pytest.mark.parametrize("cut", [False, True], ids=["young", "old"])
@pytest.mark.parametrize("fate", FATES, ids=lambda each: each.__name__)
def test_blame_is_told_as_far_as_it_can_be_seen(fate: Fate, tmp_path: Path, *, cut: bool) -> None:
    merged(tmp_path / "graph", fate, cut=cut)
    with omnigraph.open(tmp_path / "graph", options=EAGER) as graph:
        found = graph.blame("Person", "bob")
        assert {entry.actor for entry in found.properties.values()} <= {"guest"}
        assert {*found.properties, *found.pruned} == {"name", "age"}
        if fate is nothing:
            assert found.properties["age"].actor == "guest"
        assert [event.op.value for event in graph.log_of("Person", "bob")] == ["insert"]
        assert graph.verify().is_whole
