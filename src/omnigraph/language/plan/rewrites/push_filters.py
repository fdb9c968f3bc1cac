"""Filter pushdown: move conditions into the scan or expansion that binds their variables, else right behind it.

Before:  scan $p: Person, expand $p -[Knows]-> $q: Person, filter $p.age > 30, filter $q.name = "Ada"
After:   scan $p: Person where $p.age > 30, expand $p -[Knows]-> $q: Person where $q.name = "Ada"
"""

from dataclasses import replace

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.pipeline import Pipeline, brings, with_inside
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import conjunction, conjuncts, variables
from omnigraph.model.schema import Schema


def push_filters(pipeline: Pipeline, schema: Schema) -> Pipeline:
    """Move every conjunct as close to the tables as possible."""
    kept: list[Step] = []
    behind: dict[int, list[Expression]] = {}
    home: dict[str, int] = {}
    for step in pipeline:
        if isinstance(step, steps.Filter):
            for condition in conjuncts(step.condition):
                needed = variables(condition)
                # A condition without variables stays where it is, in front of whatever comes next.
                position = max((home.get(name, len(kept) - 1) for name in needed), default=len(kept) - 1)
                behind.setdefault(position, []).append(condition)
            continue
        for name in brings(step):
            home[name] = len(kept)
        kept.append(step)
    pushed = list(_placed(behind.get(-1, [])))
    for position, step in enumerate(kept):
        taken, left = _absorb(step, behind.get(position, []))
        pushed.append(with_inside(taken, lambda inner: push_filters(inner, schema)))
        pushed += _placed(left)
    return tuple(pushed)


def _placed(conditions: list[Expression]) -> tuple[Step, ...]:
    together = conjunction(conditions)
    return () if together is None else (steps.Filter(together),)


def _absorb(step: Step, conditions: list[Expression]) -> tuple[Step, list[Expression]]:
    """Return the step with the conditions it can evaluate itself, and the remaining ones."""
    if not conditions:
        return step, conditions
    match step:
        case steps.Scan():
            own, left = _about({step.variable}, conditions)
            return replace(step, condition=conjunction([step.condition, *own])), left
        case steps.Expand():
            own, left = _about({step.target}, conditions)
            of_edge, left = _about({step.edge_variable or ""}, left)
            return replace(
                step,
                target_condition=conjunction([step.target_condition, *own]),
                edge_condition=conjunction([step.edge_condition, *of_edge]),
            ), left
        case steps.Connect():
            of_edge, left = _about({step.edge_variable or ""}, conditions)
            return replace(step, edge_condition=conjunction([step.edge_condition, *of_edge])), left
        case steps.Product():
            own, left = _about(set(brings(step)), conditions)
            return replace(step, steps=(*step.steps, *_placed(own))), left
        case _:
            return step, conditions


def _about(names: set[str], conditions: list[Expression]) -> tuple[list[Expression], list[Expression]]:
    own: list[Expression] = []
    left: list[Expression] = []
    for condition in conditions:
        needed = variables(condition)
        (own if needed and needed <= names else left).append(condition)
    return own, left
