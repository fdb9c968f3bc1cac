"""Label propagation: communities of vertices that have more to do with each other than with others."""

import numpy as np

from omnigraph.pipeline.analytics.blocks import Array, Block, Blocks, Messages


def label_propagation(blocks: Blocks, *, rounds_max: int = 10) -> Array:
    """The community of every vertex.

    All vertices at once take the label that most of their neighbours have, the smallest of several; a vertex without
    neighbours keeps its own. Labels may swing for ever, so the number of rounds is part of the result.

    Args:
        blocks: the graph, undirected.
        rounds_max: how many rounds, unless nothing moves before.

    Returns:
        Array: labels, which are numbers of vertices.
    """
    labels = np.arange(blocks.size, dtype=np.int64)
    for _ in range(rounds_max):
        before, labels = labels, labels.copy()
        for vertices, chosen in blocks.tell(most_frequent_label, before):
            labels[vertices] = chosen
        if np.array_equal(labels, before):
            break
    return labels


def most_frequent_label(block: Block, labels: Array) -> Messages:
    """The label that most neighbours of a block's vertices have, the smallest of several."""
    ballots = block.dst.astype(np.int64) << 32 | labels[block.src]
    kinds, votes = np.unique(ballots, return_counts=True)
    vertices, label = kinds >> 32, kinds & 0xFFFFFFFF
    order = np.lexsort((label, -votes, vertices))
    first = order[np.flatnonzero(np.diff(vertices[order], prepend=-1))]
    return vertices[first], label[first]
