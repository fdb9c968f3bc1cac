"""Staging rows: what the new version holds, what it says of itself, and that nobody else sees it."""

import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from omnigraph.errors import AlreadyExistsError, InternalError
from omnigraph.failpoints import Crash
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import RowsToStage, StagedVersion, Tables

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("age", pa.int64()),
    pa.field("name", pa.string()),
]
PERSON = pa.schema(FIELDS)
TABLE = "nodes/01PERSON"


def people(ages: Mapping[str, int]) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values()), "name": [None] * len(ages)}, schema=PERSON)


def ages(tables: Tables, pin: Pin) -> dict[str, int]:
    return {row["id"]: row["age"] for row in tables.open(pin).scan(columns=["id", "age"]).to_pylist()}


def data_file_sizes(root: Path, files: Sequence[str]) -> int:
    return sum((root / file).stat().st_size for file in files if "/data/" in file)


@pytest.fixture
def empty(tables: Tables) -> Pin:
    return tables.create(TABLE, PERSON)


@pytest.fixture
def three(tables: Tables, empty: Pin) -> Pin:
    """Ada 36, Bob 40 and Cy 7, in one fragment."""
    return tables.stage_rows(empty, RowsToStage(appends=people({"ada": 36, "bob": 40, "cy": 7}))).pin


def test_a_new_table_is_empty_at_the_first_version(tables: Tables, empty: Pin) -> None:
    assert empty == Pin(TABLE, 1, rows=0, bytes=0)
    assert tables.open(empty).schema.equals(PERSON)
    assert ages(tables, empty) == {}


def test_a_folder_that_holds_a_table_gets_no_second_one(tables: Tables, empty: Pin) -> None:
    with pytest.raises(AlreadyExistsError):
        tables.create(TABLE, PERSON)


def test_no_row_ids_are_kept_besides_addresses(root: Path, tables: Tables, empty: Pin) -> None:
    assert lance.dataset(str(root / TABLE)).has_stable_row_ids is False


def test_appended_rows_are_there_and_the_base_is_as_it_was(tables: Tables, empty: Pin) -> None:
    staged = tables.stage_rows(empty, RowsToStage(appends=people({"ada": 36, "bob": 40})))
    assert ages(tables, staged.pin) == {"ada": 36, "bob": 40}
    assert ages(tables, empty) == {}
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == (("ada", "bob"), (), ())
    assert staged.base == empty


def test_an_upsert_replaces_what_is_there_and_inserts_what_is_not(tables: Tables, three: Pin) -> None:
    staged = tables.stage_rows(three, RowsToStage(upserts=people({"bob": 41, "dan": 1})))
    assert ages(tables, staged.pin) == {"ada": 36, "bob": 41, "cy": 7, "dan": 1}
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == (("dan",), ("bob",), ())


def test_a_delete_removes_what_is_there_and_ignores_what_is_not(tables: Tables, three: Pin) -> None:
    staged = tables.stage_rows(three, RowsToStage(deleted_ids=("nobody", "ada")))
    assert ages(tables, staged.pin) == {"bob": 40, "cy": 7}
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == ((), (), ("ada",))


def test_everything_one_write_does_is_one_version_made_in_one_step(root: Path, tables: Tables, three: Pin) -> None:
    rows = RowsToStage(upserts=people({"ada": 1, "eve": 2}), appends=people({"fay": 3}), deleted_ids=("bob",))
    staged = tables.stage_rows(three, rows)
    assert ages(tables, staged.pin) == {"ada": 1, "cy": 7, "eve": 2, "fay": 3}
    assert (staged.inserted_ids, staged.updated_ids, staged.deleted_ids) == (("eve", "fay"), ("ada",), ("bob",))
    made = lance.dataset(str(root / TABLE), version=staged.pin.version).read_transaction(staged.pin.version)
    assert made is not None
    assert made.read_version == three.version


def test_deleting_every_row_leaves_an_empty_version_without_data(tables: Tables, three: Pin) -> None:
    staged = tables.stage_rows(three, RowsToStage(deleted_ids=("ada", "bob", "cy")))
    assert ages(tables, staged.pin) == {}
    assert (staged.pin.rows, staged.pin.bytes) == (0, 0)


def test_a_replacement_makes_the_content_exactly_what_was_given(tables: Tables, three: Pin) -> None:
    rows = RowsToStage(upserts=people({"bob": 1}), appends=people({"zoe": 2}), replaces=True)
    staged = tables.stage_rows(three, rows)
    assert ages(tables, staged.pin) == {"bob": 1, "zoe": 2}
    assert staged.inserted_ids == ("zoe",)
    assert staged.updated_ids == ("bob",)
    assert sorted(staged.deleted_ids) == ["ada", "cy"]


def test_a_replacement_by_nothing_empties_the_table(tables: Tables, three: Pin) -> None:
    staged = tables.stage_rows(three, RowsToStage(replaces=True))
    assert ages(tables, staged.pin) == {}
    assert sorted(staged.deleted_ids) == ["ada", "bob", "cy"]
    again = tables.stage_rows(staged.pin, RowsToStage(appends=people({"new": 1})))
    assert ages(tables, again.pin) == {"new": 1}


@pytest.mark.parametrize(
    "rows",
    [
        RowsToStage(),
        RowsToStage(upserts=people({}), appends=people({})),
        RowsToStage(deleted_ids=("nobody",)),
    ],
    ids=["nothing", "empty", "unknown"],
)
def test_a_write_that_changes_nothing_makes_no_version(
    root: Path, tables: Tables, three: Pin, rows: RowsToStage
) -> None:
    before = sorted(root.rglob("*"))
    staged = tables.stage_rows(three, rows)
    assert staged == StagedVersion(three, three)
    assert staged.is_unchanged
    assert sorted(root.rglob("*")) == before


def test_replacing_nothing_by_nothing_makes_no_version(tables: Tables, empty: Pin) -> None:
    assert tables.stage_rows(empty, RowsToStage(replaces=True)).pin == empty


@pytest.mark.parametrize(
    "rows",
    [
        RowsToStage(upserts=pa.concat_tables([people({"ada": 1}), people({"ada": 2})])),
        RowsToStage(appends=pa.concat_tables([people({"new": 1}), people({"new": 2})])),
        RowsToStage(upserts=people({"ada": 1}), appends=people({"ada": 2})),
        RowsToStage(upserts=people({"ada": 1}), deleted_ids=("ada",)),
        RowsToStage(appends=people({"new": 1}), deleted_ids=("new",)),
        RowsToStage(deleted_ids=("ada", "ada")),
        RowsToStage(upserts=people({"ada": 1}), deleted_ids=("bob",), replaces=True),
    ],
    ids=["upserts", "appends", "both", "upsert and delete", "append and delete", "deletes", "replace and delete"],
)
def test_a_write_that_contradicts_itself_is_refused_before_anything_is_written(
    root: Path, tables: Tables, three: Pin, rows: RowsToStage
) -> None:
    before = sorted(root.rglob("*"))
    with pytest.raises(InternalError):
        tables.stage_rows(three, rows)
    assert sorted(root.rglob("*")) == before


def test_rows_are_brought_into_the_tables_own_columns(tables: Tables, empty: Pin) -> None:
    given = pa.table({"age": pa.array([5], pa.int32()), "id": ["kim"]})
    staged = tables.stage_rows(empty, RowsToStage(appends=given))
    assert tables.open(staged.pin).scan().to_pylist() == [{"id": "kim", "age": 5, "name": None}]


@pytest.mark.parametrize(
    "given",
    [
        pa.table({"id": ["kim"], "height": [1]}),
        pa.table({"id": ["kim"], "age": ["old"]}),
        pa.table({"id": pa.array([None], pa.string())}),
        pa.table({"age": [1]}),
    ],
    ids=["unknown column", "wrong type", "null id", "no id"],
)
def test_rows_that_do_not_fit_are_refused(tables: Tables, empty: Pin, given: pa.Table) -> None:
    with pytest.raises(InternalError):
        tables.stage_rows(empty, RowsToStage(appends=given))


def test_a_pin_knows_rows_and_bytes(root: Path, tables: Tables, three: Pin) -> None:
    assert three.rows == 3
    staged = tables.stage_rows(three, RowsToStage(upserts=people({"ada": 1, "dan": 2}), deleted_ids=("cy",)))
    assert staged.pin.rows == 3
    assert staged.pin.bytes == data_file_sizes(root, sorted(tables.files(staged.pin)))
    # The same from a handle that was opened and not made.
    reopened = Tables(str(root))
    again = reopened.stage_rows(Pin(TABLE, staged.pin.version), RowsToStage(appends=people({"eve": 3})))
    assert again.pin.rows == 4
    assert again.pin.bytes == data_file_sizes(root, sorted(reopened.files(again.pin)))


def test_the_files_of_a_staged_table_are_the_new_ones_a_reader_needs(root: Path, tables: Tables, three: Pin) -> None:
    before = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    staged = tables.stage_rows(three, RowsToStage(upserts=people({"ada": 1}), deleted_ids=("cy",)))
    after = {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}
    # The transaction file is for no reader: its content is in the manifest.
    assert set(staged.files) == {file for file in after - before if "/_transactions/" not in file}
    assert len(staged.files) == 3


def test_the_head_of_a_table_never_moves(root: Path, tables: Tables, three: Pin) -> None:
    pin = three
    for number in range(3):
        pin = tables.stage_rows(pin, RowsToStage(upserts=people({"ada": number, f"n{number}": 0}))).pin
    head = lance.dataset(str(root / TABLE))
    assert head.version == 1
    assert head.count_rows() == 0


def test_versions_staged_on_one_base_are_strangers_to_each_other(tables: Tables, three: Pin) -> None:
    left = tables.stage_rows(three, RowsToStage(upserts=people({"ada": 1})))
    right = tables.stage_rows(three, RowsToStage(deleted_ids=("ada",)))
    assert ages(tables, left.pin) == {"ada": 1, "bob": 40, "cy": 7}
    assert ages(tables, right.pin) == {"bob": 40, "cy": 7}
    assert ages(tables, three) == {"ada": 36, "bob": 40, "cy": 7}


def test_another_process_reads_a_staged_version_by_its_pin(root: Path, tables: Tables, three: Pin) -> None:
    staged = tables.stage_rows(three, RowsToStage(upserts=people({"ada": 1})))
    assert ages(Tables(str(root)), staged.pin) == {"ada": 1, "bob": 40, "cy": 7}


def test_a_large_upsert_and_delete_finds_every_row(tables: Tables, empty: Pin) -> None:
    everyone = {f"p{number:06d}": number for number in range(30_000)}
    base = tables.stage_rows(empty, RowsToStage(appends=people(everyone))).pin
    older = {name: age + 1 for name, age in list(everyone.items())[:12_000]}
    gone = tuple(list(everyone)[20_000:])
    staged = tables.stage_rows(base, RowsToStage(upserts=people(older), deleted_ids=gone))
    assert ages(tables, staged.pin) == {**dict(list(everyone.items())[:20_000]), **older}
    assert len(staged.updated_ids) == 12_000
    assert set(staged.deleted_ids) == set(gone)


def test_several_tables_are_staged_at_once(tables: Tables) -> None:
    pins = {name: tables.create(f"nodes/{name}", PERSON) for name in ("one", "two", "three")}
    meeting = threading.Barrier(3, timeout=30)

    def work(name: str) -> StagedVersion:
        meeting.wait()  # passes only if all three run at the same time
        return tables.stage_rows(pins[name], RowsToStage(appends=people({name: 1})))

    staged = tables.stage_many({name: partial(work, name) for name in pins})
    assert list(staged) == ["one", "two", "three"]
    assert {name: ages(tables, table.pin) for name, table in staged.items()} == {name: {name: 1} for name in pins}


def test_a_failure_among_several_is_raised_after_the_others_have_ended(tables: Tables, empty: Pin) -> None:
    failed = threading.Event()
    ended: list[str] = []

    def fail() -> StagedVersion:
        failed.set()
        raise Crash

    def slow() -> StagedVersion:
        assert failed.wait(30)
        staged = tables.stage_rows(empty, RowsToStage(appends=people({"ada": 1})))
        ended.append("slow")
        return staged

    with pytest.raises(Crash):
        tables.stage_many({"fail": fail, "slow": slow})
    assert ended == ["slow"]


def test_staging_at_once_sees_the_callers_context(tables: Tables, empty: Pin) -> None:
    color: ContextVar[str] = ContextVar("color", default="none")
    seen: list[str] = []

    def look() -> StagedVersion:
        seen.append(color.get())
        return StagedVersion(empty, empty)

    color.set("green")
    tables.stage_many({"one": look, "two": look})
    tables.stage_many({"alone": look})
    assert seen == ["green"] * 3
