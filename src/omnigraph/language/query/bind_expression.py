"""Types of expressions and operators.

Comparisons need compatible types: both lists or neither, and the same scalar or both numbers. Nullability is ignored.
"""

from abc import ABC, abstractmethod
from typing import assert_never

from omnigraph.errors import ParseError
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import DurationValue, Expression, NullValue, ValueType
from omnigraph.language.query import bind_arithmetic, syntax
from omnigraph.language.query.dates import parse_date, parse_datetime
from omnigraph.language.query.scope import Context
from omnigraph.language.text import Span
from omnigraph.model.types import PropertyType, Scalar, is_compatible

_LITERAL_SCALARS = {
    syntax.LiteralKind.STRING: Scalar.STRING,
    syntax.LiteralKind.INTEGER: Scalar.I64,
    syntax.LiteralKind.FLOAT: Scalar.F64,
    syntax.LiteralKind.BOOL: Scalar.BOOL,
    syntax.LiteralKind.DATE: Scalar.DATE,
    syntax.LiteralKind.DATETIME: Scalar.DATETIME,
}
NULLABLE_BOOL = ex.BOOL.as_nullable()
BLOB_VALUE = "is not available as a .gq read value; Blob values require a dedicated API"


class ExpressionBinder(ABC):
    """Base class for binding expressions; subclasses resolve names."""

    def __init__(self, context: Context) -> None:
        self._context = context

    # --- names: different in reads and mutations ------------------------------------------------------------------

    @abstractmethod
    def bind_variable(self, written: syntax.Variable) -> Expression:
        """Bind `$x` alone."""

    @abstractmethod
    def bind_property(self, written: syntax.Property) -> Expression:
        """Bind `$x.p`."""

    @abstractmethod
    def bind_name(self, written: syntax.Name) -> Expression:
        """Bind a bare name."""

    @abstractmethod
    def bind_exists(self, written: syntax.Exists) -> Expression:
        """Bind `exists { … }` inside an expression."""

    @abstractmethod
    def bind_search(self, written: syntax.TextMatch | syntax.Nearest | syntax.Bm25 | syntax.Rrf) -> Expression:
        """Bind a search function."""

    # --- expressions ----------------------------------------------------------------------------------------------

    def bind_expression(self, written: syntax.Expression) -> Expression:
        """Bind an expression.

        Raises:
            ParseError: it has a type error.
        """
        match written:
            case syntax.Property():
                return self.bind_property(written)
            case syntax.Variable():
                return self.bind_variable(written)
            case syntax.Literal():
                return self.bind_literal(written)
            case syntax.ListLiteral():
                return self.bind_list(written)
            case syntax.Name():
                return self.bind_name(written)
            case syntax.Now():
                return ex.Now()
            case syntax.Comparison():
                return self._bind_comparison(written)
            case syntax.In():
                return self._bind_in(written)
            case syntax.IsNull():
                return self._bind_is_null(written)
            case syntax.Not():
                operand = self.bind_condition(written.operand)
                return ex.Not(operand, _condition_type(operand))
            case syntax.And():
                operands = tuple(self.bind_condition(operand) for operand in written.operands)
                return ex.And(operands, _condition_type(*operands))
            case syntax.Or():
                operands = tuple(self.bind_condition(operand) for operand in written.operands)
                return ex.Or(operands, _condition_type(*operands))
            case syntax.Exists():
                return self.bind_exists(written)
            case syntax.Negative():
                return bind_arithmetic.bind_negative(self._context, written, self.bind_expression(written.operand))
            case syntax.Arithmetic():
                left, right = self.bind_expression(written.left), self.bind_expression(written.right)
                return bind_arithmetic.bind_operator(self._context, written, left, right)
            case syntax.Call():
                arguments = tuple(self.bind_expression(argument) for argument in written.arguments)
                return bind_arithmetic.bind_call(self._context, written, arguments)
            case syntax.Aggregate():
                raise self.error(
                    written.span,
                    f"aggregate `{written.function}` cannot be used inside another expression",
                    hint="an aggregate stands alone in `return`; order by its alias",
                )
            case syntax.TextMatch() | syntax.Nearest() | syntax.Bm25() | syntax.Rrf():
                return self.bind_search(written)
            case _:
                assert_never(written)

    def bind_value(self, written: syntax.Expression) -> Expression:
        """Bind an expression that is returned or computed with; blobs are refused."""
        bound = self.bind_expression(written)
        self._refuse_blob(bound, written.span)
        return bound

    def bind_condition(self, written: syntax.Expression) -> Expression:
        """Bind a boolean expression."""
        bound = self.bind_expression(written)
        if bound.type not in (ex.BOOL, NULLABLE_BOOL):
            raise self.error(
                written.span, f"T25: a condition is needed here, got {bound.type}", hint="compare it with something"
            )
        return bound

    def find_parameter(self, written: syntax.Expression) -> ex.Parameter | None:
        """Return the parameter an expression refers to, if any."""
        if not isinstance(written, syntax.Variable) or written.name not in self._context.parameters:
            return None
        return ex.Parameter(written.name, self._context.parameters[written.name])

    def _refuse_blob(self, bound: Expression, span: Span) -> None:
        if not isinstance(bound.type, PropertyType) or not bound.type.is_blob:
            return
        if isinstance(bound, ex.Property):
            raise self.error(span, f"T24: Blob property `${bound.variable}.{bound.name}` {BLOB_VALUE}")
        if isinstance(bound, ex.Parameter):
            raise self.error(span, f"T24: Blob parameter `${bound.name}` {BLOB_VALUE}")

    # --- literals -------------------------------------------------------------------------------------------------

    def bind_literal(self, written: syntax.Literal) -> ex.Constant:
        """Bind a literal."""
        if written.kind is syntax.LiteralKind.NULL:
            return ex.Constant(None, NullValue())
        value: ex.SingleValue = written.value
        if written.kind is syntax.LiteralKind.DATE:
            value = parse_date(str(written.value))
            if value is None:
                raise self.error(written.span, f"invalid Date literal '{written.value}'; write date(\"2024-01-31\")")
        elif written.kind is syntax.LiteralKind.DATETIME:
            value = parse_datetime(str(written.value))
            if value is None:
                raise self.error(
                    written.span,
                    f"invalid DateTime literal '{written.value}'; write datetime(\"2024-01-31T10:00:00Z\")",
                )
        return ex.Constant(value, PropertyType(_LITERAL_SCALARS[written.kind]))

    def bind_list(self, written: syntax.ListLiteral) -> ex.Constant:
        """Bind a list; its type is that of the first element."""
        element = ex.STRING
        values: list[ex.SingleValue] = []
        for item in written.items:
            if isinstance(item, syntax.ListLiteral):
                raise self.error(item.span, "nested list literals are not supported")
            constant = self.bind_literal(item)
            if isinstance(constant.type, NullValue):
                raise self.error(item.span, "T25: a list literal cannot hold null")
            if not values:
                element = constant.type
            elif not is_compatible(element, constant.type):
                raise self.error(item.span, "list literal elements must share a compatible scalar type")
            assert not isinstance(constant.value, tuple)
            values.append(constant.value)
        return ex.Constant(tuple(values), PropertyType(element.scalar, list=True))

    # --- conditions -----------------------------------------------------------------------------------------------

    def _bind_comparison(self, written: syntax.Comparison) -> Expression:
        left, right = self._bind_operands(written.left, written.right, written.span)
        if isinstance(left.type, NullValue) or isinstance(right.type, NullValue):
            raise self.error(
                written.span,
                f"T7: cannot compare {left.type} with {right.type}",
                hint="nothing equals null; write `is null` or `is not null`",
            )
        if isinstance(left.type, DurationValue) and isinstance(right.type, DurationValue):
            if written.op in (syntax.ComparisonOp.CONTAINS, syntax.ComparisonOp.STARTS_WITH):
                raise self._cannot_compare(written, left, right)
            return ex.Compare(ex.CompareOp(written.op), left, right, _condition_type(left, right))
        if not isinstance(left.type, PropertyType) or not isinstance(right.type, PropertyType):
            if isinstance(left.type, DurationValue) or isinstance(right.type, DurationValue):
                raise self._cannot_compare(written, left, right)
            raise self._not_scalar(written.span, str(left.type), str(right.type))
        if left.type.is_blob or right.type.is_blob:
            raise self.error(written.span, "T7: blob comparisons in filters are not supported")
        match written.op:
            case syntax.ComparisonOp.CONTAINS:
                return self._bind_contains(written, left, left.type, right, right.type)
            case syntax.ComparisonOp.STARTS_WITH:
                return self._bind_starts_with(written, left, left.type, right, right.type)
            case _:
                pass
        if left.type.list or right.type.list:
            raise self.error(
                written.span,
                "T7: list comparisons in filters are not supported; use `contains` for list membership",
            )
        if left.type.is_vector or right.type.is_vector:
            raise self.error(written.span, "T7: vector comparisons in filters are not supported")
        if not is_compatible(left.type, right.type):
            raise self._cannot_compare(written, left, right)
        op = ex.CompareOp(written.op)
        return _simplify_match(op, left, right) or ex.Compare(op, left, right, _condition_type(left, right))

    def _bind_operands(
        self, left: syntax.Expression, right: syntax.Expression, span: Span
    ) -> tuple[Expression, Expression]:
        """Bind both sides of a comparison; aggregates are refused."""
        if isinstance(left, syntax.Aggregate) or isinstance(right, syntax.Aggregate):
            described = [
                f"aggregate `{side.function}`"
                if isinstance(side, syntax.Aggregate)
                else str(self.bind_expression(side).type)
                for side in (left, right)
            ]
            raise self._not_scalar(span, *described)
        return self.bind_expression(left), self.bind_expression(right)

    def _not_scalar(self, span: Span, left: str, right: str) -> ParseError:
        return self.error(span, f"T7: filter comparisons require scalar operands, got {left} and {right}")

    def _cannot_compare(self, written: syntax.Comparison, left: Expression, right: Expression) -> ParseError:
        hint = ""
        for one, other in ((left, right), (right, left)):
            if isinstance(one.type, PropertyType) and isinstance(other, ex.Constant) and other.type == ex.STRING:
                if one.type.scalar is Scalar.DATE:
                    hint = 'a date is written date("2024-01-31")'
                elif one.type.scalar is Scalar.DATETIME:
                    hint = 'a time is written datetime("2024-01-31T10:00:00Z")'
        return self.error(written.span, f"T7: cannot compare {left.type} with {right.type}", hint=hint)

    def _bind_contains(
        self,
        written: syntax.Comparison,
        left: Expression,
        left_type: PropertyType,
        right: Expression,
        right_type: PropertyType,
    ) -> Expression:
        if left_type.list:
            if right_type.list:
                raise self.error(written.span, "T7: contains requires a scalar right operand")
            if not is_compatible(left_type.element, right_type):
                raise self.error(written.span, f"T7: cannot test membership of {right_type} in {left_type}")
            return ex.Member(right, left, type=_condition_type(left, right))
        if not left_type.is_string:
            raise self.error(
                written.span,
                "T7: contains requires a list property (membership) or a String property (substring) on the left, "
                f"got {left_type}",
            )
        if not right_type.is_string:
            raise self.error(written.span, f"T7: string contains requires a String right operand, got {right_type}")
        return ex.StringTest(ex.StringOp.CONTAINS, left, right, _condition_type(left, right))

    def _bind_starts_with(
        self,
        written: syntax.Comparison,
        left: Expression,
        left_type: PropertyType,
        right: Expression,
        right_type: PropertyType,
    ) -> Expression:
        if not left_type.is_string:
            raise self.error(written.span, f"T7: starts_with requires a String property on the left, got {left_type}")
        if not right_type.is_string:
            raise self.error(written.span, f"T7: starts_with requires a String right operand, got {right_type}")
        return ex.StringTest(ex.StringOp.STARTS_WITH, left, right, _condition_type(left, right))

    def _bind_in(self, written: syntax.In) -> Expression:
        item, items = self._bind_operands(written.operand, written.choices, written.span)
        if not isinstance(items.type, PropertyType) or not items.type.list:
            raise self.error(written.span, f"T25: in requires a list on the right, got {items.type}")
        if not isinstance(item.type, PropertyType) or not is_compatible(items.type.element, item.type):
            # An empty list has no element to disagree with.
            if isinstance(items, ex.Constant) and items.value == () and self._is_scalar(item.type):
                return ex.Member(item, items, written.negated, _condition_type(item, items))
            raise self.error(written.span, f"T7: cannot test membership of {item.type} in {items.type}")
        return ex.Member(item, items, written.negated, _condition_type(item, items))

    def _is_scalar(self, type_: ValueType) -> bool:
        return isinstance(type_, PropertyType) and not (type_.list or type_.is_vector or type_.is_blob)

    def _bind_is_null(self, written: syntax.IsNull) -> Expression:
        operand = self.bind_value(written.operand)
        if isinstance(operand.type, NullValue):
            raise self.error(written.span, "T25: null is null, whatever the row; test a value")
        return ex.IsNull(operand, written.negated)

    # --- errors ---------------------------------------------------------------------------------------------------

    def error(self, span: Span, message: str, *, hint: str = "") -> ParseError:
        """Return a type error."""
        return self._context.error(span, message, hint=hint)


def _condition_type(*operands: Expression) -> PropertyType:
    """Return the type of a condition: nullable if an operand is."""
    return NULLABLE_BOOL if any(operand.type.nullable for operand in operands) else ex.BOOL


def _simplify_match(op: ex.CompareOp, left: Expression, right: Expression) -> Expression | None:
    """Simplify `search(…) = true` to the match itself, `search(…) = false` to its negation."""
    match left, right:
        case (ex.TextMatch() as found, ex.Constant(value=bool() as wanted)) | (
            ex.Constant(value=bool() as wanted),
            ex.TextMatch() as found,
        ):
            if op is ex.CompareOp.EQUAL:
                return found if wanted else ex.Not(found)
            if op is ex.CompareOp.NOT_EQUAL:
                return ex.Not(found) if wanted else found
    return None
