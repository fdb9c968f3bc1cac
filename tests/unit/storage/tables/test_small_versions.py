"""Versions written straight into their file: nobody can tell them from those that Lance makes of the same change."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pytest
from lance import LanceDataset

from omnigraph import limits
from omnigraph.errors import FormatError, InternalError, UnavailableError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, delete_at
from omnigraph.storage.tables.files import manifest_file, step_to
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.manifests import NOT_FOR_US, read_manifest
from omnigraph.storage.tables.messages import entries, message, number, stated, within
from omnigraph.storage.tables.small_versions import small_version
from omnigraph.storage.tables.stage import _written, make_version
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, Places, RowsToStage, Tables

TABLE = "nodes/01X"
ID: "pa.Field[Any]" = pa.field("id", pa.string(), nullable=False)
SCHEMA = pa.schema([ID, pa.field("age", pa.int32())])
BY_ID = IndexSpec("by_id", "id", IndexKind.BTREE)
_FRAGMENT, _DELETIONS, _VERSION, _INDEXES_AT, _MADE_AT, _TRANSACTION_FILE, _TRANSACTION_AT = 2, 3, 3, 6, 7, 12, 23
_OWN = {_VERSION, _INDEXES_AT, _MADE_AT, _TRANSACTION_FILE, _TRANSACTION_AT}


def people(*names: str, age: int = 1) -> pa.Table:
    return pa.table({"id": list(names), "age": pa.array([age] * len(names), pa.int32())}, SCHEMA)


def names(tables: Tables, pin: Pin) -> list[str]:
    return sorted(str(each) for each in tables.open(pin).scan(columns=["id"])["id"].to_pylist())


@pytest.fixture
def three(tables: Tables) -> Pin:
    """Three people in two fragments, the second written after Lance has shown how."""
    first = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people("ada", "bob"))).pin
    return tables.stage_rows(first, RowsToStage(appends=people("cy"))).pin


def handle_of(tables: Tables, pin: Pin) -> Handle:
    return tables._handles.open(pin)


def at(fragment: int, *offsets: int) -> Addresses:
    return np.array([fragment << 32 | offset for offset in offsets], np.uint64)


def manifest_entries(root: Path, version: int) -> list[tuple[int, int, Any]]:
    """What a manifest says, without what no two versions share."""
    body = (root / TABLE / manifest_file(version)).read_bytes()
    begins = int.from_bytes(body[-16:-8], "little")
    assert body[-8:] == b"\x00\x00\x02\x00LANC"
    told = entries(body[begins + 4 : -16])
    return sorted(
        (key, wire, _without_vector(value) if key == _FRAGMENT and isinstance(value, bytes) else value)
        for key, wire, value in told
        if key not in _OWN
    )


def _without_vector(fragment: bytes) -> bytes:
    """A fragment with nothing of its deletion vector but how many rows it deletes."""
    return b"".join(
        within(_DELETIONS, message(each for each in entries(value) if each[0] == 4))
        if key == _DELETIONS and isinstance(value, bytes)
        else message([(key, wire, value)])
        for key, wire, value in entries(fragment)
    )


def both_ways(tables: Tables, base: Pin, added: pa.Table | None, removed: Addresses) -> tuple[Handle, Handle]:
    """The same change made here and by Lance."""
    handle = handle_of(tables, base)
    written = () if added is None else _written(handle, added)
    ours = small_version(handle, written, removed)
    assert ours is not None
    deletion = delete_at(handle.dataset, removed)
    assert deletion is not None
    return ours[0], make_version(handle, written, deletion)


CHANGES = {
    "append": (people("dan"), NO_ADDRESSES),
    "delete": (None, at(0, 1)),
    "update": (people("ada", age=2), at(0, 0)),
}


@pytest.mark.parametrize("is_indexed", [False, True], ids=["plain", "with indexes"])
@pytest.mark.parametrize("is_shortened", [False, True], ids=["whole", "with a vector of lance's"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_version_says_what_lance_would_say(
    root: Path, tables: Tables, change: str, is_shortened: bool, is_indexed: bool
) -> None:
    base = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people("ada", "bob", "eve"))).pin
    base = tables.stage_rows(base, RowsToStage(appends=people("cy"))).pin
    if is_indexed:
        base = tables.stage_index(base, BY_ID).pin
    if is_shortened:
        handle = handle_of(tables, base)
        deletion = delete_at(handle.dataset, at(0, 2))
        assert deletion is not None
        base = tables._handles.keep(make_version(handle, (), deletion)).pin()
    added, removed = CHANGES[change]

    ours, theirs = both_ways(tables, base, added, removed)

    assert manifest_entries(root, ours.version) == manifest_entries(root, theirs.version)
    assert (ours.rows, ours.data_bytes) == (theirs.rows, theirs.data_bytes)
    opened: Any = ours.dataset
    expected: Any = theirs.dataset
    assert sorted(opened.to_table().to_pylist(), key=str) == sorted(expected.to_table().to_pylist(), key=str)
    assert opened.count_rows() == ours.rows
    opened.validate()
    assert [_index(each) for each in opened.describe_indices()] == [
        _index(each) for each in expected.describe_indices()
    ]
    step, lance_step = step_to(ours, ours.version), step_to(theirs, theirs.version)
    assert (step.base, type(step.operation)) == (lance_step.base, type(lance_step.operation))
    assert _spoken(step.operation) == _spoken(lance_step.operation)


def _index(index: Any) -> tuple[Any, ...]:  # noqa: ANN401  (comes without types)
    return index.name, index.field_names, [(each.uuid, each.fragment_ids) for each in index.segments]


def _spoken(operation: Any) -> dict[str, Any]:  # noqa: ANN401  (one of several classes)
    """An operation as a table of what it says; deletion vectors have names of their own."""
    told = dict(vars(operation))
    for name in ("updated_fragments", "fragments", "new_fragments"):
        told[name] = [(each.id, each.files, each.num_rows, each.physical_rows) for each in told.get(name) or ()]
    return told


def test_a_version_is_one_file_and_a_deletion_vector_is_another(root: Path, tables: Tables, three: Pin) -> None:
    before = {each for each in root.rglob("*") if each.is_file()}
    staged = tables.stage_rows(three, RowsToStage(deleted_ids=("bob",)))
    fresh = {each.relative_to(root).as_posix() for each in root.rglob("*") if each.is_file() and each not in before}

    assert fresh == set(staged.files)
    assert sorted(file.split("/")[2] for file in fresh) == ["_deletions", "_versions"]


def test_another_process_reads_it_whole(root: Path, tables: Tables, three: Pin) -> None:
    pin = tables.stage_rows(three, RowsToStage(deleted_ids=("bob",), appends=people("dan"))).pin

    elsewhere: Any = lance.dataset(str(root / TABLE), version=pin.version)

    assert sorted(elsewhere.to_table()["id"].to_pylist()) == ["ada", "cy", "dan"]
    assert sorted(elsewhere.to_table(filter="id != 'cy'")["id"].to_pylist()) == ["ada", "dan"]
    assert elsewhere.read_transaction(pin.version).read_version == three.version
    elsewhere.validate()


def test_lance_builds_on_it_and_it_builds_on_lance(tables: Tables, three: Pin) -> None:
    pin = three
    for number_ in range(4):
        pin = tables.stage_rows(pin, RowsToStage(appends=people(f"n{number_}", f"m{number_}"))).pin
        pin = tables.stage_rows(pin, RowsToStage(deleted_ids=(f"m{number_}",))).pin
        pin = tables.stage_index(pin, BY_ID).pin if number_ % 2 else tables.stage_compaction(pin).pin
    assert names(tables, pin) == ["ada", "bob", "cy", "n0", "n1", "n2", "n3"]
    assert [each["id"] for each in tables.open(pin).rows_with_ids(["n3", "m3", "bob"]).to_pylist()].count("m3") == 0


def test_many_deletions_of_one_fragment_add_up(tables: Tables) -> None:
    everyone = [f"p{number_:05d}" for number_ in range(8_000)]
    pin = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people(*everyone))).pin
    for start in range(0, 7_000, 1_400):
        pin = tables.stage_rows(pin, RowsToStage(deleted_ids=tuple(everyone[start : start + 1_400]))).pin
        assert pin.rows == len(everyone) - start - 1_400
    assert names(tables, pin) == everyone[7_000:]


@pytest.mark.parametrize("rows", [3, 6_000], ids=["as an arrow file", "as a bitmap"])
def test_a_vector_that_lance_wrote_is_read_and_grows(root: Path, tables: Tables, rows: int) -> None:
    everyone = [f"p{number_:05d}" for number_ in range(8_000)]
    base = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people(*everyone))).pin
    handle = handle_of(tables, base)
    deletion = delete_at(handle.dataset, at(0, *range(rows)))
    assert deletion is not None
    shortened = make_version(handle, (), deletion).pin()
    assert {each.suffix for each in (root / TABLE / "_deletions").iterdir()} == {".arrow" if rows == 3 else ".bin"}

    elsewhere = Tables(str(root))
    pin = elsewhere.stage_rows(shortened, RowsToStage(deleted_ids=(everyone[-1],))).pin

    assert names(elsewhere, pin) == everyone[rows:-1]


def test_what_was_staged_moves_onto_another_version_as_a_small_one(root: Path, tables: Tables) -> None:
    three = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people("ada", "bob", "cy"))).pin
    ours = tables.stage_rows(three, RowsToStage(deleted_ids=("bob",), appends=people("dan")))
    theirs = tables.stage_rows(three, RowsToStage(deleted_ids=("ada",), appends=people("eve")))

    moved = tables.rebase(three, ours.pin, theirs.pin)

    assert moved is not None
    assert names(tables, moved.pin) == ["cy", "dan", "eve"]
    assert handle_of(tables, moved.pin).manifest is not None
    assert not any((root / TABLE / "_transactions").glob(f"{theirs.pin.version}-*"))
    again = tables.stage_rows(three, RowsToStage(deleted_ids=("ada",)))
    assert tables.rebase(three, again.pin, moved.pin) is None  # somebody has deleted it


def test_a_fragment_that_loses_its_last_row_leaves_the_version(tables: Tables, three: Pin) -> None:
    pin = tables.stage_rows(three, RowsToStage(deleted_ids=("cy",))).pin

    assert names(tables, pin) == ["ada", "bob"]
    assert len(tables.open(pin)._handle.fragments()) == 1


def test_a_row_that_is_deleted_already_is_not_deleted_twice(tables: Tables, three: Pin) -> None:
    pin = tables.stage_rows(three, RowsToStage(deleted_ids=("bob",))).pin
    places = Places(pin.version, {"bob": 1})

    with pytest.raises(InternalError, match="cannot be deleted"):
        tables.stage_rows(pin, RowsToStage(deleted_ids=("bob",), places=places))


def _with_entry(body: bytes, entry: bytes) -> bytes:
    """A manifest file with one entry more."""
    begins = int.from_bytes(body[-16:-8], "little")
    longer = body[begins + 4 : -16] + entry
    return body[:begins] + len(longer).to_bytes(4, "little") + longer + body[-16:]


@pytest.mark.parametrize(
    ("change", "is_known"),
    [
        (lambda body: body, True),
        (lambda body: _with_entry(body, number(14, 7)), False),
        (lambda body: _with_entry(body, within(99, b"what is to come")), False),
        (lambda body: _with_entry(body, number(9, 2) + number(10, 2)), False),
        (lambda body: _with_entry(body, number(10, 1)), False),
        (lambda body: _with_entry(body, stated(11, 0)), False),
        (lambda body: body.replace(lance.__version__.encode(), b"1" * len(lance.__version__)), False),
    ],
    ids=[
        "as it is",
        "row numbers that stay",
        "a field of a later release",
        "a feature",
        "one of writers only",
        "numbers used already",
        "another release",
    ],
)
def test_a_manifest_with_anything_unknown_is_left_to_lance(
    root: Path, tables: Tables, three: Pin, change: Callable[[bytes], bytes], is_known: bool
) -> None:
    body = (root / TABLE / manifest_file(three.version)).read_bytes()

    assert (read_manifest(change(body)) is not None) is is_known


def test_what_is_left_to_lance_is_looked_at_once_and_still_written(root: Path, tables: Tables, three: Pin) -> None:
    handle = handle_of(tables, three)
    handle.manifest = NOT_FOR_US

    pin = tables.stage_rows(three, RowsToStage(deleted_ids=("bob",), appends=people("dan"))).pin

    assert names(tables, pin) == ["ada", "cy", "dan"]
    assert handle.manifest is NOT_FOR_US
    assert any((root / TABLE / "_transactions").glob(f"{three.version}-*"))


def test_more_rows_than_few_are_left_to_lance(tables: Tables, three: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    handle = handle_of(tables, three)
    monkeypatch.setattr(limits, "SMALL_DELETION_ROWS_MAX", 1)
    assert small_version(handle, (), at(0, 0, 1)) is None
    assert small_version(handle, (), at(0, 0)) is not None
    monkeypatch.setattr(limits, "SMALL_VERSION_FRAGMENTS_MAX", 1)
    assert small_version(handle, (), at(0, 0)) is None


def test_what_is_not_plainly_rows_of_a_fragment_is_left_to_lance(tables: Tables, three: Pin) -> None:
    handle = handle_of(tables, three)
    written = [_written(handle, people(name))[0] for name in ("dan", "eve")]
    assert small_version(handle, written[:1], NO_ADDRESSES) is not None

    assert small_version(handle, written, NO_ADDRESSES) is None, "two fragments"
    assert small_version(handle, (), at(0, 7)) is None, "a row that is not there"
    assert small_version(handle, (), at(9, 0)) is None, "a fragment that is not there"
    deletion = delete_at(handle.dataset, at(0, 1))
    assert deletion is not None
    assert small_version(handle, deletion.updated, NO_ADDRESSES) is None, "a fragment with a vector of its own"


DAMAGED = [b"", b"short", b"\x00" * 64, b"nothing like a file of this kind, and long enough for one"]


@pytest.mark.parametrize("body", DAMAGED, ids=["empty", "short", "zeros", "text"])
def test_a_damaged_manifest_is_told_as_damage(root: Path, tables: Tables, three: Pin, body: bytes) -> None:
    elsewhere = Tables(str(root))
    assert elsewhere.open(three).count() == 3  # open, and its manifest in memory
    (root / TABLE / manifest_file(three.version)).write_bytes(body)
    with pytest.raises(FormatError) as caught:
        elsewhere.stage_rows(three, RowsToStage(deleted_ids=("bob",), places=Places(three.version, {"bob": 1})))
    assert caught.value.code == "damaged_table"


def test_the_manifest_of_another_version_is_told_as_damage(root: Path, tables: Tables, three: Pin) -> None:
    other = tables.stage_rows(three, RowsToStage(appends=people("dan"))).pin
    elsewhere = Tables(str(root))
    assert elsewhere.open(three).count() == 3
    (root / TABLE / manifest_file(three.version)).write_bytes(
        (root / TABLE / manifest_file(other.version)).read_bytes()
    )
    with pytest.raises(FormatError, match=f"it is that of version {other.version}"):
        elsewhere.stage_rows(three, RowsToStage(deleted_ids=("bob",), places=Places(three.version, {"bob": 1})))


def test_any_byte_of_a_manifest_may_change_and_nothing_but_damage_is_told(
    root: Path, tables: Tables, three: Pin
) -> None:
    pin = tables.stage_index(tables.stage_rows(three, RowsToStage(deleted_ids=("bob",))).pin, BY_ID).pin
    pin = tables.stage_rows(pin, RowsToStage(appends=people("dan"))).pin
    body = (root / TABLE / manifest_file(pin.version)).read_bytes()
    spoilt = [
        body[:place] + bytes([body[place] ^ bits]) + body[place + 1 :]
        for place in range(len(body))
        for bits in (1, 0x10, 0x80, 0xFF)
    ]
    spoilt += [body[:place] for place in range(len(body))]
    spoilt += [body[:place] + body[-16:] for place in range(len(body))]
    refused = 0
    for each in spoilt:
        try:
            found = read_manifest(each) or NOT_FOR_US
            for number_ in found.fragments:
                found.fragment(number_)
        except ValueError as fault:
            assert str(fault).startswith("corrupt manifest: ")
            refused += 1
    assert refused > len(body), "more than were cut short"


@pytest.mark.parametrize("rows", [3, 6_000], ids=["as an arrow file", "as a bitmap"])
@pytest.mark.parametrize("body", [*DAMAGED, None], ids=["empty", "short", "zeros", "text", "of another"])
def test_a_damaged_deletion_vector_is_told_as_damage(root: Path, tables: Tables, rows: int, body: bytes | None) -> None:
    everyone = [f"p{number_:05d}" for number_ in range(8_000)]
    base = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people(*everyone))).pin
    handle = handle_of(tables, base)
    for fewer in (1, 0):
        deletion = delete_at(handle.dataset, at(0, *range(rows - fewer)))
        assert deletion is not None
        shortened = make_version(handle, (), deletion).pin()
    other, vector = sorted((root / TABLE / "_deletions").iterdir(), key=lambda each: each.stat().st_mtime_ns)
    vector.write_bytes(other.read_bytes() if body is None else body)

    with pytest.raises(FormatError) as caught:
        Tables(str(root)).stage_rows(
            shortened, RowsToStage(deleted_ids=(everyone[-1],), places=Places(shortened.version, {everyone[-1]: 7_999}))
        )

    assert caught.value.code == "damaged_table"
    vector.unlink()
    with pytest.raises(FormatError) as caught:
        Tables(str(root)).stage_rows(
            shortened, RowsToStage(deleted_ids=(everyone[-1],), places=Places(shortened.version, {everyone[-1]: 7_999}))
        )
    assert caught.value.code == "version_reclaimed"


def test_a_disk_that_is_full_leaves_no_half_file(
    root: Path, tables: Tables, three: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {each for each in root.rglob("*") if each.is_file()}
    real = os.write

    def full(handle: int, body: bytes) -> int:
        real(handle, bytes(body)[:7])
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched, pytest.raises(UnavailableError) as caught:
        patched.setattr(os, "write", full)
        tables.stage_rows(three, RowsToStage(deleted_ids=("bob",), places=Places(three.version, {"bob": 1})))

    assert caught.value.code == "store_full"
    assert {each for each in root.rglob("*") if each.is_file()} == before


def test_a_version_made_here_is_opened_when_it_is_read_and_not_before(tables: Tables, three: Pin) -> None:
    made = small_version(handle_of(tables, three), (), at(0, 1))
    assert made is not None
    handle, _ = made
    assert (handle.rows, handle.version >> 63) == (2, 1)
    assert handle._dataset is None
    assert isinstance(handle.dataset, LanceDataset)
    assert handle.dataset.version == handle.version
    assert set(handle.fragment_numbers) == handle.dataset.fragment_ids()


@pytest.mark.parametrize("folder", ["with space", "50%25", "日本 é", "a#b?c", "a+b&c=[d]"])
def test_a_folder_may_have_any_name(tmp_path: Path, folder: str) -> None:
    tables = Tables(str(tmp_path / folder))
    first = tables.stage_rows(tables.create(TABLE, SCHEMA), RowsToStage(appends=people("ada", "bob"))).pin
    staged = tables.stage_rows(first, RowsToStage(deleted_ids=("bob",), appends=people("cy")))

    assert handle_of(tables, staged.pin).manifest is not None
    assert all((tmp_path / folder / file).is_file() for file in staged.files)
    assert names(Tables(str(tmp_path / folder)), staged.pin) == ["ada", "cy"]
