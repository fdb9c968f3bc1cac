"""Expression compiler: typed expressions become functions over batches of rows.

A condition is true, false or null (unknown). Scores are not computed here: they are hidden columns of the rows.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any, assert_never

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.arithmetic import calculate, call_function, negate
from omnigraph.execution.arrays import Mask, Values, pc, true_mask
from omnigraph.execution.comparison import compare, is_member, match_string
from omnigraph.execution.scope import Datum, Scope
from omnigraph.execution.search.query_text import text_query
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan.expressions import DurationValue, Expression, NullValue, Value, ValueType
from omnigraph.model.types import PropertyType, Scalar
from omnigraph.storage.instants import milliseconds
from omnigraph.storage.layout import INSTANT, arrow_type

Computation = Callable[[Scope], Datum]


def result_type(of: ValueType) -> pa.DataType:
    """Return the Arrow type of an expression's values; a node is its id."""
    match of:
        case PropertyType():
            return arrow_type(of)
        case DurationValue():
            return pa.int64()
        case NullValue():
            return pa.null()
        case _:
            return pa.string()


def to_scalar(value: Value, of: ValueType) -> "pa.Scalar[Any]":
    """Convert a Python value to an Arrow scalar for all rows."""
    if isinstance(of, PropertyType) and of.scalar is Scalar.DATETIME:
        moment: Any = [_to_ms(item) for item in value] if isinstance(value, tuple) else _to_ms(value)
        return pa.scalar(moment, pa.list_(pa.int64()) if of.list else pa.int64()).cast(result_type(of))
    return pa.scalar(list(value) if isinstance(value, tuple) else value, _literal_type(value, of))


def _to_ms(value: Value) -> int | None:
    return milliseconds(value) if isinstance(value, datetime) else None


def _literal_type(value: Value, of: ValueType) -> pa.DataType:
    """Return the type of a literal, which may exceed its declared one: 1.5 in a list that starts with 1.

    A float keeps all its digits, of 32 bits too: the column it is compared with decides how many count.
    """
    items = value if isinstance(value, tuple) else (value,)
    type_ = result_type(of)
    if pa.types.is_float32(_element_type(type_)):
        return pa.list_(pa.float64()) if isinstance(of, PropertyType) and of.list else pa.float64()
    if isinstance(of, PropertyType) and pa.types.is_integer(_element_type(type_)):
        if any(isinstance(item, float) for item in items):
            return pa.list_(pa.float64()) if of.list else pa.float64()
        if any(isinstance(item, int) and not -(2**63) <= item < 2**63 for item in items):
            return pa.list_(pa.uint64()) if of.list else pa.uint64()
    return type_


def _element_type(type_: pa.DataType) -> pa.DataType:
    return type_.value_type if pa.types.is_list(type_) else type_


def to_array(datum: Datum, size: int) -> Values:
    """Convert to one value per row."""
    if isinstance(datum, pa.Array):
        return datum
    return pa.repeat(datum, size) if size else pa.nulls(0, datum.type)


def evaluate_condition(condition: Computation, rows: Scope) -> Mask:
    """Return the mask of rows for which a condition is true."""
    return true_mask(to_array(condition(rows), rows.size))


def prepare(expression: Expression) -> Computation:
    """Compile a typed expression to a function that gives one value per row or one for all."""
    match expression:
        case ex.Constant(value=value, type=type_):
            constant = to_scalar(value, type_)
            return lambda _: constant
        case ex.Parameter(name=name, type=type_):
            return lambda rows: to_scalar(rows.parameter(name), type_)
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
            return lambda rows: negate(to_array(of_operand(rows), rows.size), of)
        case ex.Call():
            return _call(expression)
        case ex.Compare(op=op, left=left, right=right):
            of_left, of_right = prepare(left), prepare(right)
            return lambda rows: compare(op, of_left(rows), of_right(rows))
        case ex.StringTest(op=string_op, whole=whole, part=part):
            of_whole, of_part = prepare(whole), prepare(part)
            return lambda rows: match_string(string_op, of_whole(rows), of_part(rows), size=rows.size)
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
            return _fold(pc.and_kleene, tuple(prepare(operand) for operand in operands))
        case ex.Or(operands=operands):
            return _fold(pc.or_kleene, tuple(prepare(operand) for operand in operands))
        case ex.TextMatch():
            return _text_match(expression)
        case ex.Nearest() | ex.Bm25() | ex.Rrf():
            raise InternalError(f"{type(expression).__name__.lower()}() was not replaced by its hidden column")
        case _:
            assert_never(expression)


def prepare_optional(condition: Expression | None) -> Computation | None:
    """Compile a condition if there is one."""
    return None if condition is None else prepare(condition)


def prepare_lazily(condition: Expression | None) -> Computation | None:
    """Compile a condition on first use: with a key lookup it is hardly ever needed."""
    if condition is None:
        return None
    made: list[Computation] = []

    def compute(rows: Scope) -> Datum:
        if not made:
            made.append(prepare(condition))
        return made[0](rows)

    return compute


def _arithmetic(expression: ex.Arithmetic) -> Computation:
    left, right, op = prepare(expression.left), prepare(expression.right), expression.op
    types = (expression.left.type, expression.right.type, expression.type)

    def compute(rows: Scope) -> Datum:
        one, other = left(rows), right(rows)
        if not isinstance(one, pa.Array) and not isinstance(other, pa.Array):
            one = to_array(one, rows.size)
        return calculate(op, one, other, types)

    return compute


def _call(expression: ex.Call) -> Computation:
    arguments = tuple(prepare(argument) for argument in expression.arguments)
    types = tuple(argument.type for argument in expression.arguments)
    function = expression.function
    return lambda rows: call_function(
        function, tuple(to_array(argument(rows), rows.size) for argument in arguments), types
    )


def _text_match(expression: ex.TextMatch) -> Computation:
    target, function, analyzer = expression.target, expression.function, expression.analyzer
    of_query = prepare_constant(expression.query)
    of_edits = None if expression.max_edits is None else prepare_constant(expression.max_edits)

    def compute(rows: Scope) -> Datum:
        edits = None if of_edits is None else of_edits(rows)
        query = text_query(function, of_query(rows), edits, has_edits=of_edits is not None, analyzer=analyzer)
        return rows.text_matches(target.variable, target.name, query)

    return compute


def prepare_constant(expression: Expression) -> Callable[[Scope], object]:
    """Compile an expression that is the same for all rows to a function that gives a Python value."""
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
        # Absence is known without reading the value.
        variable = operand.variable
        if is_negated:
            return lambda rows: pc.invert(rows.is_absent(variable))
        return lambda rows: rows.is_absent(variable)
    of_operand = prepare(operand)
    return lambda rows: (pc.is_valid if is_negated else pc.is_null)(of_operand(rows))


def _fold(join: Callable[[Datum, Datum], Any], operands: tuple[Computation, ...]) -> Computation:
    def compute(rows: Scope) -> Datum:
        result = operands[0](rows)
        for operand in operands[1:]:
            result = join(result, operand(rows))
        return result

    return compute
