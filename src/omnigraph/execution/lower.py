"""Physical planning: turns a read plan into operators, the pattern first, then the result.

An operator holds no snapshot and no state of a run, so a plan is lowered unique and run any number of times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.aggregates import is_node_count
from omnigraph.execution.demand import Demand, derive_demand, is_row_count, variable_kinds
from omnigraph.execution.expressions import prepare, result_type
from omnigraph.execution.lower_pattern import PatternLowering
from omnigraph.execution.operators.aggregate import (
    Aggregate,
    AggregateColumn,
    KeyColumn,
    OnePerGroup,
    has_groups_of_one,
)
from omnigraph.execution.operators.filter import Limit, prepare_count, prepare_limit
from omnigraph.execution.operators.operator import Frames, ResultRows
from omnigraph.execution.operators.order import Order, prepare_sort_keys
from omnigraph.execution.operators.project import Distinct, Project
from omnigraph.execution.results import concat_results
from omnigraph.execution.walks import Walk, find_walk
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Column
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import ID, Schema
from omnigraph.model.types import FLOAT_SCALARS


@dataclass(frozen=True, slots=True)
class Lowered:
    """Physical plan.

    Attributes:
        rows: its last operator.
        columns: schema of its result.
        walk: the whole plan as a walk, if it is one.
    """

    rows: ResultRows
    columns: pa.Schema
    walk: Walk | None


def lower(plan: steps.ReadPlan, schema: Schema) -> Lowered:
    """Turn a plan into operators, for any number of concurrent runs."""
    place = next((at for at, step in enumerate(plan.steps) if isinstance(step, steps.Aggregate | steps.Project)), None)
    if place is None:
        raise InternalError("the plan returns nothing")
    last, later = plan.steps[place], plan.steps[place + 1 :]
    assert isinstance(last, steps.Aggregate | steps.Project)
    demand = derive_demand(
        last.columns,
        is_aggregate=isinstance(last, steps.Aggregate),
        # Only if it follows directly: a limit in between counts rows.
        distinct=bool(later) and isinstance(later[0], steps.Distinct),
    )
    pattern = plan.steps[:place]
    rows: ResultRows = _lower_result(
        _lower_pattern(pattern, demand, schema), last, _identifying_columns(pattern, schema)
    )
    for step in later:
        rows = _lower_later(rows, step, columns=len(last.columns))
    fields = [pa.field(column.name, result_type(column.type)) for column in plan.columns]
    return Lowered(rows, pa.schema(fields), find_walk(plan, schema))


def _lower_pattern(pattern: Sequence[Step], demand: Demand, schema: Schema) -> Frames:
    return PatternLowering(schema).lower_pipeline(pattern, demand)


def _identifying_columns(pattern: Sequence[Step], schema: Schema) -> dict[str, frozenset[str]]:
    """Return for each node variable the columns that identify its node."""
    found = {}
    for variable, kind in variable_kinds(pattern).items():
        node = schema.node(kind.removeprefix("node:")) if kind.startswith("node:") else None
        if node is not None:
            # Two zeros are one value and two keys.
            single = len(node.key) == 1 and node.key[0].type.scalar not in FLOAT_SCALARS
            found[variable] = frozenset({ID, node.key[0].name} if single else {ID})
    return found


def _lower_result(
    rows: Frames, step: steps.Aggregate | steps.Project, identifying: dict[str, frozenset[str]]
) -> ResultRows:
    if isinstance(step, steps.Aggregate):
        columns = [_result_column(column) for column in step.columns]
        unique = rows.unique_variable
        if unique is not None and has_groups_of_one(rows, columns, identifying.get(unique, frozenset())):
            return OnePerGroup(rows, columns)
        return Aggregate(rows, columns)
    values = [column.value for column in step.columns]
    return Project(rows, [prepare(value) for value in values if not isinstance(value, Aggregation)])


def _result_column(column: Column) -> KeyColumn | AggregateColumn:
    value = column.value
    if isinstance(value, Aggregation):
        argument = None if is_row_count(value) else value.argument
        if isinstance(argument, ex.Entity) and is_node_count(value):
            return AggregateColumn(value, None, argument.variable)
        return AggregateColumn(value, None if argument is None else prepare(argument))
    match value:
        case ex.Property(variable=variable, name=name):
            return KeyColumn(prepare(value), variable, name)
        case ex.Entity(variable=variable):
            return KeyColumn(prepare(value), variable, ID)
        case _:
            return KeyColumn(prepare(value))


def _lower_later(rows: ResultRows, step: Step, *, columns: int) -> ResultRows:
    match step:
        case steps.Distinct():
            return Distinct(rows, columns=columns)
        case steps.Order():
            ties = [prepare(tie) for tie in step.ties]
            return Order(
                rows, concat_results, keys=prepare_sort_keys(step.keys), ties=ties, at_most=prepare_limit(step.at_most)
            )
        case steps.Limit():
            return Limit(rows, skip=prepare_count(step.window.skip), count=prepare_count(step.window.count))
        case _:
            raise InternalError(f"unexpected {type(step).__name__} after the result")
