"""Edges as pairs of ids, and nodes within a number of hops: iterated joins, each node once at its shortest distance."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812  (Spark's own custom)

from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Expression
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.schema import DST, ID, SRC, Check, Index, Range, Schema
from omnigraph.pipeline.query.rows import Cell, Key, Kind, Names
from omnigraph.pipeline.query.scan import Source

Step = steps.Expand | steps.Connect | steps.CountEdges
_FROM, _TO = Key(Kind.HIDDEN, "#from"), Key(Kind.HIDDEN, "#to")
# Walks of more hops are computed level by level; shorter ones are one plan.
_HOPS_IN_ONE_PLAN = 2


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of connected nodes.

    Attributes:
        frame: one row for each pair, or each edge record.
        start: column with the id of the node at the source.
        end: column with the id of the node at the target.
        path: column with the ids on the way, where paths are needed.
        cells: columns of the edge record.
    """

    frame: DataFrame
    start: str
    end: str
    path: str | None = None
    cells: Mapping[Key, Cell] | None = None


class Hops:
    """Edges of one commit."""

    def __init__(self, source: Source, schema: Schema) -> None:
        self._source = source
        self._schema = schema
        self._names: Names = source.names

    def records(
        self, step: Step, variable: str, properties: Sequence[str] = (), condition: Expression | None = None
    ) -> Pairs:
        """Return one row for each edge record, seen from the source; a loop once."""
        keys = {Key(Kind.ID, variable): ID, **{Key(Kind.PROPERTY, variable, name): name for name in properties}}
        rows = self._source.scan(f"edge:{step.edge}", {_FROM: SRC, _TO: DST, **keys}, condition)
        cells = {key: rows.cells[key] for key in keys}
        frame, start, end = self._directed(rows.frame, rows.cells[_FROM].column, rows.cells[_TO].column, step.direction)
        return Pairs(frame, start, end, cells=cells)

    def pairs(self, step: Step, *, distinct: bool = True) -> Pairs:
        """Return the pairs of neighbours; each once, if `distinct`."""
        rows = self._source.scan(f"edge:{step.edge}", {_FROM: SRC, _TO: DST})
        frame, start, end = self._directed(rows.frame, rows.cells[_FROM].column, rows.cells[_TO].column, step.direction)
        if distinct and not (step.direction is not Direction.BOTH and self._has_no_parallels(step.edge)):
            # One shuffle serves the removal of duplicates and the join that follows.
            frame = frame.select(start, end).repartition(F.col(start)).dropDuplicates([start, end])
        return Pairs(frame, start, end)

    def reach(self, step: Step, sources: DataFrame, source: str, *, with_path: bool) -> Pairs:
        """Return the nodes within the bounds of each source, each at its shortest distance.

        Args:
            step: has the bounds.
            sources: distinct ids.
            source: the column with them.
            with_path: whether the first of the shortest paths by node ids is needed.
        """
        near = self.pairs(step)
        if step.source_type != step.target_type or (step.least, step.most) == (1, 1):
            # There is no second hop from a node of another type.
            frame = near.frame if step.least == 1 else near.frame.limit(0)
            path = self._names.new() if with_path else None
            if path is not None:
                ends = (
                    [F.col(near.end), F.col(near.start)] if _is_backward(step) else [F.col(near.start), F.col(near.end)]
                )
                frame = frame.withColumn(path, F.array(*ends))
            return Pairs(frame, near.start, near.end, path)
        start, node, path = self._names.new(), self._names.new(), self._names.new()
        level = sources.select(
            F.col(source).alias(start),
            F.col(source).alias(node),
            *([F.array(F.col(source)).alias(path)] if with_path else []),
        )
        levels = [level]
        for _ in range(step.most):
            level = self._next_level(step, near, levels, (start, node, path if with_path else None))
            if step.most > _HOPS_IN_ONE_PLAN:
                level = level.localCheckpoint(eager=True)
                if level.isEmpty():
                    break
            levels.append(level)
        reached = levels[step.least :]
        if len(levels) >= step.least:
            reached.append(self._looped(step, near, levels[step.least - 1], (start, node, path if with_path else None)))
        frame = reached[0] if reached else level.limit(0)
        for more in reached[1:]:
            frame = frame.unionByName(more)
        return Pairs(frame, start, node, path if with_path else None)

    def _next_level(
        self, step: Step, near: Pairs, levels: Sequence[DataFrame], columns: tuple[str, str, str | None]
    ) -> DataFrame:
        """Return the nodes one hop further that no level has."""
        start, node, path = columns
        found = levels[-1].join(near.frame, F.col(node) == F.col(near.start))
        if path is None:
            found = found.select(start, F.col(near.end).alias(node)).distinct()
        else:
            longer = _lengthened(step, F.col(path), F.col(near.end))
            found = found.select(start, F.col(near.end).alias(node), longer.alias(path))
            found = found.groupBy(start, node).agg(F.min(path).alias(path))
        seen = levels[0].select(start, node)
        for level in levels[1:]:
            seen = seen.unionByName(level.select(start, node))
        return found.join(seen, [start, node], "left_anti")

    def _looped(self, step: Step, near: Pairs, level: DataFrame, columns: tuple[str, str, str | None]) -> DataFrame:
        """Return the nodes one hop too near that a loop makes one hop further."""
        start, node, path = columns
        loop = self._names.new()
        loops = near.frame.where(F.col(near.start) == F.col(near.end)).select(F.col(near.start).alias(loop))
        at = start if _is_backward(step) else node
        found = level.join(loops, F.col(at) == F.col(loop)).drop(loop)
        return found if path is None else found.withColumn(path, F.concat(F.col(path), F.array(F.col(at))))

    def _directed(self, frame: DataFrame, source: str, target: str, direction: Direction) -> tuple[DataFrame, str, str]:
        if direction is Direction.OUT:
            return frame, source, target
        if direction is Direction.IN:
            return frame, target, source
        start, end, both = self._names.new(), self._names.new(), self._names.new()
        forth = F.struct(F.col(source).alias("start"), F.col(target).alias("end"))
        back = F.struct(F.col(target).alias("start"), F.col(source).alias("end"))
        ways = F.when(F.col(source) == F.col(target), F.array(forth)).otherwise(F.array(forth, back))
        others = [name for name in frame.columns if name not in (source, target)]
        unfolded = frame.select(*others, F.explode(ways).alias(both))
        return (
            unfolded.select(*others, F.col(f"{both}.start").alias(start), F.col(f"{both}.end").alias(end)),
            start,
            end,
        )

    def _has_no_parallels(self, edge: str) -> bool:
        """Return whether the schema allows one edge between two nodes at most."""
        found = self._schema.edge(edge)
        return found is not None and any(
            set(constraint.properties) <= {SRC, DST}
            for constraint in found.constraints
            if not isinstance(constraint, Index | Range | Check)
        )


def _is_backward(step: Step) -> bool:
    return not isinstance(step, steps.Connect) and step.from_target


def _lengthened(step: Step, path: Column, node: Column) -> Column:
    """Return paths with one more node, read in the direction of the pattern."""
    return F.concat(F.array(node), path) if _is_backward(step) else F.concat(path, F.array(node))
