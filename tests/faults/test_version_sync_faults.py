"""Files of a staged version are synced before a log entry names them; if one sync fails, nothing is published."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies
from tests.support.needed_files import needless_files, swept
from tests.support.operations import COMPANY, PERSON
from tests.support.write_kinds import opened

from omnigraph import limits
from omnigraph.errors import GraphError, OutcomeUnknownError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.invariants import check_graph, observed
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.write import Receipt, write

VERSION_FOLDERS = ("/_versions/", "/_deletions/")
WRITES_MAX = 50


def act(parts: GraphContext) -> Receipt:
    """Rows added, replaced and deleted in two tables."""
    return write(parts, MAIN, op.both(op.upsert(PERSON, {"a": 7, "n": 1}), op.delete(COMPANY, ["x"])))


@contextmanager
def _failing_sync(patched: pytest.MonkeyPatch, at: int) -> Iterator[list[str]]:
    """Let the n-th sync of a version's files fail; yields the files that were synced."""
    real, seen = os.fsync, []

    def fail(handle: int) -> None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if any(folder in path for folder in VERSION_FOLDERS):
            seen.append(path)
            if len(seen) == at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(handle)

    with patched.context() as only_here:
        only_here.setattr(os, "fsync", fail)
        yield seen


@pytest.fixture
def lasting(copies: Copies, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Callable[[], GraphContext]]:
    """A graph whose writes survive losing power, and what opens it; its files are synced one by one."""
    monkeypatch.setattr(limits, "SYNC_ONE_BY_ONE_MAX", 1_000_000)
    root = Path(copies.fresh().uri)
    return root, lambda: opened(LocalStore(root), settings=Settings(protection_s=0, log_cut_s=0))


def test_every_file_of_a_version_and_every_folder_on_the_way_is_synced_before_the_entry_names_it(
    lasting: tuple[Path, Callable[[], GraphContext]], monkeypatch: pytest.MonkeyPatch
) -> None:
    root, graph = lasting
    parts = graph()
    there = set(root.rglob("*"))
    synced: set[Path] = set()
    before_the_entry: set[Path] = set()
    real_sync, real_link = os.fsync, os.link

    def sync(handle: int) -> None:
        real_sync(handle)
        synced.add(Path(f"/proc/self/fd/{handle}").readlink())

    def link(source: str, target: str) -> None:
        if paths.LOGS in target:
            before_the_entry.update(synced)
        real_link(source, target)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", link)

    act(parts)

    # A manifest has its transaction inside: the folder of transactions stays empty.
    others = {"__manifest", "_transactions"}
    made = {path for path in root.rglob("*") if path not in there and others.isdisjoint(path.parts)}
    assert {each.parent.name for each in made if each.is_file()} == {"data", "_versions", "_deletions"}
    assert any(each.name == "_deletions" for each in made), "a folder that was not there before"
    assert made | {each.parent for each in made} <= before_the_entry


def test_a_version_that_cannot_be_synced_is_not_named_and_the_next_write_is(
    lasting: tuple[Path, Callable[[], GraphContext]], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, graph = lasting
    before = observed(graph())
    failed = 0
    for at in range(1, WRITES_MAX):
        parts = graph()
        head = parts.log.live_head(MAIN).number
        with _failing_sync(monkeypatch, at) as seen:
            try:
                act(parts)
                break
            except OutcomeUnknownError:
                raise AssertionError(f"{seen[-1]} is synced before anybody could see it") from None
            except GraphError:
                failed += 1
        assert parts.log.live_head(MAIN).number == head
        assert observed(parts) == before
    assert failed >= 4
    check_graph(parts)
    swept(parts)
    assert needless_files(graph()) == []
    assert op.rows_of(graph(), COMPANY) == {"y": 2}
    assert op.rows_of(graph(), PERSON)["a"] == 7
