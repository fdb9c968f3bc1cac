"""The steps that match a pattern, to operators over rows of variables."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import assert_never

from omnigraph.errors import InternalError
from omnigraph.execution.demand import Demand, Regard, kinds
from omnigraph.execution.expressions import Computation, prepare
from omnigraph.execution.frame import together
from omnigraph.execution.index_filter import index_filters
from omnigraph.execution.keys import lookup_for
from omnigraph.execution.operators.alternatives import Alternatives
from omnigraph.execution.operators.collapse import Collapse, EdgeEnds, OncePerRow
from omnigraph.execution.operators.connect import Connect, ConnectFar
from omnigraph.execution.operators.counting import CountEdges, CountRows
from omnigraph.execution.operators.exists import Exists, Mark
from omnigraph.execution.operators.expand import Expand, Hop
from omnigraph.execution.operators.filter import Filter
from omnigraph.execution.operators.given import Given, Start
from omnigraph.execution.operators.intersect import Intersect
from omnigraph.execution.operators.limit import Limit
from omnigraph.execution.operators.operator import Frames
from omnigraph.execution.operators.optional import Optional
from omnigraph.execution.operators.order import Order, SortKey
from omnigraph.execution.operators.product import Product, Times
from omnigraph.execution.operators.reach import Reach
from omnigraph.execution.operators.scan import Scan
from omnigraph.execution.operators.shortest import ConnectShortest, ExpandShortest
from omnigraph.execution.scope import Datum, Scope
from omnigraph.execution.search.lower_rank import best_of, place_keys, rank
from omnigraph.execution.windows import at_most, counted, sort_keys
from omnigraph.language.plan import steps
from omnigraph.language.plan.expressions import Expression, Rrf
from omnigraph.language.plan.pipeline import find_new_variables
from omnigraph.language.plan.steps import Step
from omnigraph.model.schema import Schema


class PatternLowering:
    """Lowers the patterns of one plan."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._numbers = count(1)

    def pipeline(self, pattern: Sequence[Step], demand: Demand) -> Frames:
        """A pipeline that depends on nothing.

        Args:
            pattern (Sequence[Step]): its steps.
            demand (Demand): what is wanted of its rows.

        Returns:
            Frames: the last of its operators.
        """
        return _Pipeline(self, demand, None, frozenset()).lowered(Start(), pattern)

    def inner(
        self, pattern: Sequence[Step], demand: Demand, available: frozenset[str]
    ) -> tuple[Frames, str, frozenset[str]]:
        """A pipeline inside another step.

        Args:
            pattern (Sequence[Step]): its steps.
            demand (Demand): what is wanted of its rows.
            available (frozenset[str]): the variables of the rows around.

        Returns:
            tuple[Frames, str, frozenset[str]]: the last of its operators, the hidden column in which its rows say which
                of the rows around they belong to, and the variables it needs of these.
        """
        row = f"#row{next(self._numbers)}"
        wanted = Demand(demand.needed | {row}, demand.regard)
        if pattern and isinstance(pattern[0], steps.Given):
            needed = available & wanted.before(pattern)
            return _Pipeline(self, wanted, row, needed).lowered(Given(), pattern[1:]), row, needed
        # What does not depend on the rows around is the same for each of them.
        alone = (steps.Product(tuple(pattern)),)
        return _Pipeline(self, wanted, row, frozenset()).lowered(Given(), alone), row, frozenset()

    def scan(self, step: steps.Scan | steps.CountNodes) -> Scan:
        """The scan of a type."""
        node = self._schema.node(step.type_name)
        if node is None:
            raise InternalError(f"the plan scans {step.type_name}, which the schema does not have")
        lookup = lookup_for(node, step.variable, step.condition)
        return Scan(
            step.variable,
            step.type_name,
            condition=prepared(step.condition) if lookup is None else deferred(step.condition),
            lookup=None if lookup is None else lookup.ids,
            left=None if lookup is None else prepared(lookup.left),
            filters=index_filters(step.variable, step.condition),
            at_most=at_most(step.at_most) if isinstance(step, steps.Scan) else None,
        )

    def names_nodes(self, step: steps.Expand) -> bool:
        """Whether an expansion's condition on its target names it by its key."""
        node = self._schema.node(step.target_type)
        return node is not None and lookup_for(node, step.target, step.target_condition) is not None


def prepared(condition: Expression | None) -> Computation | None:
    """A condition as a function of rows, if there is one."""
    return None if condition is None else prepare(condition)


def deferred(condition: Expression | None) -> Computation | None:
    """The same, prepared when it is first computed: where nodes are looked up by their key that is hardly ever."""
    if condition is None:
        return None
    made: list[Computation] = []

    def compute(rows: Scope) -> Datum:
        if not made:
            made.append(prepare(condition))
        return made[0](rows)

    return compute


class _Pipeline:
    """Lowers one pipeline, step by step, knowing what later steps need."""

    def __init__(self, lowering: PatternLowering, demand: Demand, row: str | None, available: frozenset[str]) -> None:
        self._lowering = lowering
        self._demand = demand
        self._row = row
        self._available = available
        # The fused scores among the hidden columns, as long as the columns with their places are there too.
        self._fused_scores: frozenset[str] = frozenset()

    def lowered(self, rows: Frames, pattern: Sequence[Step]) -> Frames:
        """The operators of these steps over rows."""
        place = 0
        while place < len(pattern):
            taken = self._fused(rows, pattern, place)
            if taken is not None:
                rows, steps_taken = taken
            else:
                rows, steps_taken = self._one(rows, pattern[place], pattern[place + 1 :]), 1
            for step in pattern[place : place + steps_taken]:
                self._available |= frozenset(find_new_variables(step))
                if isinstance(step, steps.Rank) and isinstance(step.score, Rrf):
                    self._fused_scores |= {step.name}
                elif not isinstance(step, steps.Rank | steps.Filter):
                    self._fused_scores = frozenset()
            place += steps_taken
        return rows

    # --- steps that are one operator together -------------------------------------------------------------------------

    def _fused(self, rows: Frames, pattern: Sequence[Step], place: int) -> tuple[Frames, int] | None:
        if place + 1 >= len(pattern):
            return None
        first, second, later = pattern[place], pattern[place + 1], pattern[place + 2 :]
        if isinstance(first, steps.Scan) and isinstance(second, steps.Expand) and isinstance(rows, Start):
            return self._ends_of_all(first, second, later)
        if isinstance(first, steps.Expand) and isinstance(second, steps.Connect):
            return self._closing(rows, first, second, later)
        return None

    def _ends_of_all(self, scan: steps.Scan, step: steps.Expand, later: Sequence[Step]) -> tuple[Frames, int] | None:
        """Every node expanded, and only the other ends looked at: how many there are is known without expanding."""
        keep = self._keep(later)
        if self._demand.regard is Regard.EACH or scan.condition is not None or scan.at_most is not None:
            return None
        if not _is_plain(step) or step.source != scan.variable or scan.variable in keep or step.edge_variable in keep:
            return None
        return EdgeEnds(
            step.target,
            _hop(step),
            each_record=step.edge_variable is not None,
            counts=self._demand.regard is Regard.COUNTED,
        ), 2

    def _closing(
        self, rows: Frames, step: steps.Expand, connect: steps.Connect, later: Sequence[Step]
    ) -> tuple[Frames, int] | None:
        """An expansion whose targets must be joined with another node: only those are listed."""
        if not (_is_plain(step) and step.edge_variable is None):
            return None
        if connect.edge_variable is not None or connect.path is not None or (connect.least, connect.most) != (1, 1):
            return None
        if connect.target == step.target and connect.source != step.target:
            other, hop = connect.source, _hop(connect)
        elif connect.source == step.target and connect.target != step.target:
            other, hop = connect.target, _hop_back(connect)
        else:
            return None
        keep = self._keep(later)
        if self._demand.regard is Regard.EACH and step.target not in keep:
            keep |= {step.target}
        return Intersect(
            rows,
            one=(step.source, _hop(step)),
            other=(other, hop),
            target=step.target,
            keep=keep,
            counts=self._demand.regard is Regard.COUNTED,
        ), 2

    # --- single steps ---------------------------------------------------------------------------------------------

    def _one(self, rows: Frames, step: Step, later: Sequence[Step]) -> Frames:
        keep = self._keep(later)
        match step:
            case steps.Given():
                return rows
            case steps.Scan():
                scan = self._lowering.scan(step)
                return scan if isinstance(rows, Start) else Product(rows, scan, keep=keep)
            case steps.CountNodes():
                scan = self._lowering.scan(step)
                return CountRows(scan) if isinstance(rows, Start) else Times(rows, scan)
            case steps.Product():
                return self._product(rows, step, keep)
            case steps.Expand():
                if self._lowering.names_nodes(step):
                    return self._to_named(rows, step, later)
                return self._collapsed(self._expand(rows, step, keep), step, keep)
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
                    counts=self._demand.regard is Regard.COUNTED,
                    keep=keep,
                    from_target=step.from_target,
                )
            case steps.Filter():
                return Filter(rows, prepare(step.condition))
            case steps.SemiJoin() | steps.AntiJoin():
                inner, row, needed = self._inner(step.steps, frozenset(), Regard.ONCE)
                return Exists(rows, inner, row=row, inner_keep=needed, wanted=isinstance(step, steps.SemiJoin))
            case steps.Mark():
                inner, row, needed = self._inner(step.steps, frozenset(), Regard.ONCE)
                return Mark(rows, inner, row=row, inner_keep=needed, name=step.name)
            case steps.Optional():
                regard = Regard.ONCE if self._demand.regard is Regard.ONCE else Regard.EACH
                inner, row, needed = self._inner(step.steps, keep & frozenset(step.variables), regard)
                types = {name: kind for name, kind in kinds(step.steps).items() if name in step.variables}
                return Optional(rows, inner, row=row, inner_keep=needed, types=types, keep=keep)
            case steps.Alternatives():
                return self._alternatives(rows, step, keep)
            case steps.Order():
                ties = [prepare(tie) for tie in step.ties]
                keys: list[SortKey] = place_keys(step.keys, sort_keys(step.keys), self._fused_scores)
                return Order(rows, together, keys=keys, ties=ties, at_most=at_most(step.at_most))
            case steps.Limit():
                return Limit(rows, skip=counted(step.window.skip), count=counted(step.window.count))
            case steps.Rank():
                return rank(rows, step, best_of(step, later), row=self._row)
            case steps.Aggregate() | steps.Project() | steps.Distinct():
                raise InternalError(f"{type(step).__name__} stands inside a pattern")
            case _:
                assert_never(step)

    def _keep(self, later: Sequence[Step]) -> frozenset[str]:
        """The variables and hidden columns that rows must still have in front of these steps."""
        return self._demand.before(later)

    def _inner(
        self, pattern: Sequence[Step], needed: frozenset[str], regard: Regard
    ) -> tuple[Frames, str, frozenset[str]]:
        return self._lowering.inner(pattern, Demand(needed, regard), self._available)

    def _product(self, rows: Frames, step: steps.Product, keep: frozenset[str]) -> Frames:
        brought = frozenset(name for inner in step.steps for name in find_new_variables(inner))
        needed = keep & brought
        inner = self._lowering.pipeline(step.steps, Demand(needed, self._demand.regard))
        if not needed and self._demand.regard is not Regard.EACH:
            return Times(rows, inner)
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
                target_condition=prepared(step.target_condition),
            )
        if self._demand.regard is Regard.ONCE and _is_plain(step) and not {step.target, step.edge_variable} & keep:
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
                target_condition=prepared(step.target_condition),
                edge_condition=prepared(step.edge_condition),
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
            target_condition=prepared(step.target_condition),
        )

    def _to_named(self, rows: Frames, step: steps.Expand, later: Sequence[Step]) -> Frames:
        """To a target that is named by its key: find it first, then ask whether it is joined."""
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
            # The pattern leads from the target: so it is searched from there, against the edges.
            connect = replace(
                connect,
                source=step.target,
                target=step.source,
                source_type=step.target_type,
                target_type=step.source_type,
                direction=step.direction.reversed,
            )
        both = Product(rows, self._lowering.scan(scan), keep=self._keep((connect, *later)))
        return self._connect(both, connect, self._keep(later))

    def _collapsed(self, rows: Frames, step: steps.Expand, keep: frozenset[str]) -> Frames:
        """Where nothing but the target is needed any more, each node once."""
        if self._demand.regard is Regard.EACH:
            return rows
        there = keep & (self._available | frozenset(find_new_variables(step)))
        if there != {step.target}:
            return rows
        if self._row is None:
            return Collapse(rows, step.target, counts=self._demand.regard is Regard.COUNTED)
        return OncePerRow(rows, step.target, row=self._row) if self._demand.regard is Regard.ONCE else rows

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
                edge_condition=prepared(step.edge_condition),
            )
        return ConnectFar(
            rows, hop, source=step.source, target=step.target, least=step.least, most=step.most, keep=keep
        )

    def _alternatives(self, rows: Frames, step: steps.Alternatives, keep: frozenset[str]) -> Frames:
        variables = frozenset(step.variables)
        # All branches tell in one column which row they belong to.
        branches = [self._inner(branch, variables, Regard.ONCE) for branch in step.branches]
        return Alternatives(
            rows,
            [(inner, row, needed) for inner, row, needed in branches],
            variables=variables,
            keep=keep,
        )


def _hop(step: steps.Expand | steps.Connect | steps.CountEdges) -> Hop:
    return Hop(step.edge, step.source_type, step.target_type, step.direction)


def _hop_back(step: steps.Connect) -> Hop:
    return Hop(step.edge, step.target_type, step.source_type, step.direction.reversed)


def _is_plain(step: steps.Expand) -> bool:
    """Whether it is one hop to any neighbour."""
    return (
        (step.least, step.most) == (1, 1)
        and step.path is None
        and step.target_condition is None
        and step.edge_condition is None
    )
