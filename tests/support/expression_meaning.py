"""What typed expressions mean, one row at a time."""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

from tests.support.small_graph import Held

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Aggregation, Column, Expression

# For each variable what it is bound to (a node or an edge, a path, None for nothing), and hidden columns.
Row = dict[str, Any]
Values = tuple[Any, ...]

_COMPARE: dict[ex.CompareOp, Callable[[Any, Any], bool]] = {
    ex.CompareOp.EQUAL: operator.eq,
    ex.CompareOp.NOT_EQUAL: operator.ne,
    ex.CompareOp.LESS: operator.lt,
    ex.CompareOp.LESS_EQUAL: operator.le,
    ex.CompareOp.GREATER: operator.gt,
    ex.CompareOp.GREATER_EQUAL: operator.ge,
}
_ARITHMETIC: dict[ex.ArithmeticOp, Callable[[Any, Any], Any]] = {
    ex.ArithmeticOp.ADD: operator.add,
    ex.ArithmeticOp.SUBTRACT: operator.sub,
    ex.ArithmeticOp.MULTIPLY: operator.mul,
    ex.ArithmeticOp.DIVIDE: lambda left, right: left / right if right else None,
    # The remainder has the sign of the number that is divided.
    ex.ArithmeticOp.MODULO: lambda left, right: left - right * int(left / right) if right else None,
}
_DURATIONS: dict[ex.Function, Callable[[int], timedelta]] = {
    ex.Function.DAYS: lambda number: timedelta(days=number),
    ex.Function.HOURS: lambda number: timedelta(hours=number),
    ex.Function.MINUTES: lambda number: timedelta(minutes=number),
    ex.Function.SECONDS: lambda number: timedelta(seconds=number),
}


@dataclass(frozen=True, slots=True)
class Meaning:
    """The values of expressions, given parameters and an instant for `now()`."""

    parameters: Mapping[str, ex.Value] = field(default_factory=dict)
    now: datetime = datetime(2024, 1, 31, tzinfo=UTC)

    def holds(self, condition: Expression | None, row: Row) -> bool:
        """Whether a row passes: only what is true does, neither false nor unknown."""
        return condition is None or self.value(condition, row) is True

    def value(self, expression: Expression, row: Row) -> Any:  # noqa: ANN401  (as many types as values have)
        """The value of an expression; None where it has none, or is unknown."""
        match expression:
            case ex.Constant():
                return expression.value
            case ex.Parameter():
                return self.parameters[expression.name]
            case ex.Property():
                held: Held | None = row[expression.variable]
                return None if held is None else held[1][expression.name]
            case ex.Entity():
                held = row[expression.variable]
                return None if held is None else held[0]
            case ex.Path() | ex.PathNodes():
                return row[expression.variable]
            case ex.PathLength():
                path = row[expression.variable]
                return None if path is None else len(path) - 1
            case ex.Now():
                return self.now
            case ex.Computed():
                return row[expression.name]
            case ex.Output():
                return row["#result"][expression.position]
            case ex.IsNull():
                return (self.value(expression.operand, row) is None) != expression.negated
            case ex.And():
                truths = [self.value(each, row) for each in expression.operands]
                return False if False in truths else None if None in truths else True
            case ex.Or():
                truths = [self.value(each, row) for each in expression.operands]
                return True if True in truths else None if None in truths else False
            case _:
                return self._of_values(expression, row)

    def _of_values(
        self,
        expression: ex.Arithmetic
        | ex.Negative
        | ex.Call
        | ex.Compare
        | ex.StringTest
        | ex.Member
        | ex.Not
        | ex.Endpoint
        | ex.TextMatch
        | ex.Nearest
        | ex.Bm25
        | ex.Rrf,
        row: Row,
    ) -> Any:  # noqa: ANN401  (values of any kind)
        """Expressions that are unknown where anything in them is."""
        match expression:
            case ex.Arithmetic():
                return self._strict(_ARITHMETIC[expression.op], row, expression.left, expression.right)
            case ex.Negative():
                return self._strict(operator.neg, row, expression.operand)
            case ex.Call():
                return self._strict(_function(expression.function), row, *expression.arguments)
            case ex.Compare():
                return self._strict(_COMPARE[expression.op], row, expression.left, expression.right)
            case ex.StringTest():
                test = str.startswith if expression.op is ex.StringOp.STARTS_WITH else operator.contains
                return self._strict(test, row, expression.whole, expression.part)
            case ex.Member():
                inside = self._strict(operator.contains, row, expression.items, expression.item)
                return None if inside is None else inside != expression.negated
            case ex.Not():
                return self._strict(operator.not_, row, expression.operand)
            case ex.Endpoint() | ex.TextMatch() | ex.Nearest() | ex.Bm25() | ex.Rrf():
                raise NotImplementedError("a small graph has no mutations and no search")
            case _:
                assert_never(expression)

    def _strict(self, function: Callable[..., Any], row: Row, *operands: Expression) -> Any:  # noqa: ANN401  (values of any kind)
        values = [self.value(each, row) for each in operands]
        return None if None in values else function(*values)

    def sort_key(self, expression: Expression, row: Row) -> tuple[bool, Any]:
        """What to sort by: absent values before all others."""
        value = self.value(expression, row)
        return (value is not None, 0 if value is None else value)

    def groups(self, columns: tuple[Column, ...], rows: list[tuple[Row, int]]) -> list[Values]:
        """The rows of an aggregate; every row counts as often as it says."""
        keys = [each.value for each in columns if not isinstance(each.value, Aggregation)]
        groups: dict[Values, list[tuple[Row, int]]] = {} if keys else {(): []}
        for row, times in rows:
            groups.setdefault(tuple(self.value(key, row) for key in keys), []).append((row, times))
        found = []
        for key, members in groups.items():
            rest = iter(key)
            found.append(
                tuple(
                    self._aggregate(each.value, members) if isinstance(each.value, Aggregation) else next(rest)
                    for each in columns
                )
            )
        return found

    def _aggregate(self, value: Aggregation, members: list[tuple[Row, int]]) -> Any:  # noqa: ANN401  (values of any kind)
        if value.argument is None:
            return sum(times for _, times in members)
        if (
            value.function is ex.AggregateFunction.COUNT
            and isinstance(value.argument, ex.Entity)
            and not value.distinct
        ):
            # A variable that is only counted need not be in the rows any more.
            name = value.argument.variable
            return sum(times for row, times in members if row.get(name, "counted") is not None)
        present = [
            found for row, times in members for found in [self.value(value.argument, row)] * times if found is not None
        ]
        if value.distinct:
            present = list(dict.fromkeys(present))
        match value.function:
            case ex.AggregateFunction.COUNT:
                return len(present)
            case ex.AggregateFunction.SUM:
                return float(sum(present)) if present else None
            case ex.AggregateFunction.AVG:
                return sum(present) / len(present) if present else None
            case ex.AggregateFunction.MIN:
                return min(present, default=None)
            case ex.AggregateFunction.MAX:
                return max(present, default=None)
            case ex.AggregateFunction.COLLECT:
                # In no particular order; sorted, so that two of them can be compared.
                return tuple(sorted(present, key=str))
            case _:
                assert_never(value.function)


def _function(function: ex.Function) -> Callable[..., Any]:
    match function:
        case ex.Function.LOWER:
            return str.lower
        case ex.Function.UPPER:
            return str.upper
        case ex.Function.LENGTH:
            return len
        case ex.Function.DAYS_BETWEEN:
            return _days_between
        case _:
            return _DURATIONS[function]


def _days_between(first: date | datetime, second: date | datetime) -> int:
    start, end = (
        each if isinstance(each, datetime) else datetime(each.year, each.month, each.day, tzinfo=UTC)
        for each in (first, second)
    )
    return int((end - start) / timedelta(days=1))
