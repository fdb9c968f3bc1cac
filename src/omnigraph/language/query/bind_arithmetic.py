"""Types of arithmetic and of scalar functions.

Two whole numbers give I64, any float gives F64, and `/` always F64. Dates and times are shifted by durations, and their
difference is one; a Date is shifted by whole days only.
"""

from omnigraph.errors import ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import DurationValue, Expression, ValueType
from omnigraph.language.query import syntax
from omnigraph.language.query.scope import Context
from omnigraph.model.types import INTEGER_SCALARS, PropertyType, Scalar

_DURATIONS = (syntax.Function.DAYS, syntax.Function.HOURS, syntax.Function.MINUTES, syntax.Function.SECONDS)
_INSTANTS = (Scalar.DATE, Scalar.DATETIME)


def bind_negative(context: Context, written: syntax.Negative, operand: Expression) -> Expression:
    """Bind `-x`, of a number or a duration."""
    if isinstance(operand.type, DurationValue):
        return ex.Negative(operand, operand.type)
    if _is_number(operand.type):
        return ex.Negative(operand, _number_type(operand.type))
    raise context.error(written.span, f"T25: cannot apply `-` to {operand.type}")


def bind_operator(context: Context, written: syntax.Arithmetic, left: Expression, right: Expression) -> Expression:
    """Bind `a + b` and the other operators.

    Raises:
        ParseError: the operator is not defined for these types.
    """
    op = written.op
    result = _number_result(op, left.type, right.type) or _time_result(op, left.type, right.type)
    if result is None:
        raise _cannot_apply(context, written, left, right)
    nullable = left.type.nullable or right.type.nullable or op in (ex.ArithmeticOp.DIVIDE, ex.ArithmeticOp.MODULO)
    if isinstance(result, DurationValue):
        return ex.Arithmetic(op, left, right, DurationValue(result.whole_days, nullable))
    return ex.Arithmetic(op, left, right, result.as_nullable() if nullable else result.as_required())


def _number_result(op: ex.ArithmeticOp, left: ValueType, right: ValueType) -> PropertyType | None:
    if not _is_number(left) or not _is_number(right):
        return None
    whole = _is_whole(left) and _is_whole(right)
    if op is ex.ArithmeticOp.DIVIDE or not whole:
        return ex.F64
    return ex.I64


def _time_result(op: ex.ArithmeticOp, left: ValueType, right: ValueType) -> PropertyType | DurationValue | None:
    adds, subtracts = op is ex.ArithmeticOp.ADD, op is ex.ArithmeticOp.SUBTRACT
    if isinstance(left, DurationValue) and isinstance(right, DurationValue) and (adds or subtracts):
        return DurationValue(left.whole_days and right.whole_days)
    if isinstance(left, DurationValue) and _is_instant(right) and adds:
        left, right = right, left
    if _is_instant(left) and isinstance(right, DurationValue) and (adds or subtracts):
        assert isinstance(left, PropertyType)
        return None if left.scalar is Scalar.DATE and not right.whole_days else PropertyType(left.scalar)
    if _is_instant(left) and _is_instant(right) and subtracts:
        assert isinstance(left, PropertyType)
        assert isinstance(right, PropertyType)
        return DurationValue(left.scalar is Scalar.DATE) if left.scalar is right.scalar else None
    return None


def _cannot_apply(context: Context, written: syntax.Arithmetic, left: Expression, right: Expression) -> ParseError:
    hint = ""
    sides = (left.type, right.type)
    if any(_is_instant(side) for side in sides) and any(_is_number(side) for side in sides):
        hint = "say how much time: `+ days(30)`, `- hours(1)`"
    elif any(isinstance(side, DurationValue) for side in sides) and any(_is_instant(side) for side in sides):
        hint = "a Date moves by whole days: use days(…)"
    elif any(isinstance(side, PropertyType) and side.is_string for side in sides):
        hint = "arithmetic is for numbers and dates"
    return context.error(written.span, f"T25: cannot apply `{written.op}` to {left.type} and {right.type}", hint=hint)


def bind_call(context: Context, written: syntax.Call, arguments: tuple[Expression, ...]) -> Expression:
    """Bind `lower(x)` and the other functions.

    Raises:
        ParseError: the function is not defined for these arguments.
    """
    first = arguments[0]
    match written.function:
        case syntax.Function.LOWER | syntax.Function.UPPER:
            if isinstance(first.type, PropertyType) and first.type.is_string:
                result = PropertyType(Scalar.STRING, nullable=first.type.nullable)
                return ex.Call(ex.Function(written.function), arguments, result)
            raise _wrong(context, written, "a String", first)
        case syntax.Function.LENGTH:
            result = PropertyType(Scalar.I64, nullable=first.type.nullable)
            if isinstance(first, ex.Path):
                return ex.PathLength(first.variable, result)
            if isinstance(first.type, PropertyType) and (first.type.is_string or first.type.list):
                return ex.Call(ex.Function.LENGTH, arguments, result)
            raise _wrong(context, written, "a String, a list or a path", first)
        case syntax.Function.NODES:
            if isinstance(first, ex.Path):
                return ex.PathNodes(
                    first.variable, PropertyType(Scalar.STRING, list=True, nullable=first.type.nullable)
                )
            raise _wrong(context, written, "a path", first)
        case syntax.Function.DAYS_BETWEEN:
            for argument in arguments:
                if not _is_instant(argument.type):
                    raise _wrong(context, written, "two Dates or DateTimes", argument)
            nullable = any(argument.type.nullable for argument in arguments)
            return ex.Call(ex.Function.DAYS_BETWEEN, arguments, PropertyType(Scalar.I64, nullable=nullable))
        case _:
            if not _is_whole(first.type):
                raise _wrong(context, written, "a whole number", first)
            duration = DurationValue(written.function is syntax.Function.DAYS, first.type.nullable)
            return ex.Call(ex.Function(written.function), arguments, duration)


def _wrong(context: Context, written: syntax.Call, wanted: str, got: Expression) -> ParseError:
    return context.error(written.span, f"T25: {written.function} requires {wanted}, got {got.type}")


def _is_number(type_: ValueType) -> bool:
    return isinstance(type_, PropertyType) and type_.is_numeric


def _is_whole(type_: ValueType) -> bool:
    return isinstance(type_, PropertyType) and type_.scalar in INTEGER_SCALARS and not type_.list


def _is_instant(type_: ValueType) -> bool:
    return isinstance(type_, PropertyType) and type_.scalar in _INSTANTS and not type_.list


def _number_type(type_: ValueType) -> PropertyType:
    return PropertyType(Scalar.I64 if _is_whole(type_) else Scalar.F64, nullable=type_.nullable)
