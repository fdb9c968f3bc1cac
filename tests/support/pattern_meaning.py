"""What typed reads mean: answers found by trying every node for every variable.

Nothing here knows of plans, so that plans can be measured against it.
"""

from collections.abc import Iterator
from typing import Any, assert_never

from tests.support.expression_meaning import Meaning, Row, Values
from tests.support.small_graph import SmallGraph

from omnigraph.language.plan import pattern
from omnigraph.language.plan.expressions import Aggregation, Constant, Output

# Which clauses are looked at first: those that bind, those that bring blocks along, those that test.
_ORDER: tuple[tuple[type, ...], ...] = (
    (pattern.Binding, pattern.Traversal),
    (pattern.Alternatives, pattern.Optional),
    (pattern.Mark,),
    (pattern.Condition, pattern.Negation, pattern.Existence),
)


class PatternMeaning:
    """Answers reads on one small graph."""

    def __init__(self, graph: SmallGraph, meaning: Meaning | None = None) -> None:
        self._graph = graph
        self._meaning = meaning or Meaning()

    def answer(self, read: pattern.Read) -> list[Values]:
        """The rows of the result; their order means something only where the read asks for one."""
        rows = self._solutions(read.block, [{}])
        if read.is_aggregate:
            results: list[Row] = [
                {"#result": values} for values in self._meaning.groups(read.columns, [(row, 1) for row in rows])
            ]
        else:
            results = [{**row, "#result": self._projected(read, row)} for row in rows]
        if read.distinct:
            results = [{"#result": values} for values in dict.fromkeys(row["#result"] for row in results)]
        if read.order:
            results = self._ordered(read, results)
        return [row["#result"] for row in windowed(results, read.window)]

    def _projected(self, read: pattern.Read, row: Row) -> Values:
        values = (each.value for each in read.columns)
        return tuple(self._meaning.value(value, row) for value in values if not isinstance(value, Aggregation))

    def _ordered(self, read: pattern.Read, results: list[Row]) -> list[Row]:
        on_results = read.is_aggregate or read.distinct
        ties = (
            tuple(Output(at, each.name, each.type) for at, each in enumerate(read.columns))
            if on_results
            else read.entities
        )
        ordered = sorted(results, key=lambda row: tuple(self._meaning.sort_key(each, row) for each in ties))
        for key in reversed(read.order):
            ordered = sorted(
                ordered,
                key=lambda row, value=key.value: self._meaning.sort_key(value, row),  # type: ignore[misc]  # the default only holds the value of this round
                reverse=key.descending,
            )
        return ordered

    # --- solutions ------------------------------------------------------------------------------------------------

    def _solutions(self, block: pattern.Block, rows: list[Row]) -> list[Row]:
        for kinds in _ORDER:
            for clause in block.clauses:
                if isinstance(clause, kinds):
                    rows = [longer for row in rows for longer in self._clause(clause, row)]
        return rows

    def _clause(self, clause: pattern.Clause, row: Row) -> Iterator[Row]:
        match clause:
            case pattern.Binding():
                for longer in self._bound(row, clause.variable, clause.type_name):
                    if longer[clause.variable] is not None and all(
                        self._meaning.holds(each, longer) for each in clause.conditions
                    ):
                        yield longer
            case pattern.Traversal():
                yield from self._traversal(clause, row)
            case pattern.Condition():
                if self._meaning.holds(clause.expression, row):
                    yield row
            case pattern.Negation():
                if not self._solutions(clause.block, [row]):
                    yield row
            case pattern.Existence():
                if self._solutions(clause.block, [row]):
                    yield row
            case pattern.Mark():
                yield {**row, clause.name: bool(self._solutions(clause.block, [row]))}
            case pattern.Optional():
                nothing: Row = dict.fromkeys(clause.variables)
                for each in self._solutions(clause.block, [row]) or [nothing]:
                    yield {**row, **{name: each[name] for name in clause.variables}}
            case pattern.Alternatives():
                found = [each for block in clause.blocks for each in self._solutions(block, [row])]
                distinct = {tuple(identity(each[name]) for name in clause.variables): each for each in found}
                for each in distinct.values():
                    yield {**row, **{name: each[name] for name in clause.variables}}
            case _:
                assert_never(clause)

    def _bound(self, row: Row, variable: str, type_name: str) -> Iterator[Row]:
        if variable in row:
            yield row
            return
        for node, properties in self._graph.nodes[type_name].items():
            yield {**row, variable: (node, properties)}

    def _traversal(self, clause: pattern.Traversal, row: Row) -> Iterator[Row]:
        for start in self._bound(row, clause.source, clause.source_type):
            for end in self._bound(start, clause.target, clause.target_type):
                if end[clause.source] is not None and end[clause.target] is not None:
                    yield from self._joined(clause, end, end[clause.source][0], end[clause.target][0])

    def _joined(self, clause: pattern.Traversal, row: Row, source: str, target: str) -> Iterator[Row]:
        if clause.edge_variable is not None:
            for there, record in self._graph.near(clause.edge, source, clause.direction):
                if there == target:
                    yield {**row, clause.edge_variable: record}
            return
        reached = self._graph.walk(clause.edge, source, clause.direction, clause.least, clause.most)
        if target in reached:
            yield row if clause.path is None else {**row, clause.path: reached[target]}


def identity(held: Any) -> Any:  # noqa: ANN401  (values of any kind)
    """What tells two bindings of a variable apart: the id, or the path itself."""
    return held[0] if isinstance(held, tuple) and len(held) == 2 and not isinstance(held[1], str) else held


def windowed(rows: list[Row], window: pattern.Window) -> list[Row]:
    """The rows that a limit and an offset leave."""
    start, count = number(window.skip) or 0, number(window.count)
    return rows[start:] if count is None else rows[start : start + count]


def number(count: pattern.Count | None) -> int | None:
    """The number a limit or an offset says."""
    if count is None:
        return None
    assert isinstance(count, Constant)
    assert isinstance(count.value, int)
    return count.value
