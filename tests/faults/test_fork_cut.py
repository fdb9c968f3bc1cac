"""A fork whose maker died before they saw that what it starts from had gone: never made, and nobody's trouble."""

from pathlib import Path

import pytest
from tests.support.interleaving import RacingStore

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.errors import AlreadyExistsError, NotFoundError
from omnigraph.failpoints import Crash, Failpoint, armed

SCHEMA = "node Person { name: String @key }\nnode City { name: String @key }\n"
AT_ONCE = OpenOptions(protection_s=0, auto_compact=False)


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    graph = omnigraph.init(tmp_path, SCHEMA, options=AT_ONCE)
    for name in ("Ann", "Ben", "Cid"):
        graph.write({"Person": [{"name": name}]})
    return graph


def go_on(graph: Graph) -> None:
    """Write, prune all but the newest and sweep, as others do."""
    for name in ("Dan", "Eve", "Fay"):
        graph.write({"Person": [{"name": name}]})
    graph.prune(keep=1, now=True)
    graph.sweep(older_than=0)


def die_in_a_fork(graph: Graph, *, after_others: bool) -> None:
    """Fork the head, and die when the entry is there; the others go on between the look at the head and the entry."""

    def die() -> None:
        raise Crash

    store = RacingStore(graph._parts.store, [lambda: go_on(graph)] if after_others else [])
    doomed = omnigraph.open(store, options=AT_ONCE)
    with armed(Failpoint.BRANCH_ENTRY_PUT, die), pytest.raises(Crash):
        doomed.branches.create("side")


def names(graph: Graph, branch: str) -> set[str]:
    found = graph.query("query q() { match { $p: Person } return { $p.name } }", branch=branch)
    return {str(row["p.name"]) for row in found}


def test_one_that_came_too_late_was_never_made_and_its_name_is_free(graph: Graph) -> None:
    die_in_a_fork(graph, after_others=True)

    # The handle that wrote the rows has them in memory, and may still answer.
    with omnigraph.open(graph.uri, options=AT_ONCE) as fresh, pytest.raises(NotFoundError, match="never made"):
        names(fresh, "side")
    with pytest.raises(NotFoundError, match="never made"):
        graph.write({"City": [{"name": "Oslo"}]}, branch="side")
    with pytest.raises(NotFoundError, match="never made"):
        graph.branches.create("other", source="side")
    graph.write({"City": [{"name": "Oslo"}]})
    graph.sweep(older_than=0)
    graph.branches.create("side")
    assert names(graph, "side") == names(graph, "main")
    graph.write({"City": [{"name": "Rome"}]}, branch="side")


def test_one_that_came_in_time_is_a_branch_like_any_other(graph: Graph) -> None:
    die_in_a_fork(graph, after_others=False)
    go_on(graph)

    assert names(graph, "side") == {"Ann", "Ben", "Cid"}
    with pytest.raises(AlreadyExistsError):
        graph.branches.create("side")
    graph.write({"City": [{"name": "Rome"}]}, branch="side")
    assert names(graph, "side") == {"Ann", "Ben", "Cid"}
