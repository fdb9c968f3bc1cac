"""Drops that reach into history: what is dropped with `allow_data_loss` can be read nowhere any more."""

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.errors import ConflictError, NotFoundError, ReclaimedError
from omnigraph.failpoints import Failpoint, armed

BEFORE = """\
node Person { name: String @key  secret: String? }
node Robot { model: String @key }
"""
WITHOUT_SECRET = BEFORE.replace("  secret: String?", "")
WITHOUT_ROBOT = BEFORE.replace("node Robot { model: String @key }\n", "")
SECRETS = "query q() { match { $p: Person } return { $p.secret } }"


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path / "graph", BEFORE, options=OpenOptions(protection_s=0))
    graph.mutate('query q() { insert Person { name: "Ada", secret: "xyzzy-1815" } insert Robot { model: "R2" } }')
    return graph


def on_disk(graph: Graph, text: bytes) -> list[Path]:
    return [path for path in Path(graph.uri).rglob("*") if path.is_file() and text in path.read_bytes()]


@pytest.mark.parametrize("after", [WITHOUT_SECRET, WITHOUT_ROBOT])
def test_after_a_hard_drop_no_older_commit_can_be_read(graph: Graph, after: str) -> None:
    old = [graph.snapshot(number=number).commit for number in range(1, graph.snapshot().number + 1)]

    done = graph.schema_apply(after, allow_data_loss=True)

    assert {step["mode"] for step in done.to_dict()["steps"]} == {"hard"}
    for commit in old:
        with pytest.raises((ReclaimedError, NotFoundError)):
            graph.query(SECRETS, commit=commit)
    assert [each.id for each in graph.commits.list()] == [done.commit]
    assert graph.count("Person") == 1


def test_a_soft_drop_leaves_history_as_it_was(graph: Graph) -> None:
    old = graph.snapshot().commit
    graph.schema_apply(WITHOUT_SECRET)
    assert graph.query(SECRETS, commit=old).to_pylist() == [{"p.secret": "xyzzy-1815"}]


def test_allowing_data_loss_where_nothing_is_dropped_prunes_nothing(graph: Graph) -> None:
    old = graph.snapshot().commit
    graph.schema_apply(BEFORE + "node Place { name: String @key }\n", allow_data_loss=True)
    assert graph.query(SECRETS, commit=old).to_pylist() == [{"p.secret": "xyzzy-1815"}]


def test_the_table_of_a_type_dropped_hard_is_swept(graph: Graph) -> None:
    assert on_disk(graph, b"R2")
    table = graph.snapshot().record.tables["node:Robot"].table
    graph.schema_apply(WITHOUT_ROBOT, allow_data_loss=True)
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)
    assert not (Path(graph.uri) / table).exists() or not list((Path(graph.uri) / table).rglob("*.lance"))


def test_a_branch_keeps_what_another_drops_hard(graph: Graph) -> None:
    graph.branches.create("side")
    graph.schema_apply(WITHOUT_SECRET, allow_data_loss=True)
    graph.prune("main", keep=1, now=True)
    graph.sweep(older_than=0)
    assert graph.query(SECRETS, branch="side").to_pylist() == [{"p.secret": "xyzzy-1815"}]


def test_a_writer_that_began_before_a_hard_drop_does_not_bring_the_dropped_back(graph: Graph) -> None:
    once = iter([True])

    def drop() -> None:
        for _ in once:
            graph.schema_apply(WITHOUT_SECRET, allow_data_loss=True)

    with armed(Failpoint.WRITE_TABLES_STAGED, drop), pytest.raises((ConflictError, omnigraph.InvalidRequestError)):
        graph.mutate('query q() { insert Person { name: "Bob", secret: "xyzzy-2" } }')
    assert graph.count("Person") == 1
    graph.mutate('query q() { insert Person { name: "Bob" } }')
    assert graph.count("Person") == 2


def test_the_values_of_a_property_dropped_softly_leave_the_disk_with_upkeep_prune_and_sweep(graph: Graph) -> None:
    graph.schema_apply(WITHOUT_SECRET)
    graph.optimize()
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)

    assert on_disk(graph, b"xyzzy-1815") == []
    assert graph.query("query q() { match { $p: Person } return { $p.name as n } }").to_pylist() == [{"n": "Ada"}]
    before = graph.snapshot().number
    graph.optimize()
    assert graph.snapshot().number == before, "there is nothing more to do"


def test_blobs_and_lists_that_nobody_dropped_are_no_reason_to_rewrite(tmp_path: Path) -> None:
    schema = "node Photo { name: String @key  raw: Blob?  tags: [String]?  at: Vector(2)?  gone: [String]? }"
    with omnigraph.init(tmp_path / "photos", schema) as graph:
        graph.write({"Photo": [{"name": "a", "raw": b"x" * 70_000, "tags": ["t"], "at": [0, 1], "gone": ["g"]}]})
        graph.optimize()
        first = graph.snapshot().number
        graph.optimize()
        assert graph.snapshot().number == first
        graph.schema_apply(schema.replace("  gone: [String]?", ""))
        graph.optimize()
        second = graph.snapshot().number
        graph.optimize()
        assert (second, graph.snapshot().number) == (first + 2, first + 2)
        assert graph.blob("node", "Photo", "a", "raw").read() == b"x" * 70_000
