"""Column changes: only the description of the table changes, and every old row reads as it should."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.fields import read_columns
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("age", pa.int64(), nullable=False),
    pa.field("tags", pa.list_(pa.string())),
    pa.field("name", pa.string(), metadata={"note": "kept"}),
]
SCHEMA = pa.schema(FIELDS)
NESTED: "pa.Field[Any]" = pa.field(
    "address", pa.list_(pa.struct([pa.field("street", pa.string()), pa.field("number", pa.int64())]))
)


def rows(ids: Sequence[str]) -> pa.Table:
    content = {
        "id": list(ids),
        "age": list(range(len(ids))),
        "tags": [["t", one] for one in ids],
        "name": [f"name of {one}" for one in ids],
    }
    return pa.table(content, schema=SCHEMA)


@pytest.fixture(params=[(), ("ada", "bob")], ids=["empty table", "two rows"])
def ids(request: pytest.FixtureRequest) -> Sequence[str]:
    chosen: Sequence[str] = request.param
    return chosen


@pytest.fixture
def base(tables: Tables, ids: Sequence[str]) -> Pin:
    pin = tables.create("nodes/01THING", SCHEMA)
    return tables.stage_rows(pin, RowsToStage(appends=rows(ids))).pin


def columns_of(tables: Tables, pin: Pin) -> dict[str, list[object]]:
    found = tables.open(pin).scan()
    return {name: found.column(name).to_pylist() for name in found.column_names}


def numbers(root: Path, pin: Pin) -> dict[str, int]:
    schema = lance.dataset(str(root / pin.table), version=pin.version).lance_schema
    return {field.name(): field.id() for field in schema.fields()}


def test_a_new_column_is_null_in_old_rows_and_holds_values_in_new_ones(
    root: Path, tables: Tables, base: Pin, ids: Sequence[str]
) -> None:
    data_before = sorted(root.rglob("*.lance"))
    staged = tables.stage_add_column(base, pa.field("height", pa.float64()))
    assert sorted(root.rglob("*.lance")) == data_before
    assert (staged.pin.rows, staged.pin.bytes) == (base.rows, base.bytes)
    assert columns_of(tables, staged.pin) == {**columns_of(tables, base), "height": [None] * len(ids)}
    taller = pa.table({"id": ["cy"], "age": [7], "height": [1.5]})
    later = tables.stage_rows(staged.pin, RowsToStage(appends=taller))
    assert columns_of(tables, later.pin)["height"] == [*[None] * len(ids), 1.5]


def test_a_nested_column_is_added(tables: Tables, base: Pin, ids: Sequence[str]) -> None:
    staged = tables.stage_add_column(base, NESTED)
    assert tables.open(staged.pin).schema.field("address").type == NESTED.type
    value = [{"street": "High Street", "number": 1}]
    fresh = pa.table({"id": ["cy"], "age": [7], "address": pa.array([value], NESTED.type)})
    later = tables.stage_rows(staged.pin, RowsToStage(appends=fresh))
    assert columns_of(tables, later.pin)["address"] == [*[None] * len(ids), value]


def test_a_renamed_column_keeps_its_values_number_and_metadata(
    root: Path, tables: Tables, base: Pin, ids: Sequence[str]
) -> None:
    staged = tables.stage_rename_column(base, "name", "called")
    before = columns_of(tables, base)
    assert columns_of(tables, staged.pin)["called"] == before["name"]
    assert numbers(root, staged.pin)["called"] == numbers(root, base)["name"]
    assert tables.open(staged.pin).schema.field("called").metadata == {b"note": b"kept"}


def test_two_columns_exchange_their_names(tables: Tables, base: Pin) -> None:
    wider = tables.stage_add_column(base, pa.field("nick", pa.string()))
    staged = tables.stage_columns(wider.pin, renamed={"name": "nick", "nick": "name"})
    before, after = columns_of(tables, wider.pin), columns_of(tables, staged.pin)
    assert (after["nick"], after["name"]) == (before["name"], before["nick"])


@pytest.mark.parametrize("dropped", ["age", "tags", "name"])
def test_dropping_any_column_leaves_the_others_as_they_were(
    root: Path, tables: Tables, base: Pin, dropped: str
) -> None:
    staged = tables.stage_drop_column(base, dropped)
    expected = {name: values for name, values in columns_of(tables, base).items() if name != dropped}
    assert columns_of(tables, staged.pin) == expected
    old, new = numbers(root, base), numbers(root, staged.pin)
    assert new == {name: number for name, number in old.items() if name != dropped}
    fresh = rows(["x"]).select(list(expected))
    more = tables.stage_rows(staged.pin, RowsToStage(appends=fresh))
    assert tables.open(more.pin).count() == base.rows + 1


def test_a_column_dropped_and_added_again_does_not_show_old_values(
    root: Path, tables: Tables, base: Pin, ids: Sequence[str]
) -> None:
    dropped = tables.stage_drop_column(base, "age")
    again = tables.stage_add_column(dropped.pin, pa.field("age", pa.int64()))
    assert columns_of(tables, again.pin)["age"] == [None] * len(ids)
    if ids:
        assert numbers(root, again.pin)["age"] > max(numbers(root, base).values())


def test_a_required_column_is_made_optional(tables: Tables, base: Pin, ids: Sequence[str]) -> None:
    staged = tables.stage_columns(base, relaxed=["age"])
    assert tables.open(staged.pin).schema.field("age").nullable
    later = tables.stage_rows(staged.pin, RowsToStage(appends=pa.table({"id": ["ageless"]})))
    assert columns_of(tables, later.pin)["age"] == [*range(len(ids)), None]


def test_everything_a_schema_change_does_is_one_version_to_its_caller(
    root: Path, tables: Tables, base: Pin, ids: Sequence[str]
) -> None:
    staged = tables.stage_columns(
        base, dropped=["tags"], renamed={"name": "called"}, relaxed=["age"], added=[NESTED, pa.field("x", pa.int8())]
    )
    before = columns_of(tables, base)
    assert columns_of(tables, staged.pin) == {
        "id": before["id"],
        "age": before["age"],
        "called": before["name"],
        "address": [None] * len(ids),
        "x": [None] * len(ids),
    }
    left = tables.discard(base, staged.pin)
    assert len([file for file in left if file.endswith(".manifest")]) == 2
    assert staged.files == (f"{base.table}/_versions/d{staged.pin.version}.manifest",)


def test_rows_are_updated_deleted_and_compacted_after_a_schema_change(tables: Tables) -> None:
    pin = tables.create("nodes/01THING", SCHEMA)
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(["ada", "bob", "cy"]))).pin
    pin = tables.stage_columns(pin, dropped=["tags"], added=[pa.field("height", pa.int64())]).pin
    changed = pa.table({"id": ["ada"], "age": [50], "name": ["Ada"], "height": [170]})
    pin = tables.stage_rows(pin, RowsToStage(upserts=changed, deleted_ids=("bob",))).pin
    pin = tables.stage_compaction(pin).pin
    assert tables.open(pin).scan().sort_by("id").to_pylist() == [
        {"id": "ada", "age": 50, "name": "Ada", "height": 170},
        {"id": "cy", "age": 2, "name": "name of cy", "height": None},
    ]


def test_an_index_stays_with_its_column(tables: Tables) -> None:
    pin = tables.create("nodes/01THING", SCHEMA)
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(["ada", "bob"]))).pin
    specs = [IndexSpec("by_id", "id", IndexKind.BTREE), IndexSpec("by_age", "age", IndexKind.BTREE)]
    pin = tables.stage_index(pin, *specs).pin
    added = tables.stage_add_column(pin, pa.field("height", pa.int64())).pin
    renamed = tables.stage_rename_column(added, "age", "years").pin
    assert {(one.name, one.columns) for one in tables.open(renamed).indexes()} == {
        ("by_id", ("id",)),
        ("by_age", ("years",)),
    }
    assert tables.open(renamed).count("years = 1") == 1
    dropped = tables.stage_drop_column(renamed, "years").pin
    assert [one.name for one in tables.open(dropped).indexes()] == ["by_id"]


@pytest.mark.parametrize(
    "change",
    [
        {"dropped": ["nowhere"]},
        {"renamed": {"nowhere": "somewhere"}},
        {"relaxed": ["nowhere"]},
        {"dropped": ["id"]},
        {"renamed": {"id": "key"}},
        {"renamed": {"name": "age"}},
        {"added": [pa.field("name", pa.string())]},
        {"added": [pa.field("height", pa.int64(), nullable=False)]},
        {"added": [pa.field("x", pa.int64()), pa.field("x", pa.int64())]},
    ],
    ids=str,
)
def test_a_change_that_makes_no_sense_is_refused(tables: Tables, base: Pin, change: dict[str, Any]) -> None:
    with pytest.raises(InternalError):
        tables.stage_columns(base, **change)


@pytest.mark.parametrize(
    "schema",
    [
        SCHEMA,
        pa.schema([NESTED]),
        pa.schema([pa.field("vector", pa.list_(pa.float32(), 4))]),
        pa.schema([pa.field("when", pa.timestamp("us", tz="UTC"))], metadata={"made": "here"}),
        pa.schema([pa.field("some", pa.dictionary(pa.int32(), pa.string()))]),
    ],
    ids=["plain", "nested", "vector", "metadata", "dictionary"],
)
def test_a_schema_taken_apart_and_put_together_is_the_same(tmp_path: Path, schema: pa.Schema) -> None:
    stored = lance.write_dataset(schema.empty_table(), str(tmp_path / "t"), schema=schema).lance_schema
    assert read_columns(stored).as_schema().__reduce__()[1] == stored.__reduce__()[1]
