"""Join ordering: start from a selective variable, and expand to selective variables first.

Before:  scan $p: Person, expand $p -[WorksAt]-> $c: Company where $c.name = $n
After:   scan $c: Company where $c.name = $n, expand $c <-[WorksAt]- $p: Person

Only symmetric expansions are reversed: the distance between two nodes does not depend on the end it is counted from,
but with a minimum of more than one hop, self-loops are counted differently from each end.
"""

import heapq
from dataclasses import dataclass
from enum import IntEnum

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.pipeline import Pipeline, map_nested_steps
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables, split_conjuncts
from omnigraph.model.schema import Index, Key, NodeType, Schema, Unique


class _Selectivity(IntEnum):
    """Estimated selectivity of a condition, guessed from its form; smaller is more selective."""

    ONE = 0
    FEW = 1
    SOME = 2
    MANY = 3
    ALL = 4


@dataclass(frozen=True, slots=True)
class _Node:
    type_name: str
    condition: Expression | None
    reach: _Selectivity
    properties: tuple[str, ...] | None


def order_expands(pipeline: Pipeline, schema: Schema) -> Pipeline:
    """Choose the root of the pattern that starts the pipeline, and the order of its expansions."""
    length = _count_pattern_steps(pipeline)
    run, rest = pipeline[:length], pipeline[length:]
    if length > 1 and all(_is_reversible(step) for step in run):
        run = _Pattern(run, schema).ordered()
    return (*run, *(map_nested_steps(step, lambda inner: order_expands(inner, schema)) for step in rest))


def _count_pattern_steps(pipeline: Pipeline) -> int:
    if not pipeline or not isinstance(pipeline[0], steps.Scan | steps.Given):
        return 0
    for place, step in enumerate(pipeline[1:], start=1):
        if not isinstance(step, steps.Expand | steps.Connect | steps.Filter):
            return place
    return len(pipeline)


def _is_reversible(step: Step) -> bool:
    return not isinstance(step, steps.Expand | steps.Connect) or (step.least == 1 and step.path is None)


class _Pattern:
    """Scan, expansions and filters at the start of a pipeline, as a graph to be reordered."""

    def __init__(self, run: Pipeline, schema: Schema) -> None:
        self._nodes: dict[str, _Node] = {}
        self._edges: list[steps.Expand | steps.Connect] = []
        self._filters: list[Expression] = []
        self._given: steps.Given | None = None
        for step in run:
            match step:
                case steps.Given():
                    self._given = step
                case steps.Scan():
                    self._add(schema, step.variable, step.type_name, step.condition, step.properties)
                case steps.Expand():
                    self._add(schema, step.target, step.target_type, step.target_condition, step.target_properties)
                    self._edges.append(step)
                case steps.Connect():
                    self._edges.append(step)
                case steps.Filter():
                    self._filters += split_conjuncts(step.condition)
                case _:
                    pass
        self._touching: dict[str, list[int]] = {}
        for place, edge in enumerate(self._edges):
            for name in {edge.source, edge.target}:
                self._touching.setdefault(name, []).append(place)
        self._available: set[str] = set()
        self._waiting: list[tuple[int, int]] = []
        self._ordered: list[Step] = []

    def _add(
        self,
        schema: Schema,
        name: str,
        type_name: str,
        condition: Expression | None,
        properties: tuple[str, ...] | None,
    ) -> None:
        node = schema.node(type_name)
        assert node is not None
        self._nodes[name] = _Node(type_name, condition, _estimate_selectivity(node, name, condition), properties)

    def ordered(self) -> Pipeline:
        waiting_filters = _WaitingFilters(self._filters)
        if self._given is not None:
            self._ordered.append(self._given)
            self._available.update(self._given.variables)
            for name in self._given.variables:
                self._arrive(name)
        else:
            # Of equals the first written: dictionaries keep that order, and min takes the first.
            root = min(self._nodes, key=lambda name: self._nodes[name].reach)
            chosen = self._nodes[root]
            self._ordered.append(steps.Scan(root, chosen.type_name, chosen.condition, chosen.properties))
            self._arrive(root)
        self._ordered += waiting_filters.ready(self._available)
        done: set[int] = set()
        while self._waiting:
            _, place = heapq.heappop(self._waiting)
            if place in done:
                continue
            done.add(place)
            fresh = self._walk(self._edges[place])
            self._ordered += waiting_filters.ready(fresh)
        self._ordered += waiting_filters.rest()
        return tuple(self._ordered)

    def _arrive(self, name: str) -> None:
        self._available.add(name)
        for place in self._touching.get(name, ()):
            edge = self._edges[place]
            other = edge.target if edge.source == name else edge.source
            # An edge between two that are there already only drops rows: it goes first.
            reach = -1 if other in self._available else int(self._nodes[other].reach)
            heapq.heappush(self._waiting, (reach, place))

    def _walk(self, edge: steps.Expand | steps.Connect) -> set[str]:
        fresh = {edge.edge_variable} if edge.edge_variable is not None else set()
        if {edge.source, edge.target} <= self._available:
            self._ordered.append(
                steps.Connect(
                    edge.source,
                    edge.target,
                    edge.source_type,
                    edge.target_type,
                    edge.edge,
                    edge.direction,
                    edge.least,
                    edge.most,
                    edge.edge_variable,
                    edge_condition=edge.edge_condition,
                    edge_properties=edge.edge_properties,
                )
            )
            return fresh
        forward = edge.source in self._available
        target = edge.target if forward else edge.source
        node = self._nodes[target]
        self._ordered.append(
            steps.Expand(
                edge.source if forward else edge.target,
                target,
                edge.source_type if forward else edge.target_type,
                node.type_name,
                edge.edge,
                edge.direction if forward else edge.direction.reversed,
                edge.least,
                edge.most,
                edge.edge_variable,
                target_condition=node.condition,
                edge_condition=edge.edge_condition,
                target_properties=node.properties,
                edge_properties=edge.edge_properties,
            )
        )
        self._arrive(target)
        return fresh | {target}


class _WaitingFilters:
    """Conditions on several variables, each released when its last variable is bound."""

    def __init__(self, conditions: list[Expression]) -> None:
        self._conditions = conditions
        self._missing = [set(find_variables(condition)) for condition in conditions]
        self._needing: dict[str, list[int]] = {}
        self._gone: set[int] = set()
        for place, names in enumerate(self._missing):
            for name in names:
                self._needing.setdefault(name, []).append(place)

    def ready(self, arrived: set[str]) -> list[Step]:
        """Return the filters whose variables are all bound."""
        ready: list[Step] = []
        for name in sorted(arrived):
            for place in self._needing.get(name, ()):
                self._missing[place].discard(name)
                if not self._missing[place] and place not in self._gone:
                    self._gone.add(place)
                    ready.append(steps.Filter(self._conditions[place]))
        return ready

    def rest(self) -> list[Step]:
        """Return the filters with variables outside this pattern, or without variables."""
        return [steps.Filter(condition) for place, condition in enumerate(self._conditions) if place not in self._gone]


def _estimate_selectivity(node: NodeType, variable: str, condition: Expression | None) -> _Selectivity:
    if condition is None:
        return _Selectivity.ALL
    fixed = (_find_fixed_property(conjunct, variable) for conjunct in split_conjuncts(condition))
    equal = {name for name in fixed if name is not None}
    if any(
        set(constraint.properties) <= equal for constraint in node.constraints if isinstance(constraint, Key | Unique)
    ):
        return _Selectivity.ONE
    if any(set(constraint.properties) <= equal for constraint in node.constraints if isinstance(constraint, Index)):
        return _Selectivity.FEW
    return _Selectivity.SOME if equal else _Selectivity.MANY


def _find_fixed_property(condition: Expression, variable: str) -> str | None:
    """Return the property that a condition restricts to one value, or to one of a few."""
    match condition:
        case ex.Compare(op=ex.CompareOp.EQUAL, left=ex.Property() as own, right=other):
            pass
        case ex.Compare(op=ex.CompareOp.EQUAL, left=other, right=ex.Property() as own):
            pass
        case ex.Member(item=ex.Property() as own, items=other, negated=False):
            pass
        case _:
            return None
    return own.name if own.variable == variable and not find_variables(other) else None
