"""Plans to operators: the pattern first, then what is made of its rows.

An operator knows no snapshot and keeps nothing of a run, so a plan is lowered once and run any number of times.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.errors import InternalError
from omnigraph.execution.demand import Demand, counts_rows, demand_of, kinds
from omnigraph.execution.expressions import prepare, result_type
from omnigraph.execution.lower_pattern import PatternLowering
from omnigraph.execution.operators.aggregate import Aggregate, AggregateColumn, KeyColumn
from omnigraph.execution.operators.distinct import Distinct
from omnigraph.execution.operators.limit import Limit
from omnigraph.execution.operators.one_per_group import OnePerGroup, has_groups_of_one
from omnigraph.execution.operators.operator import Frames, ResultRows
from omnigraph.execution.operators.order import Order
from omnigraph.execution.operators.project import Project
from omnigraph.execution.results import all_results
from omnigraph.execution.tallies import counts_nodes
from omnigraph.execution.walks import Walk, walk_of
from omnigraph.execution.windows import at_most, counted, sort_keys
from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Column
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import ID, Schema
from omnigraph.model.types import FLOAT_SCALARS


@dataclass(frozen=True, slots=True)
class Lowered:
    """A plan ready to run.

    Attributes:
        rows: its last operator.
        columns: the columns of its result.
        walk: the whole plan as a walk, if it is one.
    """

    rows: ResultRows
    columns: pa.Schema
    walk: Walk | None


def lower(plan: steps.ReadPlan, schema: Schema) -> Lowered:
    """The operators of a plan.

    Args:
        plan (steps.ReadPlan): of a read.
        schema (Schema): what it was made for.

    Returns:
        Lowered: for any number of runs, at once too.
    """
    place = next((at for at, step in enumerate(plan.steps) if isinstance(step, steps.Aggregate | steps.Project)), None)
    if place is None:
        raise InternalError("the plan returns nothing")
    last, later = plan.steps[place], plan.steps[place + 1 :]
    assert isinstance(last, steps.Aggregate | steps.Project)
    demand = demand_of(
        last.columns,
        is_aggregate=isinstance(last, steps.Aggregate),
        # Only right behind: a limit in between counts rows.
        distinct=bool(later) and isinstance(later[0], steps.Distinct),
    )
    pattern = plan.steps[:place]
    rows: ResultRows = _returned(_pattern(pattern, demand, schema), last, _identifying(pattern, schema))
    for step in later:
        rows = _later(rows, step, columns=len(last.columns))
    fields = [pa.field(column.name, result_type(column.type)) for column in plan.columns]
    return Lowered(rows, pa.schema(fields), walk_of(plan, schema))


def _pattern(pattern: Sequence[Step], demand: Demand, schema: Schema) -> Frames:
    return PatternLowering(schema).pipeline(pattern, demand)


def _identifying(pattern: Sequence[Step], schema: Schema) -> dict[str, frozenset[str]]:
    """For each variable bound to a node, the columns that each identify it."""
    found = {}
    for variable, kind in kinds(pattern).items():
        node = schema.node(kind.removeprefix("node:")) if kind.startswith("node:") else None
        if node is not None:
            # Two zeros are one value and two keys.
            single = len(node.key) == 1 and node.key[0].type.scalar not in FLOAT_SCALARS
            found[variable] = frozenset({ID, node.key[0].name} if single else {ID})
    return found


def _returned(
    rows: Frames, step: steps.Aggregate | steps.Project, identifying: dict[str, frozenset[str]]
) -> ResultRows:
    if isinstance(step, steps.Aggregate):
        columns = [_grouped(column) for column in step.columns]
        once = rows.once_each
        if once is not None and has_groups_of_one(rows, columns, identifying.get(once, frozenset())):
            return OnePerGroup(rows, columns)
        return Aggregate(rows, columns)
    values = [column.value for column in step.columns]
    return Project(rows, [prepare(value) for value in values if not isinstance(value, Aggregation)])


def _grouped(column: Column) -> KeyColumn | AggregateColumn:
    value = column.value
    if isinstance(value, Aggregation):
        argument = None if counts_rows(value) else value.argument
        if isinstance(argument, ex.Entity) and counts_nodes(value):
            return AggregateColumn(value, None, argument.variable)
        return AggregateColumn(value, None if argument is None else prepare(argument))
    match value:
        case ex.Property(variable=variable, name=name):
            return KeyColumn(prepare(value), variable, name)
        case ex.Entity(variable=variable):
            return KeyColumn(prepare(value), variable, ID)
        case _:
            return KeyColumn(prepare(value))


def _later(rows: ResultRows, step: Step, *, columns: int) -> ResultRows:
    match step:
        case steps.Distinct():
            return Distinct(rows, columns=columns)
        case steps.Order():
            ties = [prepare(tie) for tie in step.ties]
            return Order(rows, all_results, keys=sort_keys(step.keys), ties=ties, at_most=at_most(step.at_most))
        case steps.Limit():
            return Limit(rows, skip=counted(step.window.skip), count=counted(step.window.count))
        case _:
            raise InternalError(f"{type(step).__name__} stands behind the result")
