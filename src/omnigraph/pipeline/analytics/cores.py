"""Cores: the k-core is what remains when vertices with fewer than k neighbours are taken away, again and again."""

import numpy as np

from omnigraph.pipeline.analytics.blocks import Array, Block, Blocks, Messages


def core_numbers(blocks: Blocks) -> Array:
    """The greatest k for which each vertex is in the k-core.

    Each vertex starts with the number of its neighbours, and lowers it to the greatest h of which h neighbours have at
    least h, until nothing moves: what is left is its core number, without peeling vertices off one by one.

    Args:
        blocks: the graph, undirected.

    Returns:
        Array: the numbers.
    """
    cores = np.zeros(blocks.size, np.int64)
    for vertices, counts in blocks.tell(neighbour_counts, None):
        cores[vertices] = counts
    while True:
        before, cores = cores, cores.copy()
        for vertices, lowered in blocks.tell(enough_neighbours, before):
            cores[vertices] = lowered
        if np.array_equal(cores, before):
            return cores


def neighbour_counts(block: Block, _: None) -> Messages:
    """How many neighbours each vertex of a block has."""
    vertices, counts = np.unique(block.dst, return_counts=True)
    return vertices, counts.astype(np.int64)


def enough_neighbours(block: Block, cores: Array) -> Messages:
    """For each vertex of a block the greatest h of which h neighbours have at least h."""
    starts = block.starts
    if not len(starts):
        return starts, starts
    theirs = cores[block.src]
    order = np.lexsort((-theirs, block.dst))
    place = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    # In falling order entries exceed their place up to one point, and never after it.
    return block.dst[starts], np.add.reduceat((theirs[order] > place).astype(np.int64), starts)
