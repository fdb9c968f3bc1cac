"""Expressions of bound queries over plain Python values: one row at a time, three-valued, as slow as it is plain."""

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

from tests.support import search_meaning

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 86_400_000
_UNITS_MS = {
    ex.Function.DAYS: _DAY_MS,
    ex.Function.HOURS: 3_600_000,
    ex.Function.MINUTES: 60_000,
    ex.Function.SECONDS: 1_000,
}


@dataclass(frozen=True, slots=True)
class Thing:
    """A node or an edge: its type and its row."""

    type_name: str
    row: Mapping[str, Any]

    @property
    def id(self) -> str:
        """Its id."""
        return str(self.row["id"])

    def __hash__(self) -> int:
        return hash((self.type_name, self.id))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thing) and (self.type_name, self.id) == (other.type_name, other.id)


@dataclass(frozen=True, slots=True)
class Trail:
    """A path: the ids of its nodes."""

    ids: tuple[str, ...]


Binding = Thing | Trail | bool | None
Row = Mapping[str, Binding]


@dataclass(frozen=True, slots=True)
class Given:
    """What is the same for all rows.

    Attributes:
        params: the parameters.
        now_ms: when the query began.
        nodes: all nodes by type: what a word is worth depends on all texts.
        fused: of rankings that were fused, each node's score and place.
    """

    params: Mapping[str, Any]
    now_ms: int = 0
    nodes: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    fused: dict[ex.Rrf, tuple[dict[str, float], dict[str, int]]] = field(default_factory=dict)


def value_of(expression: Expression, row: Row, given: Given) -> Any:  # noqa: ANN401  (whatever it is)
    """The value of an expression for one row; None is null, or unknown."""
    match expression:
        case ex.Constant():
            return expression.value
        case ex.Parameter():
            return given.params[expression.name]
        case ex.Property():
            bound = row[expression.variable]
            return bound.row.get(expression.name) if isinstance(bound, Thing) else None
        case ex.Entity():
            bound = row[expression.variable]
            return bound.id if isinstance(bound, Thing) else None
        case ex.Endpoint():
            bound = row[expression.variable]
            assert isinstance(bound, Thing)
            return bound.row["src" if expression.end is ex.End.FROM else "dst"]
        case ex.Path() | ex.PathLength():
            trail = row[expression.variable]
            return len(trail.ids) - 1 if isinstance(trail, Trail) else None
        case ex.PathNodes():
            trail = row[expression.variable]
            return list(trail.ids) if isinstance(trail, Trail) else None
        case ex.Now():
            return _EPOCH + timedelta(milliseconds=given.now_ms)
        case ex.Computed():
            return row[expression.name]
        case ex.Arithmetic():
            return _arithmetic(expression, row, given)
        case ex.Negative():
            operand = value_of(expression.operand, row, given)
            return None if operand is None else -operand
        case ex.Call():
            return _call(expression, [value_of(each, row, given) for each in expression.arguments])
        case ex.Compare():
            left, right = expression.left, expression.right
            return compared(
                expression.op,
                _as_wide_as(right, left, value_of(left, row, given)),
                _as_wide_as(left, right, value_of(right, row, given)),
            )
        case ex.StringTest():
            whole, part = value_of(expression.whole, row, given), value_of(expression.part, row, given)
            if whole is None or part is None:
                return None
            return part in whole if expression.op is ex.StringOp.CONTAINS else whole.startswith(part)
        case ex.Member():
            item, items = expression.item, expression.items
            return _member(
                expression,
                _as_wide_as(items, item, value_of(item, row, given)),
                _as_wide_as(item, items, value_of(items, row, given)),
            )
        case ex.IsNull():
            return (value_of(expression.operand, row, given) is None) != expression.negated
        case ex.Not():
            operand = value_of(expression.operand, row, given)
            return None if operand is None else not operand
        case ex.And():
            found = [value_of(each, row, given) for each in expression.operands]
            return False if False in found else None if None in found else True
        case ex.Or():
            found = [value_of(each, row, given) for each in expression.operands]
            return True if True in found else None if None in found else False
        case ex.TextMatch() | ex.Nearest() | ex.Bm25() | ex.Rrf():
            return _searched(expression, row, given)
        case ex.Output():
            raise NotImplementedError(type(expression).__name__)
        case _:
            assert_never(expression)


def _searched(expression: ex.TextMatch | ex.Nearest | ex.Bm25 | ex.Rrf, row: Row, given: Given) -> bool | float | None:
    if isinstance(expression, ex.Rrf):
        fused = row[expression.first.target.variable]
        return given.fused[expression][0].get(fused.id) if isinstance(fused, Thing) else None
    target, query = expression.target, value_of(expression.query, row, given)
    value, bound = value_of(target, row, given), row[target.variable]
    match expression:
        case ex.TextMatch():
            most = None if expression.max_edits is None else value_of(expression.max_edits, row, given)
            return search_meaning.matches(expression.function, value, query, most, expression.analyzer)
        case ex.Nearest():
            return search_meaning.distance(value, query)
        case ex.Bm25():
            texts = [each.get(target.name) for each in given.nodes[bound.type_name]] if isinstance(bound, Thing) else []
            return search_meaning.bm25(texts, value, query, expression.analyzer)


def _as_wide_as(column: Expression, own: Expression, value: Any) -> Any:  # noqa: ANN401  (values of any kind)
    """The value of `own`: a literal or parameter takes the width of the column it is compared with."""
    is_given = isinstance(own, ex.Constant | ex.Parameter)
    if not is_given or not isinstance(column, ex.Property) or column.type.scalar is not Scalar.F32:
        return value
    if isinstance(value, list | tuple):
        return [as_f32(each) for each in value]
    return None if value is None else as_f32(value)


def as_f32(value: float) -> float:
    """What 32 bits keep of a number."""
    found: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return found


def compared(op: ex.CompareOp, left: Any, right: Any) -> bool | None:  # noqa: ANN401  (values of any kind)
    """A comparison; unknown with null. A whole number meets a float as a float."""
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
    elif isinstance(left, str):
        left, right = left.encode(), right.encode()
    tests: dict[ex.CompareOp, Callable[[], bool]] = {
        ex.CompareOp.EQUAL: lambda: bool(left == right),
        ex.CompareOp.NOT_EQUAL: lambda: bool(left != right),
        ex.CompareOp.LESS: lambda: bool(left < right),
        ex.CompareOp.LESS_EQUAL: lambda: bool(left <= right),
        ex.CompareOp.GREATER: lambda: bool(left > right),
        ex.CompareOp.GREATER_EQUAL: lambda: bool(left >= right),
    }
    return tests[op]()


def _member(expression: ex.Member, item: Any, items: Any) -> bool | None:  # noqa: ANN401  (values of any kind)
    if item is None or items is None:
        return None
    found = any(compared(ex.CompareOp.EQUAL, item, each) is True for each in items)
    return found != expression.negated


def _arithmetic(expression: ex.Arithmetic, row: Row, given: Given) -> Any:  # noqa: ANN401  (a number or an instant)
    left, right = value_of(expression.left, row, given), value_of(expression.right, row, given)
    if left is None or right is None:
        return None
    result = expression.type
    if isinstance(result, PropertyType) and result.scalar is Scalar.F64:
        return _floats(expression.op, float(left), float(right))
    if not isinstance(left, int) or not isinstance(right, int) or isinstance(left, bool):
        return _instants(expression, left, right)
    return _whole(expression.op, left, right)


def _floats(op: ex.ArithmeticOp, left: float, right: float) -> float | None:
    match op:
        case ex.ArithmeticOp.ADD:
            return left + right
        case ex.ArithmeticOp.SUBTRACT:
            return left - right
        case ex.ArithmeticOp.MULTIPLY:
            return left * right
        case ex.ArithmeticOp.DIVIDE:
            return left / right if right else None
        case ex.ArithmeticOp.MODULO:
            return abs(left) % abs(right) * (-1 if left < 0 else 1) if right else None


def _whole(op: ex.ArithmeticOp, left: int, right: int) -> int | None:
    match op:
        case ex.ArithmeticOp.ADD:
            result = left + right
        case ex.ArithmeticOp.SUBTRACT:
            result = left - right
        case ex.ArithmeticOp.MULTIPLY:
            result = left * right
        case _:
            if not right:
                return None
            result = abs(left) % abs(right) * (-1 if left < 0 else 1)
    return result if -(2**63) <= result < 2**63 else None


def _instants(expression: ex.Arithmetic, left: Any, right: Any) -> Any:  # noqa: ANN401  (instants and milliseconds)
    adds = expression.op is ex.ArithmeticOp.ADD
    if isinstance(left, date) and isinstance(right, date):
        return _ms(left) - _ms(right)
    if isinstance(right, date):
        left, right = right, left
    moved = _ms(left) + (right if adds else -right)
    instant = _EPOCH + timedelta(milliseconds=moved)
    return instant if isinstance(left, datetime) else instant.date()


def _ms(instant: date) -> int:
    if isinstance(instant, datetime):
        aware = instant if instant.tzinfo else instant.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(milliseconds=1)
    return (instant - _EPOCH.date()).days * _DAY_MS


def _call(expression: ex.Call, arguments: list[Any]) -> Any:  # noqa: ANN401  (whatever the function gives)
    if None in arguments:
        return None
    first = arguments[0]
    match expression.function:
        case ex.Function.LOWER:
            return first.lower()
        case ex.Function.UPPER:
            return first.upper()
        case ex.Function.LENGTH:
            return len(first)
        case ex.Function.DAYS_BETWEEN:
            span = _ms(arguments[1]) - _ms(first)
            return abs(span) // _DAY_MS * (-1 if span < 0 else 1)
        case _:
            return first * _UNITS_MS[expression.function]


def is_whole(of: object) -> bool:
    """Whether a type's values are whole numbers."""
    return isinstance(of, PropertyType) and of.scalar in INTEGER_SCALARS
