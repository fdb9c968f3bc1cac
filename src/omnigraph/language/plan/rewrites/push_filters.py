"""Filter pushdown: move conditions into the scan or expansion that binds their variables, else right behind it.

Before:  scan $p: Person, expand $p -[Knows]-> $q: Person, filter $p.age > 30, filter $q.name = "Ada"
After:   scan $p: Person where $p.age > 30, expand $p -[Knows]-> $q: Person where $q.name = "Ada"
"""

from dataclasses import replace

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.pipeline import Pipeline, find_new_variables, map_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables, join_conjuncts, split_conjuncts
from omnigraph.model.schema import Schema


def push_filters(pipeline: Pipeline, schema: Schema) -> Pipeline:
    """Move every conjunct as close to the tables as possible."""
    kept: list[Step] = []
    behind: dict[int, list[Expression]] = {}
    home: dict[str, int] = {}
    for step in pipeline:
        if isinstance(step, steps.Filter):
            for condition in split_conjuncts(step.condition):
                needed = find_variables(condition)
                # A condition without variables stays where it is, in front of whatever comes next.
                position = max((home.get(name, len(kept) - 1) for name in needed), default=len(kept) - 1)
                behind.setdefault(position, []).append(condition)
            continue
        for name in find_new_variables(step):
            home[name] = len(kept)
        kept.append(step)
    pushed = list(_make_filter(behind.get(-1, [])))
    for position, step in enumerate(kept):
        taken, left = _absorb(step, behind.get(position, []))
        pushed.append(map_nested_steps(taken, lambda inner: push_filters(inner, schema)))
        pushed += _make_filter(left)
    return tuple(pushed)


def _make_filter(conditions: list[Expression]) -> tuple[Step, ...]:
    together = join_conjuncts(conditions)
    return () if together is None else (steps.Filter(together),)


def _absorb(step: Step, conditions: list[Expression]) -> tuple[Step, list[Expression]]:
    """Return the step with the conditions it can evaluate itself, and the remaining ones."""
    if not conditions:
        return step, conditions
    match step:
        case steps.Scan():
            own, left = _partition({step.variable}, conditions)
            return replace(step, condition=join_conjuncts([step.condition, *own])), left
        case steps.Expand():
            own, left = _partition({step.target}, conditions)
            of_edge, left = _partition({step.edge_variable or ""}, left)
            return replace(
                step,
                target_condition=join_conjuncts([step.target_condition, *own]),
                edge_condition=join_conjuncts([step.edge_condition, *of_edge]),
            ), left
        case steps.Connect():
            of_edge, left = _partition({step.edge_variable or ""}, conditions)
            return replace(step, edge_condition=join_conjuncts([step.edge_condition, *of_edge])), left
        case steps.Product():
            own, left = _partition(set(find_new_variables(step)), conditions)
            return replace(step, steps=(*step.steps, *_make_filter(own))), left
        case _:
            return step, conditions


def _partition(names: set[str], conditions: list[Expression]) -> tuple[list[Expression], list[Expression]]:
    own: list[Expression] = []
    left: list[Expression] = []
    for condition in conditions:
        needed = find_variables(condition)
        (own if needed and needed <= names else left).append(condition)
    return own, left
