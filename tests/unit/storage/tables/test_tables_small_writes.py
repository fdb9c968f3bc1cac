"""Fragments of one row each: columns that change between them, updates, deletes, indexes and compaction."""

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import name_of
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

PLAIN: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("flag", pa.bool_()),
    pa.field("small", pa.int32()),
    pa.field("large", pa.uint64()),
    pa.field("real", pa.float64()),
    pa.field("day", pa.date32()),
    pa.field("moment", pa.timestamp("ms", tz="UTC")),
    pa.field("text", pa.string(), metadata={b"omnigraph.stable_property_id": b"7"}),
]
VALUES: dict[str, Any] = {
    "flag": True,
    "small": -(2**31),
    "large": 2**64 - 1,
    "real": -0.0,
    "day": date(1969, 12, 31),
    "moment": datetime(2262, 4, 12, tzinfo=UTC),
    "text": "日本 é\x00'",
}


def row(name: str, schema: pa.Schema, *, absent: bool = False) -> dict[str, Any]:
    others = {each: None if absent else VALUES.get(each) for each in schema.names}
    return others | {"id": name}


def added(tables: Tables, base: Pin, *rows: dict[str, Any], schema: pa.Schema) -> Pin:
    return tables.stage_rows(base, RowsToStage(appends=pa.Table.from_pylist(list(rows), schema))).pin


def test_the_name_lance_keeps_of_a_file_is_the_one_it_tells(tables: Tables) -> None:
    schema = pa.schema(PLAIN)
    made = added(tables, tables.create("nodes/01X", schema), row("a", schema), schema=schema)

    [fragment] = tables.open(made)._handle.fragments()

    assert [name_of(file) for file in fragment.files] == [str(file.path) for file in fragment.files]


def test_columns_that_come_and_go_between_small_writes_keep_their_values_apart(tables: Tables) -> None:
    schema = pa.schema(PLAIN)
    pin = added(tables, tables.create("nodes/01X", schema), row("a", schema), schema=schema)
    pin = added(tables, pin, row("b", schema), schema=schema)
    pin = tables.stage_columns(pin, dropped=["small", "day"], renamed={"text": "words"}).pin
    pin = tables.stage_add_column(pin, pa.field("small", pa.string())).pin
    changed = tables.open(pin).schema
    for name in ("c", "d"):
        pin = added(tables, pin, row(name, changed) | {"small": name * 3, "words": name}, schema=changed)

    found = {each["id"]: each for each in tables.open(pin).scan().to_pylist()}

    assert {each: (found[each]["small"], found[each]["words"]) for each in found} == {
        "a": (None, VALUES["text"]),
        "b": (None, VALUES["text"]),
        "c": ("ccc", "c"),
        "d": ("ddd", "d"),
    }
    assert {found[each]["large"] for each in found} == {2**64 - 1}


def test_small_files_are_updated_deleted_indexed_and_compacted_like_others(tables: Tables) -> None:
    schema = pa.schema(PLAIN)
    pin = tables.create("nodes/01X", schema)
    for number in range(6):
        pin = added(tables, pin, row(f"k{number}", schema), schema=schema)
    pin = tables.stage_index(pin, IndexSpec("by_id", "id", IndexKind.BTREE)).pin
    changed = pa.Table.from_pylist([row("k1", schema) | {"text": "new"}], schema)
    pin = tables.stage_rows(pin, RowsToStage(upserts=changed, deleted_ids=("k4",))).pin
    before = sorted(tables.open(pin).scan().to_pylist(), key=lambda each: each["id"])

    compacted = tables.stage_compaction(pin).pin

    table = tables.open(compacted)
    assert table.layout().fragments == 1
    assert sorted(table.scan().to_pylist(), key=lambda each: each["id"]) == before
    assert [each["text"] for each in table.rows_with_ids(["k1", "k4"]).to_pylist()] == ["new"]
    assert len(before) == 5
