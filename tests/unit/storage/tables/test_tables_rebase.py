"""Rebasing: the same effect on a newer version, exactly, or not at all."""

import json
import random  # noqa: TID251  (seeded)
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import limits
from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import IndexKind, IndexSpec, RowsToStage, StagedVersion, Tables

FIELDS: "list[pa.Field[Any]]" = [pa.field("id", pa.string(), nullable=False), pa.field("age", pa.int64())]
PERSON = pa.schema(FIELDS)
TABLE = "nodes/01PERSON"
BY_ID = IndexSpec("by_id", "id", IndexKind.BTREE)
START = {"ada": 1, "bob": 2, "cy": 3, "dan": 4}


def people(ages: Mapping[str, int]) -> pa.Table:
    return pa.table({"id": list(ages), "age": list(ages.values())}, schema=PERSON)


def ages(tables: Tables, pin: Pin) -> dict[str, int]:
    found = tables.open(pin).scan()
    assert found.num_rows == pin.rows
    result = {row["id"]: row["age"] for row in found.to_pylist()}
    assert len(result) == found.num_rows, "an id occurs twice"
    return result


@pytest.fixture
def base(tables: Tables) -> Pin:
    """Ada and Bob in one fragment, Cy and Dan in another."""
    pin = tables.create(TABLE, PERSON)
    pin = tables.stage_rows(pin, RowsToStage(appends=people({"ada": 1, "bob": 2}))).pin
    return tables.stage_rows(pin, RowsToStage(appends=people({"cy": 3, "dan": 4}))).pin


@pytest.fixture(params=["remembered", "from the pins alone"])
def rebase(
    request: pytest.FixtureRequest, root: Path, tables: Tables
) -> Callable[[Pin, Pin, Pin], StagedVersion | None]:
    """Rebasing by the process that staged, and by one that knows nothing but the pins."""
    if request.param == "remembered":
        return tables.rebase
    stranger = Tables(str(root))

    def by_numbers(base: Pin, staged: Pin, onto: Pin) -> StagedVersion | None:
        return stranger.rebase(*(Pin(pin.table, pin.version) for pin in (base, staged, onto)))

    return by_numbers


Rebase = Callable[[Pin, Pin, Pin], StagedVersion | None]

OURS = {
    "append": RowsToStage(appends=people({"new": 9})),
    "insert": RowsToStage(upserts=people({"new": 9})),
    "update": RowsToStage(upserts=people({"ada": 9})),
    "delete": RowsToStage(deleted_ids=("ada",)),
    "delete a whole fragment": RowsToStage(deleted_ids=("ada", "bob")),
    "all of it": RowsToStage(upserts=people({"ada": 9, "new": 9}), deleted_ids=("bob",)),
}
THEIRS = {
    "append": RowsToStage(appends=people({"other": 8})),
    "update the other fragment": RowsToStage(upserts=people({"cy": 8})),
    "delete in the other fragment": RowsToStage(deleted_ids=("dan",)),
    "delete the whole other fragment": RowsToStage(deleted_ids=("cy", "dan")),
}


def applied(content: Mapping[str, int], rows: RowsToStage) -> dict[str, int]:
    result = {name: age for name, age in content.items() if name not in rows.deleted_ids}
    for table in (rows.upserts, rows.appends):
        if table is not None:
            result |= {row["id"]: row["age"] for row in table.to_pylist()}
    return result


@pytest.mark.parametrize("ours", OURS.values(), ids=OURS)
@pytest.mark.parametrize("theirs", THEIRS.values(), ids=THEIRS)
def test_two_writes_of_different_rows_both_hold(
    tables: Tables, base: Pin, rebase: Rebase, *, ours: RowsToStage, theirs: RowsToStage
) -> None:
    staged = tables.stage_rows(base, ours)
    onto = tables.stage_rows(base, theirs)
    rebased = rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == applied(applied(START, theirs), ours)
    assert rebased.base.version == onto.pin.version
    assert set(rebased.inserted_ids) == set(staged.inserted_ids)
    assert set(rebased.updated_ids) == set(staged.updated_ids)
    assert set(rebased.deleted_ids) == set(staged.deleted_ids)
    # Neither what we staged nor what we went onto has changed.
    assert ages(tables, staged.pin) == applied(START, ours)
    assert ages(tables, onto.pin) == applied(START, theirs)


def test_different_rows_of_one_fragment_both_hold(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9})))
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"bob": 8})))
    rebased = rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"ada": 9, "bob": 8, "cy": 3, "dan": 4}


def test_the_data_files_are_written_once(root: Path, tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "new": 9})))
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"bob": 8})))
    before = set((root / TABLE / "data").iterdir())
    rebased = rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert set((root / TABLE / "data").iterdir()) == before
    # What the rebased version needs and its base does not: for making it durable.
    needed = tables.files(rebased.pin) - tables.files(onto.pin)
    assert set(rebased.files) == needed


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (RowsToStage(upserts=people({"ada": 9})), RowsToStage(upserts=people({"ada": 8}))),
        (RowsToStage(upserts=people({"ada": 9})), RowsToStage(deleted_ids=("ada",))),
        (RowsToStage(deleted_ids=("ada",)), RowsToStage(upserts=people({"ada": 8}))),
        (RowsToStage(deleted_ids=("ada", "cy")), RowsToStage(deleted_ids=("cy",))),
        (RowsToStage(deleted_ids=("ada",)), RowsToStage(deleted_ids=("ada", "bob"))),
        (RowsToStage(deleted_ids=("ada", "bob")), RowsToStage(deleted_ids=("bob",))),
        (RowsToStage(upserts=people({"ada": 9})), RowsToStage(upserts=people({"zoe": 8}), replaces=True)),
    ],
)
def test_a_row_that_others_changed_too_is_not_rebased(
    tables: Tables, base: Pin, rebase: Rebase, *, ours: RowsToStage, theirs: RowsToStage
) -> None:
    staged = tables.stage_rows(base, ours)
    onto = tables.stage_rows(base, theirs)
    assert rebase(base, staged.pin, onto.pin) is None


def test_rows_that_a_compaction_moved_are_not_rebased(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9})))
    assert rebase(base, staged.pin, tables.stage_compaction(base).pin) is None


def test_an_append_is_rebased_over_anything(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(appends=people({"new": 9})))
    for onto in (
        tables.stage_compaction(base).pin,
        tables.stage_rows(base, RowsToStage(upserts=people({"zoe": 1}), replaces=True)).pin,
        tables.stage_rows(base, RowsToStage(replaces=True)).pin,
        tables.stage_index(base, BY_ID).pin,
    ):
        rebased = rebase(base, staged.pin, onto)
        assert rebased is not None
        assert ages(tables, rebased.pin) == {**ages(tables, onto), "new": 9}


def test_a_rebased_version_is_rebased_again(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "new": 9}), deleted_ids=("cy",)))
    onto = base
    content = dict(START)
    previous_base, previous = base, staged.pin
    for number in range(4):
        onto = tables.stage_rows(onto, RowsToStage(upserts=people({"bob": number, f"n{number}": 0}))).pin
        content |= {"bob": number, f"n{number}": 0}
        rebased = rebase(previous_base, previous, onto)
        assert rebased is not None
        expected = {**content, "ada": 9, "new": 9}
        del expected["cy"]
        assert ages(tables, rebased.pin) == expected
        assert (set(rebased.inserted_ids), set(rebased.updated_ids), rebased.deleted_ids) == ({"new"}, {"ada"}, ("cy",))
        # Starting from the first staged version gives the same.
        afresh = rebase(base, staged.pin, onto)
        assert afresh is not None
        assert ages(tables, afresh.pin) == expected
        previous_base, previous = onto, rebased.pin


def test_what_was_staged_in_several_steps_is_rebased_as_a_whole(tables: Tables, base: Pin, rebase: Rebase) -> None:
    first = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "new": 9, "brief": 9})))
    second = tables.stage_rows(first.pin, RowsToStage(upserts=people({"new": 10}), deleted_ids=("brief", "cy")))
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"bob": 8, "other": 8})))
    rebased = rebase(base, second.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"ada": 9, "bob": 8, "dan": 4, "new": 10, "other": 8}
    assert set(rebased.inserted_ids) == {"new"}
    assert rebased.updated_ids == ("ada",)
    assert rebased.deleted_ids == ("cy",)
    assert set(rebased.files) == tables.files(rebased.pin) - tables.files(onto.pin)


def test_rows_that_are_there_already_are_not_added_twice(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(appends=people({"new": 9})))
    later = tables.stage_rows(staged.pin, RowsToStage(deleted_ids=("ada",)))
    assert rebase(base, staged.pin, later.pin) is None


def test_a_replacement_is_rebased_only_while_the_content_is_the_same(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "zoe": 9}), replaces=True))
    indexed = tables.stage_index(base, BY_ID)
    rebased = rebase(base, staged.pin, indexed.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"ada": 9, "zoe": 9}
    assert set(rebased.deleted_ids) == {"bob", "cy", "dan"}
    for theirs in THEIRS.values():
        assert rebase(base, staged.pin, tables.stage_rows(base, theirs).pin) is None


def test_a_replacement_of_an_empty_table_does_not_become_an_append(tables: Tables, rebase: Rebase) -> None:
    empty = tables.create("nodes/01EMPTY", PERSON)
    staged = tables.stage_rows(empty, RowsToStage(appends=people({"mine": 1}), replaces=True))
    onto = tables.stage_rows(empty, RowsToStage(appends=people({"theirs": 1})))
    assert rebase(empty, staged.pin, onto.pin) is None


def test_rebasing_onto_the_base_itself_gives_what_was_staged(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "new": 9}), deleted_ids=("cy",)))
    same = rebase(base, staged.pin, base)
    assert same is not None
    assert same.pin == staged.pin
    assert same.inserted_ids == ("new",)
    assert same.updated_ids == ("ada",)
    assert same.deleted_ids == ("cy",)
    assert set(same.files) == set(staged.files)


def test_nothing_staged_rebases_to_nothing(tables: Tables, base: Pin, rebase: Rebase) -> None:
    onto = tables.stage_rows(base, RowsToStage(deleted_ids=("ada",)))
    same = rebase(base, base, onto.pin)
    assert same is not None
    assert same.pin.version == onto.pin.version
    assert same.is_unchanged


def test_columns_that_changed_on_either_side_are_not_rebased(tables: Tables, base: Pin, rebase: Rebase) -> None:
    rows = tables.stage_rows(base, RowsToStage(appends=people({"new": 9})))
    column = tables.stage_add_column(base, pa.field("height", pa.int64()))
    assert rebase(base, rows.pin, column.pin) is None
    assert rebase(base, column.pin, rows.pin) is None


def test_a_column_dropped_and_added_again_is_not_taken_for_the_old_one(
    tables: Tables, base: Pin, rebase: Rebase
) -> None:
    rows = tables.stage_rows(base, RowsToStage(appends=people({"new": 9})))
    dropped = tables.stage_drop_column(base, "age")
    again = tables.stage_add_column(dropped.pin, pa.field("age", pa.int64()))
    assert tables.open(again.pin).schema.equals(PERSON)
    assert rebase(base, rows.pin, again.pin) is None


def test_an_index_is_rebased_over_writes_to_its_fragments(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_index(base, BY_ID)
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "other": 8}), deleted_ids=("cy",)))
    rebased = rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"ada": 9, "bob": 2, "dan": 4, "other": 8}
    (index,) = tables.open(rebased.pin).indexes()
    assert (index.name, index.rows, index.rows_missing) == ("by_id", 2, 2)
    assert [tables.open(rebased.pin).count(f"id = '{name}'") for name in ("ada", "bob", "cy", "other")] == [1, 1, 0, 1]
    assert (rebased.inserted_ids, rebased.updated_ids, rebased.deleted_ids) == ((), (), ())


def test_an_index_over_rows_that_moved_is_not_rebased(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_index(base, BY_ID)
    assert rebase(base, staged.pin, tables.stage_compaction(base).pin) is None


def test_an_index_that_others_built_too_is_not_rebased(tables: Tables, base: Pin, rebase: Rebase) -> None:
    ours, theirs = tables.stage_index(base, BY_ID), tables.stage_index(base, BY_ID)
    assert rebase(base, ours.pin, theirs.pin) is None


def test_folding_an_index_that_others_dropped_is_not_rebased(tables: Tables, base: Pin, rebase: Rebase) -> None:
    pin = tables.stage_index(base, BY_ID).pin
    pin = tables.stage_rows(pin, RowsToStage(appends=people({"new": 9}))).pin
    pin = tables.stage_index_delta(pin, BY_ID).pin
    folded = tables.fold_index(pin, BY_ID)
    assert rebase(pin, folded.pin, tables.stage_index_drop(pin, "by_id").pin) is None
    assert rebase(pin, folded.pin, tables.stage_rows(pin, RowsToStage(deleted_ids=("ada",))).pin) is not None


def test_a_compaction_is_rebased_over_appends_together_with_its_index(
    tables: Tables, base: Pin, rebase: Rebase
) -> None:
    indexed = tables.stage_index(base, BY_ID).pin
    staged = tables.stage_compaction(indexed, [BY_ID])
    onto = tables.stage_rows(indexed, RowsToStage(appends=people({"other": 8})))
    rebased = rebase(indexed, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {**START, "other": 8}
    assert tables.open(rebased.pin).layout().fragments == 2
    assert (rebased.inserted_ids, rebased.updated_ids, rebased.deleted_ids) == ((), (), ())
    assert [tables.open(rebased.pin).count(f"id = '{name}'") for name in ("ada", "dan", "other")] == [1, 1, 1]
    (index,) = tables.open(rebased.pin).indexes()
    assert (index.rows, index.rows_missing) == (4, 1)


def test_a_compaction_is_rebased_over_changes_of_its_rows(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_compaction(base)
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"cy": 30}), deleted_ids=("ada",)))
    rebased = rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"bob": 2, "cy": 30, "dan": 4}
    # Ada and the old Cy are in the new files and dead; the new Cy is where his writer put him.
    layout = tables.open(rebased.pin).layout()
    assert (layout.fragments, layout.deleted_rows) == (2, 2)
    assert rebased.pin.rows == 3


def test_a_compaction_is_rebased_over_the_loss_of_a_whole_fragment(tables: Tables, base: Pin, rebase: Rebase) -> None:
    staged = tables.stage_compaction(base)
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 10}), deleted_ids=("bob",))).pin
    once = rebase(base, staged.pin, onto)
    assert once is not None
    assert ages(tables, once.pin) == {"ada": 10, "cy": 3, "dan": 4}
    further = tables.stage_rows(onto, RowsToStage(deleted_ids=("cy",))).pin
    twice = rebase(onto, once.pin, further)
    assert twice is not None
    assert ages(tables, twice.pin) == {"ada": 10, "dan": 4}
    # Nothing of what was put together is left.
    assert rebase(further, twice.pin, tables.stage_rows(further, RowsToStage(deleted_ids=("dan",))).pin) is None


def test_a_compaction_is_not_rebased_over_another_one(tables: Tables, base: Pin, rebase: Rebase) -> None:
    ours, theirs = tables.stage_compaction(base), tables.stage_compaction(base)
    assert rebase(base, ours.pin, theirs.pin) is None
    replaced = tables.stage_rows(base, RowsToStage(upserts=people({"new": 1}), replaces=True))
    assert rebase(base, ours.pin, replaced.pin) is None


@pytest.mark.parametrize("seed", range(6))
def test_a_compaction_follows_whatever_writers_do_meanwhile(tables: Tables, seed: int, rebase: Rebase) -> None:
    chance = random.Random(seed)
    pin = tables.create(TABLE, PERSON)
    model: dict[str, int] = {}
    for number in range(8):
        added = {f"p{number}-{place}": number for place in range(chance.randint(1, 5))}
        model |= added
        pin = tables.stage_rows(pin, RowsToStage(appends=people(added))).pin
    pin = tables.stage_index(pin, BY_ID).pin
    staged = tables.stage_upkeep(pin, [BY_ID])
    for step in range(12):
        gone = tuple(chance.sample(sorted(model), chance.randint(0, 2)))
        put = dict.fromkeys(chance.sample(sorted(model.keys() - set(gone)), 2), -step) | {f"new{step}": step}
        onto = tables.stage_rows(pin, RowsToStage(upserts=people(put), deleted_ids=gone)).pin
        model = {name: age for name, age in model.items() if name not in gone} | put
        moved = rebase(pin, staged.pin, onto)
        assert moved is not None
        pin, staged = onto, moved
        assert ages(tables, staged.pin) == model
        opened = tables.open(staged.pin)
        assert {name: opened.rows_with_ids([name]).num_rows for name in model} == dict.fromkeys(model, 1)
        assert all(opened.rows_with_ids([name]).num_rows == 0 for name in gone)


def test_a_version_that_was_not_made_from_the_base_is_an_error(tables: Tables, base: Pin) -> None:
    one = tables.stage_rows(base, RowsToStage(deleted_ids=("ada",)))
    other = tables.stage_rows(base, RowsToStage(deleted_ids=("bob",)))
    with pytest.raises(InternalError):
        tables.rebase(one.pin, other.pin, base)


def test_effects_too_large_to_remember_are_read_again(
    tables: Tables, base: Pin, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "STAGED_EFFECT_ROWS_MAX", 1)
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"ada": 9, "new": 9})))
    assert tables._staged_versions.get((TABLE, base.version, staged.pin.version)) is None
    onto = tables.stage_rows(base, RowsToStage(deleted_ids=("dan",)))
    rebased = tables.rebase(base, staged.pin, onto.pin)
    assert rebased is not None
    assert ages(tables, rebased.pin) == {"ada": 9, "bob": 2, "cy": 3, "new": 9}


def test_the_number_of_remembered_effects_is_bounded(root: Path, base: Pin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "STAGED_EFFECTS_MAX", 2)
    tables = Tables(str(root))
    for number in range(4):
        tables.stage_rows(base, RowsToStage(appends=people({f"n{number}": 1})))
    assert len(tables._staged_versions) == 2


SURVIVOR = """
import json, sys
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.tables import Tables
root, table, *versions = sys.argv[1:]
rebased = Tables(root).rebase(*(Pin(table, int(version)) for version in versions))
print(json.dumps([str(rebased.pin.version), rebased.pin.rows, rebased.inserted_ids, rebased.deleted_ids]))
"""


def test_another_process_rebases_what_a_dead_one_staged(root: Path, tables: Tables, base: Pin) -> None:
    staged = tables.stage_rows(base, RowsToStage(upserts=people({"new": 9}), deleted_ids=("ada",)))
    onto = tables.stage_rows(base, RowsToStage(upserts=people({"bob": 8})))
    versions = [str(pin.version) for pin in (base, staged.pin, onto.pin)]
    answer = subprocess.run(
        [sys.executable, "-c", SURVIVOR, str(root), TABLE, *versions], check=True, capture_output=True, text=True
    )
    version, rows, inserted, deleted = json.loads(answer.stdout)
    assert (inserted, deleted) == (["new"], ["ada"])
    assert ages(tables, Pin(TABLE, int(version), rows)) == {"bob": 8, "cy": 3, "dan": 4, "new": 9}
