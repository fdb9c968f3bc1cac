"""Demand analysis: which variables later steps need, and whether duplicate rows matter to them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Column, Expression
from omnigraph.language.plan.pipeline import find_uses
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables


class Multiplicity(StrEnum):
    """How later steps treat equal rows."""

    BAG = "bag"  # every duplicate matters
    COUNTED = "counted"  # equal rows may be merged into one with a weight
    SET = "set"  # duplicates do not matter


@dataclass(frozen=True, slots=True)
class Demand:
    """Requirements on the rows of a pipeline.

    Attributes:
        needed: variables and hidden columns.
        multiplicity: whether duplicates matter.
    """

    needed: frozenset[str]
    multiplicity: Multiplicity

    def needed_before(self, later: Sequence[Step]) -> frozenset[str]:
        """Return what is needed in front of these steps."""
        return self.needed | {name for name, _ in find_uses(later)}


def derive_demand(columns: Iterable[Column], *, is_aggregate: bool, distinct: bool) -> Demand:
    """Derive the demand of the columns of a result."""
    values = [column.value for column in columns]
    needed = frozenset(name for value in values if not is_row_count(value) for name in find_variables(value))
    if is_aggregate:
        aggregates = [value for value in values if isinstance(value, Aggregation)]
        return Demand(needed, Multiplicity.SET if all(map(_ignores_repeats, aggregates)) else Multiplicity.COUNTED)
    return Demand(needed, Multiplicity.SET if distinct else Multiplicity.BAG)


def is_row_count(value: Expression | Aggregation) -> bool:
    """Return whether an aggregate only counts rows."""
    return (
        isinstance(value, Aggregation)
        and value.function is AggregateFunction.COUNT
        and not value.distinct
        and (value.argument is None or not value.argument.type.nullable)
    )


def _ignores_repeats(aggregation: Aggregation) -> bool:
    return aggregation.distinct or aggregation.function in (AggregateFunction.MIN, AggregateFunction.MAX)


def variable_kinds(pipeline: Sequence[Step]) -> dict[str, str]:
    """Return what the variables bound by steps stand for: `node:Person`, `edge:Knows`, `path:Person`."""
    return dict(_variable_kinds(pipeline))


def _variable_kinds(pipeline: Sequence[Step]) -> Iterator[tuple[str, str]]:
    for step in pipeline:
        match step:
            case steps.Scan():
                yield step.variable, f"node:{step.type_name}"
            case steps.Expand() | steps.Connect():
                yield step.target, f"node:{step.target_type}"
                if step.edge_variable is not None:
                    yield step.edge_variable, f"edge:{step.edge}"
                if step.path is not None:
                    yield step.path, f"path:{step.target_type}"
            case steps.Product() | steps.Optional():
                yield from _variable_kinds(step.steps)
            case steps.Alternatives():
                for branch in step.branches:
                    yield from _variable_kinds(branch)
            case _:
                pass
