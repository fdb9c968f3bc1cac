"""Shortest paths bound to path variables."""

from collections.abc import Iterator

import numpy as np

from omnigraph.execution.arrays import Ordinals, Positions, pc
from omnigraph.execution.columns import Columns
from omnigraph.execution.edge_list import expand_ranges
from omnigraph.execution.expressions import Computation, evaluate_condition
from omnigraph.execution.frame import Binding, Frame, PathBinding, Slot
from omnigraph.execution.operators.expand import Hop, drop_absent
from omnigraph.execution.operators.operator import Frames, Operator
from omnigraph.execution.run import Run
from omnigraph.execution.traversal import ShortestPathTree, build_shortest_path_tree, find_shortest_path
from omnigraph.model.schema import ID


class ConnectShortest(Operator[Frame]):
    """Keeps the rows whose nodes are connected within a number of hops, with a shortest path."""

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
        """Yield the matching rows."""
        hop, nodes = self._hop, run.nodes(self._hop.source_type)
        known: dict[tuple[int, int], Ordinals | None] = {}
        for frame in self._rows.batches(run, given):
            present = drop_absent(drop_absent(frame, self._source), self._target)
            rows, found = [], []
            ends = zip(
                present.binding(self._source).ordinals.tolist(),
                present.binding(self._target).ordinals.tolist(),
                strict=True,
            )
            for row, (start, end) in enumerate(ends):
                if (start, end) not in known:
                    known[start, end] = self._find_path(run, hop, nodes, start, end)
                path = known[start, end]
                if path is not None:
                    rows.append(row)
                    found.append(path)
            if rows:
                made = present.only(self._keep).take(np.array(rows, dtype=np.int64))
                starts = np.zeros(len(found) + 1, dtype=np.int64)
                np.cumsum([len(path) for path in found], out=starts[1:])
                paths = PathBinding(
                    run.nodes(hop.target_type),
                    starts,
                    np.concatenate(found),
                    head=nodes if hop.is_between_types else None,
                )
                yield made.with_slots({self._path: paths} if self._path in self._keep else {})

    def _find_path(self, run: Run, hop: Hop, nodes: Columns, start: int, end: int) -> Ordinals | None:
        if hop.is_between_types:
            return _one_hop(run, hop, start, end) if self._least == 1 else None
        return find_shortest_path(
            lambda count: hop.access(run, count),
            lambda count: hop.reverse_access(run, count),
            start,
            end,
            least=self._least,
            most=self._most,
            size=nodes.numbering.size,
            ranks=lambda some: id_ranks(nodes, some),
        )


class ExpandShortest(Operator[Frame]):
    """Joins each row with the nodes within a number of hops, with a shortest path to each."""

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
        """Yield the rows, in the order of the input."""
        for frame in self._rows.batches(run, given):
            present = drop_absent(frame, self._source)
            for row, start in enumerate(present.binding(self._source).ordinals.tolist()):
                made = self._paths_from(run, present, row, start)
                if made.size:
                    yield made

    def _paths_from(self, run: Run, frame: Frame, row: int, start: int) -> Frame:
        hop = self._hop
        sources, targets = run.nodes(hop.source_type), run.nodes(hop.target_type)
        if hop.is_between_types:
            beside = hop.access(run, 1).expand(np.array([start], dtype=np.int32), each_record=False).targets
            ends = beside if self._least == 1 else beside[:0]
            starts, nodes = _two_node_paths(start, ends)
        else:
            found = build_shortest_path_tree(
                lambda count: hop.access(run, count),
                start,
                most=self._most,
                size=sources.numbering.size,
                ranks=lambda some: id_ranks(sources, some),
                read_from_end=self._from_target,
            )
            chosen = found.distances >= self._least
            ends = found.nodes[chosen]
            starts, nodes = found.paths(chosen)
            again, longer = self._lengthen_by_loops(run, start, found)
            ends = np.concatenate([again, ends])
            starts = np.concatenate([np.arange(len(again)) * (self._least + 1), starts + len(longer)])
            nodes = np.concatenate([longer, nodes])
        if self._from_target:
            nodes = _reversed(starts, nodes)
        first, rest = (targets, sources) if self._from_target else (sources, targets)
        slots: dict[str, Slot] = {
            self._target: Binding(targets, ends),
            self._path: PathBinding(rest, starts, nodes, head=first if hop.is_between_types else None),
        }
        made = frame.only(self._keep).take(np.full(len(ends), row, dtype=np.int64)).with_slots(slots)
        if self._target_condition is not None:
            made = made.where(evaluate_condition(self._target_condition, made))
        return made.only(self._keep)

    def _lengthen_by_loops(self, run: Run, start: int, found: ShortestPathTree) -> tuple[Ordinals, Ordinals]:
        """Return the nodes one hop too near, and their paths lengthened by a self-loop."""
        if self._least == 1:
            near = path_nodes = np.array([start], dtype=np.int32)
        else:
            is_near = found.distances == self._least - 1
            near, path_nodes = found.nodes[is_near], found.paths(is_near)[1]
        # The self-loop is at the end of the pattern: where the search began, or where it arrived.
        at = np.full(len(near), start, dtype=np.int32) if self._from_target else near
        loops = self._hop.access(run, len(at)).has_edges(at, at) if len(at) else np.zeros(0, dtype=np.bool_)
        paths = path_nodes.reshape(len(near), self._least)
        longer = (at[:, None], paths) if self._from_target else (paths, at[:, None])
        return near[loops], np.concatenate(longer, axis=1)[loops].reshape(-1)


def id_ranks(nodes: Columns, some: Ordinals) -> Positions:
    """Return the ranks of some nodes by their ids."""
    ranks: Positions = pc.rank(nodes.take(ID, some), tiebreaker="dense").to_numpy().astype(np.int64)
    return ranks


def _one_hop(run: Run, hop: Hop, start: int, end: int) -> Ordinals | None:
    ends = np.array([start], dtype=np.int32), np.array([end], dtype=np.int32)
    return np.array([start, end], dtype=np.int32) if hop.access(run, 1).has_edges(*ends).all() else None


def _two_node_paths(start: int, ends: Ordinals) -> tuple[Positions, Ordinals]:
    nodes = np.empty(2 * len(ends), dtype=np.int32)
    nodes[0::2], nodes[1::2] = start, ends
    return np.arange(0, len(nodes) + 1, 2), nodes


def _reversed(starts: Positions, nodes: Ordinals) -> Ordinals:
    """Reverse every path."""
    counts = np.diff(starts)
    rows, places = expand_ranges(starts[:-1], counts)
    return nodes[starts[1:][rows] - 1 - (places - starts[rows])]
