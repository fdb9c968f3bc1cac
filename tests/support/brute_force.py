"""Bound queries answered by plain loops over Python rows: what the engine's answers are compared with.

Nothing here knows plans, operators or arrays. A pattern is a join of relations: a binding is a set of nodes, a
traversal a set of pairs (with an edge variable: of edges), and what remains is tested row by row. It is meant to be
read, and to be right; graphs of a few dozen nodes are what it is for.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cmp_to_key
from typing import Any, assert_never

from tests.support.brute_force_values import Binding, Given, Row, Thing, Trail, compared, value_of
from tests.support.graphs import PlainGraph
from tests.support.search_meaning import fused

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import pattern
from omnigraph.language.plan.expressions import AggregateFunction, Aggregation, Column, Expression
from omnigraph.language.plan.pattern import Block, Direction, Read, Traversal
from omnigraph.language.plan.walk import walk
from omnigraph.model.types import PropertyType

Values = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a read returns.

    Attributes:
        rows: its rows, in order where the read asks for one.
        everything: all rows before the limit, in the same order.
        keys: for each of `everything`, the values it was sorted by.
    """

    rows: list[Values]
    everything: list[Values]
    keys: list[Values]


def answer(read: Read, graph: PlainGraph, params: Mapping[str, Any], *, now_ms: int = 0) -> Answer:
    """The answer to a bound read.

    Args:
        read (Read): bound and typed.
        graph (PlainGraph): what it is asked about.
        params (Mapping[str, Any]): its parameters.
        now_ms (int): when it is asked.

    Returns:
        Answer: as the definition of the language has it.
    """
    given = Given(params, now_ms, graph.nodes)
    solver = _Solver(graph, given)
    solutions = _ranked(read, list(solver.solutions(read.block, {})), given)
    if read.is_aggregate or read.distinct:
        rows = _grouped(read.columns, solutions, given) if read.is_aggregate else _projected(read, solutions, given)
        if read.distinct:
            rows = _once(rows)
        keyed = [(_output_keys(read, row), row) for row in rows]
    else:
        solutions = _sorted(read, solutions, given)
        keyed = [(_row_keys(read, solution, given), _values(read.columns, solution, given)) for solution in solutions]
    if read.order and (read.is_aggregate or read.distinct):
        directions = [key.descending for key in read.order]
        keyed.sort(key=lambda pair: cmp_to_key(_comparison(directions))(pair[0]))
    everything = [row for _, row in keyed]
    skip = _count(read.window.skip, given) or 0
    count = _count(read.window.count, given)
    rows = everything[skip:] if count is None else everything[skip : skip + count]
    return Answer(rows, everything, [keys[: len(read.order)] for keys, _ in keyed])


def _count(count: pattern.Count | None, given: Given) -> int | None:
    if count is None:
        return None
    found = count.value if isinstance(count, ex.Constant) else given.params[count.name]
    assert isinstance(found, int)
    return found


# --- patterns -------------------------------------------------------------------------------------------------------


class _Solver:
    def __init__(self, graph: PlainGraph, given: Given) -> None:
        self._graph = graph
        self._given = given

    def solutions(self, block: Block, row: Row) -> Iterator[Row]:
        """Every way to bind the block's variables, given those of a row."""
        rows: list[Row] = [row]
        for clause in block.clauses:
            if isinstance(clause, pattern.Binding):
                rows = [found for each in rows for found in self._bound(clause, each)]
            elif isinstance(clause, Traversal):
                rows = [found for each in rows for found in self._walked(clause, each)]
        waiting: set[str] = set()
        for clause in block.clauses:
            if isinstance(clause, pattern.Optional):
                waiting.update(clause.variables)
        later: list[pattern.Optional | pattern.Alternatives] = []
        for clause in block.clauses:
            if isinstance(clause, pattern.Optional):
                later.append(clause)
            elif isinstance(clause, pattern.Alternatives):
                if any(not waiting.isdisjoint(branch.mentions) for branch in clause.blocks):
                    waiting.update(clause.variables)
                    later.append(clause)
                else:
                    rows = [found for each in rows for found in self._either(clause, each)]
        for clause in later:
            step = self._perhaps if isinstance(clause, pattern.Optional) else self._either
            rows = [found for each in rows for found in step(clause, each)]  # type: ignore[arg-type]  # each clause goes to the step made for it
        for each in rows:
            marked = self._tested(block, each)
            if marked is not None:
                yield marked

    def _tested(self, block: Block, row: Row) -> Row | None:
        """The row, with its marks, if every test of the block holds for it."""
        for clause in block.clauses:
            if isinstance(clause, pattern.Mark):
                row = {**row, clause.name: self._any(clause.block, row)}
        for clause in block.clauses:
            match clause:
                case pattern.Condition():
                    if value_of(clause.expression, row, self._given) is not True:
                        return None
                case pattern.Negation():
                    if self._any(clause.block, row):
                        return None
                case pattern.Existence():
                    if not self._any(clause.block, row):
                        return None
                case _:
                    pass
        return row

    def _any(self, block: Block, row: Row) -> bool:
        return next(iter(self.solutions(block, row)), None) is not None

    def _bound(self, clause: pattern.Binding, row: Row) -> Iterator[Row]:
        already = clause.variable in row
        candidates = [row[clause.variable]] if already else self._nodes(clause.type_name)
        for candidate in candidates:
            if candidate is None:
                continue
            found = {**row, clause.variable: candidate}
            if all(value_of(each, found, self._given) is True for each in clause.conditions):
                yield found

    def _either(self, clause: pattern.Alternatives, row: Row) -> Iterator[Row]:
        seen: set[tuple[Binding, ...]] = set()
        for block in clause.blocks:
            for solution in self.solutions(block, row):
                brought = tuple(solution[name] for name in clause.variables)
                if brought not in seen:
                    seen.add(brought)
                    yield {**row, **dict(zip(clause.variables, brought, strict=True))}

    def _perhaps(self, clause: pattern.Optional, row: Row) -> Iterator[Row]:
        found = False
        for solution in self.solutions(clause.block, row):
            found = True
            yield {**row, **{name: solution[name] for name in clause.variables}}
        if not found:
            yield {**row, **dict.fromkeys(clause.variables)}

    # --- traversals -----------------------------------------------------------------------------------------------

    def _walked(self, clause: Traversal, row: Row) -> Iterator[Row]:
        starts = [row[clause.source]] if clause.source in row else self._nodes(clause.source_type)
        for start in starts:
            if not isinstance(start, Thing):
                continue
            for end, brought in self._from(clause, start):
                found: dict[str, Binding] = {**row, clause.source: start}
                if clause.target in found and found[clause.target] != end:
                    continue
                found[clause.target] = end
                found.update(brought)
                yield found

    def _from(self, clause: Traversal, start: Thing) -> Iterator[tuple[Thing, dict[str, Binding]]]:
        if clause.edge_variable is not None:
            for edge, end in self._edges(clause, start):
                yield end, {clause.edge_variable: edge}
            return
        for end, ids in self._reached(clause, start):
            yield end, {} if clause.path is None else {clause.path: Trail(ids)}

    def _reached(self, clause: Traversal, start: Thing) -> Iterator[tuple[Thing, tuple[str, ...]]]:
        """Every node at its shortest distance within the bounds, with the first of the shortest paths.

        A node that is one hop too near is there all the same if it has an edge to itself.
        """
        paths: dict[Thing, tuple[str, ...]] = {start: (start.id,)}
        frontier = dict(paths)
        for hop in range(1, clause.most + 1):
            if hop > 1 and clause.source_type != clause.target_type:
                return
            fresh: dict[Thing, tuple[str, ...]] = {}
            if hop == clause.least:
                for node, ids in frontier.items():
                    if any(end == node for _, end in self._edges(clause, node)):
                        yield node, (*ids, node.id)
            for node, ids in frontier.items():
                for _, end in self._edges(clause, node):
                    if end not in paths:
                        longer = (*ids, end.id)
                        fresh[end] = min(fresh.get(end, longer), longer, key=_bytes)
            paths.update(fresh)
            if hop >= clause.least:
                yield from fresh.items()
            frontier = fresh
            if not frontier:
                return

    def _edges(self, clause: Traversal, node: Thing) -> Iterator[tuple[Thing, Thing]]:
        """The edges at a node, each with the node at its other end; an edge to itself once."""
        for record in self._graph.edges.get(clause.edge, []):
            edge = Thing(clause.edge, record)
            if clause.direction is not Direction.IN and record["src"] == node.id:
                yield from self._there(edge, clause.target_type, record["dst"])
                if record["src"] == record["dst"]:
                    continue
            if clause.direction is not Direction.OUT and record["dst"] == node.id:
                yield from self._there(edge, clause.target_type, record["src"])

    def _there(self, edge: Thing, type_name: str, id_: str) -> Iterator[tuple[Thing, Thing]]:
        for node in self._nodes(type_name):
            if node.id == id_:
                yield edge, node

    def _nodes(self, type_name: str) -> list[Thing]:
        return [Thing(type_name, record) for record in self._graph.nodes.get(type_name, [])]


def _bytes(ids: tuple[str, ...]) -> list[bytes]:
    return [each.encode() for each in ids]


# --- results --------------------------------------------------------------------------------------------------------


def _values(columns: Iterable[Column], row: Row, given: Given) -> Values:
    return tuple(value_of(column.value, row, given) for column in columns if not isinstance(column.value, Aggregation))


def _projected(read: Read, solutions: Iterable[Row], given: Given) -> list[Values]:
    return [_values(read.columns, solution, given) for solution in solutions]


def same(value: Any) -> Any:  # noqa: ANN401  (a value of any kind)
    """What equal values have in common: null equals null, both zeros are one, lists compare by their elements."""
    if isinstance(value, list | tuple):
        return tuple(same(each) for each in value)
    return 0.0 if isinstance(value, float) and value == 0 else value


def _once(rows: Iterable[Values]) -> list[Values]:
    return list({tuple(same(each) for each in row): row for row in reversed(list(rows))}.values())[::-1]


def _grouped(columns: Sequence[Column], solutions: Sequence[Row], given: Given) -> list[Values]:
    groups: dict[Values, list[Row]] = {}
    keys = [column.value for column in columns if not isinstance(column.value, Aggregation)]
    for solution in solutions:
        key = tuple(same(value_of(value, solution, given)) for value in keys)
        groups.setdefault(key, []).append(solution)
    if not keys and not groups:
        groups[()] = []
    rows = []
    for key, members in groups.items():
        of_key = iter(key)
        rows.append(
            tuple(
                _aggregated(column.value, members, given)
                if isinstance(column.value, Aggregation)
                else _plain(next(of_key))
                for column in columns
            )
        )
    return rows


def _plain(value: Any) -> Any:  # noqa: ANN401  (a value of any kind)
    return list(value) if isinstance(value, tuple) else value


def _aggregated(aggregation: Aggregation, rows: Sequence[Row], given: Given) -> Any:  # noqa: ANN401  (of any kind)
    if aggregation.argument is None:
        return len(rows)
    values = [found for row in rows if (found := value_of(aggregation.argument, row, given)) is not None]
    if aggregation.distinct:
        values = list({same(value): value for value in values}.values())
    match aggregation.function:
        case AggregateFunction.COUNT:
            return len(values)
        case AggregateFunction.SUM:
            return float(sum(values)) if values else None
        case AggregateFunction.AVG:
            return float(sum(values)) / len(values) if values else None
        case AggregateFunction.MIN:
            return min(values, key=_sortable) if values else None
        case AggregateFunction.MAX:
            return max(values, key=_sortable) if values else None
        case AggregateFunction.COLLECT:
            return values
        case _:
            assert_never(aggregation.function)


def _sortable(value: Any) -> Any:  # noqa: ANN401  (a value of any kind)
    return value.encode() if isinstance(value, str) else value


# --- search ---------------------------------------------------------------------------------------------------------


def _ranked(read: Read, solutions: list[Row], given: Given) -> list[Row]:
    """The rows that have a score, where they are ordered by one; rankings are fused on the way."""
    ordered = [
        value for key in read.order if not isinstance(value := _written(read, key.value), Aggregation) and key.ranks
    ]
    for value in ordered:
        _fuse(value, read, solutions, given, in_order=True)
        solutions = [row for row in solutions if value_of(value, row, given) is not None]
    for key in read.order:
        if not isinstance(key.value, ex.Output):
            _fuse(key.value, read, solutions, given, in_order=True)
    for column in read.columns:
        if not isinstance(column.value, Aggregation):
            _fuse(column.value, read, solutions, given, in_order=False)
    return solutions


def _written(read: Read, value: Expression) -> Expression | Aggregation:
    return read.columns[value.position].value if isinstance(value, ex.Output) else value


def _fuse(value: Expression, read: Read, solutions: list[Row], given: Given, *, in_order: bool) -> None:
    for score in (each for each in walk(value) if isinstance(each, ex.Rrf) and each not in given.fused):
        variable = score.first.target.variable
        nodes = {bound.id: row for row in solutions if isinstance(bound := row[variable], Thing)}
        count, skip = _count(read.window.count, given), _count(read.window.skip, given) or 0
        given.fused[score] = fused(
            score,
            list(nodes),
            lambda arm, node, rows=nodes: value_of(arm, rows[node], given),  # type: ignore[misc]  # the default only fixes the rows of this turn
            value_of(score.k, {}, given),
            None if count is None or not in_order else count + skip,
        )


# --- order ----------------------------------------------------------------------------------------------------------


def _sorted(read: Read, rows: list[Row], given: Given) -> list[Row]:
    """Rows in order; equal sums of fused rankings in the order of their nodes' places."""
    if not read.order:
        return rows
    directions = [
        each
        for key in read.order
        for each in ((key.descending, False) if _is_fused(read, key.value) else (key.descending,))
    ]

    def keys(row: Row) -> Values:
        found: list[Any] = []
        for key in read.order:
            value = _written(read, key.value)
            assert not isinstance(value, Aggregation)
            found.append(value_of(value, row, given))
            if isinstance(value, ex.Rrf):
                bound = row[value.first.target.variable]
                found.append(given.fused[value][1].get(bound.id) if isinstance(bound, Thing) else None)
        return (*found, *(value_of(entity, row, given) for entity in read.entities))

    compare = cmp_to_key(_comparison(directions))
    return sorted(rows, key=lambda row: compare(keys(row)))


def _is_fused(read: Read, value: Expression) -> bool:
    return isinstance(_written(read, value), ex.Rrf)


def _row_keys(read: Read, row: Row, given: Given) -> Values:
    keys = [value_of(key.value, row, given) for key in read.order]
    return (*keys, *(value_of(entity, row, given) for entity in read.entities))


def _output_keys(read: Read, row: Values) -> Values:
    keys = []
    for key in read.order:
        assert isinstance(key.value, ex.Output)
        keys.append(row[key.value.position])
    ties = [
        row[position]
        for position, column in enumerate(read.columns)
        if not isinstance(column.value, Aggregation) and _has_order(column.value)
    ]
    return (*keys, *ties)


def _has_order(value: Expression) -> bool:
    return not (isinstance(value.type, PropertyType) and (value.type.list or value.type.is_vector))


def _comparison(directions: Sequence[bool]) -> Callable[[Values, Values], int]:
    def compare(one: Values, other: Values) -> int:
        for place, (left, right) in enumerate(zip(one, other, strict=True)):
            order = _compare(left, right)
            if order:
                return -order if place < len(directions) and directions[place] else order
        return 0

    return compare


def _compare(left: Any, right: Any) -> int:  # noqa: ANN401  (values of any kind)
    """Null comes before everything."""
    if left is None or right is None:
        return (left is not None) - (right is not None)
    if compared(ex.CompareOp.LESS, left, right):
        return -1
    return 1 if compared(ex.CompareOp.GREATER, left, right) else 0
