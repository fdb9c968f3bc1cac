"""Rows written apart, in any process, and the one version made of them."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.model.commit import Pin
from omnigraph.storage.id_column import IdColumn
from omnigraph.storage.records.change_file import ChangedIds, change_file_bytes, read_change_file
from omnigraph.storage.tables.distributed_write import FilesToStage, WrittenFile, stage_files, write_files
from omnigraph.storage.tables.location import location_of, tables_at
from omnigraph.storage.tables.tables import RowsToStage, Tables

FIELDS: "list[pa.Field[Any]]" = [pa.field("id", pa.string(), nullable=False), pa.field("n", pa.int64())]
COLUMNS = pa.schema(FIELDS)


def rows(**values: int) -> pa.Table:
    return pa.Table.from_pylist([{"id": name, "n": n} for name, n in values.items()], schema=COLUMNS)


def content(tables: Tables, pin: Pin) -> dict[str, int]:
    return {row["id"]: row["n"] for row in tables.open(pin).scan().to_pylist()}


@pytest.fixture
def tables(tmp_path: Path) -> Tables:
    return Tables(str(tmp_path))


@pytest.fixture
def base(tables: Tables) -> Pin:
    made = tables.create("nodes/t", COLUMNS)
    return tables.stage_rows(made, RowsToStage(appends=rows(a=1, b=2, c=3))).pin


def written(tables: Tables, base: Pin, *parts: pa.Table) -> tuple[WrittenFile, ...]:
    """As other processes would write them."""
    there = tables_at(location_of(tables))
    return tuple(file for part in parts for file in write_files(there, base, part))


def test_files_become_one_version_and_nobody_sees_them_before(tables: Tables, base: Pin) -> None:
    files = written(tables, base, rows(d=4), rows(e=5, f=6))
    assert [file.rows for file in files] == [1, 2]
    assert content(tables, base) == {"a": 1, "b": 2, "c": 3}
    staged = stage_files(tables, base, FilesToStage(files))
    assert content(tables, staged.pin) == {"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6}
    assert (sorted(staged.inserted_ids), staged.pin.rows) == (["d", "e", "f"], 6)
    assert {f"nodes/t/{file.path}" for file in files} < set(staged.files)


def test_rows_replace_others_by_address_and_some_do_not_count(tables: Tables, base: Pin) -> None:
    there = tables.open(base).rows_with_ids(["b"], columns=["id"], with_addresses=True)
    files = written(tables, base, rows(b=9, x=0, d=4), rows(y=0))
    staged = stage_files(
        tables,
        base,
        FilesToStage(
            files,
            dropped={0: np.array([1], np.uint64), 1: np.array([0], np.uint64)},
            removed=there.column("_rowaddr").to_numpy(),
            updated_ids=IdColumn(pa.chunked_array([["b"]])),
        ),
    )
    assert content(tables, staged.pin) == {"a": 1, "b": 9, "c": 3, "d": 4}
    assert (list(staged.inserted_ids), list(staged.updated_ids)) == (["d"], ["b"])


def test_files_take_the_place_of_everything(tables: Tables, base: Pin) -> None:
    staged = stage_files(tables, base, FilesToStage(written(tables, base, rows(z=1)), replaces=True))
    assert content(tables, staged.pin) == {"z": 1}
    emptied = stage_files(tables, base, FilesToStage(replaces=True))
    assert content(tables, emptied.pin) == {}
    assert stage_files(tables, base, FilesToStage()).is_unchanged


def test_what_was_staged_of_files_moves_onto_a_newer_version(tables: Tables, base: Pin) -> None:
    files = written(tables, base, rows(d=4, x=0))
    staged = stage_files(tables, base, FilesToStage(files, dropped={0: np.array([1], np.uint64)}))
    newer = tables.stage_rows(base, RowsToStage(appends=rows(n=7), deleted_ids=("a",))).pin
    for process in (tables, Tables(str(Path(tables._handles._uri)))):
        moved = process.rebase(base, staged.pin, newer)
        assert moved is not None
        assert content(process, moved.pin) == {"b": 2, "c": 3, "d": 4, "n": 7}


def test_of_very_many_ids_only_the_number_is_told(tables: Tables, base: Pin) -> None:
    staged = stage_files(tables, base, FilesToStage(written(tables, base, rows(d=4, e=5)), ids_max=1))
    assert (len(staged.inserted_ids), list(staged.inserted_ids)) == (2, [])


def test_ids_in_columns_are_written_down_like_others() -> None:
    ids = IdColumn(pa.chunked_array([["b", "c"], ["d"]]))
    body = change_file_bytes({"node:B": ChangedIds(ids, (), ("x",)), "node:A": ChangedIds((), ("y",), ())})
    found = read_change_file(body, path="here")
    assert found["node:B"].inserted_ids == ("b", "c", "d")
    assert (found["node:B"].deleted_ids, found["node:A"].updated_ids) == (("x",), ("y",))
    assert (ids[0], list(ids[1:]), len(ids)) == ("b", ["c", "d"], 3)
