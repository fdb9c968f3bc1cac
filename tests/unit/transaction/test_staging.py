"""Reading what one write has pending over what is committed, as its later statements do."""

import pyarrow as pa
import pytest
from tests.support import operations as op
from tests.support.operations import COLUMNS, COMPANY, KNOWS, PERSON, rows_of, table_of

from omnigraph.errors import ConflictError, InvalidRequestError, NotFoundError
from omnigraph.model.commit import MAIN
from omnigraph.model.conflict import KeyConflict
from omnigraph.model.footprint import TokenKind, TypeFootprint, tokens
from omnigraph.storage.object_stores.obstore_backed import MemoryStore
from omnigraph.testing.clock import ManualClock
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.root import create_table, init
from omnigraph.transaction.write import write
from omnigraph.transaction.write_set import WriteSet

REPOSITORY = "node:Repository"
REPOSITORY_COLUMNS = (
    pa.schema([pa.field("id", pa.string(), nullable=False)])
    .append(pa.field("repoName", pa.string()))
    .append(pa.field("starCount", pa.int64()))
)


def staging_on(parts: GraphContext) -> WriteSet:
    return WriteSet(parts.snapshot(parts.log.live_head(MAIN)))


def as_rows(table: pa.Table) -> dict[str, int | None]:
    found = {str(row["id"]): row["v"] for row in table.to_pylist()}
    assert len(found) == table.num_rows, "an id occurs twice"
    return found


def ids_of(table: pa.Table) -> list[str]:
    return sorted(map(str, table["id"].to_pylist()))


@pytest.fixture
def staging(parts: GraphContext) -> WriteSet:
    write(parts, MAIN, op.insert(PERSON, {"a": 30, "b": 20, "c": None}))
    return staging_on(parts)


# -- what a later statement sees ---------------------------------------------------------------------------------------


def test_a_row_inserted_before_is_seen(staging: WriteSet) -> None:
    staging.insert(PERSON, table_of({"x": 10}))
    assert as_rows(staging.scan(PERSON, filter="v = 10")) == {"x": 10}
    assert as_rows(staging.rows(PERSON, ["x", "a"])) == {"x": 10, "a": 30}
    assert staging.missing(PERSON, ["x", "a", "y"]) == ["y"]


def test_a_row_replaced_before_no_longer_matches_by_its_old_value(staging: WriteSet) -> None:
    staging.upsert(PERSON, table_of({"a": 99}))
    assert as_rows(staging.scan(PERSON, filter="v = 30")) == {}
    assert as_rows(staging.scan(PERSON, filter="v > 50")) == {"a": 99}
    assert as_rows(staging.scan(PERSON)) == {"a": 99, "b": 20, "c": None}


def test_a_row_deleted_before_is_not_seen(staging: WriteSet) -> None:
    staging.delete(PERSON, ["a"])
    assert as_rows(staging.scan(PERSON)) == {"b": 20, "c": None}
    assert as_rows(staging.rows(PERSON, ["a", "b"])) == {"b": 20}
    assert staging.missing(PERSON, ["a"]) == ["a"]


def test_a_row_deleted_and_inserted_again_is_seen_once(staging: WriteSet) -> None:
    staging.delete(PERSON, ["a"])
    staging.insert(PERSON, table_of({"a": 1}))
    assert as_rows(staging.scan(PERSON)) == {"a": 1, "b": 20, "c": None}


def test_nothing_committed_is_seen_after_an_overwrite(staging: WriteSet) -> None:
    staging.overwrite(PERSON, table_of({"z": 26}))
    assert as_rows(staging.scan(PERSON)) == {"z": 26}
    assert as_rows(staging.rows(PERSON, ["a", "z"])) == {"z": 26}
    assert staging.missing(PERSON, ["a", "z"]) == ["a"]
    staging.insert(PERSON, table_of({"a": 1}))
    assert as_rows(staging.scan(PERSON, filter="v < 100")) == {"a": 1, "z": 26}


def test_rows_of_a_type_added_in_the_same_write_are_seen(parts: GraphContext) -> None:
    staging = staging_on(parts)
    staging.add_table("node:City", create_table(parts, "node:City", COLUMNS))
    assert as_rows(staging.scan("node:City")) == {}
    staging.insert("node:City", table_of({"p": 1}))
    assert as_rows(staging.scan("node:City", filter="v = 1")) == {"p": 1}
    assert staging.missing("node:City", ["p", "q"]) == ["q"]


def test_nobody_else_sees_what_is_pending(parts: GraphContext, staging: WriteSet) -> None:
    staging.upsert(PERSON, table_of({"a": 99}))
    assert rows_of(parts, PERSON) == {"a": 30, "b": 20, "c": None}
    assert as_rows(staging_on(parts).scan(PERSON)) == {"a": 30, "b": 20, "c": None}


# -- one filter judges committed and pending rows alike ----------------------------------------------------------------

TRICKY: dict[str, tuple[str | None, int | None]] = {
    "plain": ("omnigraph", 5),
    "quoted": ('it\'s "quoted"', -3),
    "percent": ("100%_sure", 0),
    "null": (None, None),
    "empty": ("", 2**62),
    "wide": ("größe 图 🚀", -(2**62)),
    "Mixed'Id": ("OmniGraph", 7),
}
FILTERS = (
    "`repoName` = 'omnigraph'",
    "`repoName` = 'OmniGraph'",
    "`repoName` <> 'omnigraph'",
    "`repoName` = 'it''s \"quoted\"'",
    "`repoName` IS NULL",
    "`repoName` IS NOT NULL",
    "`repoName` = ''",
    "`repoName` LIKE '100%'",
    "`repoName` IN ('omnigraph', 'größe 图 🚀')",
    "NOT (`repoName` IN ('omnigraph'))",
    "`starCount` > 0 OR `repoName` IS NULL",
    "`starCount` IS NULL AND `repoName` IS NULL",
    "`starCount` BETWEEN -3 AND 5",
    "`starCount` = 4611686018427387904",
    "id = 'Mixed''Id'",
    "lower(`repoName`) = 'omnigraph'",
    "`starCount` % 2 = 1",
    "true",
    "false",
)


def repositories(rows: dict[str, tuple[str | None, int | None]]) -> pa.Table:
    return pa.table(
        {
            "id": list(rows),
            "repoName": [name for name, _ in rows.values()],
            "starCount": [stars for _, stars in rows.values()],
        },
        schema=REPOSITORY_COLUMNS,
    )


@pytest.fixture(scope="module")
def committed() -> WriteSet:
    parts = init(MemoryStore("tricky-committed"), {REPOSITORY: REPOSITORY_COLUMNS}, clock=ManualClock())
    inserting = op.insert(REPOSITORY, {})
    write(
        parts,
        MAIN,
        type(inserting)(
            inserting.kind,
            inserting.type_keys,
            lambda staging: staging.insert(REPOSITORY, repositories(TRICKY)),
            redoable=True,
        ),
    )
    return staging_on(parts)


@pytest.fixture(scope="module")
def empty() -> GraphContext:
    return init(MemoryStore("tricky-empty"), {REPOSITORY: REPOSITORY_COLUMNS}, clock=ManualClock())


@pytest.mark.parametrize("filter", FILTERS)
def test_a_filter_says_the_same_of_a_row_committed_and_pending(
    committed: WriteSet, empty: GraphContext, filter: str
) -> None:
    pending = staging_on(empty)
    pending.insert(REPOSITORY, repositories(TRICKY))
    found = pending.scan(REPOSITORY, filter=filter)
    assert ids_of(found) == ids_of(committed.scan(REPOSITORY, filter=filter))
    narrow = pending.scan(REPOSITORY, filter=filter, columns=["starCount", "id"])
    assert narrow.column_names == ["starCount", "id"]
    assert narrow.num_rows == found.num_rows


def test_a_filter_sees_half_committed_and_half_pending_rows_as_one_table(committed: WriteSet) -> None:
    staging = WriteSet(committed.snapshot)
    staging.upsert(REPOSITORY, repositories({"plain": ("renamed", 5), "null": ("omnigraph", None), "new": (None, 5)}))
    staging.delete(REPOSITORY, ["percent"])
    found = staging.scan(REPOSITORY, filter="`starCount` = 5 OR `repoName` = 'omnigraph' OR `starCount` = 0")
    assert ids_of(found) == ["new", "null", "plain"]


def test_a_filter_that_makes_no_sense_is_refused_on_either_side(committed: WriteSet, empty: GraphContext) -> None:
    pending = staging_on(empty)
    pending.insert(REPOSITORY, repositories(TRICKY))
    for staging in (committed, pending):
        for filter in ("nonsense(", "noSuchColumn = 1"):
            with pytest.raises(InvalidRequestError):
                staging.scan(REPOSITORY, filter=filter)


def test_pending_rows_have_the_columns_of_committed_ones_in_type_and_order(committed: WriteSet) -> None:
    staging = WriteSet(committed.snapshot)
    staging.upsert(REPOSITORY, repositories({"plain": ("renamed", 5)}))
    for columns in (None, ["id"], ["starCount", "id"]):
        found = staging.scan(REPOSITORY, columns=columns, filter="`starCount` > -10")
        assert found.schema.equals(committed.scan(REPOSITORY, columns=columns).schema)


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_a_scan_over_pending_rows_that_leaves_out_the_id_is_refused(staging: WriteSet) -> None:
    assert staging.scan(PERSON, columns=["v"]).column_names == ["v"]
    staging.upsert(PERSON, table_of({"a": 99}))
    with pytest.raises(InvalidRequestError, match="'id'"):
        staging.scan(PERSON, columns=["v"])


def test_rows_by_id_may_leave_the_id_out(staging: WriteSet) -> None:
    staging.upsert(PERSON, table_of({"a": 99}))
    assert staging.rows(PERSON, ["a"], columns=["v"]).to_pylist() == [{"v": 99}]


@pytest.mark.parametrize("rows", [{"a": 1}, {"n": 1, "b": 2}], ids=["one", "among_others"])
def test_an_insert_of_an_id_that_exists_names_it(staging: WriteSet, rows: dict[str, int | None]) -> None:
    with pytest.raises(ConflictError) as refused:
        staging.insert(PERSON, table_of(rows))
    assert refused.value.code == "key_conflict"
    assert refused.value.conflicts == (KeyConflict(PERSON, sorted({"a", "b"} & set(rows))[0]),)
    assert staging.touched == frozenset()


def test_an_insert_of_an_id_inserted_before_in_the_same_write_is_refused(staging: WriteSet) -> None:
    staging.insert(PERSON, table_of({"n": 1}))
    with pytest.raises(ConflictError):
        staging.insert(PERSON, table_of({"n": 2}))
    with pytest.raises(ConflictError):
        staging.insert(PERSON, pa.table({"id": ["o", "o"], "v": [1, 2]}, schema=COLUMNS))


def test_a_type_that_is_not_there_is_refused_by_name(staging: WriteSet) -> None:
    for attempt in (
        lambda: staging.scan("node:Ghost"),
        lambda: staging.insert("node:Ghost", table_of({"a": 1})),
        lambda: staging.delete("node:Ghost", ["a"]),
        lambda: staging.remove_table("node:Ghost"),
    ):
        with pytest.raises(NotFoundError, match="node:Ghost"):
            attempt()


def test_a_type_that_is_there_cannot_be_added_again(parts: GraphContext, staging: WriteSet) -> None:
    pin = create_table(parts, PERSON, COLUMNS)
    with pytest.raises(InvalidRequestError, match=PERSON):
        staging.add_table(PERSON, pin)
    staging.add_table("node:City", pin)
    with pytest.raises(InvalidRequestError, match="node:City"):
        staging.add_table("node:City", pin)


# -- the footprint -----------------------------------------------------------------------------------------------------


def test_a_scan_rests_on_the_whole_type_and_a_lookup_only_on_its_ids(staging: WriteSet) -> None:
    staging.scan(PERSON)
    staging.rows(COMPANY, ["x"])
    staging.missing(KNOWS, ["k"])
    assert staging.footprint_of(PERSON) == TypeFootprint(reads_whole=True)
    assert staging.footprint_of(COMPANY) == TypeFootprint(reads=tokens(TokenKind.ID, ["x"]))
    assert staging.footprint_of(KNOWS) == TypeFootprint(reads=tokens(TokenKind.EXISTS, ["k"]))


def test_an_insert_rests_on_its_ids_being_free_unless_they_were_just_made(staging: WriteSet) -> None:
    staging.insert(PERSON, table_of({"n": 1}))
    staging.insert(COMPANY, table_of({"n": 1}), fresh_ids=True)
    assert staging.footprint_of(PERSON) == TypeFootprint(reads=tokens(TokenKind.EXISTS, ["n"]))
    assert staging.footprint_of(COMPANY) == TypeFootprint()


def test_chained_statements_make_one_version_with_the_last_values(parts: GraphContext, staging: WriteSet) -> None:
    first = op.update(PERSON, ["a"], 99)
    then = op.update_where(PERSON, "v > 50", 10)
    receipt = write(parts, MAIN, op.both(op.insert(PERSON, {"n": 51}), op.both(first, then)))
    assert receipt.entry is not None
    assert rows_of(parts, PERSON) == {"a": 10, "b": 20, "c": None, "n": 10}
    change = receipt.entry.changes.types[PERSON]
    assert (change.inserted_ids, change.updated_ids, change.deleted) == (("n",), ("a",), 0)
    assert receipt.entry.number == staging.snapshot.record.number + 1


def test_a_row_inserted_and_deleted_in_one_write_is_no_change(parts: GraphContext, staging: WriteSet) -> None:
    receipt = write(parts, MAIN, op.both(op.insert(PERSON, {"n": 1}), op.delete(PERSON, ["n"])))
    assert receipt.entry is None
    assert receipt.head == staging.snapshot.record


# -- several changes of one table in one write -------------------------------------------------------------------------


def test_two_changes_of_the_columns_of_one_type_are_both_made(parts: GraphContext, staging: WriteSet) -> None:
    del staging
    both = op.both(op.add_column(parts, PERSON, "w"), op.rename_column(parts, PERSON, "v", "value"))
    write(parts, MAIN, both)
    found = parts.snapshot(parts.log.live_head(MAIN)).scan(PERSON).sort_by("id").to_pylist()
    assert found[0] == {"id": "a", "value": 30, "w": None}
    assert len(found) == 3


def test_rows_written_and_columns_added_in_one_write_are_both_there(parts: GraphContext, staging: WriteSet) -> None:
    del staging
    write(parts, MAIN, op.both(op.upsert(PERSON, {"a": 31, "n": 1}), op.add_column(parts, PERSON, "w")))
    found = parts.snapshot(parts.log.live_head(MAIN)).scan(PERSON).sort_by("id").to_pylist()
    assert [(row["id"], row["v"], row["w"]) for row in found] == [
        ("a", 31, None),
        ("b", 20, None),
        ("c", None, None),
        ("n", 1, None),
    ]


@pytest.mark.parametrize("noted", [False, True], ids=["small", "noted"])
def test_a_type_written_and_then_removed_in_one_write_is_gone(
    parts: GraphContext, staging: WriteSet, noted: bool
) -> None:
    del staging
    both = op.both(op.both(op.insert(PERSON, {"n": 1}), op.insert(COMPANY, {"x": 1})), op.remove_table(PERSON))
    receipt = write(parts, MAIN, op.noted(both) if noted else both)
    assert receipt.entry is not None
    assert PERSON not in receipt.entry.tables
    assert rows_of(parts, COMPANY) == {"x": 1}
    assert receipt.entry.changes.types.keys() == {COMPANY}


def test_a_type_that_was_removed_cannot_be_written_or_read_any_more(staging: WriteSet) -> None:
    staging.remove_table(PERSON)
    for attempt in (
        lambda: staging.insert(PERSON, table_of({"n": 1})),
        lambda: staging.delete(PERSON, ["a"]),
        lambda: staging.scan(PERSON),
        lambda: staging.rows(PERSON, ["a"]),
        lambda: staging.missing(PERSON, ["a"]),
        lambda: staging.remove_table(PERSON),
    ):
        with pytest.raises(NotFoundError, match=PERSON):
            attempt()


@pytest.mark.parametrize("noted", [False, True], ids=["small", "noted"])
def test_a_type_removed_and_added_again_in_one_write_starts_empty_in_a_table_of_its_own(
    parts: GraphContext, staging: WriteSet, noted: bool
) -> None:
    before = staging.snapshot.record.tables[PERSON]
    both = op.both(op.remove_table(PERSON), op.add_table(parts, PERSON, {"n": 1}))
    receipt = write(parts, MAIN, op.noted(both) if noted else both)
    assert receipt.entry is not None
    assert receipt.entry.tables[PERSON].table != before.table
    assert rows_of(parts, PERSON) == {"n": 1}
