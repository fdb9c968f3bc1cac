"""Which files a version needs, and which go when it is given up: none too many, none too few."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.handles import shared_session
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, Tables

pytestmark = pytest.mark.usefixtures("parts_of_few_texts_are_indexed")

FIELDS: "list[pa.Field[Any]]" = [
    pa.field("id", pa.string(), nullable=False),
    pa.field("age", pa.int64()),
    pa.field("text", pa.string()),
]
PERSON = pa.schema(FIELDS)
TABLE = "edges/01KNOWS"
SPECS = (
    IndexSpec("by_id", "id", IndexKind.BTREE),
    IndexSpec("by_age", "age", IndexKind.BITMAP),
    IndexSpec("by_part", "text", IndexKind.NGRAM),
)


def people(ages: Mapping[str, int]) -> pa.Table:
    content = {"id": list(ages), "age": list(ages.values()), "text": ["some words"] * len(ages)}
    return pa.table(content, schema=PERSON)


def all_files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def is_named(file: str, names: Iterable[str]) -> bool:
    return any(file == name or (name.endswith("/") and file.startswith(name)) for name in names)


def ages(root: Path, pin: Pin) -> dict[str, int]:
    """The content as a process sees it that has read nothing yet."""
    shared_session.cache_clear()
    table = Tables(str(root)).open(pin)
    found = {row["id"]: row["age"] for row in table.scan().to_pylist()}
    assert table.count("id = 'ada'") == ("ada" in found)
    assert table.count("age = 2") == list(found.values()).count(2)
    if table.indexes():
        assert table.count("contains(text, 'words')") == len(found)
    return found


@pytest.fixture
def base(tables: Tables) -> Pin:
    pin = tables.create(TABLE, PERSON)
    return tables.stage_rows(pin, RowsToStage(appends=people({"ada": 1, "bob": 2, "cy": 3}))).pin


@pytest.fixture
def rich(tables: Tables, base: Pin) -> Pin:
    """A version with deletion vectors, several fragments and indexes of several segments."""
    pin = tables.stage_index(base, *SPECS).pin
    pin = tables.stage_rows(pin, RowsToStage(upserts=people({"bob": 5, "dan": 2}))).pin
    pin = tables.stage_index_delta(pin, *SPECS).pin
    return tables.stage_rows(pin, RowsToStage(deleted_ids=("cy",))).pin


def test_deleting_every_file_a_version_does_not_name_leaves_it_whole(root: Path, tables: Tables, rich: Pin) -> None:
    expected = ages(root, rich)
    names = tables.files(rich)
    swept = [file for file in all_files(root) if not is_named(file, names)]
    assert swept
    for file in swept:
        (root / file).unlink()
    assert ages(root, rich) == expected == {"ada": 1, "bob": 5, "dan": 2}
    # And it can be written to.
    again = Tables(str(root))
    staged = again.stage_rows(rich, RowsToStage(upserts=people({"ada": 9, "eve": 9})))
    staged = again.stage_index_delta(staged.pin, *SPECS)
    assert ages(root, staged.pin) == {"ada": 9, "bob": 5, "dan": 2, "eve": 9}


def test_every_file_a_version_names_is_there_and_is_under_its_table(root: Path, tables: Tables, rich: Pin) -> None:
    names = tables.files(rich)
    assert {Path(name).parent.name for name in names if not name.endswith("/")} >= {"_versions", "data", "_deletions"}
    for name in names:
        assert name.startswith(f"{TABLE}/")
        assert (root / name).is_dir() if name.endswith("/") else (root / name).is_file()


def test_the_files_of_the_first_version_are_those_of_every_version(tables: Tables, rich: Pin) -> None:
    assert tables.files(Pin(TABLE, 1)) <= tables.files(rich)


@pytest.mark.parametrize("kind", ["rows", "rows only deleted", "replace", "columns", "index", "delta", "compaction"])
def test_what_is_discarded_is_what_was_written(root: Path, tables: Tables, rich: Pin, kind: str) -> None:
    before = all_files(root)
    match kind:
        case "rows":
            staged = tables.stage_rows(rich, RowsToStage(upserts=people({"ada": 9, "eve": 9}), deleted_ids=("dan",)))
        case "rows only deleted":
            staged = tables.stage_rows(rich, RowsToStage(deleted_ids=("ada",)))
        case "replace":
            staged = tables.stage_rows(rich, RowsToStage(upserts=people({"ada": 9}), replaces=True))
        case "columns":
            staged = tables.stage_columns(rich, dropped=["text"], added=[pa.field("more", pa.int64())])
        case "index":
            staged = tables.stage_index(rich, *SPECS)
        case "delta":
            staged = tables.stage_index_delta(rich, *SPECS, IndexSpec("by_text", "text", IndexKind.BTREE))
        case _:
            staged = tables.stage_compaction(rich, SPECS)
    written = all_files(root) - before
    discarded = Tables(str(root)).discard(rich, staged.pin)
    assert discarded == tables.discard(rich, staged.pin)
    assert {file for file in all_files(root) if is_named(file, discarded)} == written
    for file in written:
        (root / file).unlink()
    assert ages(root, rich) == {"ada": 1, "bob": 5, "dan": 2}


def test_nothing_is_discarded_when_nothing_was_staged(tables: Tables, rich: Pin) -> None:
    assert tables.discard(rich, rich) == ()


def test_discarding_a_rebased_version_leaves_what_it_was_rebased_onto(root: Path, tables: Tables, base: Pin) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9})))
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"bob": 8, "new": 8})))
    rebased = tables.rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    # Also when the caller is wrong about the base, and names the one it started from.
    for wrong_or_right in (onto.pin, base):
        discarded = tables.discard(wrong_or_right, rebased.pin)
        assert not set(discarded) & tables.files(onto.pin)
    for file in tables.discard(onto.pin, rebased.pin):
        (root / file).unlink(missing_ok=True)  # no version on local disk has a file for its transaction
    assert ages(root, onto.pin) == {"ada": 1, "bob": 8, "cy": 3, "new": 8}
    assert ages(root, base) == {"ada": 1, "bob": 2, "cy": 3}


def test_discarding_the_last_of_several_steps_leaves_the_one_before(root: Path, tables: Tables, base: Pin) -> None:
    first = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9})))
    second = tables.stage_rows(first.pin, RowsToStage(upserts=people({"ada": 10})))
    for file in tables.discard(base, second.pin):
        (root / file).unlink(missing_ok=True)
    assert ages(root, first.pin) == {"ada": 9, "bob": 2, "cy": 3}
