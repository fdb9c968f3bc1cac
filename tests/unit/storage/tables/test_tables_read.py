"""Reading a version: scans, lookups by id, and what happens when files are not what they should be."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.errors import FormatError, InvalidRequestError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.table import as_lance_dataset
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("number", pa.int64()),
    pa.field("text", pa.string()),
]
SCHEMA = pa.schema(FIELDS)
BY_ID = IndexSpec("by_id", "id", IndexKind.BTREE)
STRANGE_IDS = (
    "",
    "'",
    "''",
    "it's",
    '"',
    "\\",
    "%",
    "_",
    "--",
    "a b",
    "a\nb",
    "\t",
    "\x00",
    "a\x00b",
    "é",
    "e\u0301",
    "日本",
    "\U0001f600",
    "') OR true --",
    "x" * 10_000,
)


def rows(ids: list[str]) -> pa.Table:
    return pa.table({"id": ids, "number": list(range(len(ids))), "text": [f"text of {one}" for one in ids]}, SCHEMA)


@pytest.fixture
def empty(tables: Tables) -> Pin:
    return tables.create("nodes/01THING", SCHEMA)


@pytest.fixture
def hundred(tables: Tables, empty: Pin) -> Pin:
    """A hundred rows in two fragments, with every seventh deleted."""
    first = tables.stage_rows(empty, RowsToStage(appends=rows([f"k{number}" for number in range(50)]))).pin
    second = tables.stage_rows(first, RowsToStage(appends=rows([f"k{number}" for number in range(50, 100)]))).pin
    return tables.stage_rows(second, RowsToStage(deleted_ids=tuple(f"k{number}" for number in range(0, 100, 7)))).pin


@pytest.fixture
def strange(tables: Tables, empty: Pin) -> Pin:
    """Rows with every id a quoting mistake could trip over."""
    return tables.stage_rows(empty, RowsToStage(appends=rows(list(STRANGE_IDS)))).pin


def ids_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table.column("id").to_pylist()))


def test_a_scan_gives_the_columns_and_rows_asked_for(tables: Tables, hundred: Pin) -> None:
    table = tables.open(hundred)
    assert table.scan().num_rows == 85
    assert table.scan(columns=["number"]).column_names == ["number"]
    assert ids_of(table.scan(filter="number = 3 AND id = 'k3'")) == ["k3"]
    assert table.scan(limit=4).num_rows == 4
    assert table.scan(columns=[], with_addresses=True).column_names == ["_rowaddr"]


def test_batches_give_the_same_as_a_scan(tables: Tables, hundred: Pin) -> None:
    table = tables.open(hundred)
    batches = table.batches(columns=["id"], filter="number < 20", with_addresses=True)
    together = pa.Table.from_batches(list(batches))
    scanned = table.scan(columns=["id"], filter="number < 20", with_addresses=True)
    assert together.sort_by("id").equals(scanned.sort_by("id"))


def test_an_error_of_the_consumer_of_batches_stays_the_consumers(tables: Tables, hundred: Pin) -> None:
    with pytest.raises(ValueError, match="mine"):
        for _ in tables.open(hundred).batches():
            raise ValueError("mine")


def test_rows_are_counted_with_and_without_a_condition(tables: Tables, hundred: Pin) -> None:
    assert tables.open(hundred).count() == 85
    assert tables.open(hundred).count("id LIKE 'k1%'") == 10


@pytest.mark.parametrize("wrong", ["nowhere = 1", "id = = 'x'", "id = 'connection was not found'' timed out"])
def test_a_wrong_filter_is_the_callers_mistake(tables: Tables, hundred: Pin, wrong: str) -> None:
    with pytest.raises(InvalidRequestError):
        tables.open(hundred).scan(filter=wrong)
    with pytest.raises(InvalidRequestError):
        list(tables.open(hundred).batches(filter=wrong))
    with pytest.raises(InvalidRequestError):
        tables.open(hundred).count(wrong)


def test_a_wrong_column_is_the_callers_mistake(tables: Tables, hundred: Pin) -> None:
    with pytest.raises(InvalidRequestError):
        tables.open(hundred).scan(columns=["nowhere"])


@pytest.mark.parametrize("indexed", [False, True], ids=["without an index", "with an index"])
def test_any_text_is_a_good_id(tables: Tables, strange: Pin, indexed: bool) -> None:
    pin = tables.stage_index(strange, BY_ID).pin if indexed else strange
    table = tables.open(pin)
    for one in STRANGE_IDS:
        assert table.rows_with_ids([one], columns=["id"]).column("id").to_pylist() == [one]
    assert ids_of(table.rows_with_ids(STRANGE_IDS)) == sorted(STRANGE_IDS)
    staged = tables.stage_rows(pin, RowsToStage(upserts=rows(list(STRANGE_IDS[:5])), deleted_ids=STRANGE_IDS[5:]))
    assert set(staged.updated_ids) == set(STRANGE_IDS[:5])
    assert set(staged.deleted_ids) == set(STRANGE_IDS[5:])


def test_ids_that_do_not_occur_or_occur_twice_in_the_question_change_nothing(tables: Tables, hundred: Pin) -> None:
    found = tables.open(hundred).rows_with_ids(["k1", "k1", "nobody", "k7"])
    assert ids_of(found) == ["k1"]
    assert found.schema.equals(SCHEMA)


def test_asking_for_no_ids_gives_no_rows(tables: Tables, hundred: Pin) -> None:
    found = tables.open(hundred).rows_with_ids([], columns=["number"], with_addresses=True)
    assert found.num_rows == 0
    assert found.column_names == ["number", "_rowaddr"]


@pytest.mark.parametrize("indexed", [False, True], ids=["without an index", "with an index"])
@pytest.mark.parametrize("asked", [3, 900, 4_000])
@pytest.mark.parametrize("columns", [None, ["text"], ["id"], ["text", "id"]], ids=str)
@pytest.mark.parametrize("with_addresses", [False, True])
def test_every_way_of_looking_ids_up_gives_the_same(
    tables: Tables,
    empty: Pin,
    monkeypatch: pytest.MonkeyPatch,
    *,
    indexed: bool,
    asked: int,
    columns: list[str] | None,
    with_addresses: bool,
) -> None:
    # Small enough that 3 ids are one filter, 900 are several filters where an index helps, and 4,000 are a pass.
    monkeypatch.setattr(limits, "ID_FILTER_IDS_MAX", 100)
    monkeypatch.setattr(limits, "ID_LOOKUP_ROWS_SHARE_MAX", 0.3)
    monkeypatch.setattr(limits, "ID_PASS_ROWS_MAX", 1_500)
    everything = [f"k{number}" for number in range(5_000)]
    pin = tables.stage_rows(empty, RowsToStage(appends=rows(everything[:4_500]))).pin
    if indexed:
        pin = tables.stage_index(pin, BY_ID).pin
    pin = tables.stage_rows(pin, RowsToStage(appends=rows(everything[4_500:]), deleted_ids=("k9", "k10"))).pin

    wanted = [*everything[8 : 8 + asked - 1], "nobody"]
    found = tables.open(pin).rows_with_ids(wanted, columns=columns, with_addresses=with_addresses)

    names = (SCHEMA.names if columns is None else columns) + (["_rowaddr"] if with_addresses else [])
    assert found.column_names == names
    expected = [one for one in everything[8 : 8 + asked - 1] if one not in {"k9", "k10"}]
    if "id" in names:
        assert ids_of(found) == sorted(expected)
    if "text" in names:
        assert sorted(map(str, found.column("text").to_pylist())) == sorted(f"text of {one}" for one in expected)
    if with_addresses:
        by_address = tables.open(pin).rows_at([int(str(one)) for one in found.column("_rowaddr").to_pylist()])
        assert ids_of(by_address) == sorted(expected)


def test_rows_are_read_by_address_and_deleted_ones_passed_over(tables: Tables, hundred: Pin) -> None:
    table = tables.open(hundred)
    assert table.rows_at([1, 7, 8], columns=["id"]).column("id").to_pylist() == ["k1", "k8"]


@pytest.mark.parametrize("folder", ["a b", "ü#x", "100%", "q?r", "per%20cent", "file:x", "a+b&c;d"])
def test_tables_lie_exactly_where_the_root_says_whatever_its_letters(folder: str, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    tables = Tables(str(tmp_path / folder))
    made = tables.stage_rows(tables.create("nodes/01X", SCHEMA), RowsToStage(appends=rows(["a", "b", "c"]))).pin

    assert [file.name for file in tmp_path.iterdir()] == [folder]
    assert len([*(tmp_path / folder / "nodes/01X/data").iterdir()]) == 1
    assert Tables(str(tmp_path / folder)).open(made).count() == 3


def test_a_table_is_lent_under_the_name_everybody_knows(tables: Tables, root: Path, hundred: Pin) -> None:
    lent = as_lance_dataset(tables.open(hundred))

    assert (lent.uri, lent.version, lent.count_rows()) == (str(root / hundred.table), hundred.version, 85)


def test_one_version_is_opened_once(tables: Tables, hundred: Pin) -> None:
    assert tables.open(hundred)._handle is tables.open(Pin(hundred.table, hundred.version))._handle


def test_the_number_of_open_versions_is_bounded(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "OPEN_TABLES_MAX", 3)
    tables = Tables(str(root))
    pins = [tables.create(f"nodes/{number}", SCHEMA) for number in range(5)]
    assert len(tables._handles._open) == 3
    assert [tables.open(pin).count() for pin in pins] == [0] * 5
    assert len(tables._handles._open) == 3


def test_all_roots_of_a_process_share_one_session(tmp_path: Path) -> None:
    known = []
    for name in ("one", "two"):
        tables = Tables(str(tmp_path / name))
        pin = tables.stage_rows(tables.create("nodes/01THING", SCHEMA), RowsToStage(appends=rows(["a"]))).pin
        tables.open(pin).scan()
        known.append(tables._handles.open(pin).dataset.session())
    # What was read under one root is in the cache that the handles of the other root use.
    assert known[0].size_bytes() == known[1].size_bytes() == shared_session().size_bytes()


@pytest.mark.parametrize("folder", ["_versions", "data", "_deletions"])
def test_a_version_whose_files_are_gone_is_named_as_reclaimed(
    root: Path, tables: Tables, hundred: Pin, folder: str
) -> None:
    shutil.rmtree(root / hundred.table / folder)
    shared_session.cache_clear()
    with pytest.raises(FormatError) as caught:
        Tables(str(root)).open(hundred).scan()
    assert caught.value.code == "version_reclaimed"
    assert caught.value.details["table"] == hundred.table
    assert caught.value.details["version"] == hundred.version
    assert hundred.table in caught.value.message
    assert str(hundred.version) in caught.value.message


def test_a_version_that_never_was_is_named_as_reclaimed(tables: Tables, hundred: Pin) -> None:
    with pytest.raises(FormatError) as caught:
        tables.open(Pin(hundred.table, hundred.version ^ 1))
    assert caught.value.code == "version_reclaimed"
