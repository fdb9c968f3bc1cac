"""Requests of acts that happen less often, and of every way to open a graph; exact, at every history and size."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pytest
from _pytest.mark import ParameterSet
from tests.support import operations as op
from tests.support.fast_folder import fast_folder
from tests.support.histories import grow_history

from omnigraph import limits
from omnigraph.branch import branches, tags
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

GET, LIST, PUT, CREATE = RequestKind.GET, RequestKind.LIST, RequestKind.PUT, RequestKind.PUT_IF_ABSENT
# Not requests to an object store: only local disk has something to do there.
LOCAL_ONLY = {RequestKind.MAKE_DURABLE, RequestKind.PROVE}

SETTINGS = Settings(durability="process")
EVERY = limits.HINT_EVERY_ENTRIES
MANY = 5


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that counts, opened and warm."""

    store: CountingStore
    parts: GraphContext
    keys: tuple[str, ...]

    def opened(self, *, read_only: bool = False) -> GraphContext:
        return open_root(self.store, settings=SETTINGS, read_only=read_only)

    def fresh(self) -> str:
        """A name nobody used."""
        return self.parts.ids.new()

    @property
    def number(self) -> int:
        return self.parts.log.live_head(MAIN).number

    def grown_past_a_hint(self, *, entries: int) -> None:
        """Let the last hint be so many entries old."""
        grow_history(self.parts, (self.number // EVERY + 1) * EVERY + entries)

    def without_a_hint_next(self) -> None:
        """See to it that the next commit writes none."""
        if (self.number + 1) % EVERY == 0:
            grow_history(self.parts, self.number + 1)


@dataclass(frozen=True, slots=True)
class Cost:
    """An act and what it takes.

    Attributes:
        name: for people.
        counts: the requests.
        act: what is counted.
        before: what is done first, and not counted; what it returns is given to the act.
        types: how many types it needs.
    """

    name: str
    counts: dict[RequestKind, int]
    act: Callable[[Graph, str], object]
    before: Callable[[Graph], str] = Graph.fresh
    types: int = 1


def existing_row(graph: Graph) -> str:
    row = graph.fresh()
    write(graph.parts, MAIN, op.upsert_many({key: {row: 1, f"{row}-2": 2} for key in graph.keys[:MANY]}))
    return row


def deleted_branch(graph: Graph) -> str:
    name = graph.fresh()
    branches.create(graph.parts, name)
    return branches.delete(graph.parts, name).branch


def existing_tag(graph: Graph) -> str:
    return tags.create(graph.parts, graph.fresh(), graph.parts.log.live_head(MAIN)).name


def keyed(graph: Graph, key: str) -> object:
    return write(graph.parts, MAIN, op.append(graph.keys[0], {graph.fresh(): 1}), WriteOptions(idempotency_key=key))


def used_key(graph: Graph) -> str:
    key = graph.fresh()
    keyed(graph, key)
    return key


def insert(types: int) -> Callable[[Graph, str], object]:
    def act(graph: Graph, row: str) -> object:
        operation = op.insert(graph.keys[0], {row: 1})
        for key in graph.keys[1:types]:
            operation = op.both(operation, op.insert(key, {row: 1}))
        return write(graph.parts, MAIN, operation)

    return act


def delete(types: int) -> Callable[[Graph, str], object]:
    def act(graph: Graph, row: str) -> object:
        def run(staging: WriteSet) -> None:
            for key in graph.keys[:types]:
                staging.delete(key, [row])

        keys = frozenset(graph.keys[:types])
        return write(graph.parts, MAIN, Operation(CommitKind.MUTATION, keys, run, redoable=False))

    return act


A_WRITE = {LIST: 1, GET: 1, CREATE: 1}  # look for interrupted writes, look at the head, publish

COSTS = [
    Cost("insert of one row", A_WRITE, insert(1)),
    Cost("insert of one row in each of two types", A_WRITE, insert(2), types=2),
    Cost("insert of one row in each of five types", A_WRITE, insert(MANY), types=MANY),
    Cost("delete of one row", A_WRITE, delete(1), existing_row),
    Cost("delete of one row in each of five types", A_WRITE, delete(MANY), existing_row, types=MANY),
    Cost("the first write under a key", A_WRITE | {CREATE: 2, PUT: 1}, keyed),
    Cost("the same write again", {LIST: 1, GET: 2, CREATE: 1}, keyed, used_key),
    Cost(
        "create of a branch whose name was used before",
        {GET: 4, CREATE: 2, PUT: 2, RequestKind.DELETE: 1},
        lambda graph, name: branches.create(graph.parts, name),
        deleted_branch,
    ),
    Cost(
        "create of a tag",
        {GET: 2, LIST: 1, CREATE: 1},
        lambda graph, name: tags.create(graph.parts, name, graph.parts.log.live_head(MAIN)),
    ),
    Cost("read of a tag", {LIST: 1, GET: 1}, lambda graph, name: tags.read(graph.parts, name), existing_tag),
    Cost(
        "delete of a tag",
        {LIST: 1, GET: 1, CREATE: 1},
        lambda graph, name: tags.delete(graph.parts, name),
        existing_tag,
    ),
]


def fresh_hint(graph: Graph) -> str:
    graph.grown_past_a_hint(entries=0)
    return ""


def stale_hint(graph: Graph) -> str:
    graph.grown_past_a_hint(entries=EVERY - 1)
    return ""


def no_hint(graph: Graph) -> str:
    graph.grown_past_a_hint(entries=7)
    graph.store.delete(paths.hint(MAIN))
    return ""


# The stamp, the hint, the entry it names and the one before, that there is no next, and that it is still there; without
# a hint one listing. Writers look for interrupted writes too.
OPENS = [
    Cost(
        "for reading, the hint is at the head",
        {GET: 6},
        lambda graph, _: graph.opened(read_only=True),
        fresh_hint,
    ),
    Cost("for writing, the hint is at the head", {GET: 6, LIST: 1}, lambda graph, _: graph.opened(), fresh_hint),
    Cost(
        "for reading, the hint is as old as it gets",
        {GET: 17},
        lambda graph, _: graph.opened(read_only=True),
        stale_hint,
    ),
    Cost("for reading, without a hint", {GET: 4, LIST: 1}, lambda graph, _: graph.opened(read_only=True), no_hint),
    Cost("for writing, without a hint", {GET: 4, LIST: 2}, lambda graph, _: graph.opened(), no_hint),
]

# Number of types and length of history; all of them in the long run.
SHAPES = [(1, 10), (10, 1_000), (100, 10), (10, 10_000)]
MORE_SHAPES = [(10, 10), (1, 10_000), (100, 1_000), (100, 10_000)]


def at_every_shape(costs: Sequence[Cost]) -> list[ParameterSet]:
    """Each cost at each shape that has as many types as it needs."""
    return [
        pytest.param(
            shape,
            cost,
            id=f"{cost.name}, {shape[0]} types, history {shape[1]}",
            marks=pytest.mark.torture if shape in MORE_SHAPES else (),
        )
        for shape in SHAPES + MORE_SHAPES
        for cost in costs
        if cost.types <= shape[0]
    ]


@pytest.fixture(scope="module")
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    types, history = request.param
    keys = tuple(f"node:T{number}" for number in range(types))
    with fast_folder() as folder:
        store = CountingStore(LocalStore(folder / "graph", durability=Durability.PROCESS))
        made = Graph(store, op.new_graph(store, types=keys, settings=SETTINGS), keys)
        grow_history(made.parts, history)
        assert made.number == history
        yield made


def asked(graph: Graph) -> dict[RequestKind, int]:
    return {kind: times for kind, times in graph.store.counts().items() if kind not in LOCAL_ONLY}


@pytest.mark.parametrize(("graph", "cost"), at_every_shape(COSTS), indirect=["graph"])
def test_an_act_takes_exactly_so_many_requests(graph: Graph, cost: Cost) -> None:
    given = cost.before(graph)
    graph.without_a_hint_next()

    graph.store.reset()
    cost.act(graph, given)

    assert asked(graph) == cost.counts, graph.store.requests()


@pytest.mark.parametrize(("graph", "cost"), at_every_shape(OPENS), indirect=["graph"])
def test_opening_takes_exactly_so_many_requests(graph: Graph, cost: Cost) -> None:
    cost.before(graph)

    graph.store.reset()
    cost.act(graph, "")

    assert asked(graph) == cost.counts, graph.store.requests()


@pytest.mark.parametrize("graph", SHAPES, indirect=True)
def test_one_commit_in_many_takes_one_put_more_for_the_hint(graph: Graph) -> None:
    graph.grown_past_a_hint(entries=EVERY - 1)

    graph.store.reset()
    insert(1)(graph, graph.fresh())

    assert asked(graph) == A_WRITE | {PUT: 1}


@pytest.mark.parametrize("graph", SHAPES, indirect=True)
def test_a_handle_that_was_left_behind_finds_the_head_in_a_logarithm_of_requests(graph: Graph) -> None:
    behind = graph.opened(read_only=True)
    behind.log.live_head(MAIN)  # one that began at a hint reads the head it came to once more
    found = {}
    for moved in (1, 2, 4, 16, 64, 256):
        grow_history(graph.parts, graph.number + moved)
        graph.store.reset()
        assert behind.log.live_head(MAIN).number == graph.parts.log.live_head(MAIN).number
        found[moved] = asked(graph)[GET] - 1  # our own look at the head

    assert found == {1: 3, 2: 5, 4: 7, 16: 11, 64: 15, 256: 19}
