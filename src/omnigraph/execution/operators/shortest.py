"""Shortest paths as variables."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import Ordinals, Positions, pc
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import repeated_places
from omnigraph.execution.expressions import Computation, holds
from omnigraph.execution.frame import Bound, Frame, Paths, Slot
from omnigraph.execution.operators.expand import Hop, present
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.paths import Tree, path_between, tree
from omnigraph.execution.run import Run
from omnigraph.model.schema import ID


class ConnectShortest(Operator[Frame]):
    """Passes on the rows whose nodes are joined within some hops, with a shortest path between them."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        target: str,
        path: str,
        least: int,
        most: int,
        keep: frozenset[str],
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._path = path
        self._least = least
        self._most = most
        self._keep = keep

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """Those rows."""
        hop, nodes = self._hop, run.nodes(self._hop.source_type)
        known: dict[tuple[int, int], Ordinals | None] = {}
        for frame in self._rows.batches(run, given):
            there = present(present(frame, self._source), self._target)
            rows, found = [], []
            ends = zip(
                there.bound(self._source).ordinals.tolist(), there.bound(self._target).ordinals.tolist(), strict=True
            )
            for row, (start, end) in enumerate(ends):
                if (start, end) not in known:
                    known[start, end] = self._found(run, hop, nodes, start, end)
                path = known[start, end]
                if path is not None:
                    rows.append(row)
                    found.append(path)
            if rows:
                made = there.only(self._keep).take(np.array(rows, dtype=np.int64))
                starts = np.zeros(len(found) + 1, dtype=np.int64)
                np.cumsum([len(path) for path in found], out=starts[1:])
                paths = Paths(
                    run.nodes(hop.target_type), starts, np.concatenate(found), head=nodes if hop.joins_types else None
                )
                yield made.with_slots({self._path: paths} if self._path in self._keep else {})

    def _found(self, run: Run, hop: Hop, nodes: Columns, start: int, end: int) -> Ordinals | None:
        if hop.joins_types:
            return _one_hop(run, hop, start, end) if self._least == 1 else None
        return path_between(
            lambda count: hop.way(run, count),
            lambda count: hop.way_back(run, count),
            start,
            end,
            least=self._least,
            most=self._most,
            size=nodes.numbering.size,
            ranks=lambda some: id_ranks(nodes, some),
        )


class ExpandShortest(Operator[Frame]):
    """One row for each node within some hops, with a shortest path to it."""

    def __init__(
        self,
        rows: Frames,
        hop: Hop,
        *,
        source: str,
        target: str,
        path: str,
        from_target: bool,
        least: int,
        most: int,
        keep: frozenset[str],
        target_condition: Computation | None = None,
    ) -> None:
        self._rows = rows
        self._hop = hop
        self._source = source
        self._target = target
        self._path = path
        self._from_target = from_target
        self._least = least
        self._most = most
        self._keep = keep
        self._target_condition = target_condition

    def batches(self, run: Run, given: Frame | None) -> Iterator[Frame]:
        """The rows, in the order of those they come from."""
        for frame in self._rows.batches(run, given):
            there = present(frame, self._source)
            for row, start in enumerate(there.bound(self._source).ordinals.tolist()):
                made = self._from(run, there, row, start)
                if made.size:
                    yield made

    def _from(self, run: Run, frame: Frame, row: int, start: int) -> Frame:
        hop = self._hop
        sources, targets = run.nodes(hop.source_type), run.nodes(hop.target_type)
        if hop.joins_types:
            beside = hop.way(run, 1).spread(np.array([start], dtype=np.int32), each_record=False).targets
            ends = beside if self._least == 1 else beside[:0]
            starts, nodes = _pairs(start, ends)
        else:
            found = tree(
                lambda count: hop.way(run, count),
                start,
                most=self._most,
                size=sources.numbering.size,
                ranks=lambda some: id_ranks(sources, some),
                read_from_end=self._from_target,
            )
            chosen = found.distances >= self._least
            ends = found.nodes[chosen]
            starts, nodes = found.paths(chosen)
            again, longer = self._by_loops(run, start, found)
            ends = np.concatenate([again, ends])
            starts = np.concatenate([np.arange(len(again)) * (self._least + 1), starts + len(longer)])
            nodes = np.concatenate([longer, nodes])
        if self._from_target:
            nodes = _reversed(starts, nodes)
        first, rest = (targets, sources) if self._from_target else (sources, targets)
        slots: dict[str, Slot] = {
            self._target: Bound(targets, ends),
            self._path: Paths(rest, starts, nodes, head=first if hop.joins_types else None),
        }
        made = frame.only(self._keep).take(np.full(len(ends), row, dtype=np.int64)).with_slots(slots)
        if self._target_condition is not None:
            made = made.where(holds(self._target_condition, made))
        return made.only(self._keep)

    def _by_loops(self, run: Run, start: int, found: Tree) -> tuple[Ordinals, Ordinals]:
        """The nodes that are one hop too near, and the paths that an edge to itself makes as long as they must be."""
        if self._least == 1:
            near = path_nodes = np.array([start], dtype=np.int32)
        else:
            is_near = found.distances == self._least - 1
            near, path_nodes = found.nodes[is_near], found.paths(is_near)[1]
        # The pattern's own end has the edge: where the search began, or where it came to.
        at = np.full(len(near), start, dtype=np.int32) if self._from_target else near
        loops = self._hop.way(run, len(at)).joins(at, at) if len(at) else np.zeros(0, dtype=np.bool_)
        paths = path_nodes.reshape(len(near), self._least)
        longer = (at[:, None], paths) if self._from_target else (paths, at[:, None])
        return near[loops], np.concatenate(longer, axis=1)[loops].reshape(-1)


def id_ranks(nodes: Columns, some: Ordinals) -> Positions:
    """The order of some nodes by their ids."""
    ranks: Positions = pc.rank(nodes.take(ID, some), tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _one_hop(run: Run, hop: Hop, start: int, end: int) -> Ordinals | None:
    ends = np.array([start], dtype=np.int32), np.array([end], dtype=np.int32)
    return np.array([start, end], dtype=np.int32) if hop.way(run, 1).joins(*ends).all() else None


def _pairs(start: int, ends: Ordinals) -> tuple[Positions, Ordinals]:
    nodes = np.empty(2 * len(ends), dtype=np.int32)
    nodes[0::2], nodes[1::2] = start, ends
    return np.arange(0, len(nodes) + 1, 2), nodes


def _reversed(starts: Positions, nodes: Ordinals) -> Ordinals:
    """Every path from its other end."""
    counts = np.diff(starts)
    rows, places = repeated_places(starts[:-1], counts)
    return nodes[starts[1:][rows] - 1 - (places - starts[rows])]
