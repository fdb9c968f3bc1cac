"""Indexes: they never change an answer, they follow the rows, and they are one segment again after folding."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, StagedVersion, Tables

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

DIMENSION = 8
FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("number", pa.int64()),
    pa.field("color", pa.string()),
    pa.field("text", pa.string()),
    pa.field("tags", pa.list_(pa.string())),
    pa.field("vector", pa.list_(pa.float32(), DIMENSION)),
]
SCHEMA = pa.schema(FIELDS)
SCALAR = (
    IndexSpec("by_id", "id", IndexKind.BTREE),
    IndexSpec("by_number", "number", IndexKind.BTREE),
    IndexSpec("by_color", "color", IndexKind.BITMAP),
    IndexSpec("by_part", "text", IndexKind.NGRAM),
    IndexSpec("by_tag", "tags", IndexKind.LABEL_LIST),
)
VECTOR = tuple(IndexSpec("by_vector", "vector", kind, {"metric": "l2"}) for kind in IndexKind if kind.is_vector)
WORDS = ("apple", "banana", "cherry")
COLORS = ("red", "green", "blue", "old", "new")


def rows(numbers: Sequence[int], *, color: str | None = None, shift: int = 0) -> pa.Table:
    source = np.random.default_rng(min(numbers, default=0))
    vectors = source.random((len(numbers), DIMENSION), dtype=np.float32)
    content = {
        "id": [f"k{number}" for number in numbers],
        "number": [number + shift for number in numbers],
        "color": [color or COLORS[number % 3] for number in numbers],
        "text": [f"{WORDS[(number + shift) % 3]} pie" for number in numbers],
        "tags": [[f"t{(number + shift) % 4}", "all"] for number in numbers],
        "vector": list(vectors),
    }
    return pa.table(content, schema=SCHEMA)


def answers(tables: Tables, pin: Pin) -> dict[str, list[str]]:
    """The ids found by one question of each kind."""
    table = tables.open(pin)
    conditions = [
        "id = 'k7'",
        "id IN ('k1', 'k2', 'k301')",
        "number BETWEEN 5 AND 12",
        "color = 'red'",
        "color = 'old'",
        "color = 'new'",
        "contains(text, 'anan')",
        "array_has(tags, 't1')",
    ]
    return {one: sorted(map(str, table.scan(columns=["id"], filter=one)["id"].to_pylist())) for one in conditions}


def expected_answers(tables: Tables, pin: Pin) -> dict[str, list[str]]:
    """The same, from a plain list of all rows."""
    content = tables.open(pin).scan().to_pylist()

    def ids(chosen: Sequence[dict[str, Any]]) -> list[str]:
        return sorted(row["id"] for row in chosen)

    return {
        "id = 'k7'": ids([row for row in content if row["id"] == "k7"]),
        "id IN ('k1', 'k2', 'k301')": ids([row for row in content if row["id"] in {"k1", "k2", "k301"}]),
        "number BETWEEN 5 AND 12": ids([row for row in content if 5 <= row["number"] <= 12]),
        "color = 'red'": ids([row for row in content if row["color"] == "red"]),
        "color = 'old'": ids([row for row in content if row["color"] == "old"]),
        "color = 'new'": ids([row for row in content if row["color"] == "new"]),
        "contains(text, 'anan')": ids([row for row in content if "anan" in row["text"]]),
        "array_has(tags, 't1')": ids([row for row in content if "t1" in row["tags"]]),
    }


@pytest.fixture
def base(tables: Tables) -> Pin:
    pin = tables.create("nodes/01THING", SCHEMA)
    return tables.stage_rows(pin, RowsToStage(appends=rows(range(300)))).pin


def test_an_index_gives_the_answers_a_scan_gives(tables: Tables, base: Pin) -> None:
    staged = tables.stage_index(base, *SCALAR)
    assert answers(tables, staged.pin) == expected_answers(tables, base)
    assert {index.name: (index.segments, index.rows_missing) for index in tables.open(staged.pin).indexes()} == {
        spec.name: (1, 0) for spec in SCALAR
    }


def test_every_segment_claims_to_be_built_at_the_first_version(root: Path, tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, *SCALAR, VECTOR[0]).pin
    pin = tables.stage_index_delta(tables.stage_rows(pin, RowsToStage(appends=rows([400]))).pin, *SCALAR).pin
    folded = tables.fold_index(pin, *SCALAR).pin
    for one in (pin, folded):
        # Detached versions have random numbers: a segment that named its own would look newer than others by chance.
        described = lance.dataset(str(root / one.table), version=one.version).describe_indices()
        claimed = [segment.dataset_version_at_last_update for index in described for segment in index.segments]
        assert set(claimed) == {1}


def test_an_index_changes_no_row(tables: Tables, base: Pin) -> None:
    staged = tables.stage_index(base, *SCALAR)
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == ((), (), ())
    assert (staged.pin.rows, staged.pin.bytes) == (base.rows, base.bytes)
    assert tables.open(staged.pin).scan().equals(tables.open(base).scan())
    assert tables.open(base).indexes() == ()


@pytest.mark.parametrize("spec", SCALAR, ids=lambda spec: spec.kind)
def test_rows_written_after_an_index_was_built_are_found(tables: Tables, base: Pin, spec: IndexSpec) -> None:
    pin = tables.stage_index(base, spec).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=rows([1, 2, 301], color="new", shift=1))).pin
    (index,) = tables.open(pin).indexes()
    assert (index.rows, index.rows_missing) == (298, 3)
    expected = expected_answers(tables, pin)
    assert answers(tables, pin) == {question: expected[question] for question in answers(tables, pin)}


@pytest.mark.parametrize("spec", SCALAR, ids=lambda spec: spec.kind)
def test_a_delta_covers_the_new_rows_and_finds_none_that_are_no_more(
    tables: Tables, base: Pin, spec: IndexSpec
) -> None:
    pin = tables.stage_rows(base, RowsToStage(upserts=rows(range(10), color="old"))).pin
    pin = tables.stage_index(pin, spec).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=rows(range(5), color="new", shift=1), deleted_ids=("k9",))).pin
    staged = tables.stage_index_delta(pin, spec)
    (index,) = tables.open(staged.pin).indexes()
    assert (index.segments, index.rows, index.rows_missing) == (2, 299, 0)
    expected = expected_answers(tables, pin)
    found = answers(tables, staged.pin)
    assert found == {question: expected[question] for question in found}
    assert tables.open(staged.pin).count("color = 'old'") == 4
    assert tables.open(staged.pin).count("color = 'new'") == 5


def test_several_deltas_fold_into_one_segment(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, *SCALAR).pin
    for step in range(4):
        changed = rows([step, 100 + step, 300 + step], color="new", shift=step)
        pin = tables.stage_rows(pin, RowsToStage(upserts=changed, deleted_ids=(f"k{200 + step}",))).pin
        pin = tables.stage_index_delta(pin, *SCALAR).pin
    assert {index.segments for index in tables.open(pin).indexes()} == {5}
    folded = tables.fold_index(pin, *SCALAR)
    assert {(index.segments, index.rows_missing) for index in tables.open(folded.pin).indexes()} == {(1, 0)}
    assert answers(tables, folded.pin) == answers(tables, pin) == expected_answers(tables, pin)


def test_a_delta_is_the_whole_index_where_there_is_none(tables: Tables, base: Pin) -> None:
    staged = tables.stage_index_delta(base, *SCALAR)
    assert {(index.segments, index.rows) for index in tables.open(staged.pin).indexes()} == {(1, 300)}


def test_an_index_that_misses_nothing_makes_no_version(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, *SCALAR).pin
    assert tables.stage_index_delta(pin, *SCALAR) == StagedVersion(pin, pin)
    assert tables.fold_index(pin, *SCALAR) == StagedVersion(pin, pin)


def test_an_empty_table_gets_no_index(tables: Tables) -> None:
    empty = tables.create("nodes/01EMPTY", SCHEMA)
    assert tables.stage_index(empty, *SCALAR, VECTOR[0]).is_unchanged


def test_building_again_leaves_one_segment(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, SCALAR[0]).pin
    pin = tables.stage_index(pin, SCALAR[0]).pin
    assert [(index.name, index.segments) for index in tables.open(pin).indexes()] == [("by_id", 1)]
    assert tables.open(pin).count("id = 'k7'") == 1


def test_an_index_is_dropped_by_its_name(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, *SCALAR).pin
    staged = tables.stage_index_drop(pin, "by_color", "by_part", "nothing of that name")
    assert {index.name for index in tables.open(staged.pin).indexes()} == {
        spec.name for spec in SCALAR if spec.name not in {"by_color", "by_part"}
    }
    assert tables.stage_index_drop(base, "by_color").is_unchanged


def test_segments_whose_rows_are_all_gone_are_left_out(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, SCALAR[0]).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=rows([400]))).pin
    pin = tables.stage_index_delta(pin, SCALAR[0]).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=rows([400]))).pin
    pin = tables.stage_index_delta(pin, SCALAR[0]).pin
    (index,) = tables.open(pin).indexes()
    assert (index.segments, index.rows, index.rows_missing) == (2, 301, 0)
    assert tables.open(pin).count("id = 'k400'") == 1


def test_a_replaced_table_has_no_index_until_it_is_built_again(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, *SCALAR).pin
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(range(20)), replaces=True)).pin
    assert tables.open(pin).indexes() == ()
    pin = tables.stage_index_delta(pin, *SCALAR).pin
    assert answers(tables, pin) == expected_answers(tables, pin)


def test_the_files_of_an_index_are_named_one_by_one(tables: Tables, base: Pin) -> None:
    staged = tables.stage_index(base, *SCALAR)
    folders = {file.rsplit("/", 1)[0] + "/" for file in staged.files if "/_indices/" in file}
    assert len(folders) == len(SCALAR)
    assert folders < tables.files(staged.pin)
    assert not any(file.endswith("/") for file in staged.files)


@pytest.mark.parametrize("spec", VECTOR, ids=lambda spec: spec.kind)
def test_near_vectors_are_found_with_an_index_as_without(tables: Tables, base: Pin, spec: IndexSpec) -> None:
    pin = tables.stage_index(base, spec).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=rows([3, 500]), deleted_ids=("k4",))).pin
    table = tables.open(pin)
    (index,) = table.indexes()
    assert (index.rows, index.rows_missing) == (298, 2)
    for row in rows([3, 500, 7, 8]).to_pylist():
        near = table.nearest("vector", row["vector"], count=5, columns=["id"], cells=10)
        exact = table.nearest("vector", row["vector"], count=5, columns=["id"], exact=True)
        assert near.column("id").to_pylist() == exact.column("id").to_pylist()
        assert near.column_names == ["id", "_distance"]
    gone = rows(range(300)).to_pylist()[4]["vector"]
    assert "k4" not in table.nearest("vector", gone, count=300, columns=["id"], cells=10).column("id").to_pylist()


def test_few_new_vectors_wait_for_more_and_are_found_meanwhile(
    tables: Tables, base: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = VECTOR[0]
    pin = tables.stage_index(base, spec).pin
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(range(600, 640)))).pin
    assert tables.stage_index_delta(pin, spec).is_unchanged
    monkeypatch.setattr(limits, "VECTOR_INDEX_ROWS_MIN", 30)
    staged = tables.stage_index_delta(pin, spec)
    assert [(index.segments, index.rows_missing) for index in tables.open(staged.pin).indexes()] == [(2, 0)]
    target = rows(range(600, 640)).to_pylist()[11]
    found = tables.open(staged.pin).nearest("vector", target["vector"], count=1, columns=["id"], cells=10)
    assert found.column("id").to_pylist() == [target["id"]]
    folded = tables.fold_index(staged.pin, spec)
    assert [(index.segments, index.rows) for index in tables.open(folded.pin).indexes()] == [(1, 340)]


def test_too_few_vectors_get_no_index(tables: Tables) -> None:
    pin = tables.create("nodes/01FEW", SCHEMA)
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(range(100)))).pin
    assert tables.stage_index(pin, *VECTOR[:1]).is_unchanged


def test_a_vector_index_needs_vectors(tables: Tables, base: Pin) -> None:
    with pytest.raises(InternalError):
        tables.stage_index(base, IndexSpec("wrong", "number", IndexKind.IVF_FLAT))


def test_ranking_applies_to_the_rows_that_satisfy_the_condition(tables: Tables, base: Pin) -> None:
    pin = tables.stage_index(base, SCALAR[2], VECTOR[0]).pin
    table = tables.open(pin)
    target = rows(range(300)).to_pylist()[0]["vector"]
    near = table.nearest("vector", target, count=10, columns=["id", "color"], filter="color = 'blue'", cells=10)
    assert near.num_rows == 10
    assert set(near.column("color").to_pylist()) == {"blue"}
