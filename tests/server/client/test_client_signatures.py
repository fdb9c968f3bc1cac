"""A graph on a server is called like one that is open in this process."""

import inspect

import pytest

from omnigraph.api.blobs import BlobInStorage
from omnigraph.api.branches import Branches
from omnigraph.api.changes import BaselineInStorage, ChangeFeed
from omnigraph.api.commits import Commits
from omnigraph.api.graph import Graph
from omnigraph.api.snapshot import Snapshot
from omnigraph.api.tags import Tags
from omnigraph.branch.diff import Diff
from omnigraph.client.blobs import RemoteBlob
from omnigraph.client.diff import RemoteDiff
from omnigraph.client.graph import RemoteGraph
from omnigraph.client.history import RemoteBaseline, RemoteChangeFeed, RemoteCommits
from omnigraph.client.names import RemoteBranches, RemoteTags
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
# What is each one's own: where it is and how it ends, what hangs on it, and a difference, which is read or fetched.
APART = {
    "graph": {"uri", "read_only", "close", "branches", "tags", "commits", "changes"},
    "diff": {"from_commit", "to_commit", "types", "stats", "to_pylist"},
}


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
def test_what_both_have_is_said_once(what: str) -> None:
    here, there = PAIRS[what]
    apart = {
        name
        for name in _public(here) & _public(there)
        if inspect.getattr_static(here, name, None) is not inspect.getattr_static(there, name, None)
    }
    assert apart == APART.get(what, set())


def _arguments(method: object) -> list[tuple[str, object, object]]:
    assert callable(method)
    return [(each.name, each.kind, each.default) for each in inspect.signature(method).parameters.values()]
