"""Versions written straight into their files: a death, a full disk and a failing sync at every one of these files.

No request of the store's stands before these writes, so they are cut here, where the system is asked to write.
"""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies
from tests.support.needed_files import AT_ONCE, needless_files, swept
from tests.support.operations import COMPANY, PERSON
from tests.support.write_kinds import next_write, opened

from omnigraph import limits
from omnigraph.errors import GraphError, OutcomeUnknownError, UnavailableError
from omnigraph.model.commit import MAIN
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import LocalStore
from omnigraph.testing.invariants import check_graph, observed
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.write import Receipt, write

OURS = ("/_versions/", "/_deletions/")
WRITES_MAX = 50

# Does the write below once for every line it is given, in a child that is killed at a write of the system's.
DOOMED = """
import os, signal, sys, traceback
from omnigraph.storage.object_stores.local import LocalStore
from tests.support import operations as op
from tests.support.write_kinds import opened
from tests.support.operations import COMPANY, PERSON
from omnigraph.transaction.graph_context import Settings
from omnigraph.transaction.write import write

def doomed(root, at, share):
    parts, real, seen = opened(LocalStore(root), settings=Settings()), os.write, []
    def dying(handle, body):
        path = os.readlink(f"/proc/self/fd/{handle}")
        if "/_versions/" in path or "/_deletions/" in path:
            seen.append(path)
            if len(seen) == int(at):
                real(handle, bytes(body)[: int(len(body) * float(share))])
                os.kill(os.getpid(), signal.SIGKILL)
        return real(handle, body)
    os.write = dying
    write(parts, "main", op.both(op.upsert(PERSON, {"a": 7, "n": 1}), op.delete(COMPANY, ["x"])))

for line in sys.stdin:
    child = os.fork()
    if child == 0:
        try:
            doomed(*line.split())
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def act(parts: GraphContext) -> Receipt:
    """Rows added, replaced and deleted in two tables."""
    return write(parts, MAIN, op.both(op.upsert(PERSON, {"a": 7, "n": 1}), op.delete(COMPANY, ["x"])))


def files(root: Path) -> set[Path]:
    return {each for each in root.rglob("*") if each.is_file()}


@pytest.fixture(scope="module")
def doomed() -> Iterator[Callable[[str, int, float], int]]:
    """Does the write in a process that dies at the n-th file, with a share of it written; how the process ended."""
    with subprocess.Popen(
        [sys.executable, "-c", DOOMED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, ends = process.stdin, process.stdout

        def done(root: str, at: int, share: float) -> int:
            orders.write(f"{root} {at} {share}\n")
            orders.flush()
            return int(ends.readline())

        yield done
        orders.close()


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0], ids=["empty", "half", "whole"])
def test_a_process_killed_at_any_file_leaves_nothing_but_litter(
    share: float, copies: Copies, doomed: Callable[[str, int, float], int]
) -> None:
    before = observed(opened(copies.fresh()))
    cut_files = set()
    for at in range(1, WRITES_MAX):
        store = copies.fresh()
        root = Path(store.uri)
        there = files(root)
        ended = doomed(str(root), at, share)
        if ended == 0:
            break
        assert ended == -signal.SIGKILL
        litter = {each for each in files(root) - there if each.parent.name in ("_versions", "_deletions")}
        assert len(litter) >= at, "one file for each write, the last of them cut"
        cut_files |= {each.parent.name for each in litter}

        parts = opened(store, settings=AT_ONCE)
        assert observed(parts) == before
        next_write(parts)
        act(parts)
        check_graph(parts)
        swept(parts)
        assert not litter & files(root)
        copies.throw_away(store)
    else:
        raise AssertionError("the write does not end")
    assert at > 4
    assert cut_files == {"_versions", "_deletions"}


@contextmanager
def _failing(
    patched: pytest.MonkeyPatch, call: str, at: int, number: int, matters: Callable[[str], bool]
) -> Iterator[list[str]]:
    """Let the n-th write or sync of files that matter fail, a write with half of it done; the files asked for."""
    real, seen = getattr(os, call), []

    def fail(handle: int, *body: bytes) -> int | None:
        path = str(Path(f"/proc/self/fd/{handle}").readlink())
        if matters(path):
            seen.append(path)
            if len(seen) == at:
                for each in body:
                    real(handle, bytes(each)[: len(each) // 2])
                raise OSError(number, os.strerror(number))
        done: int | None = real(handle, *body)
        return done

    with patched.context() as only_here:
        only_here.setattr(os, call, fail)
        yield seen


def test_a_disk_that_is_full_at_any_file_stops_the_write_and_not_the_next(
    copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = opened(copies.fresh())
    before = observed(expected)
    act(expected)
    after = observed(expected)
    for at in range(1, WRITES_MAX):
        parts = opened(store := copies.fresh(), settings=AT_ONCE)
        there = files(Path(store.uri))
        with _failing(monkeypatch, "write", at, errno.ENOSPC, lambda path: any(each in path for each in OURS)) as seen:
            try:
                act(parts)
                assert len(seen) < at
                break
            except UnavailableError as fault:
                assert fault.code == "store_full"
                assert str(store.uri) in seen[-1]
        left = files(Path(store.uri)) - there
        assert Path(seen[at - 1]) not in left, "a file that was begun"
        assert observed(parts) == before
        act(parts)
        assert observed(parts) == after
        check_graph(parts)
        swept(parts)
        copies.throw_away(store)
    else:
        raise AssertionError("the write does not end")
    assert at > 4


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

    made = {each for each in root.rglob("*") if each not in there and "/__manifest/" not in str(each)}
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
        with _failing(monkeypatch, "fsync", at, errno.EIO, lambda path: any(each in path for each in OURS)) as seen:
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
