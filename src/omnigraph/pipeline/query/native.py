"""Expressions that Spark computes exactly as the kernels in process do."""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import reduce
from operator import and_, eq, ge, gt, le, lt, ne, or_

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import CompareOp, Expression, StringOp, Value
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.pipeline.query.rows import Key, Kind, Rows

_COMPARE: dict[CompareOp, Callable[[Column, Column], Column]] = {
    CompareOp.EQUAL: eq,
    CompareOp.NOT_EQUAL: ne,
    CompareOp.LESS: lt,
    CompareOp.LESS_EQUAL: le,
    CompareOp.GREATER: gt,
    CompareOp.GREATER_EQUAL: ge,
}
_I64 = range(-(2**63), 2**63)


class Native:
    """Translates expressions to columns, given parameters."""

    def __init__(self, parameters: Mapping[str, Value]) -> None:
        self._parameters = parameters

    def translate(self, expression: Expression, rows: Rows) -> Column | None:
        """Return an expression as a column; None where only the kernels compute it exactly."""
        key = _key(expression)
        if key is not None:
            return rows.column(key)
        match expression:
            case ex.Constant() | ex.Parameter():
                return self._constant(expression)
            case ex.PathLength(variable=variable):
                return F.array_size(rows.column(Key(Kind.PATH, variable))).cast("bigint") - F.lit(1)
            case ex.IsNull(operand=operand, negated=negated):
                inner = self._absent_of(operand, rows)
                return None if inner is None else ~inner if negated else inner
            case ex.Not(operand=operand):
                inner = self.translate(operand, rows)
                return None if inner is None else ~inner
            case ex.And(operands=operands) | ex.Or(operands=operands):
                parts = [self.translate(operand, rows) for operand in operands]
                known = [part for part in parts if part is not None]
                if len(known) < len(parts):
                    return None
                return reduce(and_ if isinstance(expression, ex.And) else or_, known)
            case ex.Compare(op=op, left=left, right=right):
                pair = self._operands(left, right, rows)
                return None if pair is None else _COMPARE[op](*pair)
            case ex.StringTest(op=op, whole=whole, part=part):
                where, what = _key(whole), self._value(part)
                if where is None or not isinstance(what, str):
                    return None
                column = rows.column(where)
                return column.contains(F.lit(what)) if op is StringOp.CONTAINS else column.startswith(F.lit(what))
            case _:
                return None

    def _constant(self, expression: ex.Constant | ex.Parameter) -> Column | None:
        """Return a value for all rows, of the types that a literal of Spark's holds exactly."""
        type_ = expression.type
        value = self._value(expression)
        if value is None or not isinstance(type_, PropertyType) or type_.list:
            return None
        if type_.scalar is Scalar.I64 and isinstance(value, int) and value in _I64:
            return F.lit(value).cast("bigint")
        exact = {Scalar.STRING: str, Scalar.F64: float, Scalar.BOOL: bool}.get(type_.scalar)
        return F.lit(value) if exact is not None and isinstance(value, exact) else None

    def _absent_of(self, operand: Expression, rows: Rows) -> Column | None:
        if isinstance(operand, ex.Path):
            return rows.column(Key(Kind.PATH, operand.variable)).isNull()
        inner = self.translate(operand, rows)
        return None if inner is None else inner.isNull()

    def _operands(self, left: Expression, right: Expression, rows: Rows) -> tuple[Column, Column] | None:
        """Return the two sides of a comparison: two columns, or a column and a value that fits it."""
        one, other = _key(left), _key(right)
        if one is not None and other is not None:
            types = rows.cells[one].type, rows.cells[other].type
            alike = types[0] == types[1] or all(map(_is_wide_number, types))
            return (rows.column(one), rows.column(other)) if alike and not pa.types.is_nested(types[0]) else None
        if one is not None:
            value = self._literal(right, rows.cells[one].type)
            return None if value is None else (rows.column(one), value)
        if other is not None:
            value = self._literal(left, rows.cells[other].type)
            return None if value is None else (value, rows.column(other))
        return None

    def _literal(self, expression: Expression, type_: pa.DataType) -> Column | None:
        value = self._value(expression)
        if isinstance(value, bool):
            return F.lit(value) if pa.types.is_boolean(type_) else None
        if isinstance(value, str):
            return F.lit(value) if pa.types.is_string(type_) else None
        if isinstance(value, int):
            return F.lit(value).cast("bigint") if pa.types.is_integer(type_) and value in _I64 else None
        if isinstance(value, float):
            return F.lit(value) if pa.types.is_float64(type_) else None
        return None

    def _value(self, expression: Expression) -> Value:
        match expression:
            case ex.Constant(value=value):
                found = value
            case ex.Parameter(name=name):
                found = self._parameters[name]
            case _:
                return None
        return None if isinstance(found, tuple | datetime) else found


def _key(expression: Expression) -> Key | None:
    match expression:
        case ex.Property(variable=variable, name=name):
            return Key(Kind.PROPERTY, variable, name)
        case ex.Entity(variable=variable):
            return Key(Kind.ID, variable)
        case ex.PathNodes(variable=variable):
            return Key(Kind.PATH, variable)
        case ex.Computed(name=name):
            return Key(Kind.HIDDEN, name)
        case ex.Output(position=position):
            return Key(Kind.OUTPUT, str(position))
        case _:
            return None


def _is_wide_number(type_: pa.DataType) -> bool:
    """Return whether Spark widens a number as the kernels do: not a float of 32 bits, which it may keep as one."""
    return bool(pa.types.is_integer(type_) or pa.types.is_float64(type_))
