"""A handle outlives its graph: the root was removed, and perhaps another graph was made there."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.interleaving import once
from tests.support.needed_files import needless_files
from tests.support.operations import PERSON

import omnigraph
from omnigraph import Graph, OpenOptions
from omnigraph.errors import NotFoundError
from omnigraph.failpoints import Failpoint, armed
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.forwarding import ForwardingStore, RequestKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.stores import CountingStore
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write
from omnigraph.verification.findings import FindingKind

QUIET = OpenOptions(durability="process", auto_compact=False)
SETTINGS = Settings(durability="process")
SCHEMA = "node Person { name: String @key }"
NAMES = "query names() { match { $p: Person } return { $p.name as name } }"
ACTS: dict[str, Callable[[Graph], object]] = {
    "write": lambda graph: graph.write({"Person": [{"name": "lost"}]}),
    "mutate": lambda graph: graph.mutate('query add() { insert Person { name: "lost" } }'),
    "load": lambda graph: graph.load(b'{"type": "Person", "data": {"name": "lost"}}\n', mode="append", format="jsonl"),
    "query": lambda graph: graph.query(NAMES),
    "optimize": lambda graph: graph.optimize(),
    "prune": lambda graph: graph.prune(keep=1),
    "sweep": lambda graph: graph.sweep(older_than=0),
    "branch": lambda graph: graph.branches.create("side"),
    "tag": lambda graph: graph.tags.create("named"),
    "lease": lambda graph: graph.lease().__enter__(),
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def stale(root: Path) -> Iterator[Graph]:
    """A handle on a graph of five entries."""
    with omnigraph.init(root, SCHEMA, options=QUIET) as graph:
        for number in range(4):
            graph.write({"Person": [{"name": f"old-{number}"}]})
        yield graph


def made_anew(root: Path, *names: str) -> Graph:
    shutil.rmtree(root)
    graph = omnigraph.init(root, SCHEMA, options=QUIET)
    for name in names:
        graph.write({"Person": [{"name": name}]})
    return graph


def names(graph: Graph) -> set[str]:
    return {row["name"] for row in graph.query(NAMES)}


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
@pytest.mark.parametrize("length", [1, 9])
def test_nothing_is_done_through_a_handle_whose_graph_was_replaced(
    act: Callable[[Graph], object], length: int, root: Path, stale: Graph
) -> None:
    expected = [f"new-{number}" for number in range(length)]
    with made_anew(root, *expected) as fresh:
        before = {listed.path for listed in fresh._open().store.list("")}

        with pytest.raises(NotFoundError, match="open it again") as caught:
            act(stale)

        assert caught.value.code == "graph_replaced"
        assert {listed.path for listed in fresh._open().store.list("")} == before
        fresh.write({"Person": [{"name": "next"}]})
        assert names(fresh) == {*expected, "next"}
        assert fresh.verify(deep=True).is_whole


@pytest.mark.parametrize("act", ACTS.values(), ids=ACTS)
def test_nothing_is_done_through_a_handle_whose_graph_was_removed(
    act: Callable[[Graph], object], root: Path, stale: Graph
) -> None:
    shutil.rmtree(root)

    with pytest.raises(NotFoundError) as caught:
        act(stale)

    assert caught.value.code == "graph_not_found"
    assert not root.exists()


@pytest.mark.parametrize("moment", [Failpoint.WRITE_PREPARED, Failpoint.WRITE_MADE_DURABLE])
def test_a_write_that_is_under_way_when_its_graph_is_replaced_is_not_acknowledged(
    moment: Failpoint, root: Path, stale: Graph
) -> None:
    with armed(moment, once(lambda: made_anew(root, "new").close())), pytest.raises(omnigraph.GraphError):
        stale.write({"Person": [{"name": "lost"}]})

    with omnigraph.open(root, options=QUIET) as fresh:
        log = [paths.entry_number(each.path) for each in fresh._open().store.list(paths.log_folder(MAIN))]
        assert log == [2, 1]
        assert names(fresh) == {"new"}
        fresh.sweep(older_than=0)
        assert needless_files(fresh._open()) == []


class _ReplacedBeforeThePut(ForwardingStore):
    """Runs something when an entry is about to be put: the last moment there is."""

    def __init__(self, inner: LocalStore) -> None:
        super().__init__(inner)
        self.act: Callable[[], None] | None = None

    def put_if_absent(self, path: str, body: bytes) -> None:
        act, self.act = self.act, None
        if act is not None and path.startswith(paths.LOGS):
            act()
        super().put_if_absent(path, body)


def test_an_entry_put_into_another_graph_is_not_acknowledged_and_that_graph_steps_over_it(root: Path) -> None:
    store = _ReplacedBeforeThePut(LocalStore(root, durability=Durability.PROCESS))
    stale = op.new_graph(store, settings=SETTINGS)
    for number in range(3):
        write(stale, MAIN, op.append(PERSON, {f"old-{number}": 1}))
    store.act = lambda: made_anew(root, "new").close()

    with pytest.raises(NotFoundError) as caught:
        write(stale, MAIN, op.append(PERSON, {"lost": 1}))

    assert caught.value.code == "graph_replaced"
    with omnigraph.open(root, options=QUIET) as fresh:
        for number in range(6):
            fresh.write({"Person": [{"name": f"new-{number}"}]})
        assert names(fresh) == {"new", *(f"new-{number}" for number in range(6))}
        report = fresh.verify(quarantine=True)
        assert [(each.kind, each.affected[0].number) for each in report.findings] == [(FindingKind.STRAY, 5)]
        assert report.is_whole
    with omnigraph.open(root, options=QUIET) as again:
        assert names(again) == {"new", *(f"new-{number}" for number in range(6))}
        assert [entry.number for entry in again._open().log.since(MAIN, 0)] == [1, 2, 3, 4, 6, 7, 8, 9]


def test_a_graph_in_memory_is_known_again_too() -> None:
    store = MemoryStore("replaced")
    stale = op.new_graph(store, settings=SETTINGS)
    write(stale, MAIN, op.append(PERSON, {"old": 1}))
    store.delete_prefix("")
    op.new_graph(store, settings=SETTINGS)

    with pytest.raises(NotFoundError, match="another graph"):
        write(stale, MAIN, op.append(PERSON, {"lost": 1}))


class _Remote(CountingStore):
    """A store that tells nothing without being asked."""

    def identity(self, path: str) -> None:
        """Nothing."""


def test_where_only_a_request_could_tell_a_write_sees_its_base_again_before_it_is_acknowledged() -> None:
    store = _Remote(MemoryStore("far"))
    stale = op.new_graph(store, settings=SETTINGS)
    write(stale, MAIN, op.append(PERSON, {"a": 1}))
    store.reset()
    write(stale, MAIN, op.append(PERSON, {"b": 1}))
    assert store.reset()[RequestKind.GET] == 2, "the next place, and the base"

    store.delete_prefix("")
    fresh = op.new_graph(store, settings=SETTINGS)
    with pytest.raises(NotFoundError) as caught:
        write(stale, MAIN, op.append(PERSON, {"lost": 1}))
    assert caught.value.code == "graph_replaced"
    for name in "cdefg":
        write(fresh, MAIN, op.append(PERSON, {name: 1}))
    assert op.rows_of(fresh, PERSON).keys() == set("cdefg")


def restore(backup: Path, root: Path) -> None:
    shutil.rmtree(root)
    shutil.copytree(backup, root)


@pytest.mark.parametrize("goes_on", [0, 1, 2, 7])
def test_a_backup_restored_under_a_running_process_loses_nothing_that_is_acknowledged_afterwards(
    goes_on: int, root: Path, stale: Graph, tmp_path: Path
) -> None:
    backup = tmp_path / "backup"
    shutil.copytree(root, backup)
    for number in range(4):
        stale.write({"Person": [{"name": f"after the backup {number}"}]})
    kept = {f"old-{number}" for number in range(4)}

    with armed(Failpoint.WRITE_MADE_DURABLE, once(lambda: restore(backup, root))):
        stale.write({"Person": [{"name": "acknowledged"}]})
    with omnigraph.open(root, options=QUIET) as other:
        for number in range(goes_on):
            other.write({"Person": [{"name": f"other-{number}"}]})
        stale.write({"Person": [{"name": "and once more"}]})

        expected = {*kept, "acknowledged", "and once more", *(f"other-{number}" for number in range(goes_on))}
        assert names(stale) == names(other) == expected
        assert other.verify(quarantine=True).is_whole
    with omnigraph.open(root, options=QUIET) as again:
        again.write({"Person": [{"name": "last"}]})
        assert names(again) == {*expected, "last"}


def test_a_stamp_that_was_written_again_is_that_of_the_same_graph(root: Path, stale: Graph) -> None:
    stamp = root / paths.STAMP
    body = stamp.read_bytes()
    stamp.unlink()
    stamp.write_bytes(body)

    stale.write({"Person": [{"name": "kept"}]})

    assert "kept" in names(stale)
    assert open_root(str(root), settings=SETTINGS).log.live_head(MAIN).number == 6
