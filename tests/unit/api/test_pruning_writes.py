"""Every kind of write can prune as it goes: the mark is in the entry of the write itself, and costs no further put."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import DURABLE_REQUESTS
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import CountingStore

SCHEMA = "node Person { name: String @key  age: I32? }\n"
MORE = "node Place { name: String @key }\n"
EAGER = OpenOptions(durability="process", auto_compact=False, protection_s=0)


@dataclass(frozen=True, slots=True)
class Counted:
    """A graph and the store that counts for it."""

    graph: Graph
    store: CountingStore

    def puts(self, act: Callable[[], object]) -> list[str]:
        """Where something puts, in order; random names left out."""
        self.store.reset()
        act()
        return [_plain(path) for kind, path in self.store.requests() if kind in DURABLE_REQUESTS]


def _plain(path: str) -> str:
    folder, _, name = path.rpartition("/")
    return folder if path.startswith((paths.CHANGES, paths.RECOVERY)) else f"{folder}/{name.partition('.')[2]}"


@pytest.fixture
def counted(tmp_path: Path) -> Iterator[Counted]:
    omnigraph.init(tmp_path, SCHEMA, options=EAGER).close()
    store = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    with omnigraph.open(store, options=EAGER) as graph:
        for age in range(3):
            graph.write({"Person": [{"name": "ada", "age": age}]}, mode="merge")
        yield Counted(graph, store)


def _mutate(graph: Graph, *, prune_previous: bool) -> object:
    return graph.mutate('query q() { insert Person { name: "bo" } }', prune_previous=prune_previous)


def _write(graph: Graph, *, prune_previous: bool) -> object:
    return graph.write({"Person": [{"name": "bo"}]}, prune_previous=prune_previous)


def _load(graph: Graph, *, prune_previous: bool) -> object:
    line = b'{"type": "Person", "data": {"name": "bo"}}\n'
    return graph.load(line, mode="append", engine="local", prune_previous=prune_previous)


def _fast_forward(graph: Graph, *, prune_previous: bool) -> object:
    graph.branches.create("side")
    graph.write({"Person": [{"name": "bo"}]}, branch="side")
    return graph.merge("side", prune_previous=prune_previous)


def _merge(graph: Graph, *, prune_previous: bool) -> object:
    graph.branches.create("side")
    graph.write({"Person": [{"name": "bo"}]}, branch="side")
    graph.write({"Person": [{"name": "cy"}]})
    done = graph.merge("side", prune_previous=prune_previous)
    assert done.outcome == "merged"
    return done


def _schema_apply(graph: Graph, *, prune_previous: bool) -> object:
    return graph.schema_apply(SCHEMA + MORE, prune_previous=prune_previous)


def _revert(graph: Graph, *, prune_previous: bool) -> object:
    return graph.revert(graph.commits.list()[0].id, prune_previous=prune_previous)


WRITES = pytest.mark.parametrize("act", [_mutate, _write, _load, _fast_forward, _merge, _schema_apply, _revert])


@WRITES
def test_a_write_that_prunes_leaves_one_commit_and_marks_the_others_in_its_own_entry(
    counted: Counted, act: Callable[..., object]
) -> None:
    graph = counted.graph
    act(graph, prune_previous=True)
    head = graph.snapshot().record
    assert [each.id for each in graph.commits.list()] == [head.commit]
    assert head.pruned.through == head.number - 1


@WRITES
def test_a_write_that_prunes_puts_as_often_as_one_that_does_not(
    counted: Counted, tmp_path_factory: pytest.TempPathFactory, act: Callable[..., object]
) -> None:
    plain = counted.puts(lambda: act(counted.graph, prune_previous=False))
    assert len(counted.graph.commits.list()) > 1
    other = tmp_path_factory.mktemp("other")
    omnigraph.init(other, SCHEMA, options=EAGER).close()
    store = CountingStore(LocalStore(other, durability=Durability.PROCESS))
    with omnigraph.open(store, options=EAGER) as graph:
        for age in range(3):
            graph.write({"Person": [{"name": "ada", "age": age}]}, mode="merge")
        pruning = Counted(graph, store).puts(lambda: act(graph, prune_previous=True))
    assert pruning == plain
    assert len([path for path in plain if path.startswith(paths.LOGS)]) > 0
