"""Rows pending for one table: the last write of each id wins, and what is staged says the same as what is read."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.operations import COLUMNS, table_of

from omnigraph.storage.tables.tables import RowsToStage
from omnigraph.transaction.write_set.pending import Pending

Committed = dict[str, int | None]


def pending() -> Pending:
    return Pending(COLUMNS)


def as_rows(table: pa.Table | None) -> Committed:
    if table is None:
        return {}
    found = table.to_pylist()
    rows = {row["id"]: row["v"] for row in found}
    assert len(rows) == len(found), "an id occurs twice"
    return rows


def staged_over(base: Committed, effect: RowsToStage) -> Committed:
    """What staging would make of a base; appends are not looked up, so one that is there already is an error."""
    appends, upserts = as_rows(effect.appends), as_rows(effect.upserts)
    assert not appends.keys() & upserts.keys()
    assert not set(effect.deleted_ids) & (appends.keys() | upserts.keys())
    if effect.replaces:
        return {**upserts, **appends}
    kept = {key: v for key, v in base.items() if key not in effect.deleted_ids}
    assert not appends.keys() & kept.keys(), "appended though it is there"
    return {**kept, **upserts, **appends}


def test_the_last_row_of_an_id_wins() -> None:
    rows = pending()
    rows.put(table_of({"a": 1, "b": 2}), known_new=False)
    rows.put(table_of({"a": 3}), known_new=False)
    assert as_rows(rows.rows) == {"a": 3, "b": 2}


def test_the_last_of_several_rows_of_one_id_in_one_batch_wins() -> None:
    rows = pending()
    twice = pa.table({"id": ["a", "b", "a"], "v": [1, 2, 3]}, schema=COLUMNS)
    rows.put(twice, known_new=False)
    assert as_rows(rows.rows) == {"a": 3, "b": 2}


def test_a_deleted_row_hides_the_committed_one_and_is_staged_as_deleted() -> None:
    rows = pending()
    rows.delete(["a"])
    assert as_rows(rows.unshadowed(table_of({"a": 1, "b": 2}))) == {"b": 2}
    assert rows.effect().deleted_ids == ("a",)


def test_a_row_deleted_and_put_again_is_there_once() -> None:
    rows = pending()
    rows.delete(["a"])
    rows.put(table_of({"a": 5}), known_new=True)
    assert staged_over({"a": 1}, rows.effect()) == {"a": 5}


def test_a_row_that_was_new_and_deleted_again_leaves_nothing() -> None:
    rows = pending()
    rows.put(table_of({"n": 1}), known_new=True)
    rows.delete(["n"])
    assert staged_over({"a": 1}, rows.effect()) == {"a": 1}


def test_an_existing_row_replaced_after_a_new_one_was_taken_back_is_not_appended() -> None:
    rows = pending()
    rows.put(table_of({"n": 1}), known_new=True)
    rows.delete(["n"])
    rows.put(table_of({"a": 2}), known_new=False)
    assert staged_over({"a": 1}, rows.effect()) == {"a": 2}


def test_replacing_everything_hides_all_that_is_committed() -> None:
    rows = pending()
    rows.put(table_of({"a": 1}), known_new=False)
    rows.replace(table_of({"z": 26}))
    assert as_rows(rows.unshadowed(table_of({"a": 0, "b": 0}))) == {}
    rows.put(table_of({"y": 25}), known_new=True)
    rows.delete(["z"])
    assert staged_over({"a": 0, "b": 0}, rows.effect()) == {"y": 25}


def test_columns_come_in_the_order_of_the_table_whatever_order_they_were_given_in() -> None:
    rows = pending()
    rows.put(pa.table({"v": [1], "id": ["a"]}), known_new=False)
    assert rows.rows.schema.equals(COLUMNS)


_ids = st.sampled_from(["a", "b", "c", "d"])
_rows = st.dictionaries(_ids, st.integers(0, 9), max_size=3)
_steps = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), _rows),
        st.tuples(st.just("upsert"), _rows),
        st.tuples(st.just("delete"), _rows),
        st.tuples(st.just("replace"), _rows),
    ),
    max_size=8,
)


@given(base=_rows, steps=_steps)
def test_what_is_read_over_a_base_is_what_is_staged_over_it(
    base: Committed, steps: list[tuple[str, Committed]]
) -> None:
    rows = pending()
    expected = dict(base)
    for verb, some in steps:
        match verb:
            case "insert":
                fresh = {key: v for key, v in some.items() if key not in expected}
                rows.put(table_of(fresh), known_new=True)
                expected |= fresh
            case "upsert":
                rows.put(table_of(some), known_new=False)
                expected |= some
            case "delete":
                rows.delete(some)
                expected = {key: v for key, v in expected.items() if key not in some}
            case "replace":
                rows.replace(table_of(some))
                expected = dict(some)
    read = pa.concat_tables([rows.unshadowed(table_of(base)), rows.rows])
    assert as_rows(read) == expected
    assert staged_over(base, rows.effect()) == expected


@pytest.mark.parametrize("ids", [[], ["a"], ["a", "x"], ["x"]])
def test_pending_rows_are_found_by_id(ids: list[str]) -> None:
    rows = pending()
    rows.put(table_of({"a": 1, "b": 2}), known_new=False)
    assert as_rows(rows.with_ids(ids)) == {key: 1 for key in ids if key == "a"}
