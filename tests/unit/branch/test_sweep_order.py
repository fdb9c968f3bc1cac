"""Why a sweep looks twice at who is at work: once before it reads what is kept, and once after."""

import threading
from collections.abc import Callable
from pathlib import Path

from tests.support import operations as op
from tests.support.interleaving import once
from tests.support.operations import PERSON

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.branch.sweep.sweep import sweep
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind, T
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

SCHEMA = "node Person { name: String @key }"
OPTIONS = OpenOptions(durability="process", auto_compact=False, protection_s=0)
CERTAIN = Settings(durability="process", protection_s=0, log_cut_s=0)

_LONG_S = 60


class Stopped:
    """Work in a thread of its own that stops at a place until it is told to go on."""

    def __init__(self, place: Failpoint, work: Callable[[], object]) -> None:
        self._place, self._work = place, work
        self._there, self._on = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def begin(self) -> None:
        self._thread.start()
        assert self._there.wait(_LONG_S), f"it never came to {self._place}"

    def end(self) -> None:
        self._on.set()
        self._thread.join()

    def _run(self) -> None:
        def stop() -> None:
            self._there.set()
            self._on.wait()

        with armed(self._place, once(stop)):
            self._work()


class BetweenLooks(ForwardingStore):
    """Lets something happen right before the branches are listed."""

    meanwhile: Callable[[], None] = staticmethod(lambda: None)

    def _forward(self, kind: RequestKind, path: str, send: Callable[[], T]) -> T:
        if kind is RequestKind.LIST and path == paths.LOGS:
            self.meanwhile()
        return send()


def people(root: Path) -> set[str]:
    with omnigraph.open(root, options=OPTIONS) as graph:
        rows = graph.query("query q() { match { $p: Person } return { $p.name as name } }")
        return {row["name"] for row in rows}


def made(root: Path) -> Graph:
    graph = omnigraph.init(root, SCHEMA, options=OPTIONS)
    graph.write({"Person": [{"name": "ada"}]})
    return graph


def test_a_write_that_ends_after_the_roots_were_read_was_seen_before(tmp_path: Path) -> None:
    store = LocalStore(tmp_path, durability=Durability.PROCESS)
    maker = op.new_graph(store, settings=Settings(durability="process"))
    write(maker, MAIN, op.insert(PERSON, {"a": 1}))
    writing = Stopped(
        Failpoint.WRITE_INTENT_COMPLETED, lambda: write(maker, MAIN, op.noted(op.insert(PERSON, {"b": 2})))
    )
    sweeper = open_root(store, settings=CERTAIN)

    writing.begin()
    with armed(Failpoint.SWEEP_ROOTS_READ, once(writing.end)):
        done = sweep(sweeper, older_than_s=0)

    assert done.barriers == 0
    assert op.rows_of(open_root(store, settings=CERTAIN), PERSON) == {"a": 1, "b": 2}


def test_a_merge_that_begins_after_the_first_look_is_seen_by_the_second(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    with made(root) as graph, omnigraph.open(root, options=OPTIONS) as other:
        graph.branches.create("side")
        graph.write({"Person": [{"name": "bob"}]}, branch="side")
        # It takes over a version of the side, which it finds to be kept.
        merging = Stopped(Failpoint.WRITE_TABLES_STAGED, lambda: graph.merge("side"))
        store = BetweenLooks(LocalStore(root, durability=Durability.PROCESS))
        sweeper = open_root(store, settings=CERTAIN)

        def meanwhile() -> None:
            merging.begin()
            for name in ("cy", "dan", "eve"):
                other.write({"Person": [{"name": name}]}, branch="side")
            other.prune("side", now=True)

        def listed() -> None:
            store.meanwhile = once(meanwhile)

        with armed(Failpoint.SWEEP_LISTED, listed):
            done = sweep(sweeper, older_than_s=0)
        # Another one, which finds nothing but that entry where the log was cut.
        cut = sweep(sweeper, older_than_s=0)
        merging.end()

    assert (done.barriers, cut.barriers) == (0, 0)
    assert people(root) == {"ada", "bob"}
