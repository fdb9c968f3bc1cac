"""Breadth first from many nodes at once: every node within so many hops, once per start, at its shortest distance.

A start is not reached from itself round a cycle, only by an edge to itself, which takes one hop.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from omnigraph.execution.arrays import NO_ORDINALS, Ordinals, Positions, once
from omnigraph.execution.neighbours import Neighbours

# How to get to the neighbours of so many nodes.
Way = Callable[[int], Neighbours]


@dataclass(frozen=True, slots=True)
class Reached:
    """What was reached.

    Attributes:
        starts: for each node the position of its start, ascending.
        nodes: the nodes.
    """

    starts: Positions
    nodes: Ordinals


def reach(way: Way, starts: Ordinals, *, least: int, most: int, size: int) -> Reached:
    """The nodes within some hops of each start.

    Args:
        way (Way): to the neighbours.
        starts (Ordinals): where to begin, each independent of the others.
        least (int): the fewest hops.
        most (int): the most hops.
        size (int): how many ordinals there are; every start takes as many bytes.

    Returns:
        Reached: in the order of `starts`.
    """
    # Seen pairs of start and node, as one long row of marks.
    seen = np.zeros(len(starts) * size, dtype=np.bool_)
    offsets = np.arange(len(starts), dtype=np.int64) * size
    own = offsets + starts
    seen[own] = True
    found: list[Positions] = []
    frontier_rows, frontier = np.arange(len(starts)), starts
    for hop in range(1, most + 1):
        spread = way(len(frontier)).spread(frontier, each_record=False)
        pairs = offsets[frontier_rows[spread.rows]] + spread.targets
        if hop == 1 and least == 1:
            found.append(np.intersect1d(pairs, own))
        fresh = _once(pairs[~seen[pairs]], len(seen))
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


def _once(pairs: Positions, size: int) -> Positions:
    """Each of these once, ascending."""
    if len(pairs) * 16 < size:
        return once(pairs)
    marks = np.zeros(size, dtype=np.bool_)
    marks[pairs] = True
    return np.flatnonzero(marks)
