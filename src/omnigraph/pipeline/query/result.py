"""Lowers the steps of a result: projection, aggregates, distinct rows."""

from functools import reduce

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.execution.demand import is_row_count
from omnigraph.execution.expressions import result_type
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Expression
from omnigraph.pipeline.query.evaluate import Evaluator
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Names, Rows, plain_type

# What a task says where a count exceeds 64 bits.
TOO_MANY = "omnigraph: too_many_to_count"
_WEIGHT = Key(Kind.HIDDEN, "#weight")


def output(position: int) -> Key:
    """Return the meaning of a result column."""
    return Key(Kind.OUTPUT, str(position))


def project(rows: Rows, step: steps.Project, evaluator: Evaluator) -> Rows:
    """Compute the columns of the result."""
    values = {
        output(place): column.value
        for place, column in enumerate(step.columns)
        if not isinstance(column.value, Aggregation)
    }
    computed = evaluator.compute(rows, values, [])
    return computed.only(values)


def aggregate(rows: Rows, step: steps.Aggregate, evaluator: Evaluator, names: Names) -> Rows:
    """Compute one row for each group."""
    values: dict[Key, Expression] = {}
    for place, column in enumerate(step.columns):
        if not isinstance(column.value, Aggregation):
            values[output(place)] = column.value
        elif column.value.argument is not None and not is_row_count(column.value):
            values[output(place)] = column.value.argument
    weights = [Key(Kind.HIDDEN, name) for name in step.weights]
    computed = evaluator.compute(rows, values, weights)
    weight = _product([computed.column(key) for key in weights]) if weights else None
    keys, aggregates, cells = [], [], {}
    for place, column in enumerate(step.columns):
        key, cell = output(place), Cell(names.new(), result_type(column.type))
        cells[key] = cell
        if isinstance(column.value, Aggregation):
            argument = computed.column(key) if key in values else None
            aggregates.append(_aggregate(column.value, argument, weight, computed.cells.get(key)).alias(cell.column))
        else:
            keys.append(computed.column(key).alias(cell.column))
    frame = computed.frame.groupBy(*keys).agg(*(aggregates or [F.count(F.lit(1)).alias(names.new())]))
    return Rows(frame.select(*(cell.column for cell in cells.values())), cells)


def distinct(rows: Rows) -> Rows:
    """Remove duplicate rows."""
    return rows.with_frame(rows.frame.distinct())


def _aggregate(aggregation: Aggregation, argument: Column | None, weight: Column | None, cell: Cell | None) -> Column:
    match aggregation.function:
        case AggregateFunction.COUNT:
            if aggregation.distinct and argument is not None:
                return F.count_distinct(argument)
            return _count(argument, weight)
        case AggregateFunction.SUM | AggregateFunction.AVG:
            assert argument is not None
            assert cell is not None
            total, times = _total(aggregation, argument, weight, cell)
            averages = aggregation.function is AggregateFunction.AVG
            return F.when(times > 0, total / times.cast("double") if averages else total)
        case AggregateFunction.MIN:
            assert argument is not None
            return F.min(argument)
        case AggregateFunction.MAX:
            assert argument is not None
            return F.max(argument)
        case AggregateFunction.COLLECT:
            assert argument is not None
            if aggregation.distinct:
                return F.collect_set(argument)
            if weight is None:
                return F.collect_list(argument)
            repeated = F.when(argument.isNotNull(), F.array_repeat(argument, weight.cast("int")))
            return F.flatten(F.collect_list(repeated))


def _total(aggregation: Aggregation, argument: Column, weight: Column | None, cell: Cell) -> tuple[Column, Column]:
    """Return the sum of values and their number; distinct whole numbers are compared before they become floats."""
    if aggregation.distinct:
        exact = (
            argument.cast("decimal(20,0)") if pa.types.is_integer(plain_type(cell.type)) else argument.cast("double")
        )
        return F.sum_distinct(exact).cast("double"), F.count_distinct(argument)
    number = argument.cast("double")
    return F.sum(number if weight is None else number * weight.cast("double")), _count(argument, weight)


def _count(argument: Column | None, weight: Column | None) -> Column:
    if weight is None:
        return F.count(F.lit(1) if argument is None else argument)
    counted = weight if argument is None else F.when(argument.isNotNull(), weight)
    return F.when(F.count(counted) == 0, F.lit(0).cast("bigint")).otherwise(_checked(F.try_sum(counted)))


def _product(weights: list[Column]) -> Column:
    return _checked(reduce(F.try_multiply, weights)) if len(weights) > 1 else weights[0]


def _checked(number: Column) -> Column:
    """Fail where a number is null because it exceeds 64 bits."""
    return F.coalesce(number, F.raise_error(F.lit(TOO_MANY)).cast("bigint"))
