"""Compaction: fewer fragments, the same rows, and large fragments left in peace."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, StagedVersion, Tables

FIELDS: "list[pa.Field[Any]]" = [pa.field("id", pa.string(), nullable=False), pa.field("age", pa.int64())]
PERSON = pa.schema(FIELDS)
BY_ID = IndexSpec("by_id", "id", IndexKind.BTREE)
BY_AGE = IndexSpec("by_age", "age", IndexKind.BTREE)
LARGE = 500


def people(ages: Mapping[str, int]) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values())}, schema=PERSON)


def ages(tables: Tables, pin: Pin) -> dict[str, int]:
    return {row["id"]: row["age"] for row in tables.open(pin).scan().to_pylist()}


@pytest.fixture(autouse=True)
def small_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fragments are small below a hundred rows."""
    monkeypatch.setattr(limits, "SMALL_FRAGMENT_ROWS_MAX", 100)


@pytest.fixture
def indexed(tables: Tables) -> Pin:
    """A large fragment with an index over it."""
    pin = tables.create("nodes/01PERSON", PERSON)
    everyone = {f"p{number}": number for number in range(LARGE)}
    pin = tables.stage_rows(pin, RowsToStage(appends=people(everyone))).pin
    return tables.stage_index(pin, BY_ID).pin


@pytest.fixture
def tail(tables: Tables, indexed: Pin) -> Pin:
    """The same with ten writes on top, which have left small fragments and deletion vectors."""
    pin = indexed
    for number in range(10):
        changed = people({f"p{number}": -number, f"new{number}": number})
        pin = tables.stage_rows(pin, RowsToStage(upserts=changed, deleted_ids=(f"new{number - 3}",))).pin
    return pin


def test_the_small_fragments_become_one_and_the_rows_stay(tables: Tables, tail: Pin) -> None:
    staged = tables.stage_compaction(tail)
    assert tables.open(staged.pin).layout().fragments == 2
    assert ages(tables, staged.pin) == ages(tables, tail)
    assert staged.pin.rows == tail.rows
    assert staged.pin.bytes < tail.bytes
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == ((), (), ())


def test_the_large_fragment_and_its_index_stay(tables: Tables, tail: Pin) -> None:
    staged = tables.stage_compaction(tail, [BY_ID, BY_AGE])
    kept = {file for file in tables.files(tail) & tables.files(staged.pin) if "/data/" in file}
    assert len(kept) == 1
    # The index is extended by one segment over the new fragment; one that was never built is not begun.
    (index,) = tables.open(staged.pin).indexes()
    assert (index.name, index.segments, index.rows_missing) == ("by_id", 2, 0)
    assert [tables.open(staged.pin).count(f"id = '{name}'") for name in ("p3", "p300", "new9", "new2")] == [1, 1, 1, 0]


def test_without_indexes_to_extend_the_new_fragment_is_found_all_the_same(tables: Tables, tail: Pin) -> None:
    staged = tables.stage_compaction(tail)
    (index,) = tables.open(staged.pin).indexes()
    assert index.rows_missing == 13
    assert [tables.open(staged.pin).count(f"id = '{name}'") for name in ("p3", "p300", "new9", "new2")] == [1, 1, 1, 0]


def test_a_compacted_table_is_not_compacted_again(tables: Tables, tail: Pin) -> None:
    once = tables.stage_compaction(tail, [BY_ID])
    assert tables.stage_compaction(once.pin, [BY_ID]) == StagedVersion(once.pin, once.pin)


def test_an_empty_table_and_a_single_fragment_are_left_alone(tables: Tables, indexed: Pin) -> None:
    empty = tables.create("nodes/01EMPTY", PERSON)
    assert tables.stage_compaction(empty).is_unchanged
    assert tables.stage_compaction(indexed).is_unchanged
    one = tables.stage_rows(empty, RowsToStage(appends=people({"ada": 1, "bob": 2, "cy": 3}))).pin
    assert tables.stage_compaction(one).is_unchanged
    assert tables.stage_compaction(tables.stage_rows(one, RowsToStage(deleted_ids=("ada",))).pin).is_unchanged


def test_a_large_fragment_that_is_mostly_deleted_is_rewritten(tables: Tables, indexed: Pin) -> None:
    gone = tuple(f"p{number}" for number in range(300))
    pin = tables.stage_rows(indexed, RowsToStage(deleted_ids=gone)).pin
    staged = tables.stage_compaction(pin, [BY_ID])
    assert tables.open(staged.pin).layout().deleted_rows == 0
    assert ages(tables, staged.pin) == {f"p{number}": number for number in range(300, LARGE)}
    (index,) = tables.open(staged.pin).indexes()
    assert (index.segments, index.rows, index.rows_missing) == (1, 200, 0)


def test_writes_go_on_after_a_compaction(tables: Tables, tail: Pin) -> None:
    compacted = tables.stage_compaction(tail, [BY_ID]).pin
    staged = tables.stage_rows(compacted, RowsToStage(upserts=people({"p3": 99, "new9": 99}), deleted_ids=("p300",)))
    expected = {**ages(tables, tail), "p3": 99, "new9": 99}
    del expected["p300"]
    assert ages(tables, staged.pin) == expected
    assert set(staged.updated_ids) == {"p3", "new9"}


def test_the_layout_tells_when_a_compaction_is_due(tables: Tables, tail: Pin) -> None:
    layout = tables.open(tail).layout()
    assert (layout.fragments, layout.small_fragments) == (11, 10)
    assert layout.deleted_rows == 10 + 7
    assert tables.open(tables.stage_compaction(tail).pin).layout().small_fragments == 1


def test_every_file_a_compaction_leaves_is_told(root: Path, tables: Tables, tail: Pin) -> None:
    before = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    staged = tables.stage_compaction(tail, [BY_ID])
    after = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    named = tables.discard(tail, staged.pin)
    folders = tuple(name for name in named if name.endswith("/"))
    # The files of transactions are named too: on local disk they are gone already, on an object store they are not.
    files = {name for name in named if "/_transactions/" not in name} - set(folders)
    assert {file for file in after - before if not file.startswith(folders)} == files
    # Two versions were made; a reader of the last needs only one manifest.
    assert len([name for name in named if name.endswith(".manifest")]) == 2
    assert len([name for name in staged.files if name.endswith(".manifest")]) == 1
