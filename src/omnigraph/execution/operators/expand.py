"""From nodes along edges to their neighbours, one hop."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from omnigraph.execution.arrays import NONE, Mask, Ordinals, Positions
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, Spread, repeated_places
from omnigraph.execution.expressions import Computation, holds
from omnigraph.execution.frame import Bound, Frame, Slot
from omnigraph.execution.neighbours import Neighbours
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run
from omnigraph.language.plan.pattern import Direction


@dataclass(frozen=True, slots=True)
class Hop:
    """Which edges are followed, and which way.

    Attributes:
        edge: the edge type.
        source_type: the node type where it starts.
        target_type: the node type where it ends.
        direction: which way, seen from the source.
    """

    edge: str
    source_type: str
    target_type: str
    direction: Direction

    @property
    def joins_types(self) -> bool:
        """Whether its ends are of different types: then there is no second hop."""
        return self.source_type != self.target_type

    def way(self, run: Run, nodes: int) -> Neighbours:
        """To the neighbours of so many nodes."""
        return self._way(run, self.direction, nodes)

    def way_back(self, run: Run, nodes: int) -> Neighbours:
        """From the target's side."""
        return self._way(run, self.direction.reversed, nodes)

    def _way(self, run: Run, direction: Direction, nodes: int) -> Neighbours:
        ends = (self.source_type, self.target_type)
        from_type, to_type = ends if self.direction is not Direction.IN else ends[::-1]
        return run.neighbours(self.edge, from_type, to_type, direction, nodes)


def present(frame: Frame, variable: str) -> Frame:
    """The rows in which a variable is bound to something."""
    bound = frame.bound(variable)
    return frame.where(bound.ordinals != NONE) if bound.absent else frame


class Expand(Operator[Frame]):
    """One row for each neighbour of a row's node, or for each edge."""

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
        self._judges = target_condition is not None or edge_condition is not None

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows, in the order of those they come from."""
        targets, edges = run.nodes(self._hop.target_type), run.edges(self._hop.edge)
        for frame in self._rows.batches(run, given):
            there = present(frame, self._source)
            nodes = there.bound(self._source)
            way = self._hop.way(run, there.size)
            expected = _expected(way, there.size) if self._judges else 0
            for spread in spreads(way, nodes, each_record=self._each_record, at_most=run.batch_rows):
                run.budget.in_time()
                wanted = self._wanted(run, spread, targets, edges, expected) if self._judges else spread
                made = self._made(run, there, wanted, targets, edges)
                if made.size:
                    yield made

    def _wanted(self, run: Run, spread: Spread, targets: Columns, edges: Columns, expected: int) -> Spread:
        """Those for which the conditions are true."""
        mask = None
        if self._edge_condition is not None:
            assert spread.records is not None
            assert self._edge_variable is not None
            mask = _judged(run, self._edge_condition, self._edge_variable, edges, spread.records, expected=expected)
        if self._target_condition is not None:
            judged = _judged(run, self._target_condition, self._target, targets, spread.targets, expected=expected)
            mask = judged if mask is None else mask & judged
        assert mask is not None
        kept = np.flatnonzero(mask)
        return Spread(spread.rows[kept], spread.targets[kept], None if spread.records is None else spread.records[kept])

    def _made(self, run: Run, frame: Frame, spread: Spread, targets: Columns, edges: Columns) -> Frame:
        slots: dict[str, Slot] = {}
        if self._target in self._keep:
            slots[self._target] = Bound(targets, spread.targets)
        if self._edge_variable is not None and self._edge_variable in self._keep:
            assert spread.records is not None
            slots[self._edge_variable] = Bound(edges, spread.records)
        kept = frame.only(self._keep)
        if not kept.slots and not kept.hidden and kept.weights is None:
            return Frame(run, len(spread.targets), slots)
        return kept.take(spread.rows).with_slots(slots)


def _expected(way: Neighbours, nodes: int) -> int:
    """Roughly how many neighbours so many nodes have together."""
    return 0 if way.rows is None else nodes * (len(way.rows.neighbours) // max(way.rows.nodes, 1))


def _judged(
    run: Run, condition: Computation, variable: str, columns: Columns, ordinals: Ordinals, *, expected: int
) -> Mask:
    """For which of these a condition is true; judged for the whole table as soon as that is less work."""
    kept = run.kept.get(condition, 0)
    if isinstance(kept, int):
        if 2 * max(kept + len(ordinals), expected) < columns.numbering.size:
            run.kept[condition] = kept + len(ordinals)
            return holds(condition, Frame(run, len(ordinals), {variable: Bound(columns, ordinals)}))
        everything = np.arange(columns.numbering.size, dtype=np.int32)
        kept = holds(condition, Frame(run, len(everything), {variable: Bound(columns, everything, first=0)}))
        run.kept[condition] = kept
    assert isinstance(kept, np.ndarray)
    found: Mask = kept[ordinals]
    return found


def spreads(way: Neighbours, nodes: Bound, *, each_record: bool, at_most: int) -> Iterator[Spread]:
    """The neighbours of some nodes, at most so many at a time."""
    rows = way.rows
    if rows is None:
        spread = way.spread(nodes.ordinals, each_record=each_record)
        for start in range(0, len(spread.targets), at_most):
            some = slice(start, start + at_most)
            records = None if spread.records is None else spread.records[some]
            yield Spread(spread.rows[some], spread.targets[some], records)
        return
    csr = rows if each_record else rows.simple
    if len(nodes.ordinals) == 1:
        spread = csr.spread(nodes.ordinals, each_record=each_record)
        if len(spread.targets) <= at_most:
            if len(spread.targets):
                yield spread
            return
    firsts = csr.starts[nodes.ordinals]
    counts = csr.degrees[nodes.ordinals]
    total = int(counts.sum())
    if total > at_most:
        yield from _in_parts(csr, nodes, (firsts, counts), each_record=each_record, at_most=at_most)
    elif total:
        row_numbers, places = repeated_places(firsts, counts)
        yield Spread(row_numbers, csr.neighbours[places], csr.records[places] if each_record else None)


def _in_parts(
    csr: Csr, nodes: Bound, stretches: tuple[Positions, Positions], *, each_record: bool, at_most: int
) -> Iterator[Spread]:
    firsts, counts = stretches
    ends = np.cumsum(counts)
    begins = ends - counts
    total = int(ends[-1])
    for low in range(0, total, at_most):
        high = min(low + at_most, total)
        first, last = np.searchsorted(ends, low, side="right"), np.searchsorted(begins, high)
        part = slice(int(first), int(last))
        share = np.minimum(ends[part], high) - np.maximum(begins[part], low)
        rows = np.repeat(np.arange(part.start, part.stop), share)
        places: Positions | slice
        if nodes.first is not None:
            # Nodes that follow one another: so do their edges.
            start = int(firsts[0]) + low
            places = slice(start, start + high - low)
        else:
            places = np.repeat(firsts[part] - begins[part], share)
            places += np.arange(low, high)
        yield Spread(rows, csr.neighbours[places], csr.records[places] if each_record else None)
