"""Connected components: vertices between which there is a way, whatever the direction of the edges on it."""

import numpy as np

from omnigraph.pipeline.analytics.blocks import Array, Block, Blocks, Messages


def connected_components(blocks: Blocks) -> Array:
    """The component of every vertex, named by the smallest number in it.

    In each round every vertex hears the smallest label of its neighbours, and passes it on to the vertex whose label it
    had; then labels are followed to their ends. So labels travel far in every round, and long chains need few.

    Args:
        blocks: the graph, undirected.

    Returns:
        Array: numbers of vertices.
    """
    labels = np.arange(blocks.size, dtype=np.int64)
    while True:
        before, labels = labels, labels.copy()
        for vertices, heard in blocks.tell(smallest_label, before):
            np.minimum.at(labels, before[vertices], heard)
            labels[vertices] = np.minimum(labels[vertices], heard)
        labels = _followed(labels)
        if np.array_equal(labels, before):
            return labels


def smallest_label(block: Block, labels: Array) -> Messages:
    """The smallest label among the neighbours of a block's vertices."""
    starts = block.starts
    return block.dst[starts], np.minimum.reduceat(labels[block.src], starts) if len(starts) else starts


def _followed(labels: Array) -> Array:
    """Every vertex with the label of the vertex that its label names, until that changes nothing."""
    while True:
        further: Array = labels[labels]
        if np.array_equal(further, labels):
            return labels
        labels = further
