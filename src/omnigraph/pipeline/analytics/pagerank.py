"""PageRank: how often a walker who follows edges, and now and then starts over anywhere, is at each vertex.

Ranks are summed as whole numbers of a fixed small unit: sums of those do not depend on the order of the terms, so that
the same graph has the same ranks, however its edges lie on the executors.
"""

import numpy as np

from omnigraph.pipeline.analytics.blocks import Array, Block, Blocks, Messages

# All ranks together are one: this many units fit into 64 bits with room to spare.
_UNITS = float(2**60)


def pagerank(blocks: Blocks, *, damping: float = 0.85, tolerance: float = 1e-9, rounds_max: int = 100) -> Array:
    """The rank of every vertex.

    Args:
        blocks: the graph, directed; parallel edges count each.
        damping: how likely the walker goes on along an edge.
        tolerance: it is done when no rank moves by more than this.
        rounds_max: or after so many rounds.

    Returns:
        Array: ranks, which add up to one.
    """
    size = blocks.size
    if not size:
        return np.empty(0, np.float64)
    leaving = np.zeros(size, np.int64)
    for vertices, counts in blocks.tell(leaving_edges, None):
        leaving[vertices] += counts
    ends = leaving == 0
    ranks = np.full(size, 1.0 / size)
    for _ in range(rounds_max):
        units = (ranks * _UNITS).astype(np.int64)
        lost = float(units[ends].sum()) / _UNITS
        received = np.zeros(size, np.int64)
        for vertices, given in blocks.tell(given_ranks, units // np.maximum(leaving, 1)):
            received[vertices] = given
        before, ranks = ranks, (1 - damping) / size + damping * (received / _UNITS + lost / size)
        if np.abs(ranks - before).max() <= tolerance:
            break
    return ranks


def leaving_edges(block: Block, _: None) -> Messages:
    """How many edges of a block leave each vertex."""
    vertices, counts = np.unique(block.src, return_counts=True)
    return vertices, counts.astype(np.int64)


def given_ranks(block: Block, shares: Array) -> Messages:
    """What the vertices of a block receive, when every vertex gives its share along each edge."""
    starts = block.starts
    return block.dst[starts], np.add.reduceat(shares[block.src], starts) if len(starts) else starts
