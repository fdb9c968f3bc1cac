"""One graph, one fence: however the graph's folder is spelled, and whoever names which external store."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from tests.support import operations as op
from tests.support.operations import PERSON

from omnigraph.errors import FormatError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.external_stores import SqliteExternalStore
from omnigraph.storage.object_stores import ExternallyFencedStore
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.read import read_stamp, stamp_bytes
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

SETTINGS = Settings(durability="process")
TIMES = 25


class Elsewhere(LocalStore):
    """The same folder under another name, as a second mount point has it."""

    @property
    def uri(self) -> str:
        """Spelled otherwise."""
        return f"{super().uri}/."


@pytest.fixture
def fence(tmp_path: Path) -> Iterator[SqliteExternalStore]:
    store = SqliteExternalStore(tmp_path / "fence.db")
    yield store
    store.close()


def fenced(root: Path, fence: SqliteExternalStore, kind: type[LocalStore] = LocalStore) -> ExternallyFencedStore:
    return ExternallyFencedStore(kind(root, durability=Durability.PROCESS), fence)


def test_two_spellings_of_one_folder_are_one_graph_of_which_no_commit_is_lost(
    tmp_path: Path, fence: SqliteExternalStore
) -> None:
    op.new_graph(fenced(tmp_path / "graph", fence), types=[PERSON], settings=SETTINGS)
    handles = [
        open_root(fenced(tmp_path / "graph", fence, kind), settings=SETTINGS) for kind in (LocalStore, Elsewhere)
    ]

    def write_some(parts: GraphContext, name: str) -> None:
        for number in range(TIMES):
            write(parts, MAIN, op.append(PERSON, {f"{name}{number}": 1}))

    threads = [Thread(target=write_some, args=(handle, name)) for handle, name in zip(handles, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    expected = {f"{name}{number}" for name in "ab" for number in range(TIMES)}
    assert op.rows_of(handles[0], PERSON).keys() == op.rows_of(handles[1], PERSON).keys() == expected
    assert fence.get(str(tmp_path / "graph"), paths.entry(MAIN, 2)) is None
    assert fence.get(handles[0].graph, paths.entry(MAIN, 2)) is not None


def test_a_writer_that_names_another_fence_or_none_is_refused(tmp_path: Path, fence: SqliteExternalStore) -> None:
    root = tmp_path / "graph"
    op.new_graph(fenced(root, fence), types=[PERSON], settings=SETTINGS)
    other = SqliteExternalStore(tmp_path / "other.db")

    for store in (fenced(root, other), LocalStore(root, durability=Durability.PROCESS)):
        with pytest.raises(FormatError) as refused:
            open_root(store, settings=SETTINGS)
        assert refused.value.code == "fence_mismatch"
        assert open_root(store, settings=SETTINGS, read_only=True).log.live_head(MAIN).number == 1
    other.close()
    again = SqliteExternalStore(tmp_path / "fence.db")
    write(open_root(fenced(root, again), settings=SETTINGS), MAIN, op.append(PERSON, {"a": 1}))
    again.close()


def test_what_a_writer_that_knew_the_graph_by_its_address_left_half_done_is_finished(
    tmp_path: Path, fence: SqliteExternalStore
) -> None:
    root = tmp_path / "graph"
    store = fenced(root, fence)
    parts = op.new_graph(store, types=[PERSON], settings=SETTINGS)
    write(parts, MAIN, op.append(PERSON, {"a": 1}))
    # As an older release leaves it: a stamp that names no fence, an entry decided and not yet in its place.
    inner = LocalStore(root, durability=Durability.PROCESS)
    stamp = read_stamp(inner.get(paths.STAMP), path="")
    inner.put(paths.STAMP, stamp_bytes(type(stamp)(1, stamp.graph, fenced_externally=True, ends_announced=True)))
    last = paths.entry(MAIN, 2)
    inner.copy(last, f"__staged/{last}.x.staged")
    inner.delete(last)
    fence.delete(parts.graph, last)
    fence.put_if_absent(inner.uri, last, f"__staged/{last}.x.staged")

    fresh = open_root(fenced(root, fence), settings=SETTINGS)

    assert fresh.log.live_head(MAIN).number == 2
    write(fresh, MAIN, op.append(PERSON, {"b": 1}))
    assert op.rows_of(open_root(fenced(root, fence, Elsewhere), settings=SETTINGS), PERSON) == {"a": 1, "b": 1}
    assert read_stamp(inner.get(paths.STAMP), path="").fence_id == fenced(root, fence).fence_id()
