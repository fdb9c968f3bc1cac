"""Graphs of the first trials: readable as they are, brought up to date by the first open that may write."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.cuts import Copies, at_every_request
from tests.support.interleaving import RacingStore
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_at, rows_of
from tests.support.write_kinds import opened

from omnigraph.branch import branches, tags
from omnigraph.errors import ConflictError, FormatError, PermissionDeniedError
from omnigraph.ids import is_ulid
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage import paths
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.storage.records.read import FORMAT
from omnigraph.testing.faults import Fault
from omnigraph.testing.invariants import check_graph, entries
from omnigraph.testing.stores import FaultyStore
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.root import open_root
from omnigraph.transaction.write import write

Root = Callable[[str], Path]
SETTINGS = Settings(durability="process")
PEOPLE_ON_MAIN = [
    {},
    {"ada": 36, "alan": 41, "emmy": None},
    {"ada": 36, "alan": 41, "emmy": None},
    {"ada": 37, "emmy": None},
]
STAMP = {"format": 0}


def contents(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def stamp_of(root: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((root / paths.STAMP).read_bytes())
    return found


def test_it_is_read_as_it_is_and_not_changed_by_that(kept: Root) -> None:
    root = kept("format-0")
    before = contents(root)
    parts = open_root(str(root), read_only=True)
    assert rows_of(parts, PERSON) == {"ada": 37, "emmy": None}
    assert rows_of(parts, PERSON, "side") == {"ada": 36, "alan": 41, "emmy": None, "grace": 85}
    assert rows_of(parts, COMPANY) == {"acme": 1}
    assert rows_of(parts, KNOWS) == {}
    assert branches.names(parts) == [MAIN, "side"]
    with pytest.raises(PermissionDeniedError, match="read-only"):
        write(parts, MAIN, op.insert(KNOWS, {"k": 1}))
    assert contents(root) == before
    assert stamp_of(root) == STAMP


def test_its_history_is_read_commit_by_commit(kept: Root) -> None:
    parts = open_root(str(kept("format-0")), read_only=True)
    log = entries(parts)
    assert [entry.kind for entry in log] == [CommitKind.INIT, CommitKind.MUTATION, CommitKind.LOAD, CommitKind.MUTATION]
    assert [rows_at(parts, PERSON, entry) for entry in log] == PEOPLE_ON_MAIN
    assert [entry.actor for entry in log] == ["founder", "trial", "trial", "trial"]
    assert log[0].created_at_us == 1_700_000_001_500_000
    assert [entry.kind for entry in entries(parts, "side")] == [CommitKind.FORK, CommitKind.MUTATION]


def test_its_rows_are_counted_though_its_records_do_not_say_how_many(copied: Root) -> None:
    parts = open_root(str(copied("format-0")), settings=SETTINGS)
    assert parts.snapshot(parts.log.live_head(MAIN)).count(PERSON) == 2
    write(parts, MAIN, op.insert(COMPANY, {"new": 2}))
    snapshot = parts.snapshot(parts.log.live_head(MAIN))
    assert (snapshot.count(PERSON), snapshot.count(COMPANY), snapshot.count(KNOWS)) == (2, 2, 0)


def test_the_first_open_that_may_write_brings_it_up_to_date_once(copied: Root) -> None:
    root = copied("format-0")
    before = contents(root)
    open_root(str(root), settings=SETTINGS)
    stamp = stamp_of(root)
    assert stamp["format"] == FORMAT
    assert is_ulid(str(stamp["graph"]))
    after = contents(root)
    # Nothing of the old is lost; only the stamp says something else.
    assert {path: body for path, body in after.items() if path in before} == {**before, paths.STAMP: after[paths.STAMP]}
    open_root(str(root), settings=SETTINGS)
    assert contents(root) == after


def test_writing_goes_on_where_the_old_entries_end(copied: Root) -> None:
    root = copied("format-0")
    parts = open_root(str(root), settings=SETTINGS)
    old = entries(parts)
    write(parts, MAIN, op.both(op.update(PERSON, ["ada"], 38), op.insert(KNOWS, {"k": 1})))
    write(parts, "side", op.delete(PERSON, ["alan"]))
    branches.create(parts, "new", source="side")
    tags.create(parts, "old", old[1])
    fresh = open_root(str(root), settings=SETTINGS)
    assert entries(fresh)[:4] == old
    assert [rows_at(fresh, PERSON, entry) for entry in entries(fresh)] == [*PEOPLE_ON_MAIN, {"ada": 38, "emmy": None}]
    assert rows_of(fresh, PERSON, "new") == {"ada": 36, "emmy": None, "grace": 85}
    assert entries(fresh)[4].parent == old[-1].commit
    assert fresh.log.fold(MAIN) == 0
    check_graph(fresh)


def test_a_write_that_began_before_an_old_entry_landed_counts_it_as_a_change_of_everything(copied: Root) -> None:
    """What an old entry touched was not written down, so everything it names may have changed."""
    root = copied("format-0")
    store = LocalStore(root, durability=Durability.PROCESS)
    last = store.get(paths.entry(MAIN, 4))
    store.delete(paths.entry(MAIN, 4))
    parts = open_root(RacingStore(store, [lambda: store.put_if_absent(paths.entry(MAIN, 4), last)]), settings=SETTINGS)
    with pytest.raises(ConflictError):
        write(parts, MAIN, op.update(COMPANY, ["acme"], 2))


def test_opens_at_once_agree_on_the_name_of_the_graph(copied: Root) -> None:
    root = copied("format-0")

    def graph_id(_: int) -> object:
        open_root(str(root), settings=SETTINGS)
        return stamp_of(root)["graph"]

    with ThreadPoolExecutor(6) as pool:
        assert len(set(pool.map(graph_id, range(6)))) == 1


def test_an_open_that_dies_or_fails_while_bringing_it_up_to_date_is_followed_by_one_that_does_not(
    copied: Root, tmp_path: Path
) -> None:
    copies = Copies(copied("format-0"), tmp_path / "copies")
    cuts = 0
    for fault in (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.NO_SPACE, Fault.LOSE_ANSWER, Fault.LOSE_REQUEST):
        for cut in at_every_request(copies, fault, opened):
            settled = noted_choice(cut.store)
            parts = opened(cut.store)
            stamp = json.loads(cut.store.get(paths.STAMP))
            assert stamp["format"] == FORMAT, cut.where
            assert settled in (None, stamp["graph"]), cut.where
            write(parts, MAIN, op.insert(KNOWS, {"k": 1}))
            check_graph(parts)
            cuts += 1
    assert cuts == 15


def noted_choice(store: FaultyStore) -> str | None:
    found = [listed.path for listed in store.list(paths.MIGRATIONS)]
    return str(json.loads(store.get(found[0]))["graph"]) if found else None


def test_a_damaged_note_of_the_migration_is_refused_by_name(copied: Root) -> None:
    root = copied("format-0")
    store = LocalStore(root, durability=Durability.PROCESS)
    store.put(f"{paths.MIGRATIONS}1.json", b"{")
    with pytest.raises(FormatError, match=r"migrations/1\.json"):
        open_root(str(root), settings=SETTINGS)
    assert stamp_of(root) == STAMP


def reader(root: Path) -> GraphContext:
    return open_root(str(root), read_only=True)


def test_a_reader_that_was_there_before_reads_on_while_it_is_brought_up_to_date(copied: Root) -> None:
    root = copied("format-0")
    looking = reader(root)
    parts = open_root(str(root), settings=SETTINGS)
    write(parts, MAIN, op.insert(PERSON, {"new": 1}))
    assert rows_of(looking, PERSON) == {"ada": 37, "emmy": None, "new": 1}
