"""Filter push-down: conditions that a table's index can answer, for large types whose column is not cached.

An index only proposes candidates: the whole condition is evaluated on every one again, so no answer depends on it.
"""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

import numpy as np

from omnigraph import limits
from omnigraph.execution.arrays import Ordinals, sorted_unique
from omnigraph.execution.columns import Columns
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, Value
from omnigraph.language.plan.walk import split_conjuncts
from omnigraph.model.types import FLOAT_SCALARS, INTEGER_BOUNDS, INTEGER_SCALARS, Scalar
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.table import ADDRESS, BuiltIndex, quoted

_EQUAL = frozenset({"BTREE", "BITMAP"})
_ORDERED = frozenset({"BTREE"})
_PARTS = frozenset({"NGRAM"})
# Assumed cost of an index query, in rows looked up, when weighed against reading the whole column.
_ROWS_WORTH = 1_000
# The n-gram index has n = 3.
_PART_LETTERS = 3
# The filter language parses integers out of these bounds as floats.
_WHOLE_MAX = 2**63 - 1
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGNS = {
    ex.CompareOp.EQUAL: "=",
    ex.CompareOp.LESS: "<",
    ex.CompareOp.LESS_EQUAL: "<=",
    ex.CompareOp.GREATER: ">",
    ex.CompareOp.GREATER_EQUAL: ">=",
}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """One condition on one property.

    Attributes:
        column: the property.
        kinds: index kinds that answer it.
        text: the condition in the filter language, given the parameters; None where it cannot be written exactly.
    """

    column: str
    kinds: frozenset[str]
    text: Callable[[Mapping[str, Value]], str | None]

    def index(self, nodes: Columns) -> BuiltIndex | None:
        """Return the index of a version that answers it."""
        return next(
            (
                index
                for index in nodes.table.indexes()
                if index.columns == (self.column,) and index.kind.upper() in self.kinds
            ),
            None,
        )


def index_filters(variable: str, condition: Expression | None) -> tuple[IndexFilter, ...]:
    """Return the conjuncts of a condition on one variable that an index may answer."""
    return () if condition is None else tuple(_filters(variable, condition))


def choose_filter(filters: tuple[IndexFilter, ...], nodes: Columns) -> tuple[IndexFilter, BuiltIndex] | None:
    """Choose a condition and its index; None where rows are filtered in memory."""
    if nodes.numbering.size <= limits.READ_WHOLE_ROWS_MAX:
        return None
    for candidate in filters:
        index = None if nodes.is_cached(candidate.column) else candidate.index(nodes)
        if index is not None:
            return candidate, index
    return None


def propose_candidates(
    filters: tuple[IndexFilter, ...], nodes: Columns, params: Mapping[str, Value]
) -> Ordinals | None:
    """Return the nodes that an index proposes, ascending, a superset of the matches; None where all must be scanned."""
    found = choose_filter(filters, nodes)
    if found is None:
        return None
    text = found[0].text(params)
    most = limits.LOOKUP_ROWS_MAX
    if text is None or nodes.is_worth_reading(found[0].column, _ROWS_WORTH):
        return None
    rows = nodes.table.scan(columns=[], filter=text, limit=most + 1, with_addresses=True)
    # This many are read faster in one pass.
    return None if len(rows) > most else sorted_unique(nodes.numbering.ordinals_at(as_addresses(rows.column(ADDRESS))))


def _filters(variable: str, condition: Expression) -> Iterator[IndexFilter]:
    for conjunct in split_conjuncts(condition):
        match conjunct:
            case ex.Compare(op=op, left=ex.Property(variable=own) as of, right=other) if op in _SIGNS:
                sign = _SIGNS[op]
            case ex.Compare(op=op, left=other, right=ex.Property(variable=own) as of) if op in _SIGNS:
                sign = _MIRRORED[_SIGNS[op]]
            case ex.StringTest(op=ex.StringOp.CONTAINS, whole=ex.Property(variable=own) as of, part=other):
                sign = ""
            case _:
                continue
        value = _constant(other)
        if own == variable and value is not None and not of.type.list:
            kinds = _PARTS if not sign else _EQUAL if sign == "=" else _ORDERED
            text = _filter_text(of, sign, value)
            if not isinstance(other, ex.Constant) or text({}) is not None:
                yield IndexFilter(of.name, kinds, text)


def _constant(expression: Expression) -> Callable[[Mapping[str, Value]], Value] | None:
    match expression:
        case ex.Constant(value=value):
            return lambda _: value
        case ex.Parameter(name=name):
            return lambda values: values[name]
        case _:
            return None


def _filter_text(
    of: ex.Property, sign: str, value: Callable[[Mapping[str, Value]], Value]
) -> Callable[[Mapping[str, Value]], str | None]:
    scalar = of.type.scalar

    def text(params: Mapping[str, Value]) -> str | None:
        given = value(params)
        if of.type.is_string and isinstance(given, str):
            if sign:
                return f"`{of.name}` {sign} {quoted(given)}"
            return f"contains(`{of.name}`, {quoted(given)})" if len(given) >= _PART_LETTERS else None
        if scalar in FLOAT_SCALARS and isinstance(given, int | float) and not isinstance(given, bool):
            return _widened(of.name, sign, given, np.float32 if scalar is Scalar.F32 else np.float64)
        literal = _literal(scalar, given)
        return None if literal is None or (scalar is Scalar.BOOL and sign != "=") else f"`{of.name}` {sign} {literal}"

    return text


def _literal(scalar: Scalar, given: Value) -> str | None:
    """Write a value of the property's own type in the filter language; None where it is of another type."""
    match given:
        case bool():
            return str(given).lower() if scalar is Scalar.BOOL else None
        case int() if scalar in INTEGER_SCALARS:
            least, most = INTEGER_BOUNDS[scalar]
            return str(given) if max(least, -_WHOLE_MAX) <= given <= min(most, _WHOLE_MAX) else None
        case datetime() if scalar is Scalar.DATETIME:
            instant = (given - _EPOCH) // timedelta(milliseconds=1)
            return f"arrow_cast({instant}, 'Timestamp(Millisecond, Some(\"UTC\"))')"
        case date() if scalar is Scalar.DATE and not isinstance(given, datetime):
            return f"date '{given.isoformat()}'"
        case _:
            return None


def _widened(name: str, sign: str, given: float, width: type[np.float32] | type[np.float64]) -> str | None:
    """Widen a comparison of floats by one step: zero has two signs, and a column may be less precise."""
    with np.errstate(over="ignore"):  # a number too large for the column becomes infinite
        near = width(given)
    wanted = []
    if sign in ("=", ">", ">="):
        wanted.append((">=", float(np.nextafter(near, width(-math.inf)))))
    if sign in ("=", "<", "<="):
        wanted.append(("<=", float(np.nextafter(near, width(math.inf)))))
    if not wanted or not all(math.isfinite(bound) for _, bound in wanted):
        return None
    return " AND ".join(f"`{name}` {side} {bound!r}" for side, bound in wanted)
