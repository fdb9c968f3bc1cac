"""Shortest paths: between two nodes from both sides at once, and from one node to all others.

Of several shortest paths the one whose node ids come first, read from its beginning. A path that is one hop too short
is made longer by an edge from its last node to itself, if there is one; so is that of a node to itself.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from omnigraph.execution.arrays import Mask, Ordinals, Positions, once
from omnigraph.execution.reach import Way

Levels = npt.NDArray[np.int32]
# Ranks of nodes by their ids: smaller ids have smaller ranks.
Ranks = Callable[[Ordinals], Positions]

_UNSEEN = -1


class _Side:
    """One half of a search: the nodes seen from one end, and how far away they are."""

    def __init__(self, way: Way, start: int, size: int) -> None:
        self._way = way
        self.distances: Levels = np.full(size, _UNSEEN, dtype=np.int32)
        self.distances[start] = 0
        self.frontier: Ordinals = np.array([start], dtype=np.int32)
        self.hops = 0

    def advance(self) -> None:
        """Go one hop further."""
        spread = self._way(len(self.frontier)).spread(self.frontier, each_record=False)
        self.hops += 1
        fresh = spread.targets[self.distances[spread.targets] == _UNSEEN]
        self.distances[fresh] = self.hops
        self.frontier = once(fresh)

    def layers_from(self, nodes: Ordinals, way_home: Way) -> list[Ordinals]:
        """The nodes on the ways from these, which are all equally far, home to the start; the start last."""
        layers = []
        for distance in range(int(self.distances[nodes[0]]) - 1, -1, -1):
            before = way_home(len(nodes)).spread(nodes, each_record=False).targets
            nodes = once(before[self.distances[before] == distance])
            layers.append(nodes)
        return layers


def path_between(
    way: Way, way_back: Way, start: int, end: int, *, least: int, most: int, size: int, ranks: Ranks
) -> Ordinals | None:
    """The first of the shortest paths between two nodes.

    Args:
        way (Way): along the edges.
        way_back (Way): against them.
        start (int): where it begins.
        end (int): where it ends.
        least (int): the fewest hops it may have.
        most (int): the most hops.
        size (int): how many ordinals there are.
        ranks (Ranks): the order of ids.

    Returns:
        Ordinals | None: its nodes; None if there is none within the bounds.
    """
    if start == end:
        return np.array([start, start], dtype=np.int32) if least == 1 and _loops(way, end) else None
    ahead, behind = _Side(way, start, size), _Side(way_back, end, size)
    while ahead.hops + behind.hops < most:
        side, other = (ahead, behind) if len(ahead.frontier) <= len(behind.frontier) else (behind, ahead)
        side.advance()
        if not len(side.frontier):
            return None
        met = side.frontier[other.distances[side.frontier] != _UNSEEN]
        if len(met):
            missing = least - (ahead.hops + behind.hops)
            if missing > 1 or (missing == 1 and not _loops(way, end)):
                return None
            layers = [*ahead.layers_from(met, way_back)[::-1], met, *behind.layers_from(met, way)]
            path = _first_path(way, start, layers, ranks)
            return np.append(path, path[-1:]) if missing == 1 else path
    return None


def _loops(way: Way, node: int) -> bool:
    """Whether a node has an edge to itself."""
    ends = np.array([node], dtype=np.int32)
    return bool(way(1).joins(ends, ends).all())


def _first_path(way: Way, start: int, layers: list[Ordinals], ranks: Ranks) -> Ordinals:
    """From the start, in each layer the neighbour with the smallest id."""
    nodes = [start]
    for layer in layers[1:]:
        beside = way(1).spread(np.array(nodes[-1:], dtype=np.int32), each_record=False).targets
        choices = np.intersect1d(beside, layer)
        nodes.append(int(choices[np.argmin(ranks(choices))] if len(choices) > 1 else choices[0]))
    return np.array(nodes, dtype=np.int32)


@dataclass(frozen=True, slots=True)
class Tree:
    """The first shortest paths from one node to all others.

    Attributes:
        nodes: the others, nearest first.
        distances: how far they are.
        parents: by ordinal, the node next to it on the way to the start.
    """

    nodes: Ordinals
    distances: Positions
    parents: Ordinals

    def paths(self, chosen: Mask) -> tuple[Positions, Ordinals]:
        """The paths to some of the nodes: where each begins, with the last's end, and their nodes from the start."""
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


def tree(way: Way, start: int, *, most: int, size: int, ranks: Ranks, read_from_end: bool) -> Tree:
    """The first of the shortest paths from one node to every other within some hops.

    Args:
        way (Way): away from the start.
        start (int): where the search begins.
        most (int): the most hops.
        size (int): how many ordinals there are.
        ranks (Ranks): the order of ids.
        read_from_end (bool): whether paths are read towards the start: then a path is first if, from its far end, each
            next node has the smallest id; else if, from the start, each has.

    Returns:
        Tree: without the start itself.
    """
    distances: Levels = np.full(size, _UNSEEN, dtype=np.int32)
    distances[start] = 0
    parents: Ordinals = np.full(size, _UNSEEN, dtype=np.int32)
    layers: list[Ordinals] = []
    # The nodes of a layer, in the order of the paths to them.
    frontier = np.array([start], dtype=np.int32)
    for hop in range(1, most + 1):
        spread = way(len(frontier)).spread(frontier, each_record=False)
        fresh = distances[spread.targets] == _UNSEEN
        places, targets = spread.rows[fresh], spread.targets[fresh]
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
    return Tree(nodes, distances[nodes].astype(np.int64), parents)
