"""Count without materializing: neighbours that are only counted become a number beside the row.

Before:  scan $p: Person, expand $p -[Knows]-> $q: Person, aggregate count($q)
After:   scan $p: Person, count #times1 neighbours of $p -[Knows]->, aggregate count($q), each row #times1 times
"""

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation
from omnigraph.language.plan.pipeline import Pipeline, find_new_variables, find_uses, is_count_only
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables
from omnigraph.model.schema import Schema


def count_without_listing(pipeline: Pipeline, _schema: Schema) -> Pipeline:
    """Replace expansions and scans whose rows are only counted."""
    for place, step in enumerate(pipeline):
        if isinstance(step, steps.Aggregate):
            if not _is_count_only(step):
                return pipeline
            counted = _Counted(step)
            before = counted.rewritten(pipeline[:place])
            # The pattern was walked from its end; people read it from its start.
            weights = tuple(reversed(counted.weights))
            return (*before, steps.Aggregate(step.columns, weights), *pipeline[place + 1 :])
    return pipeline


def _is_count_only(step: steps.Aggregate) -> bool:
    aggregates = [column.value for column in step.columns if isinstance(column.value, Aggregation)]
    return all(
        aggregate.function is AggregateFunction.COUNT
        and not aggregate.distinct
        and all(is_count_only(aggregate, name) for name in find_variables(aggregate))
        and (aggregate.argument is None or bool(find_variables(aggregate)))
        for aggregate in aggregates
    )


class _Counted:
    """Backward walk over a pattern, tracking which variables later steps use."""

    def __init__(self, aggregate: steps.Aggregate) -> None:
        self.weights: list[str] = []
        self._used: set[str] = set()
        for column in aggregate.columns:
            if not isinstance(column.value, Aggregation):
                self._used |= find_variables(column.value)

    def rewritten(self, pipeline: Pipeline) -> Pipeline:
        rewritten: list[Step] = []
        for place in range(len(pipeline) - 1, -1, -1):
            step = self._replace_by_count(pipeline[place], is_alone=len(pipeline) == 1)
            if isinstance(step, steps.Product):
                step = steps.Product(self.rewritten(step.steps))
            else:
                self._used |= {name for name, _ in find_uses((step,))}
            rewritten.append(step)
        return tuple(reversed(rewritten))

    def _replace_by_count(self, step: Step, *, is_alone: bool) -> Step:
        if not self._used.isdisjoint(find_new_variables(step)):
            return step
        match step:
            case steps.Expand(path=None, target_condition=None, edge_condition=None):
                return steps.CountEdges(
                    step.source,
                    step.source_type,
                    step.target_type,
                    step.edge,
                    step.direction,
                    step.least,
                    step.most,
                    each_record=step.edge_variable is not None,
                    name=self._weight(),
                    from_target=step.from_target,
                )
            case steps.Scan() if is_alone:
                return steps.CountNodes(step.variable, step.type_name, step.condition, self._weight())
            case _:
                return step

    def _weight(self) -> str:
        name = f"#times{len(self.weights) + 1}"
        self.weights.append(name)
        return name
