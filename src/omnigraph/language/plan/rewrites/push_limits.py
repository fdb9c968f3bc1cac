"""Limit pushdown: the sort keeps only the top rows, or the scan stops early.

Before:  scan $p: Person, order by $p.age, limit 10
After:   scan $p: Person, order by $p.age, the first 10, limit 10
"""

from dataclasses import replace

from omnigraph.language.plan import steps
from omnigraph.language.plan.pattern import Window
from omnigraph.language.plan.pipeline import Pipeline
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import Schema


def push_limits(pipeline: Pipeline, _schema: Schema) -> Pipeline:
    """Pass a limit on to the steps before it."""
    for place, step in enumerate(pipeline):
        if isinstance(step, steps.Limit) and step.window.count is not None:
            return (*_pass_limit(pipeline[:place], step.window), *pipeline[place:])
    return pipeline


def _pass_limit(pipeline: Pipeline, window: Window) -> Pipeline:
    for place in range(len(pipeline) - 1, -1, -1):
        step = pipeline[place]
        limited: Step | None = None
        match step:
            case steps.Order():
                limited = replace(step, at_most=window)
            case steps.Scan() if place == 0:
                limited = replace(step, at_most=window)
            case steps.Mark() | steps.Optional():
                # Each row they take, they pass on at least once.
                continue
            case _:
                pass
        return pipeline if limited is None else (*pipeline[:place], limited, *pipeline[place + 1 :])
    return pipeline
