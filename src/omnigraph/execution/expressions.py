"""Typed expressions as functions of rows: prepared once per plan, computed for whole batches.

A condition is true, false or unknown (null). Scores are not computed here: they come into rows as hidden columns.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, assert_never

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.arithmetic import calculated, called, negated
from omnigraph.execution.arrays import Mask, Values, pc, true_where
from omnigraph.execution.comparing import compared, is_member, tested
from omnigraph.execution.scope import Datum, Scope
from omnigraph.execution.search.asked import text_query
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import DurationValue, Expression, NullValue, Value, ValueType
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.storage.instants import milliseconds
from omnigraph.storage.layout import INSTANT, arrow_type

Computation = Callable[[Scope], Datum]


def result_type(of: ValueType) -> pa.DataType:
    """The Arrow type of an expression's values; a node is its id."""
    match of:
        case PropertyType():
            return arrow_type(of)
        case DurationValue():
            return pa.int64()
        case NullValue():
            return pa.null()
        case _:
            return pa.string()


def as_scalar(value: Value, of: ValueType) -> "pa.Scalar[Any]":
    """A Python value as one value for all rows."""
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATETIME:
        moment: Any = [_ms(each) for each in value] if isinstance(value, tuple) else _ms(value)
        return pa.scalar(moment, pa.list_(pa.int64()) if of.list else pa.int64()).cast(result_type(of))
    return pa.scalar(list(value) if isinstance(value, tuple) else value, _literal_type(value, of))


def _ms(value: Value) -> int | None:
    return milliseconds(value) if isinstance(value, datetime) else None


def _literal_type(value: Value, of: ValueType) -> pa.DataType:
    """The type of a literal, which may exceed what its spelling promises: 1.5 in a list that starts with 1.

    A float keeps all its digits, of 32 bits too: the column it meets decides how many count.
    """
    items = value if isinstance(value, tuple) else (value,)
    type_ = result_type(of)
    if pa.types.is_float32(_element(type_)):
        return pa.list_(pa.float64()) if isinstance(of, PropertyType) and of.list else pa.float64()
    if isinstance(of, PropertyType) and pa.types.is_integer(_element(type_)):
        if any(isinstance(each, float) for each in items):
            return pa.list_(pa.float64()) if of.list else pa.float64()
        if any(isinstance(each, int) and not -(2**63) <= each < 2**63 for each in items):
            return pa.list_(pa.uint64()) if of.list else pa.uint64()
    return type_


def _element(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_list(type_) else type_


def values_of(datum: Datum, size: int) -> Values:
    """One value per row, whatever there was."""
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, size) if size else pa.nulls(0, datum.type)


def holds(condition: Computation, rows: Scope) -> Mask:
    """For which rows a condition is true."""
    return true_where(values_of(condition(rows), rows.size))


def prepare(expression: Expression) -> Computation:
    """The function that computes an expression.

    Args:
        expression (Expression): bound and typed.

    Returns:
        Computation: takes rows, gives one value per row or one for all.
    """
    match expression:
        case ex.Constant(value=value, type=type_):
            constant = as_scalar(value, type_)
            return lambda _: constant
        case ex.Parameter(name=name, type=type_):
            return lambda rows: as_scalar(rows.parameter(name), type_)
        case ex.Property(variable=variable, name=name):
            return lambda rows: rows.property_of(variable, name)
        case ex.Entity(variable=variable):
            return lambda rows: rows.id_of(variable)
        case ex.Endpoint(variable=variable, end=end):
            return lambda rows: rows.endpoint_of(variable, end)
        case ex.Path(variable=variable) | ex.PathLength(variable=variable):
            return lambda rows: rows.path_lengths(variable)
        case ex.PathNodes(variable=variable):
            return lambda rows: rows.path_nodes(variable)
        case ex.Now():
            return lambda rows: pa.scalar(rows.now_ms, pa.int64()).cast(INSTANT)
        case ex.Computed(name=name):
            return lambda rows: rows.computed(name)
        case ex.Output(position=position):
            return lambda rows: rows.output(position)
        case ex.Arithmetic():
            return _arithmetic(expression)
        case ex.Negative(operand=operand):
            of_operand, of = prepare(operand), operand.type
            return lambda rows: negated(values_of(of_operand(rows), rows.size), of)
        case ex.Call():
            return _call(expression)
        case ex.Compare(op=op, left=left, right=right):
            of_left, of_right = prepare(left), prepare(right)
            return lambda rows: compared(op, of_left(rows), of_right(rows))
        case ex.StringTest(op=string_op, whole=whole, part=part):
            of_whole, of_part = prepare(whole), prepare(part)
            return lambda rows: tested(string_op, of_whole(rows), of_part(rows), size=rows.size)
        case ex.Member(item=item, items=items, negated=is_negated):
            of_item, of_items = prepare(item), prepare(items)
            if is_negated:
                return lambda rows: pc.invert(is_member(of_item(rows), of_items(rows), size=rows.size))
            return lambda rows: is_member(of_item(rows), of_items(rows), size=rows.size)
        case ex.IsNull():
            return _is_null(expression)
        case ex.Not(operand=operand):
            of_operand = prepare(operand)
            return lambda rows: pc.invert(of_operand(rows))
        case ex.And(operands=operands):
            return _joined(pc.and_kleene, tuple(prepare(each) for each in operands))
        case ex.Or(operands=operands):
            return _joined(pc.or_kleene, tuple(prepare(each) for each in operands))
        case ex.TextMatch():
            return _text_match(expression)
        case ex.Nearest() | ex.Bm25() | ex.Rrf():
            raise InternalError(f"{type(expression).__name__.lower()}() stands where its hidden column should")
        case _:
            assert_never(expression)


def _arithmetic(expression: ex.Arithmetic) -> Computation:
    left, right, op = prepare(expression.left), prepare(expression.right), expression.op
    types = (expression.left.type, expression.right.type, expression.type)

    def compute(rows: Scope) -> Datum:
        one, other = left(rows), right(rows)
        if not isinstance(one, pa.Array) and not isinstance(other, pa.Array):
            one = values_of(one, rows.size)
        return calculated(op, one, other, types)

    return compute


def _call(expression: ex.Call) -> Computation:
    arguments = tuple(prepare(each) for each in expression.arguments)
    types = tuple(each.type for each in expression.arguments)
    function = expression.function
    return lambda rows: called(function, tuple(values_of(each(rows), rows.size) for each in arguments), types)


def _text_match(expression: ex.TextMatch) -> Computation:
    target, function, analyzer = expression.target, expression.function, expression.analyzer
    of_query = plain(expression.query)
    of_edits = None if expression.max_edits is None else plain(expression.max_edits)

    def compute(rows: Scope) -> Datum:
        edits = None if of_edits is None else of_edits(rows)
        query = text_query(function, of_query(rows), edits, says_edits=of_edits is not None, analyzer=analyzer)
        return rows.text_matches(target.variable, target.name, query)

    return compute


def plain(expression: Expression) -> Callable[[Scope], object]:
    """The function that computes an expression which is the same for all rows, as a Python value."""
    computation = prepare(expression)

    def compute(rows: Scope) -> object:
        datum = computation(rows)
        if isinstance(datum, pa.Array):
            return datum[0].as_py() if len(datum) else None
        return datum.as_py()

    return compute


def _is_null(expression: ex.IsNull) -> Computation:
    operand, is_negated = expression.operand, expression.negated
    if isinstance(operand, ex.Entity | ex.Path):
        # Whether something is there is known without asking what it is.
        variable = operand.variable
        if is_negated:
            return lambda rows: pc.invert(rows.is_absent(variable))
        return lambda rows: rows.is_absent(variable)
    of_operand = prepare(operand)
    return lambda rows: (pc.is_valid if is_negated else pc.is_null)(of_operand(rows))


def _joined(join: Callable[[Datum, Datum], Any], operands: tuple[Computation, ...]) -> Computation:
    def compute(rows: Scope) -> Datum:
        result = operands[0](rows)
        for operand in operands[1:]:
            result = join(result, operand(rows))
        return result

    return compute
