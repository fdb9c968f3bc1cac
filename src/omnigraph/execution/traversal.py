"""Graph traversal: breadth-first search from many nodes at once, and shortest paths.

Breadth-first search reaches every node within a number of hops once per start, at its shortest distance. A node with a
self-loop may also be reached by that edge, one hop later; nothing is reached from there again. So a start is reached
from itself by a self-loop, in one hop, and never round a cycle.

Of several shortest paths, the one whose node ids come first, read from its beginning, is chosen. A path that is one hop
too short is lengthened by a self-loop of its last node, if there is one; so is that of a node to itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import NO_ORDINALS, Mask, Ordinals, Positions, sorted_unique
from omnigraph.execution.neighbours import Neighbours

# Returns the access path to the neighbours of this many nodes.
AccessPath = Callable[[int], Neighbours]


Levels = npt.NDArray[np.int32]
# Returns ranks of nodes by their ids: smaller ids have smaller ranks.
Ranks = Callable[[Ordinals], Positions]

_UNSEEN = -1


@dataclass(frozen=True, slots=True)
class Reached:
    """Result of a breadth-first search.

    Attributes:
        starts: for each node the position of its start, ascending.
        nodes: the nodes reached.
    """

    starts: Positions
    nodes: Ordinals


def reach(
    access: AccessPath, starts: Ordinals, *, least: int, most: int, size: int, loops_at_start: bool = False
) -> Reached:
    """Find the nodes within a number of hops of each start.

    Args:
        access: to the neighbours.
        starts: start nodes, independent of each other.
        least: minimum number of hops.
        most: maximum number of hops.
        size: number of ordinals; every start takes as many bytes.
        loops_at_start: whether a self-loop of the start, and not of the node reached, makes a node count that is one
            hop too near.

    Returns:
        In the order of `starts`.
    """
    # Visited pairs of start and node, as one mask.
    seen = np.zeros(len(starts) * size, dtype=np.bool_)
    offsets = np.arange(len(starts), dtype=np.int64) * size
    seen[offsets + starts] = True
    looped = np.zeros(len(starts), dtype=np.bool_)
    found: list[Positions] = []
    frontier_rows, frontier = np.arange(len(starts)), starts
    for hop in range(1, most + 1):
        expansion = access(len(frontier)).expand(frontier, each_record=False)
        if hop in (1, least):
            loops = expansion.rows[expansion.targets == frontier[expansion.rows]]
            if hop == 1:
                looped[loops] = True
            if hop == least:
                # All of the frontier are one hop too near.
                again = looped[frontier_rows] if loops_at_start else loops
                found.append(offsets[frontier_rows[again]] + frontier[again])
        pairs = offsets[frontier_rows[expansion.rows]] + expansion.targets
        fresh = _unique_pairs(pairs[~seen[pairs]], len(seen))
        if not len(fresh):
            break
        seen[fresh] = True
        if hop >= least:
            found.append(fresh)
        frontier_rows, frontier = fresh // size, (fresh % size).astype(np.int32)
    if not found:
        return Reached(np.empty(0, dtype=np.int64), NO_ORDINALS)
    pairs = np.sort(np.concatenate(found))
    return Reached(pairs // size, (pairs % size).astype(np.int32))


def _unique_pairs(pairs: Positions, size: int) -> Positions:
    """Return the distinct pairs, ascending."""
    if len(pairs) * 16 < size:
        return sorted_unique(pairs)
    marks = np.zeros(size, dtype=np.bool_)
    marks[pairs] = True
    return np.flatnonzero(marks)


class _Side:
    """One half of a bidirectional search: the nodes seen from one end, and their distances."""

    def __init__(self, access: AccessPath, start: int, size: int) -> None:
        self._access = access
        self.distances: Levels = np.full(size, _UNSEEN, dtype=np.int32)
        self.distances[start] = 0
        self.frontier: Ordinals = np.array([start], dtype=np.int32)
        self.hops = 0

    def advance(self) -> None:
        """Go one hop further."""
        expansion = self._access(len(self.frontier)).expand(self.frontier, each_record=False)
        self.hops += 1
        fresh = expansion.targets[self.distances[expansion.targets] == _UNSEEN]
        self.distances[fresh] = self.hops
        self.frontier = sorted_unique(fresh)

    def layers_from(self, nodes: Ordinals, reverse_access: AccessPath) -> list[Ordinals]:
        """Return the nodes on the shortest paths from these equally distant nodes back to the start; the start last."""
        layers = []
        for distance in range(int(self.distances[nodes[0]]) - 1, -1, -1):
            before = reverse_access(len(nodes)).expand(nodes, each_record=False).targets
            nodes = sorted_unique(before[self.distances[before] == distance])
            layers.append(nodes)
        return layers


def find_shortest_path(
    access: AccessPath,
    reverse_access: AccessPath,
    start: int,
    end: int,
    *,
    least: int,
    most: int,
    size: int,
    ranks: Ranks,
) -> Ordinals | None:
    """Find the first shortest path between two nodes by bidirectional search.

    Args:
        access: along the edges.
        reverse_access: against them.
        start: first node.
        end: last node.
        least: minimum number of hops.
        most: maximum number of hops.
        size: number of ordinals.
        ranks: the order of ids.

    Returns:
        Its nodes; None if there is none within the bounds.
    """
    if start == end:
        return np.array([start, start], dtype=np.int32) if least == 1 and _has_loop(access, end) else None
    ahead, behind = _Side(access, start, size), _Side(reverse_access, end, size)
    while ahead.hops + behind.hops < most:
        side, other = (ahead, behind) if len(ahead.frontier) <= len(behind.frontier) else (behind, ahead)
        side.advance()
        if not len(side.frontier):
            return None
        met = side.frontier[other.distances[side.frontier] != _UNSEEN]
        if len(met):
            missing = least - (ahead.hops + behind.hops)
            if missing > 1 or (missing == 1 and not _has_loop(access, end)):
                return None
            layers = [*ahead.layers_from(met, reverse_access)[::-1], met, *behind.layers_from(met, access)]
            path = _first_path(access, start, layers, ranks)
            return np.append(path, path[-1:]) if missing == 1 else path
    return None


def _has_loop(access: AccessPath, node: int) -> bool:
    """Return whether a node has a self-loop."""
    ends = np.array([node], dtype=np.int32)
    return bool(access(1).has_edges(ends, ends).all())


def _first_path(access: AccessPath, start: int, layers: list[Ordinals], ranks: Ranks) -> Ordinals:
    """Walk from the start to the neighbour with the smallest id in each layer."""
    nodes = [start]
    for layer in layers[1:]:
        beside = access(1).expand(np.array(nodes[-1:], dtype=np.int32), each_record=False).targets
        choices = np.intersect1d(beside, layer)
        nodes.append(int(choices[np.argmin(ranks(choices))] if len(choices) > 1 else choices[0]))
    return np.array(nodes, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class ShortestPathTree:
    """First shortest paths from one node to all others.

    Attributes:
        nodes: the others, nearest first.
        distances: number of hops to each.
        parents: by ordinal, the next node on the path to the start.
    """

    nodes: Ordinals
    distances: Positions
    parents: Ordinals

    def paths(self, chosen: Mask) -> tuple[Positions, Ordinals]:
        """Return the paths to some of the nodes: offsets, and their nodes from the start."""
        ends, hops = self.nodes[chosen], self.distances[chosen]
        starts = np.zeros(len(ends) + 1, dtype=np.int64)
        np.cumsum(hops + 1, out=starts[1:])
        everything = np.empty(int(starts[-1]), dtype=np.int32)
        at, places = ends, starts[1:] - 1
        left = hops.copy()
        active = np.arange(len(ends))
        while len(active):
            everything[places[active]] = at[active]
            active = active[left[active] > 0]
            at = at.copy()
            at[active] = self.parents[at[active]]
            places = places.copy()
            places[active] -= 1
            left[active] -= 1
        return starts, everything


def build_shortest_path_tree(
    access: AccessPath, start: int, *, most: int, size: int, ranks: Ranks, read_from_end: bool
) -> ShortestPathTree:
    """Find the first shortest path from one node to every other within a number of hops.

    Args:
        access: away from the start.
        start: where the search begins.
        most: maximum number of hops.
        size: number of ordinals.
        ranks: the order of ids.
        read_from_end: compare paths from their far end towards the start instead of from the start.

    Returns:
        The tree without the start itself.
    """
    distances: Levels = np.full(size, _UNSEEN, dtype=np.int32)
    distances[start] = 0
    parents: Ordinals = np.full(size, _UNSEEN, dtype=np.int32)
    layers: list[Ordinals] = []
    # The nodes of a layer, in the order of the paths to them.
    frontier = np.array([start], dtype=np.int32)
    for hop in range(1, most + 1):
        expansion = access(len(frontier)).expand(frontier, each_record=False)
        fresh = distances[expansion.targets] == _UNSEEN
        places, targets = expansion.rows[fresh], expansion.targets[fresh]
        if not len(targets):
            break
        order = ranks(frontier)[places] if read_from_end else places
        # By target, and for each target the best parent first.
        best = np.lexsort((order, targets))
        found, first = np.unique(targets[best], return_index=True)
        chosen = best[first]
        parents[found] = frontier[places[chosen]]
        distances[found] = hop
        # The order of paths in the next layer: by the path to the parent, then by the node itself.
        frontier = found if read_from_end else found[np.lexsort((ranks(found), places[chosen]))]
        layers.append(np.sort(found))
    nodes = np.concatenate(layers) if layers else np.empty(0, dtype=np.int32)
    return ShortestPathTree(nodes, distances[nodes].astype(np.int64), parents)
