"""Whether a result is an answer to a query: where the language leaves rows or their order open, so does this."""

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

import pyarrow as pa
from tests.support.brute_force import Answer, Values, same

from omnigraph.language.plan.expressions import AggregateFunction, Aggregation
from omnigraph.language.plan.pattern import Read

_DIGITS = 9


def disagreement(read: Read, result: pa.Table, expected: Answer) -> str | None:
    """How a result differs from the answer; None if it does not.

    Args:
        read (Read): what was asked.
        result (pa.Table): what came.
        expected (Answer): what is right.

    Returns:
        str | None: a sentence for the failing test.
    """
    names = [column.name for column in read.columns]
    if result.column_names != names:
        return f"columns are {result.column_names}, expected {names}"
    rows = [_comparable(read, row) for row in zip(*(column.to_pylist() for column in result.columns), strict=True)]
    wanted = [_comparable(read, row) for row in expected.rows]
    if len(rows) != len(wanted):
        return f"{len(rows)} rows, expected {len(wanted)}: {rows[:5]} instead of {wanted[:5]}"
    everything = Counter(_comparable(read, row) for row in expected.everything)
    if Counter(rows) - everything:
        return f"rows that are none: {list(Counter(rows) - everything)[:5]}"
    limited = len(wanted) < len(expected.everything)
    if read.order and rows != wanted and not _sorts_alike(read, expected, rows, wanted):
        return f"order is {rows[:8]}, expected {wanted[:8]}"
    if not limited and Counter(rows) != Counter(wanted):
        return f"rows missing: {list(Counter(wanted) - Counter(rows))[:5]}"
    return None


def _sorts_alike(read: Read, expected: Answer, rows: Sequence[Values], wanted: Sequence[Values]) -> bool:
    """Whether rows differ only where the order leaves it open."""
    keys: dict[Values, set[Values]] = {}
    for row, key in zip(expected.everything, expected.keys, strict=True):
        keys.setdefault(_comparable(read, row), set()).add(tuple(_rounded(each) for each in key))
    return all(keys[one] & keys[other] for one, other in zip(rows, wanted, strict=True))


def _comparable(read: Read, row: Sequence[Any]) -> Values:
    return tuple(
        _unordered(each) if _is_collected(column.value) else _rounded(each)
        for column, each in zip(read.columns, row, strict=True)
    )


def _is_collected(value: object) -> bool:
    return isinstance(value, Aggregation) and value.function is AggregateFunction.COLLECT


def _unordered(value: Any) -> Hashable:  # noqa: ANN401  (a list, or null)
    # In which order values are collected is open.
    return None if value is None else tuple(sorted((_rounded(each) for each in value), key=repr))


def _rounded(value: Any) -> Hashable:  # noqa: ANN401  (a value of any kind)
    if isinstance(value, list | tuple):
        return tuple(_rounded(each) for each in value)
    if isinstance(value, float) and value:
        # The order of a sum is open, and with it its last digits.
        return round(value, _DIGITS - 1 - math.floor(math.log10(abs(value))))
    found: Hashable = same(value)
    return found
