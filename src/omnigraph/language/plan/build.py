"""Build logical plans from typed reads: choose which variable is scanned first, and what follows from it.

Textual order decides only ties. Bindings root each connected component of the pattern: the first binding of a
component becomes its scan, the others become filters where a traversal reaches them. Then come alternatives,
conditions, negations, optional blocks, and the conditions and negations that depend on those.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import count

from omnigraph.language.plan import expressions as ex
from omnigraph.language.plan import pattern, steps
from omnigraph.language.plan.expressions import Aggregation, Column, Expression, NodeValue, Output, Score
from omnigraph.language.plan.pattern import Block, OrderKey, Traversal
from omnigraph.language.plan.steps import Step
from omnigraph.language.plan.walk import find_variables, replaced, walk
from omnigraph.model.types import PropertyType


def build(read: pattern.Read) -> steps.ReadPlan:
    """Build the plan of a read, before any rewriting."""
    scores = _Scores(read.window, count(1))
    built = _BlockBuilder(read.block, frozenset(), scores).build()
    built += _build_results(read, scores)
    columns = tuple(steps.ResultColumn(column.name, column.type) for column in read.columns)
    return steps.ReadPlan(tuple(built), columns)


# --- patterns ---------------------------------------------------------------------------------------------------------


class _BlockBuilder:
    """Builder of the steps of one block, given the variables that are bound already."""

    def __init__(self, block: Block, given: frozenset[str], scores: "_Scores") -> None:
        self._block = block
        self._scores = scores
        self._available = set(given)
        self._steps: list[Step] = [steps.Given(tuple(sorted(given)))] if given else []
        self._types: dict[str, str] = {}
        self._conditions: dict[str, list[Expression]] = {}
        self._traversals = [clause for clause in block.clauses if isinstance(clause, Traversal)]
        self._touching: dict[str, list[int]] = {}
        self._naming: dict[str, int] = {}
        self._waiting: list[int] = []
        self._done: set[int] = set()
        # What only later blocks will bring: conditions on it must wait.
        self._pending: set[str] = set()

    def build(self) -> list[Step]:
        self._collect_core()
        for name in sorted(self._available):
            self._add_filters(self._conditions.get(name, ()), self._steps)
        self._waiting = [place for name in self._available for place in self._touching.get(name, ())]
        heapq.heapify(self._waiting)
        self._expand(self._steps)
        for name in self._types:
            self._scan_root(name, self._types[name])
        later = self._build_alternatives()
        self._scan_unrooted(range(len(self._traversals)))
        self._add_tests()
        for clause in later:
            self._build_block_clause(clause)
        self._pending.clear()
        self._add_tests()
        return self._steps

    def _collect_core(self) -> None:
        for clause in self._block.clauses:
            match clause:
                case pattern.Binding():
                    self._types[clause.variable] = clause.type_name
                    self._conditions.setdefault(clause.variable, []).extend(clause.conditions)
                case pattern.Optional():
                    self._pending.update(clause.variables)
                case pattern.Mark():
                    self._pending.add(clause.name)
                case _:
                    pass
        for place, traversal in enumerate(self._traversals):
            for name in {traversal.source, traversal.target}:
                self._touching.setdefault(name, []).append(place)
            for extra in (traversal.edge_variable, traversal.path):
                if extra is not None:
                    self._naming[extra] = place
        self._untested = [
            clause
            for clause in self._block.clauses
            if isinstance(clause, pattern.Condition | pattern.Mark | pattern.Negation | pattern.Existence)
        ]

    # --- scans and traversals -----------------------------------------------------------------------------------------

    def _scan_root(self, variable: str, type_name: str) -> None:
        """Scan a variable and expand its component, as a product with the existing rows."""
        if variable in self._available:
            return
        component: list[Step] = [steps.Scan(variable, type_name)]
        self._bind(variable, component)
        self._expand(component)
        self._steps += [steps.Product(tuple(component))] if self._steps else component

    def _bind(self, variable: str, into: list[Step]) -> None:
        self._available.add(variable)
        self._add_filters(self._conditions.get(variable, ()), into)
        for place in self._touching.get(variable, ()):
            heapq.heappush(self._waiting, place)

    def _expand(self, into: list[Step]) -> None:
        """Follow every traversal with a bound end, in textual order."""
        while self._waiting:
            place = heapq.heappop(self._waiting)
            if place in self._done:
                continue
            self._done.add(place)
            traversal = self._traversals[place]
            for extra in (traversal.edge_variable, traversal.path):
                if extra is not None:
                    self._available.add(extra)
            if {traversal.source, traversal.target} <= self._available:
                into.append(_connect(traversal))
            elif traversal.source in self._available:
                into.append(_expand(traversal, from_target=False))
                self._bind(traversal.target, into)
            else:
                into.append(_expand(traversal, from_target=True))
                self._bind(traversal.source, into)

    def _scan_unrooted(self, places: Iterable[int]) -> None:
        """Scan the source of traversals without a bound end."""
        for place in places:
            if place not in self._done:
                self._scan_root(self._traversals[place].source, self._traversals[place].source_type)

    # --- blocks ---------------------------------------------------------------------------------------------------

    def _build_alternatives(self) -> list[pattern.Alternatives | pattern.Optional]:
        """Build the alternatives that do not depend on optional blocks; return the remaining clauses of both kinds."""
        later: list[pattern.Alternatives | pattern.Optional] = []
        for clause in self._block.clauses:
            if isinstance(clause, pattern.Optional):
                later.append(clause)
            elif isinstance(clause, pattern.Alternatives):
                if any(not self._pending.isdisjoint(block.mentions) for block in clause.blocks):
                    self._pending.update(clause.variables)
                    later.append(clause)
                else:
                    self._build_block_clause(clause)
        return later

    def _build_block_clause(self, clause: pattern.Alternatives | pattern.Optional) -> None:
        if isinstance(clause, pattern.Optional):
            self._steps.append(steps.Optional(self._build_inner(clause.block), clause.variables))
            self._available.update(clause.variables)
            self._pending.difference_update(clause.variables)
            return
        # What every branch binds need not be scanned before, even if the text outside mentions it; all else must be.
        shared = frozenset.intersection(*(_find_bound_nodes(block) for block in clause.blocks))
        mentioned = frozenset[str]().union(*(block.mentions for block in clause.blocks)) - shared
        self._scan_unrooted(place for name in sorted(mentioned) for place in self._find_traversals(name))
        brought = tuple(sorted((shared & self._touching.keys() | set(clause.variables)) - self._available))
        branches = tuple(self._build_inner(block) for block in clause.blocks)
        self._steps.append(steps.Alternatives(branches, brought))
        self._pending.difference_update(brought)
        for name in brought:
            self._bind(name, self._steps)
        self._expand(self._steps)

    def _find_traversals(self, name: str) -> tuple[int, ...]:
        """Return the traversals that a variable is an end of, or that bind it as an edge or a path."""
        named = (self._naming[name],) if name in self._naming else ()
        return (*self._touching.get(name, ()), *named)

    def _build_inner(self, block: Block) -> tuple[Step, ...]:
        given = frozenset(name for name in block.mentions if name in self._available)
        return tuple(_BlockBuilder(block, given, self._scores.nest()).build())

    # --- conditions -----------------------------------------------------------------------------------------------

    def _add_tests(self) -> None:
        """Add every test whose variables are bound: conditions first, then blocks."""
        waiting: list[pattern.Condition | pattern.Mark | pattern.Negation | pattern.Existence] = []
        blocks: list[pattern.Negation | pattern.Existence] = []
        for clause in self._untested:
            match clause:
                case pattern.Mark():
                    if self._pending.isdisjoint(clause.block.mentions):
                        self._steps.append(steps.Mark(self._build_inner(clause.block), clause.name))
                        self._available.add(clause.name)
                        self._pending.discard(clause.name)
                        continue
                case pattern.Condition():
                    if self._pending.isdisjoint(find_variables(clause.expression)):
                        self._add_filters((clause.expression,), self._steps)
                        continue
                case pattern.Negation() | pattern.Existence():
                    if self._pending.isdisjoint(clause.block.mentions):
                        blocks.append(clause)
                        continue
            waiting.append(clause)
        for block in blocks:
            inner = self._build_inner(block.block)
            self._steps.append(steps.AntiJoin(inner) if isinstance(block, pattern.Negation) else steps.SemiJoin(inner))
        self._untested = waiting

    def _add_filters(self, conditions: Iterable[Expression], into: list[Step]) -> None:
        for condition in conditions:
            into += self._scores.build_ranks((condition,))
            into.append(steps.Filter(self._scores.replace_scores(condition)))


def _find_bound_nodes(block: Block) -> frozenset[str]:
    """Return the nodes that a block's own patterns bind."""
    names: set[str] = set()
    for clause in block.clauses:
        if isinstance(clause, pattern.Binding):
            names.add(clause.variable)
        elif isinstance(clause, Traversal):
            names.update((clause.source, clause.target))
    return frozenset(names)


def _expand(traversal: Traversal, *, from_target: bool) -> steps.Expand:
    forward = steps.Expand(
        traversal.source,
        traversal.target,
        traversal.source_type,
        traversal.target_type,
        traversal.edge,
        traversal.direction,
        traversal.least,
        traversal.most,
        traversal.edge_variable,
        traversal.path,
    )
    if not from_target:
        return forward
    return replace(
        forward,
        source=traversal.target,
        target=traversal.source,
        source_type=traversal.target_type,
        target_type=traversal.source_type,
        direction=traversal.direction.reversed,
        from_target=True,
    )


def _connect(traversal: Traversal) -> steps.Connect:
    return steps.Connect(
        traversal.source,
        traversal.target,
        traversal.source_type,
        traversal.target_type,
        traversal.edge,
        traversal.direction,
        traversal.least,
        traversal.most,
        traversal.edge_variable,
        traversal.path,
    )


# --- results ----------------------------------------------------------------------------------------------------------


class _Scores:
    """Scores as hidden columns, each computed by a step before the first one that needs it."""

    def __init__(self, window: pattern.Window, numbers: Iterator[int]) -> None:
        self._window = window
        self._numbers = numbers
        self._names: dict[Score, str] = {}

    def nest(self) -> "_Scores":
        """Return a separate registry for a nested block; columns are not shared across blocks."""
        return _Scores(self._window, self._numbers)

    def build_ranks(
        self, expressions: Iterable[Expression | Aggregation], *, required: bool = False, in_order: bool = False
    ) -> Iterator[Step]:
        """Yield the steps that compute the scores in these expressions, if not computed yet."""
        for expression in expressions:
            for score in _find_scores(expression):
                if score not in self._names:
                    self._names[score] = f"#rank{next(self._numbers)}"
                    depth = self._window if in_order and isinstance(score, ex.Rrf) else None
                    yield steps.Rank(score, self._names[score], required, depth)
                elif required:
                    yield steps.Filter(ex.IsNull(ex.Computed(self._names[score], score.type), negated=True))

    def replace_scores(self, expression: Expression) -> Expression:
        """Return the expression with scores replaced by their hidden columns."""

        def hidden(part: Expression) -> Expression | None:
            if isinstance(part, ex.Nearest | ex.Bm25 | ex.Rrf):
                return ex.Computed(self._names[part], part.type)
            return None

        return replaced(expression, hidden) if self._names else expression


def _find_scores(expression: Expression | Aggregation) -> Iterator[Score]:
    """Yield the scores of an expression, except the two inside a fusion."""
    inside: set[int] = set()
    for part in walk(expression):
        if isinstance(part, ex.Nearest | ex.Bm25 | ex.Rrf) and id(part) not in inside:
            if isinstance(part, ex.Rrf):
                inside |= {id(part.first), id(part.second)}
            yield part


def _build_results(read: pattern.Read, scores: _Scores) -> list[Step]:
    ranked = [key.value for key in read.order if key.ranks]
    by_rank = [read.columns[value.position].value if isinstance(value, Output) else value for value in ranked]
    built: list[Step] = list(scores.build_ranks(by_rank, required=True, in_order=True))
    built += scores.build_ranks((key.value for key in read.order), in_order=True)
    built += scores.build_ranks(column.value for column in read.columns)
    columns = tuple(Column(column.name, _replace_scores_in(column.value, scores)) for column in read.columns)
    order: list[Step] = []
    if read.order:
        keys = tuple(OrderKey(scores.replace_scores(key.value), key.descending) for key in read.order)
        order.append(steps.Order(keys, _find_tie_breakers(read)))
    limit: list[Step] = []
    if read.window.count is not None or read.window.skip is not None:
        limit.append(steps.Limit(read.window))
    if read.is_aggregate:
        built.append(steps.Aggregate(columns))
    elif read.distinct:
        built.append(steps.Project(columns))
    else:
        return [*built, *order, *limit, steps.Project(columns)]
    distinct: list[Step] = [steps.Distinct()] if read.distinct else []
    return [*built, *distinct, *order, *limit]


def _replace_scores_in(value: Expression | Aggregation, scores: _Scores) -> Expression | Aggregation:
    if not isinstance(value, Aggregation):
        return scores.replace_scores(value)
    if value.argument is None:
        return value
    return replace(value, argument=scores.replace_scores(value.argument))


def _find_tie_breakers(read: pattern.Read) -> tuple[Expression, ...]:
    """Return the tie-breakers that make the order deterministic."""
    if not read.is_aggregate and not read.distinct:
        return read.entities
    decided = {key.value.position for key in read.order if isinstance(key.value, Output)}
    return tuple(
        Output(position, column.name, column.type)
        for position, column in enumerate(read.columns)
        if position not in decided and not isinstance(column.value, Aggregation) and _has_order(column)
    )


def _has_order(column: Column) -> bool:
    if isinstance(column.type, PropertyType):
        return not (column.type.list or column.type.is_vector)
    return isinstance(column.type, NodeValue)
