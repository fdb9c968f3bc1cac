"""A graph on a server is called like one that is open in this process: both implement one interface."""

import inspect
from types import FunctionType

import pytest

from omnigraph.api.blobs import BlobInStorage
from omnigraph.api.graph import Graph
from omnigraph.api.history import BaselineInStorage, Branches, ChangeFeed, Commits, Tags
from omnigraph.api.snapshot import Snapshot
from omnigraph.branch.diff import Diff
from omnigraph.client.blobs import RemoteBlob
from omnigraph.client.diff import RemoteDiff
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.history import RemoteBaseline, RemoteBranches, RemoteChangeFeed, RemoteCommits, RemoteTags
from omnigraph.client.snapshot import RemoteSnapshot

PAIRS: dict[str, tuple[type, type]] = {
    "graph": (Graph, RemoteGraph),
    "snapshot": (Snapshot, RemoteSnapshot),
    "branches": (Branches, RemoteBranches),
    "tags": (Tags, RemoteTags),
    "commits": (Commits, RemoteCommits),
    "changes": (ChangeFeed, RemoteChangeFeed),
    "baseline": (BaselineInStorage, RemoteBaseline),
    "blob": (BlobInStorage, RemoteBlob),
    "diff": (Diff, RemoteDiff),
}
# What needs the storage itself: Spark, Lance, Arrow as it lies there, what reads keep in memory, and upkeep.
LEFT_OUT = {
    "graph": {
        "spark",
        "lance_table",
        "export_arrow",
        "stats",
        "optimize",
        "verify",
        "prune",
        "repair_clock",
        "sweep",
        "cleanup",
        "maintain",
        "maintain_once",
        "lease",
    },
    "snapshot": {"export_arrow", "lance_table", "stored_blob"},
    "diff": {"to_arrow", "older", "newer", "wanted"},
}
# What only a graph on a server has: who asks, and queries that the server keeps.
BESIDES = {"graph": {"actor", "invoke", "stored_queries"}}


def _public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


@pytest.mark.parametrize("what", PAIRS)
def test_everything_is_there_but_for_what_needs_the_storage(what: str) -> None:
    here, there = PAIRS[what]
    assert _public(here) - _public(there) == LEFT_OUT.get(what, set())
    assert _public(there) - _public(here) == BESIDES.get(what, set())


@pytest.mark.parametrize("what", PAIRS)
def test_methods_take_the_same_arguments(what: str) -> None:
    here, there = PAIRS[what]
    for name in _public(here) & _public(there):
        method, remote = getattr(here, name), getattr(there, name)
        if not inspect.isfunction(method):
            continue
        assert _arguments(remote) == _arguments(method), name


@pytest.mark.parametrize("what", PAIRS)
def test_every_public_member_is_documented(what: str) -> None:
    for kind in PAIRS[what]:
        members = [(name, getattr(kind, name)) for name in _public(kind)]
        documented = [(name, value) for name, value in members if isinstance(value, property | FunctionType)]
        assert [name for name, value in documented if not inspect.getdoc(value)] == []


@pytest.mark.parametrize("what", PAIRS)
def test_what_both_have_is_documented_once(what: str) -> None:
    here, there = PAIRS[what]
    apart = {
        name
        for name in _public(here) & _public(there)
        if inspect.getdoc(getattr(here, name)) != inspect.getdoc(getattr(there, name))
    }
    # A difference that is open is described by its own class, below the interface.
    assert apart == ({"from_commit", "to_commit", "stats"} if what == "diff" else set())


def test_keywords_that_several_calls_share_are_spelled_out_for_help() -> None:
    read, write = inspect.signature(Graph.count).parameters, inspect.signature(Graph.revert).parameters
    assert list(read) == ["self", "type_name", "point", "branch", "commit", "number", "tag", "at"]
    assert {"write", "actor", "message", "if_commit", "prune_previous"} <= set(write)


def test_the_code_of_both_stands_in_one_class_each_unless_it_is_the_same() -> None:
    for kind, other in ((Graph, RemoteGraph), (RemoteGraph, Graph)):
        inherited = {member for member in _public(kind) if member not in vars(kind)}
        assert {member for member in inherited if getattr(kind, member) is not getattr(other, member)} == set()
        assert inherited == {"changes_of", "get"}


def _arguments(method: object) -> list[tuple[str, object, object]]:
    assert callable(method)
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
