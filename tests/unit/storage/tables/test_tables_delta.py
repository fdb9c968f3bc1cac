"""The difference of two versions: the rows that changed, and no file that both share is read."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

FIELDS: "list[pa.Field[Any]]" = [pa.field("id", pa.string(), nullable=False), pa.field("age", pa.int64())]
PERSON = pa.schema(FIELDS)


def people(ages: Mapping[str, int]) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values())}, schema=PERSON)


def ages(found: pa.Table) -> dict[str, int]:
    return {row["id"]: row["age"] for row in found.to_pylist()}


@pytest.fixture
def base(tables: Tables) -> Pin:
    pin = tables.create("nodes/01PERSON", PERSON)
    return tables.stage_rows(pin, RowsToStage(appends=people({"ada": 1, "bob": 2, "cy": 3}))).pin


def test_a_version_does_not_differ_from_itself(tables: Tables, base: Pin) -> None:
    found = tables.difference(base, base)
    assert (found.removed.num_rows, found.added.num_rows) == (0, 0)
    assert found.removed.schema.equals(PERSON)
    assert found.added.schema.equals(PERSON)


def test_a_replaced_row_is_on_both_sides(tables: Tables, base: Pin) -> None:
    change = RowsToStage(upserts=people({"ada": 9, "dan": 4}), deleted_ids=("cy",))
    found = tables.difference(base, tables.stage_rows(base, change).pin)
    assert ages(found.removed) == {"ada": 1, "cy": 3}
    assert ages(found.added) == {"ada": 9, "dan": 4}


def test_it_reads_the_other_way_round_too(tables: Tables, base: Pin) -> None:
    newer = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "dan": 4}), deleted_ids=("cy",))).pin
    found = tables.difference(newer, base)
    assert ages(found.removed) == {"ada": 9, "dan": 4}
    assert ages(found.added) == {"ada": 1, "cy": 3}


def test_two_lines_from_one_base_differ_by_what_each_did(tables: Tables, base: Pin) -> None:
    left = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9}), deleted_ids=("bob",))).pin
    right = tables.stage_rows(base, RowsToStage(upserts=people({"new": 5}), deleted_ids=("cy",))).pin
    found = tables.difference(left, right)
    assert ages(found.removed) == {"ada": 9, "cy": 3}
    assert ages(found.added) == {"ada": 1, "bob": 2, "new": 5}


def test_an_index_makes_no_difference(tables: Tables, base: Pin) -> None:
    indexed = tables.stage_index(base, IndexSpec("by_id", "id", IndexKind.BTREE)).pin
    found = tables.difference(base, indexed, columns=["id"])
    assert (found.removed.num_rows, found.added.num_rows) == (0, 0)


def test_rows_that_a_compaction_moved_are_on_both_sides_unchanged(tables: Tables, base: Pin) -> None:
    pin = tables.stage_rows(base, RowsToStage(appends=people({"dan": 4}))).pin
    found = tables.difference(pin, tables.stage_compaction(pin).pin)
    assert ages(found.removed) == ages(found.added) == {"ada": 1, "bob": 2, "cy": 3, "dan": 4}


def test_files_that_both_versions_have_are_not_read(root: Path, tables: Tables, base: Pin) -> None:
    newer = tables.stage_rows(base, RowsToStage(appends=people({"dan": 4}))).pin
    for name in tables.files(base):
        if "/data/" in name:
            (root / name).unlink()
    shared_session.cache_clear()
    assert ages(Tables(str(root)).difference(base, newer).added) == {"dan": 4}


@pytest.mark.parametrize("share", [0.001, 0.02, 0.5])
@pytest.mark.parametrize("read_at_most", [0, limits.DELETIONS_READ_MAX])
def test_deleted_rows_are_told_whichever_way_their_file_is_written(
    tables: Tables, share: float, read_at_most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few are written as a list, many as a bitmap; very many are found by a scan of what is left."""
    monkeypatch.setattr(limits, "DELETIONS_READ_MAX", read_at_most)
    count = 20_000
    pin = tables.create("nodes/01MANY", PERSON)
    before = tables.stage_rows(pin, RowsToStage(appends=people({f"p{each:05d}": each for each in range(count)}))).pin
    gone = [f"p{each:05d}" for each in range(0, count, int(1 / share))]
    after = tables.stage_rows(before, RowsToStage(deleted_ids=tuple(gone))).pin
    found = tables.difference(before, after)
    assert sorted(map(str, found.removed.column("id").to_pylist())) == gone
    assert found.added.num_rows == 0
    back = tables.difference(after, before)
    assert (back.removed.num_rows, sorted(map(str, back.added.column("id").to_pylist()))) == (0, gone)
    # Each row with its address, in the older version as in any other that has the fragment.
    table = tables.open(before)
    assert table.rows_at(found.removed_at.tolist()).column("id").to_pylist() == found.removed.column("id").to_pylist()
    more = tables.stage_rows(before, RowsToStage(appends=people({"new": 1}))).pin
    moved, known = tables.addresses_in(more, before, found.removed_at)
    assert known.all()
    assert tables.open(more).rows_at(moved.tolist()).column("id").to_pylist() == found.removed.column("id").to_pylist()


def test_rows_laid_out_anew_have_no_known_place(tables: Tables, base: Pin) -> None:
    more = tables.stage_rows(base, RowsToStage(appends=people({"new": 1}))).pin
    compacted = tables.stage_compaction(more).pin
    found = tables.difference(base, tables.stage_rows(base, RowsToStage(deleted_ids=("bob",))).pin)
    _, known = tables.addresses_in(compacted, base, found.removed_at)
    assert not known.any()
