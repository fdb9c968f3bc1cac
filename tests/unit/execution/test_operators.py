"""Operators by themselves: paths, orders, groups and values against the plainest way to compute the same."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.execution import comparison
from omnigraph.execution.aggregates import ValueAggregate, make_aggregate
from omnigraph.execution.arithmetic import calculate, negate
from omnigraph.execution.arrays import sorted_unique
from omnigraph.execution.comparison import compare, is_member
from omnigraph.execution.csr import build_csr
from omnigraph.execution.edge_list import EdgeList
from omnigraph.execution.neighbours import CsrNeighbours
from omnigraph.execution.operators.filter import Limit
from omnigraph.execution.operators.operator import Operator
from omnigraph.execution.operators.order import Order, SortKey
from omnigraph.execution.operators.project import Distinct
from omnigraph.execution.query_limits import Budget
from omnigraph.execution.results import Results, concat_results
from omnigraph.execution.traversal import build_shortest_path_tree, find_shortest_path
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation
from omnigraph.model.types import PropertyType, Scalar

QUICK = settings(derandomize=True)
edges_between_six = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=18)


# --- paths ------------------------------------------------------------------------------------------------------------


def ways(edges: Sequence[tuple[int, int]]) -> tuple[Any, Any]:
    sources, targets = (np.array([edge[end] for edge in edges], dtype=np.int32) for end in (0, 1))
    there = EdgeList(sources, targets, np.arange(len(edges), dtype=np.int32))
    out, back = CsrNeighbours(build_csr(there, 6)), CsrNeighbours(build_csr(there.reversed, 6))
    return (lambda _: out), (lambda _: back)


def every_shortest_path(edges: Sequence[tuple[int, int]], start: int, end: int, most: int) -> list[tuple[int, ...]]:
    if start == end:
        return [(start, start)] if (start, start) in edges else []
    paths: list[tuple[int, ...]] = [(start,)]
    for _ in range(most):
        paths = [(*path, to) for path in paths for of, to in set(edges) if of == path[-1] and to not in path]
        found = [path for path in paths if path[-1] == end]
        if found:
            return found
    return []


@QUICK
@given(edges=edges_between_six, start=st.integers(0, 5), end=st.integers(0, 5), order=st.permutations(range(6)))
def test_of_several_shortest_paths_the_one_whose_ids_come_first(
    edges: list[tuple[int, int]], start: int, end: int, order: list[int]
) -> None:
    ranks = np.array(order, dtype=np.int64)
    way, back = ways(edges)
    found = find_shortest_path(way, back, start, end, least=1, most=4, size=6, ranks=lambda some: ranks[some])
    every = every_shortest_path(edges, start, end, 4)
    assert (found is None) == (not every)
    if found is not None:
        assert tuple(found.tolist()) == min(every, key=lambda path: [order[node] for node in path])


@QUICK
@given(edges=edges_between_six, start=st.integers(0, 5), end=st.integers(0, 5), least=st.integers(1, 4))
def test_a_shortest_path_outside_the_bounds_is_none_but_for_an_edge_from_its_end_to_itself(
    edges: list[tuple[int, int]], start: int, end: int, least: int
) -> None:
    way, back = ways(edges)
    found = find_shortest_path(
        way, back, start, end, least=least, most=4, size=6, ranks=lambda some: some.astype(np.int64)
    )
    lengths = {len(path) - 1 for path in every_shortest_path(edges, start, end, 4)}
    loop = start != end and (end, end) in edges
    assert (found is not None) == any(length + loop >= least for length in lengths)
    assert found is None or len(found) - 1 == max(*lengths, least)


@QUICK
@given(edges=edges_between_six, start=st.integers(0, 5), order=st.permutations(range(6)), from_end=st.booleans())
def test_a_tree_has_the_first_path_to_every_node(
    edges: list[tuple[int, int]], start: int, order: list[int], from_end: bool
) -> None:
    ranks = np.array(order, dtype=np.int64)
    way, _ = ways(edges)
    found = build_shortest_path_tree(way, start, most=4, size=6, ranks=lambda some: ranks[some], read_from_end=from_end)
    begins, nodes = found.paths(np.ones(len(found.nodes), dtype=np.bool_))
    paths = {int(nodes[stop - 1]): tuple(nodes[first:stop].tolist()) for first, stop in pairwise(begins.tolist())}
    expected = {}
    for end in range(6):
        every = every_shortest_path(edges, start, end, 4) if end != start else []
        if every:
            expected[end] = min(every, key=lambda path: [order[node] for node in (path[::-1] if from_end else path)])
    assert paths == expected


# --- rows of results --------------------------------------------------------------------------------------------------


class Setting:
    now_ms = 0

    def parameter(self, name: str) -> None:
        raise KeyError(name)

    def text_matches(self, columns: Any, ordinals: Any, name: str, query: Any) -> Any:  # noqa: ANN401  (operators here are of any type)
        raise KeyError(name)


class Given(Operator[Results]):
    """Rows that are there already, in batches."""

    def __init__(self, batches: Sequence[Sequence[tuple[Any, ...]]], types: Sequence[pa.DataType]) -> None:
        self._batches = [
            [pa.array([row[at] for row in rows], type_) for at, type_ in enumerate(types)] for rows in batches if rows
        ]

    def batches(self, run: Any, given: Any) -> Any:  # noqa: ANN401  (operators here are of any type)
        for columns in self._batches:
            yield Results(Setting(), len(columns[0]), columns)


class Run:
    """As much of a run as these operators need."""

    def __init__(self, batch_rows: int = 4) -> None:
        self.budget = Budget(10**9)
        self.batch_rows = batch_rows


def rows_of(operator: Operator[Results], columns: int) -> list[tuple[Any, ...]]:
    run: Any = Run()
    found: list[tuple[Any, ...]] = []
    for batch in operator.batches(run, None):
        assert batch.size
        found += zip(*(batch.output(at).to_pylist() for at in range(columns)), strict=True)
    assert run.budget.held == 0
    return found


def column(position: int) -> Any:  # noqa: ANN401  (operators here are of any type)
    return lambda rows: rows.output(position)


maybe_numbers = st.one_of(st.none(), st.integers(-2, 2))
maybe_texts = st.one_of(st.none(), st.sampled_from(["", "a", "B", "é"]))
batches_of_rows = st.lists(st.lists(st.tuples(maybe_numbers, maybe_texts, st.integers(0, 99)), max_size=6), max_size=5)
TYPES: list[pa.DataType] = [pa.int32(), pa.string(), pa.int64()]


def sort_value(value: Any, *, descending: bool) -> tuple[Any, ...]:  # noqa: ANN401  (operators here are of any type)
    """Null before everything; turned round where it descends."""
    if value is None:
        return (1, 0) if descending else (0, 0)
    plain = value if isinstance(value, int) else sum(byte * 256 ** (3 - at) for at, byte in enumerate(value.encode()))
    return (0, -plain) if descending else (1, plain)


@QUICK
@given(
    batches=batches_of_rows,
    first=st.sampled_from([0, 1]),
    descending=st.tuples(st.booleans(), st.booleans()),
    at_most=st.one_of(st.none(), st.integers(0, 8)),
)
def test_rows_are_sorted_by_keys_then_ties_and_cut_where_enough(
    batches: list[list[tuple[Any, ...]]], first: int, descending: tuple[bool, bool], at_most: int | None
) -> None:
    keys = [SortKey(column(first), descending[0]), SortKey(column(1 - first), descending[1])]
    limit = None if at_most is None else lambda _: at_most
    found = rows_of(Order(Given(batches, TYPES), concat_results, keys=keys, ties=[column(2)], at_most=limit), 3)
    everything = sorted(
        (row for batch in batches for row in batch),
        key=lambda row: (
            sort_value(row[first], descending=descending[0]),
            sort_value(row[1 - first], descending=descending[1]),
            row[2],
        ),
    )
    assert found == everything[:at_most]


@pytest.mark.parametrize("type_", [pa.uint64(), pa.float64(), pa.bool_(), pa.date32(), pa.timestamp("ms", tz="UTC")])
def test_every_type_has_an_order(type_: pa.DataType) -> None:
    values: dict[pa.DataType, list[Any]] = {
        pa.uint64(): [0, 5, 2**64 - 1],
        pa.float64(): [-1.5, 0.0, 2.5],
        pa.bool_(): [False, True],
        pa.date32(): [date(1960, 1, 1), date(2000, 1, 1)],
        pa.timestamp("ms", tz="UTC"): [datetime(1960, 1, 1, tzinfo=UTC), datetime(2000, 1, 1, tzinfo=UTC)],
    }
    ordered = [None, *values[type_]]
    mixed = [(value,) for value in (*ordered[1::2], *ordered[::2])]
    for descending in (False, True):
        keys = [SortKey(column(0), descending)]
        found = rows_of(
            Order(Given([mixed[:2], mixed[2:]], [type_]), concat_results, keys=keys, ties=[], at_most=None), 1
        )
        assert [row[0] for row in found] == (ordered[::-1] if descending else ordered)


@QUICK
@given(batches=batches_of_rows, skip=st.integers(0, 12), count=st.one_of(st.none(), st.integers(0, 12)))
def test_a_limit_counts_over_batches(batches: list[list[tuple[Any, ...]]], skip: int, count: int | None) -> None:
    limit = None if count is None else lambda _: count
    found = rows_of(Limit(Given(batches, TYPES), skip=lambda _: skip, count=limit), 3)
    everything = [row for batch in batches for row in batch]
    assert found == (everything[skip:] if count is None else everything[skip : skip + count])


@QUICK
@given(batches=batches_of_rows)
def test_distinct_passes_on_the_first_of_equal_rows(batches: list[list[tuple[Any, ...]]]) -> None:
    found = rows_of(Distinct(Given(batches, TYPES), columns=3), 3)
    assert found == list(dict.fromkeys(row for batch in batches for row in batch))


# --- groups -----------------------------------------------------------------------------------------------------------

grouped_rows = st.lists(
    st.lists(st.tuples(st.integers(0, 2), maybe_numbers, st.integers(0, 3)), max_size=6), max_size=4
)
NUMBER = ex.Property("p", "n", PropertyType(Scalar.I32, nullable=True))


@QUICK
@given(
    batches=grouped_rows, function=st.sampled_from(AggregateFunction), distinct=st.booleans(), weighted=st.booleans()
)
def test_tallies_are_what_their_names_say(
    batches: list[list[tuple[int, int | None, int]]], function: AggregateFunction, distinct: bool, weighted: bool
) -> None:
    of_list = function is AggregateFunction.COLLECT
    type_ = {AggregateFunction.COUNT: ex.I64, AggregateFunction.COLLECT: PropertyType(Scalar.I32, list=True)}.get(
        function, NUMBER.type if function in (AggregateFunction.MIN, AggregateFunction.MAX) else ex.NULLABLE_F64
    )
    tally = make_aggregate(Aggregation(function, NUMBER, distinct, type_))
    assert isinstance(tally, ValueAggregate)
    groups: dict[int, list[int]] = {group: [] for group in range(3)}
    for batch in batches:
        weights = np.array([row[2] for row in batch], dtype=np.int64) if weighted else None
        tally.add(
            np.array([row[0] for row in batch], dtype=np.int64),
            pa.array([row[1] for row in batch], pa.int32()),
            weights,
            3,
        )
        for group, value, times in batch:
            if value is not None:
                # What does not look at repeats is given each row at least once.
                once_at_least = distinct or function in (AggregateFunction.MIN, AggregateFunction.MAX)
                groups[group] += [value] * (max(times, once_at_least) if weighted else 1)
    expected: list[Any] = []
    for group in range(3):
        values: list[int] = sorted(set(groups[group])) if distinct else groups[group]
        match function:
            case AggregateFunction.COUNT:
                expected.append(len(values))
            case AggregateFunction.SUM:
                expected.append(float(sum(values)) if values else None)
            case AggregateFunction.AVG:
                expected.append(sum(values) / len(values) if values else None)
            case AggregateFunction.MIN:
                expected.append(min(values, default=None))
            case AggregateFunction.MAX:
                expected.append(max(values, default=None))
            case AggregateFunction.COLLECT:
                expected.append(sorted(values))
    found: list[Any] = tally.result(np.arange(3)).to_pylist()
    if of_list:
        assert [sorted(each) for each in found] == expected
    else:
        assert found == pytest.approx(expected)


# --- values -----------------------------------------------------------------------------------------------------------

integers = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-5, 5))


@QUICK
@given(pairs=st.lists(st.tuples(integers, integers), min_size=1, max_size=8), op=st.sampled_from(["+", "-", "*", "%"]))
def test_whole_numbers_are_exact_or_null(pairs: list[tuple[int | None, int | None]], op: str) -> None:
    left, right = (pa.array([pair[at] for pair in pairs], pa.int64()) for at in (0, 1))
    found = calculate(ex.ArithmeticOp(op), left, right, (ex.I64, ex.I64, ex.I64)).to_pylist()
    for (one, other), value in zip(pairs, found, strict=True):
        if one is None or other is None:
            exact = None
        elif op == "%":
            exact = abs(one) % abs(other) * (-1 if one < 0 else 1) if other else None
        else:
            exact = {"+": one + other, "-": one - other, "*": one * other}[op]
        assert value == (exact if exact is not None and -(2**63) <= exact < 2**63 else None)


def test_the_least_number_has_no_opposite() -> None:
    assert negate(pa.array([-(2**63), 5, None], pa.int64()), ex.I64).to_pylist() == [None, -5, None]


def test_days_outside_the_calendar_are_null() -> None:
    days = PropertyType(Scalar.DATE)
    late = pa.array([date(9999, 12, 31), date(2000, 1, 1)], pa.date32())
    found = calculate(
        ex.ArithmeticOp.ADD, late, pa.scalar(86_400_000, pa.int64()), (days, ex.DurationValue(whole_days=True), days)
    )
    assert found.to_pylist() == [None, date(2000, 1, 2)]


@QUICK
@given(
    pairs=st.lists(
        st.tuples(
            st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), st.one_of(st.none(), st.integers(0, 2**64 - 1))
        ),
        min_size=1,
        max_size=8,
    ),
    op=st.sampled_from(ex.CompareOp),
)
def test_signed_and_unsigned_numbers_are_compared_exactly(
    pairs: list[tuple[int | None, int | None]], op: ex.CompareOp
) -> None:
    signed, unsigned = (
        pa.array([pair[0] for pair in pairs], pa.int64()),
        pa.array([pair[1] for pair in pairs], pa.uint64()),
    )
    tests = {"=": "__eq__", "!=": "__ne__", "<": "__lt__", "<=": "__le__", ">": "__gt__", ">=": "__ge__"}
    expected = [None if one is None or other is None else getattr(one, tests[op])(other) for one, other in pairs]
    assert compare(op, signed, unsigned).to_pylist() == expected
    one = pairs[0][0]
    by_scalar = compare(op, pa.scalar(one, pa.int64()), unsigned).to_pylist()
    assert by_scalar == [None if one is None or other is None else getattr(one, tests[op])(other) for _, other in pairs]


def test_membership_where_item_and_list_differ_row_by_row() -> None:
    lists = pa.array([[1, 2], [], None, [3], [None, 4]], pa.list_(pa.int64()))
    items = pa.array([2, 2, 2, None, 4], pa.int32())
    assert is_member(items, lists, size=5).to_pylist() == [True, False, None, None, True]
    assert is_member(pa.scalar(3, pa.int32()), lists, size=5).to_pylist() == [False, False, None, True, False]
    assert is_member(items, pa.scalar(None, pa.list_(pa.int64())), size=5).to_pylist() == [None] * 5


def test_strings_are_tested_row_by_row_where_both_differ() -> None:
    wholes, parts = pa.array(["abc", "abc", None, "x"]), pa.array(["bc", "ab", "a", None])
    assert comparison.match_string(ex.StringOp.CONTAINS, wholes, parts, size=4).to_pylist() == [True, True, None, None]
    assert comparison.match_string(ex.StringOp.STARTS_WITH, wholes, parts, size=4).to_pylist() == [
        False,
        True,
        None,
        None,
    ]
    assert comparison.match_string(
        ex.StringOp.CONTAINS, pa.scalar("a.c"), pa.array([".", "b"]), size=2
    ).to_pylist() == [
        True,
        False,
    ]


@QUICK
@given(numbers=st.lists(st.integers(-9, 9), max_size=12))
def test_each_number_once(numbers: list[int]) -> None:
    assert sorted_unique(np.array(numbers, dtype=np.int64)).tolist() == sorted(set(numbers))
