"""What is wanted of rows: which variables later steps need, and how they look at rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Column, Expression
from omnigraph.language.plan.pipeline import find_uses
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables


class Regard(StrEnum):
    """How rows are looked at by what comes behind."""

    EACH = "each"  # one by one
    COUNTED = "counted"  # equal rows may come as one that counts as many
    ONCE = "once"  # equal rows may come once


@dataclass(frozen=True, slots=True)
class Demand:
    """What is wanted of the rows of a pipeline.

    Attributes:
        needed: the variables and hidden columns.
        regard: how they are looked at.
    """

    needed: frozenset[str]
    regard: Regard

    def before(self, later: Sequence[Step]) -> frozenset[str]:
        """What is needed in front of these steps."""
        return self.needed | {name for name, _ in find_uses(later)}


def demand_of(columns: Iterable[Column], *, is_aggregate: bool, distinct: bool) -> Demand:
    """What the columns of a result want of the rows they are computed from."""
    values = [column.value for column in columns]
    needed = frozenset(name for value in values if not counts_rows(value) for name in find_variables(value))
    if is_aggregate:
        aggregates = [value for value in values if isinstance(value, Aggregation)]
        return Demand(needed, Regard.ONCE if all(map(_ignores_repeats, aggregates)) else Regard.COUNTED)
    return Demand(needed, Regard.ONCE if distinct else Regard.EACH)


def counts_rows(value: Expression | Aggregation) -> bool:
    """Whether an aggregate counts something that every row has."""
    return (
        isinstance(value, Aggregation)
        and value.function is AggregateFunction.COUNT
        and not value.distinct
        and (value.argument is None or not value.argument.type.nullable)
    )


def _ignores_repeats(aggregation: Aggregation) -> bool:
    return aggregation.distinct or aggregation.function in (AggregateFunction.MIN, AggregateFunction.MAX)


def kinds(pipeline: Sequence[Step]) -> dict[str, str]:
    """What the variables that steps bring stand for: `node:Person`, `edge:Knows`, `path:Person`."""
    return dict(_kinds(pipeline))


def _kinds(pipeline: Sequence[Step]) -> Iterator[tuple[str, str]]:
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
                yield from _kinds(step.steps)
            case steps.Alternatives():
                for branch in step.branches:
                    yield from _kinds(branch)
            case _:
                pass
