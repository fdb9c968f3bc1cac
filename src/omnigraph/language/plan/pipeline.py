"""Properties of steps that rewrites need: variables they bind, expressions they read, and nested steps."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import assert_never

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Entity, Expression
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables, walk

Pipeline = tuple[Step, ...]


def find_new_variables(step: Step) -> tuple[str, ...]:
    """Return the variables and hidden columns that a step adds."""
    match step:
        case steps.Given() | steps.Optional() | steps.Alternatives():
            return step.variables
        case steps.Scan():
            return (step.variable,)
        case steps.Expand():
            return tuple(name for name in (step.target, step.edge_variable, step.path) if name is not None)
        case steps.Connect():
            return tuple(name for name in (step.edge_variable, step.path) if name is not None)
        case steps.Product():
            return tuple(name for inner in step.steps for name in find_new_variables(inner))
        case steps.Mark() | steps.Rank() | steps.CountNodes() | steps.CountEdges():
            return (step.name,)
        case (
            steps.Filter()
            | steps.SemiJoin()
            | steps.AntiJoin()
            | steps.Aggregate()
            | steps.Project()
            | steps.Distinct()
            | steps.Order()
            | steps.Limit()
        ):
            return ()
        case _:
            assert_never(step)


def get_nested_steps(step: Step) -> tuple[Pipeline, ...]:
    """Return the nested steps that a step runs for each row."""
    match step:
        case steps.Product() | steps.SemiJoin() | steps.AntiJoin() | steps.Mark() | steps.Optional():
            return (step.steps,)
        case steps.Alternatives():
            return step.branches
        case _:
            return ()


def map_nested_steps(step: Step, change: Callable[[Pipeline], Pipeline]) -> Step:
    """Return the step with its nested steps changed."""
    match step:
        case steps.Product() | steps.SemiJoin() | steps.AntiJoin() | steps.Mark() | steps.Optional():
            return replace(step, steps=change(step.steps))
        case steps.Alternatives():
            return replace(step, branches=tuple(change(branch) for branch in step.branches))
        case _:
            return step


def find_read_expressions(step: Step) -> Iterator[Expression | Aggregation]:
    """Yield the expressions a step computes from its rows; without pushed-down conditions and nested steps."""
    match step:
        case steps.Filter():
            yield step.condition
        case steps.Rank():
            yield step.score
        case steps.Aggregate() | steps.Project():
            yield from (column.value for column in step.columns)
        case steps.Order():
            yield from (key.value for key in step.keys)
            yield from step.ties
        case _:
            pass


def find_walked_variables(step: Step) -> tuple[str, ...]:
    """Return the variables whose nodes a step follows edges from or to, beside the expressions it reads."""
    match step:
        case steps.Expand() | steps.CountEdges():
            return (step.source,)
        case steps.Connect():
            return (step.source, step.target)
        case steps.Given():
            return step.variables
        case _:
            return ()


def find_uses(pipeline: Iterable[Step]) -> Iterator[tuple[str, Expression | Aggregation | None]]:
    """Yield every variable that steps need, with the expression that needs it; None where edges are followed."""
    for step in pipeline:
        for name in find_walked_variables(step):
            yield name, None
        for expression in find_read_expressions(step):
            for name in find_variables(expression):
                yield name, expression
        for inner in get_nested_steps(step):
            yield from find_uses(inner)


def is_count_only(value: Expression | Aggregation, variable: str) -> bool:
    """True if an aggregate only counts rows, like the count of a variable that is never null."""
    return isinstance(value, Aggregation) and all(
        isinstance(part, Entity) and part.variable == variable and not part.type.nullable for part in walk(value)
    )
