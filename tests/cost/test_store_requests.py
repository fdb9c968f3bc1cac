"""What each act asks of the object store, exactly, whatever the history and the number of types.

Lance's own requests are counted at the wire, in `test_wire_requests.py`.
"""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.histories import grow_history
from tests.support.operations import append, delete, insert, new_graph, update_where, upsert, upsert_many

from omnigraph.branch import branches
from omnigraph.model.commit import MAIN
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import IntentPolicy, write

_SETTINGS = Settings(durability="process")
_GET, _LIST, _PUT, _CREATE = RequestKind.GET, RequestKind.LIST, RequestKind.PUT, RequestKind.PUT_IF_ABSENT
# Not requests to an object store: only local disk has something to do there.
_LOCAL_ONLY = {RequestKind.MAKE_DURABLE, RequestKind.PROVE}

# One look at the head, one for interrupted writes, one entry put: that is a write, of any number of tables.
_ONE_WRITE = {_GET: 1, _LIST: 1, _CREATE: 1}
_ACTS: dict[str, tuple[Callable[[GraphContext], object], dict[RequestKind, int]]] = {
    "looking at the head": (lambda graph: graph.log.live_head(MAIN), {_GET: 1}),
    "a snapshot by branch and number": (lambda graph: graph.log.read(MAIN, 5), {_GET: 1}),
    "looking for interrupted writes": (heal, {_LIST: 1}),
    "adding a row": (lambda graph: write(graph, MAIN, append("node:T0", {"a": 1})), _ONE_WRITE),
    "adding a row that must be new": (lambda graph: write(graph, MAIN, insert("node:T0", {"b": 1})), _ONE_WRITE),
    "replacing a row": (lambda graph: write(graph, MAIN, upsert("node:T0", {"old": 2})), _ONE_WRITE),
    "updating where": (lambda graph: write(graph, MAIN, update_where("node:T0", "v = 7", 8)), _ONE_WRITE),
    "deleting a row": (lambda graph: write(graph, MAIN, delete("node:T0", ["gone"])), _ONE_WRITE),
    "changing nothing": (lambda graph: write(graph, MAIN, delete("node:T0", ["nobody"])), {_GET: 1, _LIST: 1}),
    "adding a row under an idempotency key": (
        lambda graph: write(graph, MAIN, append("node:T0", {"c": 1}), WriteOptions(idempotency_key="k")),
        {_GET: 1, _LIST: 1, _CREATE: 2, _PUT: 1},
    ),
    # One entry decides, and is all that is put; a second look at the source sees that no prune has passed it meanwhile.
    "making a branch": (lambda graph: branches.create(graph, "new"), {_GET: 2, _CREATE: 1}),
    # And a look at the source: whoever made the branch may have died before theirs.
    "the first write on a branch": (
        lambda graph: write(graph, "side", append("node:T0", {"d": 1})),
        _ONE_WRITE | {_GET: _ONE_WRITE[_GET] + 1},
    ),
    # What a listing is told: before the entry that the branch may end, after it that it has.
    "deleting a branch": (
        lambda graph: branches.delete(graph, "side"),
        {_GET: 1, _CREATE: 1, _PUT: 2, RequestKind.DELETE: 1},
    ),
}

# A cold process starts from the hint and takes doubling steps: a logarithm of how far the hint is behind, never of how
# long the history is. Without a hint, as in a young graph, one listing tells.
_COLD_OPENS = {10: {_GET: 4, _LIST: 1}, 1_000: {_GET: 13}, 10_000: {_GET: 15}}


_SIZES = [(10, 1), (10, 100), (1_000, 10), (10_000, 1)]
_MORE_SIZES = [(10, 10), (1_000, 1), (1_000, 100), (10_000, 10), (10_000, 100)]


@pytest.mark.parametrize(
    ("depth", "types"), [*_SIZES, *(pytest.param(*size, marks=pytest.mark.torture) for size in _MORE_SIZES)]
)
def test_every_act_costs_the_same_at_any_history_and_number_of_types(depth: int, types: int, tmp_path: Path) -> None:
    made = new_graph(str(tmp_path), types=[f"node:T{number}" for number in range(types)], settings=_SETTINGS)
    write(made, MAIN, upsert("node:T0", {"old": 1, "gone": 2, "seven": 7}))
    branches.create(made, "side")
    grow_history(made, depth)
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))

    open_root(counted, read_only=True, settings=_SETTINGS)
    assert _asked(counted) == _COLD_OPENS[depth]

    graph = open_root(counted, settings=_SETTINGS)
    for branch in (MAIN, "side") * 2:
        graph.log.live_head(branch)
    costs = {}
    for act, (do, _) in _ACTS.items():
        counted.reset()
        do(graph)
        costs[act] = _asked(counted)
    assert costs == {act: expected for act, (_, expected) in _ACTS.items()}


def test_a_write_over_five_tables_puts_one_entry(tmp_path: Path) -> None:
    types = [f"node:T{number}" for number in range(5)]
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    graph = new_graph(counted, types=types, settings=_SETTINGS)
    counted.reset()

    write(graph, MAIN, upsert_many({key: {"a": 1} for key in types}))

    assert _asked(counted) == _ONE_WRITE


def test_a_write_with_an_intent_adds_its_two_documents_and_their_deletion(tmp_path: Path) -> None:
    counted = CountingStore(LocalStore(tmp_path, durability=Durability.PROCESS))
    graph = new_graph(counted, types=["node:T0"], settings=_SETTINGS)
    counted.reset()

    write(graph, MAIN, replace(upsert("node:T0", {"a": 1}), intent=IntentPolicy.ALWAYS))

    assert _asked(counted) == _ONE_WRITE | {_CREATE: 2, _PUT: 1, RequestKind.DELETE: 2}


def _asked(counted: CountingStore) -> dict[RequestKind, int]:
    return {kind: times for kind, times in counted.reset().items() if kind not in _LOCAL_ONLY}
