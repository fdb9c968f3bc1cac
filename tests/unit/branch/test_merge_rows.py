"""Rows of two sides put together, whole columns at a time, against the same done one by one."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.branch.merge.changed import Net
from omnigraph.branch.merge.three_way import three_way
from omnigraph.branch.row_changes import RowChanges, ids_of, row_changes
from omnigraph.storage.equal_values import same_values

FIELDS: list[tuple[str, pa.DataType]] = [
    ("id", pa.string()),
    ("n", pa.int32()),
    ("tags", pa.list_(pa.string())),
    ("place", pa.list_(pa.float32(), 2)),
]
COLUMNS = pa.schema(FIELDS)
Row = tuple[int | None, list[str] | None, list[float] | None]
State = dict[str, Row]

rows = st.tuples(
    st.none() | st.integers(0, 1),
    st.none() | st.lists(st.sampled_from(["", "a", "a, b"]), max_size=2),
    st.none() | st.just([0.0, 1.0]) | st.just([math.nan, 1.0]),
)
states = st.dictionaries(st.sampled_from("abc"), rows)


def table(state: State) -> pa.Table:
    rows = [dict(zip(COLUMNS.names, (key, *row), strict=True)) for key, row in state.items()]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def changes(before: State, after: State) -> RowChanges:
    return row_changes(table(before), table(after))


def state_of(found: pa.Table) -> State:
    return {row["id"]: (row["n"], row["tags"], row["place"]) for row in found.to_pylist()}


def alike(one: Row | None, other: Row | None) -> bool:
    """NaN is itself, whatever Python says."""
    return repr(one) == repr(other)


@given(before=states, after=states)
@settings(derandomize=True)
def test_changes_are_the_rows_that_differ(before: State, after: State) -> None:
    found = changes(before, after)
    assert sorted(ids_of(found.inserted)) == sorted(after.keys() - before.keys())
    assert sorted(ids_of(found.deleted)) == sorted(before.keys() - after.keys())
    differing = [key for key in before.keys() & after.keys() if not alike(before[key], after[key])]
    assert sorted(ids_of(found.after)) == sorted(differing)
    assert ids_of(found.before) == ids_of(found.after)
    assert repr(state_of(found.before)) == repr({key: before[key] for key in ids_of(found.before)})


@given(base=states, source=states, target=states, by_property=st.booleans())
@settings(derandomize=True, max_examples=200)
def test_two_sides_put_together_are_what_one_by_one_they_would_be(
    base: State, source: State, target: State, by_property: bool
) -> None:
    found = three_way(changes(base, source), changes(base, target), by_property=by_property)
    result = dict(target) | state_of(found.upserts)
    for each in found.deletes.to_pylist():
        del result[str(each)]
    clashing = dict(zip(found.clashes.ids, (kind.value for kind in found.clashes.kinds), strict=True))
    for key in base.keys() | source.keys() | target.keys():
        was, ours, theirs = base.get(key), source.get(key), target.get(key)
        if alike(ours, was) or alike(ours, theirs):
            expected = theirs
        elif alike(theirs, was):
            expected = ours
        elif ours is None or theirs is None:
            assert clashing.pop(key) == "delete_vs_update"
            expected = theirs
        elif was is None:
            assert clashing.pop(key) == "divergent_insert"
            expected = theirs
        else:
            cells = list(zip(was, ours, theirs, strict=True))
            both = [not (repr(a) == repr(b) or repr(a) == repr(c) or repr(b) == repr(c)) for a, b, c in cells]
            expected = theirs
            if by_property and not any(both):
                picked = [b if repr(a) == repr(c) else c for a, b, c in cells]
                expected = (picked[0], picked[1], picked[2])  # type: ignore[assignment]  # three of three
            else:
                assert clashing.pop(key) == "divergent_update"
        assert repr(result.get(key)) == repr(expected)
    assert not clashing


@pytest.mark.parametrize(
    ("one", "other", "kind", "same"),
    [
        (None, None, pa.string(), True),
        (None, "", pa.string(), False),
        (math.nan, math.nan, pa.float64(), True),
        (0.0, math.nan, pa.float64(), False),
        ([], None, pa.list_(pa.int32()), False),
        ([], [], pa.list_(pa.int32()), True),
        ([1, None], [1, None], pa.list_(pa.int32()), True),
        ([1, None], [1, 2], pa.list_(pa.int32()), False),
        ([[1], []], [[1], []], pa.list_(pa.list_(pa.int32())), True),
        ([[1], []], [[], [1]], pa.list_(pa.list_(pa.int32())), False),
        (b"a", b"b", pa.large_binary(), False),
        ({"x": 1, "y": None}, {"x": 1, "y": None}, pa.struct([("x", pa.int32()), ("y", pa.string())]), True),
        ({"x": 1, "y": None}, {"x": 1, "y": ""}, pa.struct([("x", pa.int32()), ("y", pa.string())]), False),
    ],
)
def test_values_are_the_same_when_they_are_at_any_depth(
    one: object, other: object, kind: pa.DataType, same: bool
) -> None:
    columns = [pa.array([None, each, each], kind) for each in (one, other)]
    assert same_values(*columns).tolist() == [True, same, same]
    assert same_values(*(column.slice(1, 1) for column in columns)).tolist() == [same]
    assert same_values(*(column.slice(0, 0) for column in columns)).tolist() == []


ids = st.frozensets(st.sampled_from("abcd"))


@given(steps=st.lists(st.tuples(ids, ids), max_size=6), start=ids)
@settings(derandomize=True)
def test_changes_one_on_top_of_the_other_are_what_they_come_to(
    steps: list[tuple[frozenset[str], frozenset[str]]], start: frozenset[str]
) -> None:
    """Each step leaves some entities and has touched some of those that were there."""
    net, here = Net(), start
    ever_touched: set[str] = set()
    for after, touched in steps:
        updated = here & after & touched
        net.then(after - here, updated, here - after)
        ever_touched |= (after ^ here) | updated
        here = after
    assert net.inserted == here - start
    assert net.deleted == start - here
    assert net.updated == start & here & ever_touched
