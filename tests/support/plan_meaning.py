"""What plans mean: every step carried out on a small graph, with no thought of speed.

Rows hold only the properties that the steps say they need, so a plan that forgets one fails.
"""

from collections.abc import Iterable, Iterator
from typing import assert_never

from tests.support.expression_meaning import Meaning, Row, Values
from tests.support.pattern_meaning import identity, number, windowed
from tests.support.small_graph import Held, Properties, SmallGraph

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Aggregation, Expression
from omnigraph.language.plan.pattern import Window
from omnigraph.language.plan.pipeline import Pipeline
from omnigraph.language.plan.steps import Step


class PlanMeaning:
    """Carries out plans of reads on one small graph."""

    def __init__(self, graph: SmallGraph, meaning: Meaning | None = None) -> None:
        self._graph = graph
        self._meaning = meaning or Meaning()

    def answer(self, pipeline: Pipeline) -> list[Values]:
        """The rows of the result, in the order they come."""
        return [row["#result"] for row in self._run(pipeline, [{}])]

    def _run(self, pipeline: Pipeline, rows: list[Row]) -> list[Row]:
        for step in pipeline:
            rows = self._step(step, rows)
        return rows

    def _each(self, rows: list[Row], pipeline: Pipeline) -> Iterator[tuple[Row, list[Row]]]:
        for row in rows:
            yield row, self._run(pipeline, [row])

    def _step(self, step: Step, rows: list[Row]) -> list[Row]:
        match step:
            case steps.Given():
                assert all(name in row for row in rows for name in step.variables)
                return rows
            case steps.Scan():
                nodes = self._nodes(step.type_name, step.variable, step.condition, step.properties)
                return _first([{**row, step.variable: node} for row in rows for node in nodes], step.at_most)
            case steps.Product():
                inner = self._run(step.steps, [{}])
                return [{**row, **each} for row in rows for each in inner]
            case steps.Expand():
                return [longer for row in rows for longer in self._expand(step, row)]
            case steps.Connect():
                return [longer for row in rows for longer in self._connect(step, row)]
            case steps.Filter():
                return [row for row in rows if self._meaning.holds(step.condition, row)]
            case steps.SemiJoin():
                return [row for row, found in self._each(rows, step.steps) if found]
            case steps.AntiJoin():
                return [row for row, found in self._each(rows, step.steps) if not found]
            case steps.Mark():
                return [{**row, step.name: bool(found)} for row, found in self._each(rows, step.steps)]
            case steps.Optional():
                nothing: Row = dict.fromkeys(step.variables)
                return [
                    {**row, **{name: each[name] for name in step.variables}}
                    for row, found in self._each(rows, step.steps)
                    for each in found or [nothing]
                ]
            case steps.Alternatives():
                return [longer for row in rows for longer in self._alternatives(step, row)]
            case steps.Rank():
                raise NotImplementedError("a small graph has no search")
            case steps.CountNodes():
                nodes = self._nodes(step.type_name, step.variable, step.condition, ())
                return [{**row, step.name: len(nodes)} for row in rows if nodes]
            case steps.CountEdges():
                counted = [(row, self._count(step, row)) for row in rows]
                return [{**row, step.name: count} for row, count in counted if count]
            case _:
                return self._result(step, rows)

    def _result(
        self, step: steps.Aggregate | steps.Project | steps.Distinct | steps.Order | steps.Limit, rows: list[Row]
    ) -> list[Row]:
        match step:
            case steps.Aggregate():
                weighted = [(row, _product(row[name] for name in step.weights)) for row in rows]
                return [{"#result": values} for values in self._meaning.groups(step.columns, weighted)]
            case steps.Project():
                values = [each.value for each in step.columns if not isinstance(each.value, Aggregation)]
                return [{**row, "#result": tuple(self._meaning.value(each, row) for each in values)} for row in rows]
            case steps.Distinct():
                return [{"#result": values} for values in dict.fromkeys(row["#result"] for row in rows)]
            case steps.Order():
                return self._order(step, rows)
            case steps.Limit():
                return windowed(rows, step.window)
            case _:
                assert_never(step)

    # --- tables and edges -----------------------------------------------------------------------------------------

    def _nodes(
        self, type_name: str, variable: str, condition: Expression | None, properties: tuple[str, ...] | None
    ) -> list[Held]:
        return [
            (node, _narrowed(all_of, properties))
            for node, all_of in self._graph.nodes[type_name].items()
            if self._meaning.holds(condition, {variable: (node, all_of)})
        ]

    def _expand(self, step: steps.Expand, row: Row) -> Iterator[Row]:
        if row[step.source] is None:
            return
        source = row[step.source][0]
        nodes = dict(self._nodes(step.target_type, step.target, step.target_condition, step.target_properties))
        if step.edge_variable is not None:
            for there, edge in self._records(step, source):
                if there in nodes:
                    yield {**row, step.target: (there, nodes[there]), step.edge_variable: edge}
            return
        for there, path in self._reached(step, source).items():
            if there in nodes:
                longer = {**row, step.target: (there, nodes[there])}
                yield longer if step.path is None else {**longer, step.path: path}

    def _reached(self, step: steps.Expand | steps.CountEdges, source: str) -> dict[str, tuple[str, ...]]:
        """The nodes at the other end, with the paths to them; searched from there where the pattern begins there."""
        if not step.from_target:
            return self._graph.walk(step.edge, source, step.direction, step.least, step.most)
        way_back = step.direction.reversed
        walks = {
            node: self._graph.walk(step.edge, node, way_back, step.least, step.most)
            for node in self._graph.nodes[step.target_type]
        }
        return {node: reached[source] for node, reached in walks.items() if source in reached}

    def _connect(self, step: steps.Connect, row: Row) -> Iterator[Row]:
        if row[step.source] is None or row[step.target] is None:
            return
        source, target = row[step.source][0], row[step.target][0]
        if step.edge_variable is not None:
            for there, edge in self._records(step, source):
                if there == target:
                    yield {**row, step.edge_variable: edge}
            return
        reached = self._graph.walk(step.edge, source, step.direction, step.least, step.most)
        if target in reached:
            yield row if step.path is None else {**row, step.path: reached[target]}

    def _records(self, step: steps.Expand | steps.Connect, source: str) -> Iterator[tuple[str, Held]]:
        assert step.edge_variable is not None
        for there, (edge_id, properties) in self._graph.near(step.edge, source, step.direction):
            if self._meaning.holds(step.edge_condition, {step.edge_variable: (edge_id, properties)}):
                yield there, (edge_id, _narrowed(properties, step.edge_properties))

    def _count(self, step: steps.CountEdges, row: Row) -> int:
        if row[step.source] is None:
            return 0
        source = row[step.source][0]
        if step.each_record:
            return len(self._graph.near(step.edge, source, step.direction))
        return len(self._reached(step, source))

    # --- rows -----------------------------------------------------------------------------------------------------

    def _alternatives(self, step: steps.Alternatives, row: Row) -> Iterator[Row]:
        distinct: dict[Values, Row] = {}
        for branch in step.branches:
            for each in self._run(branch, [row]):
                distinct.setdefault(tuple(identity(each[name]) for name in step.variables), each)
        for each in distinct.values():
            yield {**row, **{name: each[name] for name in step.variables}}

    def _order(self, step: steps.Order, rows: list[Row]) -> list[Row]:
        ordered = sorted(rows, key=lambda row: tuple(self._meaning.sort_key(each, row) for each in step.ties))
        for key in reversed(step.keys):
            ordered = sorted(
                ordered,
                key=lambda row, value=key.value: self._meaning.sort_key(value, row),  # type: ignore[misc]  # the default only holds the value of this round
                reverse=key.descending,
            )
        return _first(ordered, step.at_most)


def _first(rows: list[Row], at_most: Window | None) -> list[Row]:
    if at_most is None:
        return rows
    return rows[: (number(at_most.count) or 0) + (number(at_most.skip) or 0)]


def _narrowed(properties: Properties, wanted: tuple[str, ...] | None) -> Properties:
    return properties if wanted is None else {name: properties[name] for name in wanted}


def _product(weights: Iterable[int]) -> int:
    total = 1
    for weight in weights:
        total *= weight
    return total
