"""Breadth first from many nodes at once: every node within so many hops, once per start, at its shortest distance.

A node with an edge to itself may also be reached by that edge, one hop later than before; nothing is reached from there
again. So a start is reached from itself by an edge to itself, in one hop, and never round a cycle.
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


def reach(way: Way, starts: Ordinals, *, least: int, most: int, size: int, loops_at_start: bool = False) -> Reached:
    """The nodes within some hops of each start.

    Args:
        way (Way): to the neighbours.
        starts (Ordinals): where to begin, each independent of the others.
        least (int): the fewest hops.
        most (int): the most hops.
        size (int): how many ordinals there are; every start takes as many bytes.
        loops_at_start (bool): whether it is an edge from the start to itself, and not one of the node reached, that
            makes a node count which is one hop too near.

    Returns:
        Reached: in the order of `starts`.
    """
    # Seen pairs of start and node, as one long row of marks.
    seen = np.zeros(len(starts) * size, dtype=np.bool_)
    offsets = np.arange(len(starts), dtype=np.int64) * size
    seen[offsets + starts] = True
    looped = np.zeros(len(starts), dtype=np.bool_)
    found: list[Positions] = []
    frontier_rows, frontier = np.arange(len(starts)), starts
    for hop in range(1, most + 1):
        spread = way(len(frontier)).spread(frontier, each_record=False)
        if hop in (1, least):
            loops = spread.rows[spread.targets == frontier[spread.rows]]
            if hop == 1:
                looped[loops] = True
            if hop == least:
                # All of the frontier are one hop too near.
                again = looped[frontier_rows] if loops_at_start else loops
                found.append(offsets[frontier_rows[again]] + frontier[again])
        pairs = offsets[frontier_rows[spread.rows]] + spread.targets
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
