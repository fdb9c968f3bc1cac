"""What Omnigraph relies on in Lance, and the traps it avoids: run against every new release of Lance.

These tests talk to Lance alone. When one fails after an upgrade, the table port has to be thought over before anything
else is.
"""

import dataclasses
import os
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from lance import LanceDataset, LanceOperation, Session  # type: ignore[attr-defined]  # public, not in __all__
from lance.commit import CommitConflictError
from lance.dataset import Index
from lance.fragment import FragmentMetadata, write_fragments
from lance.optimize import Compaction
from lance.schema import LanceSchema

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("color", pa.string()),
        pa.field("text", pa.string()),
    ]
)
HIGHEST_BIT = 63


def rows(ids: Sequence[str], color: str = "red", text: str = "plain words") -> pa.Table:
    return pa.table({"id": list(ids), "color": [color] * len(ids), "text": [text] * len(ids)}, schema=SCHEMA)


def detached(handle: LanceDataset, operation: LanceOperation.BaseOperation) -> LanceDataset:
    return LanceDataset.commit(handle, operation, read_version=handle.version, detached=True)


def appended(handle: LanceDataset, table: pa.Table) -> LanceDataset:
    return detached(handle, LanceOperation.Append(list(write_fragments(table, handle))))


def addresses(handle: LanceDataset, ids: Sequence[str]) -> list[int]:
    listed = ",".join(f"'{one}'" for one in ids)
    found = handle.scanner(columns=["id"], filter=f"id IN ({listed})", with_row_address=True).to_table()
    return [int(str(address)) for address in found.column("_rowaddr").to_pylist()]


def deleted(handle: LanceDataset, ids: Sequence[str]) -> tuple[list[FragmentMetadata], list[int]]:
    by_fragment: dict[int, list[int]] = {}
    for address in addresses(handle, ids):
        by_fragment.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    updated, gone = [], []
    for number, offsets in by_fragment.items():
        fragment = handle.get_fragment(number)
        assert fragment is not None
        left = fragment.delete_rows(offsets)
        if left is None:
            gone.append(number)
        else:
            updated.append(left)
    return updated, gone


def upserted(handle: LanceDataset, table: pa.Table) -> LanceDataset:
    updated, gone = deleted(handle, [str(one) for one in table.column("id").to_pylist()])
    return detached(
        handle,
        LanceOperation.Update(
            removed_fragment_ids=gone,
            updated_fragments=updated,
            new_fragments=list(write_fragments(table, handle)),
            update_mode="rewrite_rows",
        ),
    )


def without(handle: LanceDataset, ids: Sequence[str]) -> LanceDataset:
    updated, gone = deleted(handle, ids)
    return detached(handle, LanceOperation.Delete(updated, gone, "by address"))


def segment(handle: LanceDataset, column: str, kind: str, fragments: list[int]) -> Index:
    built = handle.create_index_uncommitted(column, kind, name=f"{column}_{kind}", fragment_ids=fragments, replace=True)
    return dataclasses.replace(built, dataset_version=1)


def indexed(handle: LanceDataset, column: str, kind: str, fragments: list[int]) -> LanceDataset:
    return detached(handle, LanceOperation.CreateIndex([segment(handle, column, kind, fragments)], []))


def contents(handle: LanceDataset) -> dict[str, str]:
    return {row["id"]: row["color"] for row in handle.to_table().to_pylist()}


def validate(handle: LanceDataset) -> None:
    """Let Lance look for contradictions in a version."""
    handle.validate()  # type: ignore[no-untyped-call]  # Lance has no types here


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "table")


@pytest.fixture
def first(path: str) -> LanceDataset:
    """An empty table at linear version 1."""
    return lance.write_dataset(SCHEMA.empty_table(), path, schema=SCHEMA, mode="create", session=Session())


def test_a_chain_of_detached_versions_of_every_kind_holds_what_it_should(first: LanceDataset, path: str) -> None:
    one = appended(first, rows(["a", "b", "c", "d"]))
    two = upserted(one, rows(["a", "e"], "blue"))
    three = without(two, ["b"])
    four = indexed(three, "id", "BTREE", [0, 1])
    old = [fragment.metadata for fragment in four.get_fragments()]
    new = list(write_fragments(four.to_table(), four))
    five = detached(four, LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], []))
    six = detached(five, LanceOperation.Overwrite(five.lance_schema, []))
    seven = appended(six, rows(["z"]))

    for session in (None, Session()):
        at = {
            handle.version: contents(lance.dataset(path, version=handle.version, session=session))
            for handle in (one, two, three, four, five, six, seven)
        }
        assert at[one.version] == dict.fromkeys("abcd", "red")
        assert at[two.version] == {"a": "blue", "b": "red", "c": "red", "d": "red", "e": "blue"}
        assert at[three.version] == {"a": "blue", "c": "red", "d": "red", "e": "blue"}
        assert at[four.version] == at[five.version] == at[three.version]
        assert at[six.version] == {}
        assert at[seven.version] == {"z": "red"}
    for handle in (one, two, three, four, five, six, seven):
        validate(handle)
        assert handle.version >> HIGHEST_BIT == 1


def test_the_head_stays_at_the_first_version(first: LanceDataset, path: str) -> None:
    handle = first
    for number in range(5):
        handle = upserted(handle, rows(["a", str(number)]))
    handle = indexed(handle, "id", "BTREE", [fragment.fragment_id for fragment in handle.get_fragments()])
    head = lance.dataset(path)
    assert head.version == 1
    assert head.latest_version == 1
    assert head.count_rows() == 0
    assert [version["version"] for version in head.versions()] == [1]


def test_sibling_versions_do_not_see_each_other_in_a_shared_session(first: LanceDataset, path: str) -> None:
    base = appended(first, rows(["a", "b", "c"]))
    left = upserted(base, rows(["a"], "left"))
    right = upserted(base, rows(["b", "d"], "right"))
    # Both siblings call their new fragment by the same number.
    assert [one.fragment_id for one in left.get_fragments()] == [one.fragment_id for one in right.get_fragments()]
    left, right = indexed(left, "id", "BTREE", [0, 1]), indexed(right, "id", "BTREE", [0, 1])
    session = Session()
    for _ in range(2):
        seen_left = lance.dataset(path, version=left.version, session=session)
        seen_right = lance.dataset(path, version=right.version, session=session)
        assert contents(seen_left) == {"a": "left", "b": "red", "c": "red"}
        assert contents(seen_right) == {"a": "red", "b": "right", "c": "red", "d": "right"}
        assert seen_left.count_rows("id = 'd'") == 0
        assert seen_right.to_table(filter="id = 'b'").column("color").to_pylist() == ["right"]
        assert seen_left.to_table(filter="id = 'b'").column("color").to_pylist() == ["red"]


@pytest.mark.parametrize(
    "mutate",
    [
        lambda handle: handle.delete("true"),
        lambda handle: handle.update({"color": "'x'"}),
        lambda handle: handle.merge_insert("id").when_not_matched_insert_all().execute(rows(["z"])),
        lambda handle: lance.write_dataset(rows(["z"]), handle, mode="append"),
        lambda handle: lance.write_dataset(rows(["z"]), handle, mode="overwrite"),
        lambda handle: handle.insert(rows(["z"])),
        lambda handle: handle.add_columns({"more": "1"}),
        lambda handle: handle.drop_columns(["color"]),
        lambda handle: handle.create_scalar_index("color", "BITMAP"),
        lambda handle: handle.update_config({"some": "thing"}),
    ],
    ids=["delete", "update", "merge", "append", "overwrite", "insert", "add", "drop", "index", "config"],
)
def test_what_would_move_the_head_is_refused_on_a_detached_version(
    first: LanceDataset, path: str, mutate: Callable[[LanceDataset], object]
) -> None:
    handle = appended(first, rows(["a", "b"]))
    with pytest.raises((OSError, ValueError, RuntimeError), match="detached"):
        mutate(handle)
    assert lance.dataset(path).version == 1
    assert contents(lance.dataset(path, version=handle.version)) == {"a": "red", "b": "red"}


def test_trap_restoring_a_detached_version_moves_the_head(first: LanceDataset, path: str) -> None:
    appended(first, rows(["a"])).restore()  # type: ignore[no-untyped-call]  # Lance has no types here
    assert lance.dataset(path).version == 2
    assert lance.dataset(path).count_rows() == 1


def test_trap_checking_out_the_latest_leaves_the_detached_version(first: LanceDataset) -> None:
    handle = appended(first, rows(["a"]))
    handle.checkout_latest()  # type: ignore[no-untyped-call]  # Lance has no types here
    assert handle.version == 1


def test_trap_a_detached_version_checks_nothing_about_its_base(first: LanceDataset) -> None:
    base = appended(first, rows(["a"]))
    moved_on = upserted(base, rows(["a"], "blue"))
    staged = base.merge_insert("id").when_matched_update_all().execute_uncommitted(rows(["a"], "green"))[0]
    applied = LanceDataset.commit(moved_on, staged, detached=True)
    # Two rows with one id: whoever makes detached versions has to compare the versions itself.
    assert applied.to_table().column("id").to_pylist() == ["a", "a"]


def test_trap_a_detached_version_cannot_be_made_without_a_retry(first: LanceDataset) -> None:
    new = list(write_fragments(rows(["a"]), first))
    with pytest.raises(CommitConflictError):
        LanceDataset.commit(first, LanceOperation.Append(new), read_version=first.version, detached=True, max_retries=0)


def test_a_table_cannot_be_created_by_a_detached_version(path: str) -> None:
    new = list(write_fragments(rows(["a"]), path))
    with pytest.raises((OSError, ValueError, NotImplementedError)):
        LanceDataset.commit(path, LanceOperation.Overwrite(SCHEMA, new), detached=True)


@pytest.mark.parametrize(("column", "kind"), [("color", "BITMAP"), ("color", "BTREE")])
def test_a_delta_segment_after_an_update_finds_no_row_that_is_no_more(
    first: LanceDataset, column: str, kind: str
) -> None:
    ids = [f"k{number}" for number in range(10)]
    handle = indexed(appended(first, rows(ids, "old")), column, kind, [0])
    handle = upserted(handle, rows(ids[:5], "new"))
    handle = indexed(handle, column, kind, [1])
    assert "ScalarIndexQuery" in handle.scanner(filter="color = 'old'").explain_plan()
    assert handle.count_rows("color = 'old'") == 5
    assert handle.count_rows("color = 'new'") == 5


def test_a_delta_segment_of_an_index_over_parts_of_texts_finds_no_row_that_is_no_more(first: LanceDataset) -> None:
    ids = [f"k{number}" for number in range(10)]
    handle = indexed(appended(first, rows(ids, text="apple")), "text", "NGRAM", [0])
    handle = upserted(handle, rows(ids[:5], text="banana"))
    handle = indexed(handle, "text", "NGRAM", [1])

    def found(part: str) -> list[str]:
        scanner = handle.scanner(columns=["id"], filter=f"contains(text, '{part}')")
        assert "ScalarIndexQuery" in scanner.explain_plan()
        return sorted(map(str, scanner.to_table().column("id").to_pylist()))

    assert found("pple") == ids[5:]
    assert found("anan") == ids[:5]


@pytest.mark.parametrize("kind", ["BTREE", "BITMAP", "NGRAM"])
def test_segments_of_a_detached_version_fold_when_they_claim_the_first_version(first: LanceDataset, kind: str) -> None:
    column = "text" if kind == "NGRAM" else "color"
    handle = indexed(appended(first, rows(["a", "b"], "red")), column, kind, [0])
    handle = indexed(appended(handle, rows(["c"], "blue")), column, kind, [1])
    segments = [
        Index(
            uuid=part.uuid,
            name=index.name,
            fields=list(index.fields),
            dataset_version=1,
            fragment_ids=part.fragment_ids,
            index_version=part.index_version,
            index_details=(index.type_url, b""),
        )
        for index in handle.describe_indices()
        for part in index.segments
    ]
    folded = dataclasses.replace(handle.merge_existing_index_segments(segments), dataset_version=1)
    handle = detached(handle, LanceOperation.CreateIndex([folded], segments))
    validate(handle)
    assert [len(index.segments) for index in handle.describe_indices()] == [1]
    assert handle.count_rows("color = 'red'") == 2


def test_a_schema_put_together_from_its_own_fields_keeps_their_numbers(first: LanceDataset) -> None:
    handle = appended(first, rows(["a"], "red", "hello"))
    stored: Any = handle.lance_schema.__reduce__()
    metadata, identity, _, text = stored[1]
    # The middle column goes; the last keeps its number, so its bytes are still found.
    shorter = LanceSchema._from_protos(metadata, identity, text)
    projected = detached(handle, LanceOperation.Project(shorter, preserves_nullability=True))
    assert projected.to_table().to_pylist() == [{"id": "a", "text": "hello"}]
    assert [field.id() for field in projected.lance_schema.fields()] == [0, 2]


def test_trap_a_schema_made_afresh_renumbers_its_fields(first: LanceDataset) -> None:
    afresh = LanceSchema.from_pyarrow(pa.schema([SCHEMA.field("id"), SCHEMA.field("text")]))
    assert [field.id() for field in first.lance_schema.fields()] == [0, 1, 2]
    assert [field.id() for field in afresh.fields()] == [0, 1]


def test_fragments_added_to_another_version_need_the_number_zero_to_get_a_free_one(first: LanceDataset) -> None:
    base = appended(first, rows(["a"]))
    other = appended(base, rows(["b"]))
    staged = appended(base, rows(["c"])).get_fragments()[-1].metadata
    assert staged.id == other.get_fragments()[-1].fragment_id
    moved = detached(other, LanceOperation.Append([dataclasses.replace(staged, id=0)]))
    assert sorted(contents(moved)) == ["a", "b", "c"]
    assert [fragment.fragment_id for fragment in moved.get_fragments()] == [0, 1, 2]


def test_fragment_numbers_are_not_used_again_after_an_overwrite(first: LanceDataset) -> None:
    before = appended(appended(first, rows(["a"])), rows(["b"]))
    emptied = detached(before, LanceOperation.Overwrite(before.lance_schema, []))
    assert [fragment.fragment_id for fragment in appended(emptied, rows(["c"])).get_fragments()] == [2]


def test_taking_rows_by_address_passes_over_deleted_ones(first: LanceDataset) -> None:
    handle = without(appended(first, rows(["a", "b", "c"])), ["b"])
    assert handle._take_rows([0, 1, 2], columns=["id"]).column("id").to_pylist() == ["a", "c"]


def test_a_version_tells_what_it_was_made_from(first: LanceDataset) -> None:
    base = appended(first, rows(["a"]))
    made = upserted(base, rows(["a"]))
    transaction = made.read_transaction(made.version)
    assert transaction is not None
    assert transaction.read_version == base.version
    assert isinstance(transaction.operation, LanceOperation.Update)


def test_deletion_vectors_tell_how_many_rows_they_hold(first: LanceDataset) -> None:
    handle = appended(first, rows(["a", "b", "c"]))
    fragment = handle.get_fragments()[0]
    once = fragment.delete_rows([1])
    assert once is not None
    assert once.num_rows == 2
    again = without(handle, ["b"]).get_fragments()[0].delete_rows([1, 2])
    assert again is not None
    assert again.num_rows == 1
    assert fragment.delete_rows([0, 1, 2]) is None


def test_listing_all_files_shows_detached_versions_and_tracked_files_do_not(first: LanceDataset, path: str) -> None:
    handle = appended(first, rows(["a"]))
    manifest = f"_versions/d{handle.version}.manifest"
    listed = pa.Table.from_batches(list(first.all_files())).column("path").to_pylist()
    assert any(str(one).endswith(manifest) for one in listed)
    assert (Path(path) / manifest).is_file()
    tracked = pa.Table.from_batches(list(first.tracked_files())).column("path").to_pylist()
    assert not any(str(one).endswith(manifest) for one in tracked)


def test_trap_cleaning_up_destroys_the_data_of_detached_versions(first: LanceDataset, path: str) -> None:
    handle = appended(first, rows(["a"]))
    for file in (Path(path) / "data").iterdir():
        month_ago = file.stat().st_mtime - 30 * 24 * 3600
        os.utime(file, (month_ago, month_ago))
    lance.dataset(path).cleanup_old_versions(older_than=timedelta(0), delete_unverified=True)
    with pytest.raises((OSError, ValueError)):
        lance.dataset(path, version=handle.version, session=Session()).to_table()


def test_trap_compaction_of_lance_is_refused_on_a_detached_version(first: LanceDataset) -> None:
    handle = appended(appended(first, rows(["a"])), rows(["b"]))
    plan = Compaction.plan(handle, {"target_rows_per_fragment": 100})
    done = [task.execute(handle) for task in plan.tasks]
    with pytest.raises((OSError, ValueError)):
        Compaction.commit(handle, done)
    assert contents(handle) == {"a": "red", "b": "red"}
