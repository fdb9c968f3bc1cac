"""Every request that reaches an S3 server, ours and the table library's, for each small act.

Tables carry an index on their ids, as every table that was optimised once does, and the process has used them before.
"""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from tests.support.histories import grow_history
from tests.support.operations import append, build_index, delete, insert, new_graph, upsert, upsert_many
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_server import S3Server

from omnigraph.branch import branches
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores import S3Store
from omnigraph.storage.records.read import record_bytes
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

pytestmark = pytest.mark.s3

_BUCKET = "omnigraph-tests"
_READS = {"GET", "HEAD", "LIST"}
_FIRST, _LAST = "node:T0", "node:T{last}"

_ENTRY = {("PUT", "log"): 1}
_VERSION = {("PUT", "transactions"): 1, ("PUT", "versions"): 1}

_Act = Callable[[GraphContext, str], object]
# What is written, and how many reads: the head before and after, and interrupted writes; the rest is at hand.
_ACTS: dict[str, tuple[_Act, dict[tuple[str, str], int], int]] = {
    "adding a row": (
        lambda graph, _: write(graph, MAIN, append(_FIRST, {"a": 1})),
        _ENTRY | _VERSION | {("PUT", "data"): 1},
        3,
    ),
    "adding a row that must be new": (
        lambda graph, _: write(graph, MAIN, insert(_FIRST, {"b": 1})),
        _ENTRY | _VERSION | {("PUT", "data"): 1},
        3,
    ),
    "deleting a row": (
        lambda graph, _: write(graph, MAIN, delete(_FIRST, ["p3"])),
        _ENTRY | _VERSION | {("PUT", "deletions"): 1},
        3,
    ),
    "adding a row to two tables": (
        lambda graph, last: write(graph, MAIN, upsert_many({_FIRST: {"c": 1}, last: {"c": 1}})),
        _ENTRY | dict.fromkeys(_VERSION, 2) | {("PUT", "data"): 2},
        3,
    ),
    "replacing a row": (
        lambda graph, _: write(graph, MAIN, upsert(_FIRST, {"p5": 1})),
        _ENTRY | _VERSION | {("PUT", "data"): 1, ("PUT", "deletions"): 1},
        3,
    ),
    "making a branch": (lambda graph, _: branches.create(graph, "new"), _ENTRY, 4),
    "deleting a branch": (lambda graph, _: branches.delete(graph, "new"), {("PUT", "log"): 3, ("POST", "other"): 1}, 2),
    "looking at the head": (lambda graph, _: graph.log.live_head(MAIN), {}, 2),
    "a snapshot by branch and number": (lambda graph, _: graph.log.read(MAIN, 5), {}, 1),
}


@pytest.mark.parametrize(
    ("depth", "types"),
    [(10, 2), (10, 100), (1_000, 10), pytest.param(10_000, 2, marks=pytest.mark.torture)],
)
def test_every_act_costs_exactly_the_same_at_any_history_and_number_of_types(
    depth: int, types: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    last = f"node:T{types - 1}"
    _prepare(S3Store(_BUCKET, s3_prefix, options=s3_server.options), depth, types, last)
    graph = open_root(S3Store(_BUCKET, s3_prefix, options=s3_proxy.options))
    write(graph, MAIN, upsert_many({_FIRST: {"warm": 1}, last: {"warm": 1}}))
    for key in (_FIRST, last):
        # As an optimised graph has it: no small fragments beside the index.
        write(graph, MAIN, build_index(graph, key, "id"))
        graph.snapshot(graph.log.live_head(MAIN)).table(key).rows_with_ids(["p1"])

    written, read = {}, {}
    for act, (do, _, _) in _ACTS.items():
        s3_proxy.reset()
        do(graph, last)
        counts = s3_proxy.counts()
        written[act] = {what: times for what, times in counts.items() if what[0] not in _READS}
        read[act] = sum(times for what, times in counts.items() if what[0] in _READS)
        if act != "looking at the head" and "branch" not in act:
            _absorb(graph)

    assert written == {act: expected for act, (_, expected, _) in _ACTS.items()}
    assert read == {act: expected for act, (_, _, expected) in _ACTS.items()}


@pytest.mark.parametrize("types", [1, 100])
def test_making_a_branch_is_one_put(types: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str) -> None:
    new_graph(
        S3Store(_BUCKET, s3_prefix, options=s3_server.options), types=[f"node:T{number}" for number in range(types)]
    )
    graph = open_root(S3Store(_BUCKET, s3_prefix, options=s3_proxy.options))
    s3_proxy.reset()

    branches.create(graph, "new")

    assert s3_proxy.counts() == {("PUT", "log"): 1, ("GET", "log"): 4}


def test_branches_are_listed_in_one_request_for_every_thousand_names(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    direct = S3Store(_BUCKET, s3_prefix, options=s3_server.options)
    made = new_graph(direct, types=[_FIRST])
    fork = branches.create(made, "b000")

    def grow_to(names: int) -> None:
        with ThreadPoolExecutor(4) as pool:
            entries = [replace(fork, branch=f"b{number:03d}") for number in range(1, names)]
            list(pool.map(lambda entry: direct.put(paths.entry(entry.branch, 1), record_bytes(entry)), entries))

    graph = open_root(S3Store(_BUCKET, s3_prefix, options=s3_proxy.options), read_only=True)
    asked = {}
    for names in (999, 1_000):  # and main
        grow_to(names)
        s3_proxy.reset()
        assert branches.names(graph) == [*(f"b{number:03d}" for number in range(names)), MAIN]
        asked[names + 1] = s3_proxy.counts()

    # And the stamp: that it is still this graph whose branches they are.
    assert asked == {
        1_000: {("GET", "other"): 1, ("LIST", "other"): 1},
        1_001: {("GET", "other"): 1, ("LIST", "other"): 2},
    }


def _prepare(store: S3Store, depth: int, types: int, last: str) -> None:
    """Straight to the server, so that the proxy has only the acts to count."""
    graph = new_graph(store, types=[f"node:T{number}" for number in range(types)])
    write(graph, MAIN, upsert_many({key: {f"p{number}": number for number in range(50)} for key in (_FIRST, last)}))
    for key in (_FIRST, last):
        write(graph, MAIN, build_index(graph, key, "id"))
    grow_history(graph, depth)


def _absorb(graph: GraphContext) -> None:
    """Bring the row just written under the index: otherwise the next act also reads the fragment it lies in."""
    write(graph, MAIN, build_index(graph, _FIRST, "id"))
    Counter(graph.snapshot(graph.log.live_head(MAIN)).table(_FIRST).rows_with_ids(["p1"])["id"].to_pylist())
