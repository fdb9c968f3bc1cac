"""Every request that reaches an S3 server in the steady state of many small writes by one process, exactly.

Nothing is optimised here and no table has an index: each table is one fragment of a load, and behind it lie the
fragments of the one-row writes since. The bars: 3T + 1 writes and at most 2T + 2 reads for one row in each of T tables.
History is grown straight at the server with entries that go through the log like any other.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest
from tests.support import operations as op
from tests.support.histories import grow_history
from tests.support.interrupted_writes import interrupt, move_to_another_host
from tests.support.s3_proxy import S3Proxy
from tests.support.s3_server import S3Server

from omnigraph import limits
from omnigraph.branch import branches
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores import S3Store
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

pytestmark = pytest.mark.s3

BUCKET = "omnigraph-tests"
READS = {"GET", "HEAD", "LIST"}
ROWS = 50
Counts = dict[tuple[str, str], int]

LOOK: Counts = {("LIST", "other"): 1, ("GET", "log"): 2}  # for interrupted writes, and at the head before and after
ENTRY: Counts = {("PUT", "log"): 1}


def in_each(tables: int, counts: Counts) -> Counts:
    return {what: times * tables for what, times in counts.items()}


# The page of the large fragment, and the small fragment that came last, which nobody has opened yet.
INSERTED: Counts = {("GET", "data"): 2, ("PUT", "data"): 1, ("PUT", "transactions"): 1, ("PUT", "versions"): 1}
# The page of the large fragment, and its deletion vector, of which a longer one is written.
DELETED: Counts = {
    ("GET", "data"): 1,
    ("GET", "deletions"): 1,
    ("PUT", "deletions"): 1,
    ("PUT", "transactions"): 1,
    ("PUT", "versions"): 1,
}


@dataclass(slots=True)
class Graph:
    """A graph behind a proxy, opened and warm."""

    parts: GraphContext
    keys: tuple[str, ...]
    proxy: S3Proxy
    used: int = 0

    def fresh(self) -> int:
        self.used += 1
        return self.used

    def counted(self, act: Callable[[], object]) -> Counts:
        """What an act takes."""
        self.proxy.reset()
        act()
        return dict(self.proxy.counts())

    def steady(self, act: Callable[[], object]) -> Counts:
        """What an act takes once it has been done before."""
        for _ in range(2):
            act()
        return self.counted(act)

    def insert(self, tables: int) -> None:
        row = f"n{self.fresh()}"
        operation = op.insert(self.keys[0], {row: 1})
        for key in self.keys[1:tables]:
            operation = op.both(operation, op.insert(key, {row: 1}))
        write(self.parts, MAIN, operation)

    def delete(self, tables: int) -> None:
        row = f"r{self.fresh() % ROWS}"

        def run(staging: WriteSet) -> None:
            for key in self.keys[:tables]:
                staging.delete(key, [row])

        write(self.parts, MAIN, Operation(CommitKind.MUTATION, frozenset(self.keys[:tables]), run, redoable=False))

    def keyed(self, key: str) -> None:
        row = {f"k{self.fresh()}": 1}
        write(self.parts, MAIN, op.append(self.keys[0], row), WriteOptions(idempotency_key=key))


def prepared(types: int, history: int, server: S3Server, proxy: S3Proxy, prefix: str) -> Graph:
    keys = tuple(f"node:T{number}" for number in range(types))
    made = op.new_graph(S3Store(BUCKET, prefix, options=server.options), types=keys)
    write(made, MAIN, op.upsert_many({key: {f"r{row}": row for row in range(ROWS)} for key in keys[:5]}))
    grow_history(made, history)
    return Graph(open_root(S3Store(BUCKET, prefix, options=proxy.options)), keys, proxy)


def split(counts: Counts) -> tuple[int, int]:
    """Writes and reads."""
    reads = sum(times for (method, _), times in counts.items() if method in READS)
    return sum(counts.values()) - reads, reads


@pytest.mark.parametrize(("types", "history"), [(5, 10), (100, 10), (5, 1_000)])
def test_small_writes_cost_what_the_tables_they_touch_cost(
    types: int, history: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    graph = prepared(types, history, s3_server, s3_proxy, s3_prefix)

    for tables in (1, 2, 5):
        counts = graph.steady(partial(graph.insert, tables))
        assert counts == LOOK | ENTRY | in_each(tables, INSERTED), f"insert in {tables}"
        assert split(counts) == (3 * tables + 1, 2 * tables + 3)
    for tables in (5, 2, 1):
        counts = graph.steady(partial(graph.delete, tables))
        assert counts == LOOK | ENTRY | in_each(tables, DELETED), f"delete in {tables}"
        assert split(counts) == (3 * tables + 1, 2 * tables + 3)


def test_a_small_write_costs_the_same_while_another_process_loads(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    graph = prepared(5, 10, s3_server, s3_proxy, s3_prefix)
    before = graph.steady(partial(graph.insert, 1))
    elsewhere = open_root(S3Store(BUCKET, s3_prefix, options=s3_server.options))
    load = interrupt(elsewhere, op.upsert(graph.keys[1], {"loaded": 1}))
    move_to_another_host(elsewhere, load)

    first = graph.counted(partial(graph.insert, 1))
    assert first == before | {("GET", "recovery"): 1}, "the note of the load is read once"
    assert graph.steady(partial(graph.insert, 1)) == before
    elsewhere.store.put(paths.intent_heartbeat(load), b"")
    assert graph.steady(partial(graph.insert, 1)) == before


@pytest.mark.parametrize(("files", "requests"), [(1, 1), (limits.SWEEP_BATCH_FILES, 1), (1_100, 3)])
def test_a_sweep_deletes_many_files_in_one_request(
    files: int, requests: int, s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    graph = prepared(1, 10, s3_server, s3_proxy, s3_prefix)
    sweep(graph.parts, older_than_s=0)
    table = graph.parts.log.live_head(MAIN).tables[graph.keys[0]].table
    direct = S3Store(BUCKET, s3_prefix, options=s3_server.options)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: direct.put(f"{table}/data/{number}.lance", b"x"), range(files)))

    counts = graph.counted(lambda: sweep(graph.parts, older_than_s=0))

    the_clock = 1  # a note by which the store's time is read
    assert sum(times for (method, _), times in counts.items() if method == "POST") == requests + the_clock
    assert list(direct.list(f"{table}/data/")) == [
        listed for listed in direct.list(f"{table}/data/") if not listed.path.split("/")[-1].partition(".")[0].isdigit()
    ]


def test_other_acts_cost_what_they_say(s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str) -> None:
    graph = prepared(5, 10, s3_server, s3_proxy, s3_prefix)
    parts, key = graph.parts, graph.keys[0]
    version = {("PUT", "transactions"): 1, ("PUT", "versions"): 1}

    assert graph.steady(lambda: heal(parts)) == {("LIST", "other"): 1}
    assert graph.steady(lambda: write(parts, MAIN, op.append(key, {f"a{graph.fresh()}": 1}))) == (
        LOOK | ENTRY | version | {("PUT", "data"): 1}
    )
    nothing = graph.steady(lambda: write(parts, MAIN, op.delete(key, ["nobody"])))
    assert {what: nothing[what] for what in LOOK} == LOOK
    assert split(nothing)[0] == 0
    assert graph.steady(lambda: graph.keyed(f"key {graph.fresh()}")) == (
        LOOK | ENTRY | version | {("PUT", "data"): 1, ("PUT", "manifest"): 2}
    )
    graph.keyed("once")
    assert graph.counted(lambda: graph.keyed("once")) == LOOK | {
        ("GET", "log"): 1,
        ("GET", "manifest"): 1,
        ("PUT", "manifest"): 1,
    }
    assert graph.steady(lambda: branches.create(parts, f"b{graph.fresh()}")) == {("PUT", "log"): 1, ("GET", "log"): 4}
    assert graph.counted(lambda: parts.snapshot(parts.log.live_head(MAIN)).count(key)) == {("GET", "log"): 2}


def test_opening_for_writing_proves_the_fence_and_looks_for_interrupted_writes(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    graph = prepared(5, 10, s3_server, s3_proxy, s3_prefix)
    store = graph.parts.store

    # The stamp; one listing; the head, and the entry it was built on.
    reading = {("GET", "other"): 1, ("GET", "log"): 2, ("LIST", "other"): 1}
    assert graph.counted(lambda: open_root(store, read_only=True)) == reading
    # And a listing of intents, two puts of one path, the time it was put at, and its deletion.
    proof = {("PUT", "other"): 2, ("POST", "other"): 1}
    assert graph.counted(lambda: open_root(store)) == reading | {("LIST", "other"): 3} | proof


def test_every_fragment_of_several_rows_without_an_index_is_one_more_read_until_it_has_one(
    s3_server: S3Server, s3_proxy: S3Proxy, s3_prefix: str
) -> None:
    graph = prepared(5, 10, s3_server, s3_proxy, s3_prefix)
    for number in range(6):
        write(graph.parts, MAIN, op.insert(graph.keys[0], {f"x{number}": 1, f"y{number}": 2}))

    without = graph.steady(partial(graph.insert, 1))
    write(graph.parts, MAIN, op.build_index(graph.parts, graph.keys[0], "id"))
    indexed = graph.steady(partial(graph.insert, 1))

    assert without == LOOK | ENTRY | INSERTED | {("GET", "data"): 2 + 6}
    # What lies under the index is not read; the one small fragment that came last is, and where the index lies.
    assert indexed == LOOK | ENTRY | INSERTED | {("GET", "data"): 1, ("GET", "versions"): 1}
