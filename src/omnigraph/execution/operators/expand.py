"""One-hop expansion along edges."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.execution.arrays import NONE, Mask, Ordinals, Positions
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, gather
from omnigraph.execution.edge_list import Expansion, expand_ranges
from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Binding, Frame, Slot
from omnigraph.execution.neighbours import Neighbours
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run
from omnigraph.language.plan.pattern import Direction


@dataclass(frozen=True, slots=True)
class Hop:
    """Edge type and direction of a hop.

    Attributes:
        edge: the edge type.
        source_type: node type at the start of the hop.
        target_type: node type at the end of the hop.
        direction: seen from the source.
    """

    edge: str
    source_type: str
    target_type: str
    direction: Direction

    @property
    def is_between_types(self) -> bool:
        """Whether its ends are of different types: then there is no second hop."""
        return self.source_type != self.target_type

    def access(self, run: Run, nodes: int) -> Neighbours:
        """Return the access path to the neighbours of `nodes` nodes."""
        return self._access(run, self.direction, nodes)

    def reverse_access(self, run: Run, nodes: int) -> Neighbours:
        """Return the access path in the opposite direction."""
        return self._access(run, self.direction.reversed, nodes)

    def _access(self, run: Run, direction: Direction, nodes: int) -> Neighbours:
        ends = (self.source_type, self.target_type)
        from_type, to_type = ends if self.direction is not Direction.IN else ends[::-1]
        return run.neighbours(self.edge, from_type, to_type, direction, nodes)


def drop_absent(frame: Frame, variable: str) -> Frame:
    """Keep the rows in which a variable is bound."""
    bound = frame.binding(variable)
    return frame.where(bound.ordinals != NONE) if bound.absent else frame


class Expand(Operator[Frame]):
    """Joins each row with the neighbours of its node, or with its edges."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        target: str,
        keep: frozenset[str],
        edge_variable: str | None = None,
        each_record: bool = False,
        target_condition: Computation | None = None,
        edge_condition: Computation | None = None,
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._keep = keep
        self._edge_variable = edge_variable
        self._each_record = each_record or edge_variable is not None
        self._target_condition = target_condition
        self._edge_condition = edge_condition
        self._has_conditions = target_condition is not None or edge_condition is not None

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Yield the rows, in the order of the input."""
        targets, edges = run.nodes(self._hop.target_type), run.edges(self._hop.edge)
        for frame in self._rows.batches(run, given):
            present = drop_absent(frame, self._source)
            nodes = present.binding(self._source)
            access = self._hop.access(run, present.size)
            expected = _estimate(access, present.size) if self._has_conditions else 0
            for expansion in expand_in_batches(access, nodes, each_record=self._each_record, at_most=run.batch_rows):
                run.budget.check_time()
                wanted = self._filter(run, expansion, targets, edges, expected) if self._has_conditions else expansion
                made = self._bind(run, present, wanted, targets, edges)
                if made.size:
                    yield made

    def _filter(self, run: Run, expansion: Expansion, targets: Columns, edges: Columns, expected: int) -> Expansion:
        """Keep the neighbours for which the conditions are true."""
        mask = None
        if self._edge_condition is not None:
            assert expansion.records is not None
            assert self._edge_variable is not None
            mask = _evaluate(
                run, self._edge_condition, self._edge_variable, edges, expansion.records, expected=expected
            )
        if self._target_condition is not None:
            matching = _evaluate(
                run, self._target_condition, self._target, targets, expansion.targets, expected=expected
            )
            mask = matching if mask is None else mask & matching
        assert mask is not None
        kept = np.flatnonzero(mask)
        return Expansion(
            expansion.rows[kept],
            expansion.targets[kept],
            None if expansion.records is None else expansion.records[kept],
        )

    def _bind(self, run: Run, frame: Frame, expansion: Expansion, targets: Columns, edges: Columns) -> Frame:
        slots: dict[str, Slot] = {}
        if self._target in self._keep:
            slots[self._target] = Binding(targets, expansion.targets)
        if self._edge_variable is not None and self._edge_variable in self._keep:
            assert expansion.records is not None
            slots[self._edge_variable] = Binding(edges, expansion.records)
        kept = frame.only(self._keep)
        if not kept.slots and not kept.hidden and kept.weights is None:
            return Frame(run, len(expansion.targets), slots)
        return kept.take(expansion.rows).with_slots(slots)


def _estimate(access: Neighbours, nodes: int) -> int:
    """Estimate the number of neighbours of `nodes` nodes."""
    return 0 if access.csr is None else nodes * (access.csr.count // max(access.csr.nodes, 1))


def _evaluate(
    run: Run, condition: Computation, variable: str, columns: Columns, ordinals: Ordinals, *, expected: int
) -> Mask:
    """Evaluate a condition on some rows; on the whole table as soon as that is less work."""
    kept = run.memo.get(condition, 0)
    if isinstance(kept, int):
        if 2 * max(kept + len(ordinals), expected) < columns.numbering.size:
            run.memo[condition] = kept + len(ordinals)
            return evaluate_condition(condition, Frame(run, len(ordinals), {variable: Binding(columns, ordinals)}))
        everything = np.arange(columns.numbering.size, dtype=np.int32)
        kept = evaluate_condition(
            condition, Frame(run, len(everything), {variable: Binding(columns, everything, first=0)})
        )
        run.memo[condition] = kept
    assert isinstance(kept, np.ndarray)
    found: Mask = kept[ordinals]
    return found


def expand_in_batches(access: Neighbours, nodes: Binding, *, each_record: bool, at_most: int) -> Iterator[Expansion]:
    """Yield the neighbours of some nodes, at most `at_most` at a time."""
    whole = access.csr
    if whole is None:
        expansion = access.expand(nodes.ordinals, each_record=each_record)
        for start in range(0, len(expansion.targets), at_most):
            some = slice(start, start + at_most)
            records = None if expansion.records is None else expansion.records[some]
            yield Expansion(expansion.rows[some], expansion.targets[some], records)
        return
    csr = whole if each_record else whole.simple
    if len(nodes.ordinals) == 1:
        expansion = csr.expand(nodes.ordinals, each_record=each_record)
        if len(expansion.targets) <= at_most:
            if len(expansion.targets):
                yield expansion
            return
    firsts, counts = csr.ranges(nodes.ordinals)
    total = int(counts.sum())
    if total > at_most:
        yield from _split(csr, firsts, counts, each_record=each_record, at_most=at_most)
    elif total:
        row_numbers, places = expand_ranges(firsts, counts)
        yield Expansion(row_numbers, csr.neighbours[places], csr.records[places] if each_record else None)


def _split(csr: Csr, firsts: Positions, counts: Positions, *, each_record: bool, at_most: int) -> Iterator[Expansion]:
    ends = np.cumsum(counts)
    begins = ends - counts
    total = int(ends[-1])
    for low in range(0, total, at_most):
        high = min(low + at_most, total)
        first, last = np.searchsorted(ends, low, side="right"), np.searchsorted(begins, high)
        part = slice(int(first), int(last))
        shares = np.minimum(ends[part], high) - np.maximum(begins[part], low)
        rows = np.repeat(np.arange(part.start, part.stop), shares)
        offsets = np.maximum(low - begins[part], 0)
        neighbours, records = gather(csr, firsts[part] + offsets, shares, each_record=each_record)
        yield Expansion(rows, neighbours, records)
