"""What can be seen of a write before, while and after it is made visible."""

from itertools import pairwise
from pathlib import Path

import pytest
from tests.support import operations as op
from tests.support.operations import COMPANY, KNOWS, PERSON, rows_at, rows_of, table_of
from tests.support.paused_work import paused
from tests.support.write_kinds import NOTED, SETTINGS, opened

from omnigraph.branch import branches
from omnigraph.failpoints import Failpoint
from omnigraph.model.commit import MAIN, CommitKind
from omnigraph.storage.object_stores.local import Durability, LocalStore
from omnigraph.testing.invariants import check_graph, entries, observed
from omnigraph.transaction.graph_context import GraphContext, Settings
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.write import Operation, write
from omnigraph.transaction.write_set import WriteSet

BOTH = pytest.mark.parametrize("settings", [SETTINGS, NOTED], ids=["small", "noted"])


def files(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


@BOTH
def test_nothing_is_written_while_statements_run(root: Path, settings: Settings) -> None:
    parts = opened(LocalStore(root, durability=Durability.PROCESS), settings=settings)
    before = files(root)
    seen: list[set[Path]] = []

    def run(staging: WriteSet) -> None:
        staging.insert(PERSON, table_of({"n": 1}))
        seen.append(files(root))
        staging.scan(PERSON, filter="v > 0")
        staging.overwrite(COMPANY, table_of({"m": 1}))
        seen.append(files(root))

    write(parts, MAIN, Operation(CommitKind.MUTATION, frozenset({PERSON, COMPANY}), run, redoable=True))
    assert seen == [before, before]


@BOTH
@pytest.mark.parametrize("at", [Failpoint.WRITE_PREPARED, Failpoint.WRITE_TABLES_STAGED, Failpoint.WRITE_MADE_DURABLE])
def test_other_readers_see_the_state_before_until_the_entry_is_put(
    root: Path, settings: Settings, at: Failpoint
) -> None:
    store = LocalStore(root, durability=Durability.PROCESS)
    parts = opened(store, settings=settings)
    before = observed(parts)
    loading = op.upsert_many({PERSON: {"a": 0}, COMPANY: {"n": 1}})
    with paused(lambda: write(parts, MAIN, loading), at=at) as writing:
        assert observed(parts) == observed(opened(store)) == before
    writing.result()
    assert observed(parts) == observed(opened(store)) != before


def test_a_snapshot_shows_its_commit_for_its_whole_life(parts: GraphContext) -> None:
    head = parts.log.live_head(MAIN)
    snapshot = parts.snapshot(head)
    before = snapshot.scan(PERSON).sort_by("id")
    write(parts, MAIN, op.overwrite(PERSON, {"z": 26}))
    write(parts, MAIN, op.add_column(parts, PERSON, "w"))
    write(parts, MAIN, op.remove_table(COMPANY))
    assert snapshot.scan(PERSON).sort_by("id").equals(before)
    assert snapshot.count(PERSON) == before.num_rows
    assert snapshot.commit == head.commit
    assert COMPANY in snapshot.type_keys


def test_every_commit_says_who_made_it_when_and_what_came_before(parts: GraphContext) -> None:
    first = len(entries(parts))
    for actor in ("ada", None, "grace"):
        write(parts, MAIN, op.append(PERSON, {f"by {actor}": 1}), WriteOptions(actor=actor, message=f"from {actor}"))
    newest_first = list(parts.log.backwards(MAIN, start=first + 3))[:4]
    assert [entry.actor for entry in newest_first[:3]] == ["grace", None, "ada"]
    assert [entry.message for entry in newest_first[:3]] == ["from grace", "from None", "from ada"]
    for entry, before in pairwise(newest_first):
        assert entry.parent == before.commit
        assert entry.commit > before.commit
        assert entry.created_at_us >= before.created_at_us


def test_writing_leaves_no_branches_and_no_folders_behind(root: Path, parts: GraphContext) -> None:
    folders = {path.relative_to(root).parts[:2] for path in files(root)}
    for number in range(5):
        write(parts, MAIN, op.upsert_many({PERSON: {f"n{number}": 1}}))
        write(parts, MAIN, op.noted(op.update(PERSON, ["a"], number)))
    assert branches.names(parts) == [MAIN, "side/line"]
    assert {path.relative_to(root).parts[:2] for path in files(root)} == folders


@pytest.mark.parametrize("indexed", [False, True], ids=["without_index", "with_index"])
def test_rows_written_again_and_again_are_found_once_and_by_their_last_values(
    parts: GraphContext, indexed: bool
) -> None:
    expected = {f"k{number}": number for number in range(40)}
    write(parts, MAIN, op.overwrite(KNOWS, expected))
    for turn in range(3):
        if indexed:
            write(parts, MAIN, op.build_index(parts, KNOWS, "id"))
            write(parts, MAIN, op.build_index(parts, KNOWS, "v"))
        again = {f"k{number}": 100 * (turn + 1) + number for number in range(turn, turn + 15)}
        write(parts, MAIN, op.upsert(KNOWS, again))
        write(parts, MAIN, op.delete(KNOWS, [f"k{turn}"]))
        expected = {key: v for key, v in {**expected, **again}.items() if key != f"k{turn}"}
        assert rows_of(parts, KNOWS) == expected
        head = parts.log.live_head(MAIN)
        for filter in ("id = 'k5'", "id = 'k0'", "v < 50", "v >= 100", f"v = {100 * (turn + 1) + 7}"):
            found = parts.snapshot(head).scan(KNOWS, filter=filter)
            matching = {key: v for key, v in expected.items() if matches(filter, key, v)}
            assert {row["id"]: row["v"] for row in found.to_pylist()} == matching
            assert found.num_rows == len(matching)
    assert rows_at(parts, KNOWS, entries(parts)[3]) == {"k": 1}
    check_graph(parts)


def matches(filter: str, key: str, v: int) -> bool:
    column, comparison, value = filter.split()
    if column == "id":
        return key == value.strip("'")
    return {"<": v < int(value), ">=": v >= int(value), "=": v == int(value)}[comparison]
