"""Lowers the steps of a pattern to joins of DataFrames.

A step with nested steps is decorrelated: they run once, from the distinct values of the outer variables that they use,
and what they find is joined back on these values.
"""

from collections.abc import Sequence
from typing import assert_never

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.errors import InternalError
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Computed, Constant, Expression, Rrf, Value
from omnigraph.language.plan.pattern import Count, Window
from omnigraph.language.plan.pipeline import Pipeline
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import ID, Schema
from omnigraph.model.types import Scalar
from omnigraph.pipeline.query.evaluate import Evaluator
from omnigraph.pipeline.query.hops import Hops, Pairs
from omnigraph.pipeline.query.needs import PLACE, Needs, find_needs
from omnigraph.pipeline.query.rank import Ranking
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Rows, match
from omnigraph.pipeline.query.scan import Source

_PATH_TYPE = pa.list_(pa.string())


class PatternLowering:
    """Lowers the patterns of one plan."""

    def __init__(self, source: Source, schema: Schema, evaluator: Evaluator, ranking: Ranking) -> None:
        self._source = source
        self._schema = schema
        self._names = source.names
        self._evaluator = evaluator
        self._ranking = ranking
        self._hops = Hops(source, schema)

    def start(self) -> Rows:
        """Return the one empty row that a plan starts with."""
        return Rows(self._source.spark.range(1).select(F.lit(1).alias(self._names.new())), {}, is_start=True)

    def lower(self, rows: Rows, pattern: Pipeline, outside: Needs, around: Sequence[Key] = ()) -> Rows:
        """Lower steps.

        Args:
            rows: the input.
            pattern: the steps.
            outside: what is needed of the result.
            around: inside another step, the columns that identify the outer row.
        """
        fused: frozenset[str] = frozenset()
        for place, step in enumerate(pattern):
            needs = find_needs(pattern[place + 1 :]) | outside | Needs(frozenset(key.name for key in around))
            if isinstance(step, steps.Scan) and self._is_implied(rows, step, pattern[place + 1 :], needs):
                continue
            if isinstance(step, steps.Order):
                rows = self.order(rows, step, needs, fused)
            elif isinstance(step, steps.Rank):
                rows = self._ranking.rank(rows, step, around)
                fused |= {step.name} if isinstance(step.score, Rrf) else frozenset()
            else:
                rows = self._step(rows, step, needs)
                fused = fused if isinstance(step, steps.Filter) else frozenset()
        return rows

    def _is_implied(self, rows: Rows, step: steps.Scan, later: Sequence[Step], needs: Needs) -> bool:
        """Return whether the next step finds the nodes of a scan by itself: the ends of edges exist."""
        following = later[0] if later else None
        return (
            rows.is_start
            and step.condition is None
            and step.at_most is None
            and isinstance(following, steps.Expand | steps.CountEdges)
            and following.source == step.variable
            and (following.least, following.most) == (1, 1)
            and (isinstance(following, steps.CountEdges) or following.path is None)
            and not self._stored(step.variable, step.type_name, needs)
        )

    def _step(self, rows: Rows, step: Step, needs: Needs) -> Rows:
        match step:
            case steps.Given():
                return rows
            case steps.Scan():
                return self._scan(rows, step, needs)
            case steps.Product():
                return _crossed(rows, self.lower(self.start(), step.steps, needs))
            case steps.Expand():
                return self._expand(rows, step, needs)
            case steps.Connect():
                return self._connect(rows, step, needs)
            case steps.Filter():
                return self._evaluator.where(rows, step.condition, needs.of(rows))
            case steps.SemiJoin() | steps.AntiJoin():
                return self._exists(rows, step)
            case steps.Mark():
                return self._mark(rows, step)
            case steps.Optional():
                return self._optional(rows, step, needs)
            case steps.Alternatives():
                return self._alternatives(rows, step, needs)
            case steps.CountNodes():
                return self._count_nodes(rows, step)
            case steps.CountEdges():
                return self._count_edges(rows, step)
            case steps.Limit():
                return self.limit(rows, step)
            case steps.Aggregate() | steps.Project() | steps.Distinct() | steps.Order() | steps.Rank():
                raise InternalError(f"unexpected {type(step).__name__} inside a pattern")
            case _:
                assert_never(step)

    # --- rows from tables -----------------------------------------------------------------------------------------

    def _nodes(self, variable: str, type_name: str, needs: Needs, condition: Expression | None) -> Rows:
        wanted = {Key(Kind.ID, variable): ID}
        wanted |= {Key(Kind.PROPERTY, variable, name): name for name in self._stored(variable, type_name, needs)}
        found = self._source.scan(f"node:{type_name}", wanted, condition)
        return self._with_key(found, variable, type_name)

    def _stored(self, variable: str, type_name: str, needs: Needs) -> list[str]:
        """Return the needed properties of a variable that its id does not tell."""
        return [name for name in needs.properties_of(variable) if name != self._text_key(type_name)]

    def _text_key(self, type_name: str) -> str | None:
        """Return the property that is equal to the id: the key, if it is one text."""
        node = self._schema.node(type_name)
        keys = () if node is None else node.key
        return keys[0].name if len(keys) == 1 and keys[0].type.scalar is Scalar.STRING else None

    def _with_key(self, rows: Rows, variable: str, type_name: str) -> Rows:
        key = self._text_key(type_name)
        if key is None:
            return rows
        return Rows(rows.frame, {**rows.cells, Key(Kind.PROPERTY, variable, key): rows.cells[Key(Kind.ID, variable)]})

    def _scan(self, rows: Rows, step: steps.Scan, needs: Needs) -> Rows:
        found = self._nodes(step.variable, step.type_name, needs, step.condition)
        if step.at_most is not None:
            found = found.with_frame(found.frame.limit(self._enough(step.at_most)))
        return _crossed(rows, found)

    def _count_nodes(self, rows: Rows, step: steps.CountNodes) -> Rows:
        found = self._nodes(step.variable, step.type_name, Needs(), step.condition)
        cell = Cell(self._names.new(), pa.int64(), nullable=False)
        counted = found.frame.agg(F.count(F.lit(1)).alias(cell.column)).where(F.col(cell.column) > 0)
        return _crossed(rows, Rows(counted, {Key(Kind.HIDDEN, step.name): cell}))

    # --- edges ----------------------------------------------------------------------------------------------------

    def _expand(self, rows: Rows, step: steps.Expand, needs: Needs) -> Rows:
        pairs = self._pairs(rows, step, needs)
        rows = self._from_source(rows, step, pairs.frame, pairs.start)
        target = Key(Kind.ID, step.target)
        end = Cell(pairs.end, pa.string(), nullable=False)
        made = Rows(rows.frame, {**rows.cells, **_found(step, pairs), target: end})
        if step.target_condition is None and not self._stored(step.target, step.target_type, needs):
            return self._with_key(made, step.target, step.target_type)
        nodes = self._nodes(step.target, step.target_type, needs, step.target_condition)
        both = made.frame.join(nodes.frame, made.column(target) == nodes.column(target))
        return Rows(both, {**made.cells, **nodes.cells})

    def _from_source(self, rows: Rows, step: steps.Expand | steps.CountEdges, found: DataFrame, start: str) -> Rows:
        """Join rows with what was found for each source; where its scan was left out, all of it."""
        source = Key(Kind.ID, step.source)
        if source in rows.cells:
            return rows.with_frame(rows.frame.join(found, rows.column(source) == F.col(start)))
        sources = Rows(found, {source: Cell(start, pa.string(), nullable=False)})
        return self._with_key(sources, step.source, step.source_type)

    def _pairs(self, rows: Rows, step: steps.Expand | steps.Connect, needs: Needs) -> Pairs:
        with_path = step.path is not None and step.path in needs.names
        if step.edge_variable is not None:
            properties = needs.properties_of(step.edge_variable)
            return self._hops.records(step, step.edge_variable, properties, step.edge_condition)
        if (step.least, step.most) == (1, 1) and not with_path:
            return self._hops.pairs(step, distinct=isinstance(step, steps.Expand))
        frame, source = self._sources(rows, step.source)
        return self._hops.reach(step, frame, source, with_path=with_path)

    def _sources(self, rows: Rows, variable: str) -> tuple[DataFrame, str]:
        source, key = self._names.new(), Key(Kind.ID, variable)
        ids = rows.frame.where(rows.column(key).isNotNull()).select(rows.column(key).alias(source))
        return ids.distinct(), source

    def _connect(self, rows: Rows, step: steps.Connect, needs: Needs) -> Rows:
        pairs = self._pairs(rows, step, needs)
        is_test = pairs.path is None and pairs.cells is None
        here = rows.column(Key(Kind.ID, step.source)) == F.col(pairs.start)
        there = rows.column(Key(Kind.ID, step.target)) == F.col(pairs.end)
        joined = rows.frame.join(pairs.frame, here & there, "left_semi" if is_test else "inner")
        return Rows(joined, {**rows.cells, **_found(step, pairs)})

    def _count_edges(self, rows: Rows, step: steps.CountEdges) -> Rows:
        if step.each_record:
            pairs = self._hops.records(step, "")
        elif (step.least, step.most) == (1, 1):
            pairs = self._hops.pairs(step)
        else:
            pairs = self._hops.reach(step, *self._sources(rows, step.source), with_path=False)
        cell = Cell(self._names.new(), pa.int64(), nullable=False)
        counts = pairs.frame.groupBy(pairs.start).agg(F.count(F.lit(1)).alias(cell.column))
        rows = self._from_source(rows, step, counts, pairs.start)
        return Rows(rows.frame, {**rows.cells, Key(Kind.HIDDEN, step.name): cell})

    # --- nested steps ---------------------------------------------------------------------------------------------

    def _inner(self, rows: Rows, pattern: Pipeline, outside: Needs) -> tuple[Rows, list[Key]]:
        """Run nested steps once for each distinct combination of the outer values they use.

        Returns:
            Their rows, and the columns they share with the outer rows.
        """
        if not pattern or not isinstance(pattern[0], steps.Given):
            return self.lower(self.start(), pattern, outside), []
        used = find_needs(pattern)
        given = rows.only(used.of(rows))
        shared = given.identity()
        outer = given.renamed(self._names).distinct() if shared else self.start()
        inner = self.lower(outer, pattern[1:], outside, shared)
        return inner, shared

    def _one_hop(self, pattern: Pipeline) -> tuple[Rows, list[Key]] | None:
        """Return the nodes that have an edge, where nested steps need nothing else; None where they need outer rows."""
        if len(pattern) != 2 or not isinstance(pattern[0], steps.Given):
            return None
        step = pattern[1]
        if not isinstance(step, steps.Expand | steps.Connect) or (step.least, step.most) != (1, 1):
            return None
        if step.edge_variable is None:
            pairs = self._hops.pairs(step, distinct=False)
        else:
            pairs = self._hops.records(step, step.edge_variable, (), step.edge_condition)
        ends = {Key(Kind.ID, step.source): pairs.start, Key(Kind.ID, step.target): pairs.end}
        found = Rows(pairs.frame, {key: Cell(column, pa.string(), nullable=False) for key, column in ends.items()})
        if isinstance(step, steps.Connect):
            if step.source == step.target:
                found = found.with_frame(found.frame.where(F.col(pairs.start) == F.col(pairs.end)))
            return found, list(ends)
        if step.target_condition is not None:
            nodes = self._nodes(step.target, step.target_type, Needs(), step.target_condition).renamed(self._names)
            there = Key(Kind.ID, step.target)
            found = found.with_frame(
                found.frame.join(nodes.frame, found.column(there) == nodes.column(there), "left_semi")
            )
        return found, [Key(Kind.ID, step.source)]

    def _exists(self, rows: Rows, step: steps.SemiJoin | steps.AntiJoin) -> Rows:
        inner, shared = self._one_hop(step.steps) or self._inner(rows, step.steps, Needs())
        found = inner.only(shared)
        frame = found.frame if shared else found.frame.limit(1)
        how = "left_semi" if isinstance(step, steps.SemiJoin) else "left_anti"
        return rows.with_frame(rows.frame.join(frame, match(rows, found, shared), how))

    def _mark(self, rows: Rows, step: steps.Mark) -> Rows:
        inner, shared = self._inner(rows, step.steps, Needs())
        found = inner.only(shared)
        flag, cell = self._names.new(), Cell(self._names.new(), pa.bool_(), nullable=False)
        solutions = found.distinct().frame if shared else found.frame.limit(1)
        marked = solutions.withColumn(flag, F.lit(True))  # noqa: FBT003  (Spark's own)
        joined = rows.frame.join(marked, match(rows, found, shared), "left")
        frame = joined.withColumn(cell.column, F.col(flag).isNotNull())
        return Rows(frame, {**rows.cells, Key(Kind.HIDDEN, step.name): cell})

    def _optional(self, rows: Rows, step: steps.Optional, needs: Needs) -> Rows:
        inner, shared = self._inner(rows, step.steps, _restricted(needs, step.variables))
        new = [key for key in inner.cells if key.name in step.variables and key not in shared]
        found = inner.only([*shared, *new])
        joined = rows.frame.join(found.frame, match(rows, found, shared), "left")
        return Rows(joined, {**rows.cells, **{key: _nullable(found.cells[key]) for key in new}})

    def _alternatives(self, rows: Rows, step: steps.Alternatives, needs: Needs) -> Rows:
        outside = _restricted(needs, step.variables) | Needs(frozenset(step.variables))
        branches = [self._inner(rows, branch, outside) for branch in step.branches]
        shared = list(dict.fromkeys(key for _, keys in branches for key in keys))
        named = [set(inner.cells) for inner, _ in branches]
        new = [
            key for key in branches[0][0].cells if key.name in step.variables and all(key in names for names in named)
        ]
        union: Rows | None = None
        for inner, keys in branches:
            missing = [key for key in shared if key not in keys]
            whole = self._completed(rows, inner, keys, missing)
            some = whole.only([*shared, *new]).renamed(self._names)
            union = some if union is None else union.with_frame(_stacked(union, some))
        assert union is not None
        found = union.distinct()
        joined = rows.frame.join(found.frame, match(rows, found, shared))
        return Rows(joined, {**rows.cells, **{key: _nullable(found.cells[key]) for key in new}})

    def _completed(self, rows: Rows, inner: Rows, keys: Sequence[Key], missing: Sequence[Key]) -> Rows:
        """Join a branch with the outer values that only other branches use."""
        if not missing:
            return inner
        outer = rows.only([*keys, *missing]).renamed(self._names).distinct()
        joined = inner.frame.join(outer.frame, match(inner, outer, keys))
        return Rows(joined, {**inner.cells, **{key: outer.cells[key] for key in missing}})

    # --- order and limit ------------------------------------------------------------------------------------------

    def order(self, rows: Rows, step: steps.Order, needs: Needs, fused: frozenset[str] = frozenset()) -> Rows:
        """Sort rows; null is less than every value."""
        values = [key.value for key in step.keys] + list(step.ties)
        sort_keys = {Key(Kind.HIDDEN, f"#sort{place}"): value for place, value in enumerate(values)}
        places = [Key(Kind.HIDDEN, f"{name}{PLACE}") for name in sorted(fused)]
        kept = [*needs.of(rows), *(key for key in places if key in rows.cells)]
        sortable = self._evaluator.compute(rows, sort_keys, kept)
        columns = []
        for place, (key, value) in enumerate(sort_keys.items()):
            column = sortable.column(key)
            columns.append(column.desc() if place < len(step.keys) and step.keys[place].descending else column.asc())
            if place < len(step.keys) and isinstance(value, Computed) and value.name in fused:
                columns.append(sortable.column(Key(Kind.HIDDEN, f"{value.name}{PLACE}")).asc())
        frame = sortable.frame.orderBy(*columns)
        if step.at_most is not None:
            frame = frame.limit(self._enough(step.at_most))
        return Rows(frame, {key: cell for key, cell in sortable.cells.items() if key not in sort_keys})

    def limit(self, rows: Rows, step: steps.Limit) -> Rows:
        """Skip and limit rows."""
        frame = rows.frame
        if step.window.skip is not None:
            frame = frame.offset(self._number(step.window.skip))
        if step.window.count is not None:
            frame = frame.limit(self._number(step.window.count))
        return rows.with_frame(frame)

    def _enough(self, window: Window) -> int:
        wanted = sum(self._number(bound) for bound in (window.count, window.skip) if bound is not None)
        return min(wanted, _ROWS_MAX)

    def _number(self, count: Count) -> int:
        value: Value = count.value if isinstance(count, Constant) else self._source.inputs.parameters[count.name]
        assert isinstance(value, int)
        return min(value, _ROWS_MAX)


# Spark's limits are numbers of 32 bits.
_ROWS_MAX = 2**31 - 1


def _crossed(rows: Rows, found: Rows) -> Rows:
    if rows.is_start:
        return found
    return Rows(rows.frame.crossJoin(found.frame), {**rows.cells, **found.cells})


def _found(step: steps.Expand | steps.Connect, pairs: Pairs) -> dict[Key, Cell]:
    found = dict(pairs.cells or {})
    if pairs.path is not None and step.path is not None:
        found[Key(Kind.PATH, step.path)] = Cell(pairs.path, _PATH_TYPE, nullable=False)
    return found


def _nullable(cell: Cell) -> Cell:
    return Cell(cell.column, cell.type)


def _restricted(needs: Needs, variables: Sequence[str]) -> Needs:
    names = frozenset(variables)
    return Needs(needs.names & names, frozenset(pair for pair in needs.properties if pair[0] in names))


def _stacked(union: Rows, more: Rows) -> DataFrame:
    by_column = {cell.column: key for key, cell in union.cells.items()}
    return union.frame.union(more.frame.select(*(more.cells[by_column[name]].column for name in union.frame.columns)))
