"""Physical planning of patterns: turns matching steps into operators over rows of variables."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import assert_never

from omnigraph.errors import InternalError
from omnigraph.execution.demand import Demand, Multiplicity, variable_kinds
from omnigraph.execution.expressions import prepare, prepare_lazily, prepare_optional
from omnigraph.execution.frame import concat_frames
from omnigraph.execution.index_filter import index_filters
from omnigraph.execution.key_lookup import find_key_lookup
from omnigraph.execution.operators.connect import Connect, ConnectFar
from omnigraph.execution.operators.counting import Collapse, CountEdges, CountRows, CountTargets, DistinctPerRow
from omnigraph.execution.operators.expand import Expand, Hop
from omnigraph.execution.operators.filter import Filter, Limit, prepare_count, prepare_limit
from omnigraph.execution.operators.intersect import Intersect
from omnigraph.execution.operators.operator import Frames
from omnigraph.execution.operators.order import Order, SortKey, prepare_sort_keys
from omnigraph.execution.operators.product import Multiply, Product
from omnigraph.execution.operators.reach import Reach
from omnigraph.execution.operators.scan import Given, Scan, Start
from omnigraph.execution.operators.shortest import ConnectShortest, ExpandShortest
from omnigraph.execution.operators.subqueries import Alternatives, Exists, Mark, Optional
from omnigraph.execution.search.rank import add_tie_keys, best_row_count, lower_rank
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Rrf
from omnigraph.language.plan.pipeline import find_new_variables
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import Schema


class PatternLowering:
    """Lowers the patterns of one plan."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._numbers = count(1)

    def lower_pipeline(self, pattern: Sequence[Step], demand: Demand) -> Frames:
        """Lower a pipeline that depends on no outer rows; return its last operator."""
        return _Pipeline(self, demand, None, frozenset()).lower(Start(), pattern)

    def lower_inner(
        self, pattern: Sequence[Step], demand: Demand, available: frozenset[str]
    ) -> tuple[Frames, str, frozenset[str]]:
        """Lower a pipeline inside another step.

        Args:
            pattern: its steps.
            demand: requirements on its rows.
            available: the variables of the outer rows.

        Returns:
            Its last operator, the hidden column with the number of the outer row, and the outer variables it needs.
        """
        row = f"#row{next(self._numbers)}"
        wanted = Demand(demand.needed | {row}, demand.multiplicity)
        if pattern and isinstance(pattern[0], steps.Given):
            needed = available & wanted.needed_before(pattern)
            return _Pipeline(self, wanted, row, needed).lower(Given(), pattern[1:]), row, needed
        # An uncorrelated pipeline has the same rows for every outer row.
        alone = (steps.Product(tuple(pattern)),)
        return _Pipeline(self, wanted, row, frozenset()).lower(Given(), alone), row, frozenset()

    def lower_scan(self, step: steps.Scan | steps.CountNodes) -> Scan:
        """Lower the scan of a type."""
        node = self._schema.node(step.type_name)
        if node is None:
            raise InternalError(f"the plan scans {step.type_name}, which is not in the schema")
        lookup = find_key_lookup(node, step.variable, step.condition)
        return Scan(
            step.variable,
            step.type_name,
            condition=prepare_optional(step.condition) if lookup is None else prepare_lazily(step.condition),
            lookup=None if lookup is None else lookup.ids,
            left=None if lookup is None else prepare_optional(lookup.left),
            filters=index_filters(step.variable, step.condition),
            at_most=prepare_limit(step.at_most) if isinstance(step, steps.Scan) else None,
        )

    def has_key_target(self, step: steps.Expand) -> bool:
        """Return whether an expansion's condition on its target fixes its key."""
        node = self._schema.node(step.target_type)
        return node is not None and find_key_lookup(node, step.target, step.target_condition) is not None


class _Pipeline:
    """Lowers one pipeline step by step, knowing what later steps need."""

    def __init__(self, lowering: PatternLowering, demand: Demand, row: str | None, available: frozenset[str]) -> None:
        self._lowering = lowering
        self._demand = demand
        self._row = row
        self._available = available
        # Fused scores among the hidden columns, while the columns with their places exist too.
        self._fused_scores: frozenset[str] = frozenset()

    def lower(self, rows: Frames, pattern: Sequence[Step]) -> Frames:
        """Lower these steps over rows."""
        place = 0
        while place < len(pattern):
            taken = self._lower_fused(rows, pattern, place)
            if taken is not None:
                rows, steps_taken = taken
            else:
                rows, steps_taken = self._lower_step(rows, pattern[place], pattern[place + 1 :]), 1
            for step in pattern[place : place + steps_taken]:
                self._available |= frozenset(find_new_variables(step))
                if isinstance(step, steps.Rank) and isinstance(step.score, Rrf):
                    self._fused_scores |= {step.name}
                elif not isinstance(step, steps.Rank | steps.Filter):
                    self._fused_scores = frozenset()
            place += steps_taken
        return rows

    # --- steps that are one operator together -------------------------------------------------------------------------

    def _lower_fused(self, rows: Frames, pattern: Sequence[Step], place: int) -> tuple[Frames, int] | None:
        if place + 1 >= len(pattern):
            return None
        first, second, later = pattern[place], pattern[place + 1], pattern[place + 2 :]
        if isinstance(first, steps.Scan) and isinstance(second, steps.Expand) and isinstance(rows, Start):
            return self._fuse_target_counts(first, second, later)
        if isinstance(first, steps.Expand) and isinstance(second, steps.Connect):
            return self._fuse_triangle(rows, first, second, later)
        return None

    def _fuse_target_counts(
        self, scan: steps.Scan, step: steps.Expand, later: Sequence[Step]
    ) -> tuple[Frames, int] | None:
        """Fuse scan and expand where only targets are needed: their in-degrees are known without expanding."""
        keep = self._keep(later)
        if self._demand.multiplicity is Multiplicity.BAG or scan.condition is not None or scan.at_most is not None:
            return None
        if (
            not _is_single_hop(step)
            or step.source != scan.variable
            or scan.variable in keep
            or step.edge_variable in keep
        ):
            return None
        return CountTargets(
            step.target,
            _hop(step),
            each_record=step.edge_variable is not None,
            counts=self._demand.multiplicity is Multiplicity.COUNTED,
        ), 2

    def _fuse_triangle(
        self, rows: Frames, step: steps.Expand, connect: steps.Connect, later: Sequence[Step]
    ) -> tuple[Frames, int] | None:
        """Fuse an expansion with the edge that closes a triangle: only common neighbours are listed."""
        if not (_is_single_hop(step) and step.edge_variable is None):
            return None
        if connect.edge_variable is not None or connect.path is not None or (connect.least, connect.most) != (1, 1):
            return None
        if connect.target == step.target and connect.source != step.target:
            other, hop = connect.source, _hop(connect)
        elif connect.source == step.target and connect.target != step.target:
            other, hop = connect.target, _reverse_hop(connect)
        else:
            return None
        keep = self._keep(later)
        if self._demand.multiplicity is Multiplicity.BAG and step.target not in keep:
            keep |= {step.target}
        return Intersect(
            rows,
            one=(step.source, _hop(step)),
            other=(other, hop),
            target=step.target,
            keep=keep,
            counts=self._demand.multiplicity is Multiplicity.COUNTED,
        ), 2

    # --- single steps ---------------------------------------------------------------------------------------------

    def _lower_step(self, rows: Frames, step: Step, later: Sequence[Step]) -> Frames:
        keep = self._keep(later)
        match step:
            case steps.Given():
                return rows
            case steps.Scan():
                scan = self._lowering.lower_scan(step)
                return scan if isinstance(rows, Start) else Product(rows, scan, keep=keep)
            case steps.CountNodes():
                scan = self._lowering.lower_scan(step)
                return CountRows(scan) if isinstance(rows, Start) else Multiply(rows, scan)
            case steps.Product():
                return self._product(rows, step, keep)
            case steps.Expand():
                if self._lowering.has_key_target(step):
                    return self._expand_to_key(rows, step, later)
                return self._collapse(self._expand(rows, step, keep), step, keep)
            case steps.Connect():
                return self._connect(rows, step, keep)
            case steps.CountEdges():
                return CountEdges(
                    rows,
                    _hop(step),
                    source=step.source,
                    least=step.least,
                    most=step.most,
                    each_record=step.each_record,
                    counts=self._demand.multiplicity is Multiplicity.COUNTED,
                    keep=keep,
                    from_target=step.from_target,
                )
            case steps.Filter():
                return Filter(rows, prepare(step.condition))
            case steps.SemiJoin() | steps.AntiJoin():
                inner, row, needed = self._inner(step.steps, frozenset(), Multiplicity.SET)
                return Exists(rows, inner, row=row, inner_keep=needed, wanted=isinstance(step, steps.SemiJoin))
            case steps.Mark():
                inner, row, needed = self._inner(step.steps, frozenset(), Multiplicity.SET)
                return Mark(rows, inner, row=row, inner_keep=needed, name=step.name)
            case steps.Optional():
                multiplicity = Multiplicity.SET if self._demand.multiplicity is Multiplicity.SET else Multiplicity.BAG
                inner, row, needed = self._inner(step.steps, keep & frozenset(step.variables), multiplicity)
                types = {name: kind for name, kind in variable_kinds(step.steps).items() if name in step.variables}
                return Optional(rows, inner, row=row, inner_keep=needed, types=types, keep=keep)
            case steps.Alternatives():
                return self._alternatives(rows, step, keep)
            case steps.Order():
                ties = [prepare(tie) for tie in step.ties]
                keys: list[SortKey] = add_tie_keys(step.keys, prepare_sort_keys(step.keys), self._fused_scores)
                return Order(rows, concat_frames, keys=keys, ties=ties, at_most=prepare_limit(step.at_most))
            case steps.Limit():
                return Limit(rows, skip=prepare_count(step.window.skip), count=prepare_count(step.window.count))
            case steps.Rank():
                return lower_rank(rows, step, best_row_count(step, later), row=self._row)
            case steps.Aggregate() | steps.Project() | steps.Distinct():
                raise InternalError(f"unexpected {type(step).__name__} inside a pattern")
            case _:
                assert_never(step)

    def _keep(self, later: Sequence[Step]) -> frozenset[str]:
        """Return the variables and hidden columns needed in front of these steps."""
        return self._demand.needed_before(later)

    def _inner(
        self, pattern: Sequence[Step], needed: frozenset[str], multiplicity: Multiplicity
    ) -> tuple[Frames, str, frozenset[str]]:
        return self._lowering.lower_inner(pattern, Demand(needed, multiplicity), self._available)

    def _product(self, rows: Frames, step: steps.Product, keep: frozenset[str]) -> Frames:
        brought = frozenset(name for inner in step.steps for name in find_new_variables(inner))
        needed = keep & brought
        inner = self._lowering.lower_pipeline(step.steps, Demand(needed, self._demand.multiplicity))
        if not needed and self._demand.multiplicity is not Multiplicity.BAG:
            return Multiply(rows, inner)
        return Product(rows, inner, keep=keep)

    def _expand(self, rows: Frames, step: steps.Expand, keep: frozenset[str]) -> Frames:
        hop = _hop(step)
        if step.path is not None and step.path in keep:
            return ExpandShortest(
                rows,
                hop,
                source=step.source,
                target=step.target,
                path=step.path,
                from_target=step.from_target,
                least=step.least,
                most=step.most,
                keep=keep,
                target_condition=prepare_optional(step.target_condition),
            )
        if (
            self._demand.multiplicity is Multiplicity.SET
            and _is_single_hop(step)
            and not {step.target, step.edge_variable} & keep
        ):
            return CountEdges(
                rows, hop, source=step.source, least=1, most=1, each_record=False, counts=False, keep=keep
            )
        if (step.least, step.most) == (1, 1):
            return Expand(
                rows,
                hop,
                source=step.source,
                target=step.target,
                keep=keep,
                edge_variable=step.edge_variable,
                target_condition=prepare_optional(step.target_condition),
                edge_condition=prepare_optional(step.edge_condition),
            )
        return Reach(
            rows,
            hop,
            source=step.source,
            target=step.target,
            least=step.least,
            most=step.most,
            keep=keep,
            from_target=step.from_target,
            target_condition=prepare_optional(step.target_condition),
        )

    def _expand_to_key(self, rows: Frames, step: steps.Expand, later: Sequence[Step]) -> Frames:
        """Expand to a target named by its key: look it up first, then test the edge."""
        scan = steps.Scan(step.target, step.target_type, step.target_condition)
        connect = steps.Connect(
            step.source,
            step.target,
            step.source_type,
            step.target_type,
            step.edge,
            step.direction,
            step.least,
            step.most,
            step.edge_variable,
            step.path,
            step.edge_condition,
        )
        if step.from_target and (step.path is not None or step.least > 1):
            # The pattern starts at the target, so the search does too, against the edges.
            connect = replace(
                connect,
                source=step.target,
                target=step.source,
                source_type=step.target_type,
                target_type=step.source_type,
                direction=step.direction.reversed,
            )
        both = Product(rows, self._lowering.lower_scan(scan), keep=self._keep((connect, *later)))
        return self._connect(both, connect, self._keep(later))

    def _collapse(self, rows: Frames, step: steps.Expand, keep: frozenset[str]) -> Frames:
        """Merge equal rows where only the target is still needed."""
        if self._demand.multiplicity is Multiplicity.BAG:
            return rows
        there = keep & (self._available | frozenset(find_new_variables(step)))
        if there != {step.target}:
            return rows
        if self._row is None:
            return Collapse(rows, step.target, counts=self._demand.multiplicity is Multiplicity.COUNTED)
        return (
            DistinctPerRow(rows, step.target, row=self._row) if self._demand.multiplicity is Multiplicity.SET else rows
        )

    def _connect(self, rows: Frames, step: steps.Connect, keep: frozenset[str]) -> Frames:
        hop = _hop(step)
        if step.path is not None and step.path in keep:
            return ConnectShortest(
                rows,
                hop,
                source=step.source,
                target=step.target,
                path=step.path,
                least=step.least,
                most=step.most,
                keep=keep,
            )
        if (step.least, step.most) == (1, 1):
            return Connect(
                rows,
                hop,
                source=step.source,
                target=step.target,
                keep=keep,
                edge_variable=step.edge_variable,
                edge_condition=prepare_optional(step.edge_condition),
            )
        return ConnectFar(
            rows, hop, source=step.source, target=step.target, least=step.least, most=step.most, keep=keep
        )

    def _alternatives(self, rows: Frames, step: steps.Alternatives, keep: frozenset[str]) -> Frames:
        variables = frozenset(step.variables)
        # Every branch has a hidden column with the number of its outer row.
        branches = [self._inner(branch, variables, Multiplicity.SET) for branch in step.branches]
        return Alternatives(
            rows,
            [(inner, row, needed) for inner, row, needed in branches],
            variables=variables,
            keep=keep,
        )


def _hop(step: steps.Expand | steps.Connect | steps.CountEdges) -> Hop:
    return Hop(step.edge, step.source_type, step.target_type, step.direction)


def _reverse_hop(step: steps.Connect) -> Hop:
    return Hop(step.edge, step.target_type, step.source_type, step.direction.reversed)


def _is_single_hop(step: steps.Expand) -> bool:
    """Return whether a step is one hop to any neighbour."""
    return (
        (step.least, step.most) == (1, 1)
        and step.path is None
        and step.target_condition is None
        and step.edge_condition is None
    )
