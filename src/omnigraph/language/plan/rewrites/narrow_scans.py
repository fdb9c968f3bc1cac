"""Projection pushdown: read only the properties that later steps need.

Before:  scan $p: Person {…} where $p.age > 30, return $p.name
After:   scan $p: Person {name} where $p.age > 30, return $p.name
"""

from dataclasses import replace

from omnigraph.language.plan import steps
from omnigraph.language.plan.pipeline import Pipeline, find_read_expressions, get_nested_steps, map_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_properties
from omnigraph.model.schema import Schema


def narrow_scans(pipeline: Pipeline, _schema: Schema) -> Pipeline:
    """Set the properties each variable must carry; pushed-down conditions need none of them."""
    needed: dict[str, set[str]] = {}
    _collect(pipeline, needed)
    return _narrowed(pipeline, {name: tuple(sorted(found)) for name, found in needed.items()})


def _collect(pipeline: Pipeline, needed: dict[str, set[str]]) -> None:
    for step in pipeline:
        for variable, name in find_properties(find_read_expressions(step)):
            needed.setdefault(variable, set()).add(name)
        for inner in get_nested_steps(step):
            _collect(inner, needed)


def _narrowed(pipeline: Pipeline, needed: dict[str, tuple[str, ...]]) -> Pipeline:
    narrowed: list[Step] = []
    for step in pipeline:
        match step:
            case steps.Scan():
                narrowed.append(replace(step, properties=needed.get(step.variable, ())))
            case steps.Expand():
                narrowed.append(
                    replace(
                        step,
                        target_properties=needed.get(step.target, ()),
                        edge_properties=needed.get(step.edge_variable or "", ()),
                    )
                )
            case steps.Connect():
                narrowed.append(replace(step, edge_properties=needed.get(step.edge_variable or "", ())))
            case _:
                narrowed.append(map_nested_steps(step, lambda inner: _narrowed(inner, needed)))
    return tuple(narrowed)
