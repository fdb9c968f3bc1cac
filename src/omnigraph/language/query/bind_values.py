"""Values for a named property: in the braces of a binding, and in assignments."""

from dataclasses import replace

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import Expression, NullValue
from omnigraph.language.query import syntax
from omnigraph.language.query.bind_expression import ExpressionBinder
from omnigraph.model.types import FLOAT_SCALARS, PropertyType, Scalar, is_compatible


def bind_match(
    binder: ExpressionBinder, owner: str, target: ex.Property, type_: PropertyType, written: syntax.Assignment
) -> Expression:
    """Return the condition for `{ name: value }` in a binding: equality, or membership in a list.

    Raises:
        ParseError: the value does not fit the property.
    """
    name = target.name
    if type_.is_blob:
        raise binder.error(written.span, f"T3: blob property `{owner}.{name}` cannot be used in match patterns")
    value: Expression
    if isinstance(written.value, syntax.Literal | syntax.ListLiteral):
        value = _bind_literal_match(binder, name, type_, written.value)
    else:
        value = _bind_expression_match(binder, name, type_, written.value)
    return ex.Member(value, target) if type_.list else ex.Compare(ex.CompareOp.EQUAL, target, value)


def _bind_literal_match(
    binder: ExpressionBinder, name: str, type_: PropertyType, written: syntax.Literal | syntax.ListLiteral
) -> ex.Constant:
    if type_.list:
        if isinstance(written, syntax.ListLiteral):
            raise binder.error(
                written.span,
                f"T3: list equality is not supported for property `{name}`; "
                "use a scalar value to match list membership",
            )
        constant = binder.bind_literal(written)
        if isinstance(constant.type, NullValue) or not is_compatible(type_.element, constant.type):
            raise binder.error(
                written.span, f"T3: property `{name}` has type {type_} but membership match got {constant.type}"
            )
        return constant
    constant = convert_literal(binder, name, type_, written)
    if isinstance(constant.type, NullValue):
        raise binder.error(
            written.span,
            f"T3: property `{name}` has type {type_} but got null",
            hint=f"nothing equals null; write `$x.{name} is null` as a condition",
        )
    return constant


def _bind_expression_match(
    binder: ExpressionBinder, name: str, type_: PropertyType, written: syntax.Expression
) -> Expression:
    # Behind a property's name a parameter comes first, even if a pattern has a variable of that name.
    value = binder.find_parameter(written) or binder.bind_expression(written)
    if not isinstance(value.type, PropertyType):
        raise binder.error(written.span, f"T3: property `{name}` has type {type_} but got {value.type}")
    if value.type.list:
        raise binder.error(
            written.span,
            f"T7: list equality is not supported for property `{name}`; use a scalar parameter for membership matching",
        )
    if type_.list:
        if not is_compatible(type_.element, value.type):
            raise binder.error(
                written.span, f"T7: cannot compare {value.type} membership against {type_} for property `{name}`"
            )
        return value
    if not is_compatible(type_, value.type):
        raise binder.error(written.span, f"T7: cannot assign/compare {value.type} with {type_} for property `{name}`")
    return value


def bind_assignment(binder: ExpressionBinder, name: str, type_: PropertyType, written: syntax.Expression) -> Expression:
    """Bind the value of an assignment.

    Raises:
        ParseError: the value does not fit the property.
    """
    if isinstance(written, syntax.Literal | syntax.ListLiteral):
        constant = convert_literal(binder, name, type_, written)
        if isinstance(constant.type, NullValue) and not type_.nullable:
            raise binder.error(written.span, f"T3: property `{name}` has type {type_} but got null")
        return constant
    return bind_comparand(binder, name, type_, written)


def bind_comparand(binder: ExpressionBinder, name: str, type_: PropertyType, written: syntax.Expression) -> Expression:
    """Bind a non-literal value, for an assignment or a comparison with a property."""
    value = binder.bind_expression(written)
    # A blob is given by its address.
    if isinstance(value.type, PropertyType) and (
        is_compatible(type_, value.type) or (type_.is_blob and value.type.is_string)
    ):
        return value
    raise binder.error(written.span, f"T7: cannot assign/compare {value.type} with {type_} for property `{name}`")


def convert_literal(
    binder: ExpressionBinder, name: str, type_: PropertyType, written: syntax.Literal | syntax.ListLiteral
) -> ex.Constant:
    """Convert a literal to a property's type; null stays null.

    Raises:
        ParseError: it is of another type.
    """
    constant = binder.bind_list(written) if isinstance(written, syntax.ListLiteral) else binder.bind_literal(written)
    if isinstance(constant.type, NullValue):
        return constant
    if type_.is_vector and isinstance(constant.value, tuple) and constant.type.element.is_numeric:
        if len(constant.value) != type_.vector_dim:
            raise binder.error(
                written.span,
                f"T3: property `{name}` has type {type_} but got vector literal with {len(constant.value)} elements",
            )
        return ex.Constant(_floats(constant.value), replace(type_, nullable=False))
    if type_.is_blob and constant.type.is_string:
        return constant
    if not is_compatible(type_, constant.type) and not (type_.list and constant.value == ()):
        hint = ""
        if type_.scalar is Scalar.DATE and constant.type.is_string:
            hint = 'a date is written date("2024-01-31")'
        elif type_.scalar is Scalar.DATETIME and constant.type.is_string:
            hint = 'a time is written datetime("2024-01-31T10:00:00Z")'
        raise binder.error(written.span, f"T3: property `{name}` has type {type_} but got {constant.type}", hint=hint)
    if type_.enum_values is not None and constant.value not in type_.enum_values:
        raise binder.error(
            written.span,
            f"T3: property `{name}` expects one of [{', '.join(type_.enum_values)}], got '{constant.value}'",
        )
    if type_.scalar in FLOAT_SCALARS:
        return _to_float(constant, type_)
    return constant


def _to_float(constant: ex.Constant, type_: PropertyType) -> ex.Constant:
    if isinstance(constant.value, tuple):
        return ex.Constant(_floats(constant.value), PropertyType(type_.scalar, list=True))
    assert isinstance(constant.value, int | float)
    return ex.Constant(float(constant.value), PropertyType(type_.scalar))


def _floats(values: tuple[ex.SingleValue, ...]) -> tuple[float, ...]:
    return tuple(float(value) for value in values if isinstance(value, int | float))
