"""Rewrite rules that optimize plans, in the order of their application."""

from collections.abc import Callable

from omnigraph.language.plan.pipeline import Pipeline
from omnigraph.language.plan.rewrites.count_without_listing import count_without_listing
from omnigraph.language.plan.rewrites.narrow_scans import narrow_scans
from omnigraph.language.plan.rewrites.order_expands import order_expands
from omnigraph.language.plan.rewrites.push_filters import push_filters
from omnigraph.language.plan.rewrites.push_limits import push_limits
from omnigraph.language.plan.steps import ReadPlan
from omnigraph.model.schema import Schema

Rewrite = Callable[[Pipeline, Schema], Pipeline]

REWRITES: tuple[Rewrite, ...] = (
    push_filters,  # first: every rule below sees which variables are selective
    order_expands,  # guesses sizes from the conditions in place
    count_without_listing,  # after the order is chosen: only the last expansions can be counted
    push_limits,
    narrow_scans,  # last: the rules above may remove the last use of a property
)


def rewrite(plan: ReadPlan, schema: Schema) -> ReadPlan:
    """Apply every rule once, in order; the result is equivalent.

    Args:
        plan: as it was built.
        schema: for keys, unique properties and indexes.

    Returns:
        A plan with the same answers.
    """
    pipeline = plan.steps
    for rule in REWRITES:
        pipeline = rule(pipeline, schema)
    return ReadPlan(pipeline, plan.columns)
