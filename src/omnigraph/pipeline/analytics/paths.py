"""Shortest paths: how far every vertex is from each of a few."""

from collections.abc import Sequence

import numpy as np

from omnigraph.errors import InvalidRequestError
from omnigraph.pipeline.analytics.blocks import Array, Block, Blocks, Messages


def distances(blocks: Blocks, source: int, *, weighed: bool, rounds_max: int | None = None) -> Array:
    """The length of the shortest path from a vertex to each vertex, along the edges.

    Args:
        blocks: the graph, directed.
        source: the number of the vertex.
        weighed: whether edges are as long as their weight; else each has the length 1.
        rounds_max: a bound on the number of edges on a path.

    Returns:
        Array: lengths; infinite where there is no path.

    Raises:
        InvalidRequestError: a weight is negative or missing.
    """
    lengths = np.full(blocks.size, np.inf)
    lengths[source] = 0.0
    # Only what became shorter in the last round can make anything else shorter in the next.
    moved = np.zeros(blocks.size, np.bool_)
    moved[source] = True
    kernel = through_weights if weighed else through_edges
    for _ in range(blocks.size if rounds_max is None else rounds_max):
        fresh = lengths.copy()
        for vertices, through in blocks.tell(kernel, (lengths, moved)):
            fresh[vertices] = np.minimum(fresh[vertices], through)
        moved = fresh < lengths
        lengths = fresh
        if not moved.any():
            break
    return lengths


def check_weights(blocks: Blocks) -> None:
    """Refuse weights that are no lengths.

    Args:
        blocks: the graph.

    Raises:
        InvalidRequestError: a weight is negative or missing.
    """
    if any(bad.any() for _, bad in blocks.tell(bad_weights, None)):
        raise InvalidRequestError("shortest paths need a weight on every edge, and none below zero")


def bad_weights(block: Block, _: None) -> Messages:
    """Whether a block has weights that are no lengths."""
    bad = np.isnan(block.weight) | (block.weight < 0)
    return np.zeros(1, np.int64), np.array([bool(bad.any())])


def through_edges(block: Block, known: tuple[Array, Array]) -> Messages:
    """How near the vertices of a block are through one more edge."""
    return _through(block, known, 1.0)


def through_weights(block: Block, known: tuple[Array, Array]) -> Messages:
    """How near the vertices of a block are through one more edge of its own length."""
    return _through(block, known, block.weight)


def _through(block: Block, known: tuple[Array, Array], length: "Array | float") -> Messages:
    lengths, moved = known
    here = moved[block.src]
    dst = block.dst[here]
    if not len(dst):
        return dst, dst.astype(np.float64)
    along = length[here] if isinstance(length, np.ndarray) else length
    starts = np.flatnonzero(np.diff(dst, prepend=-1))
    return dst[starts], np.minimum.reduceat(lengths[block.src[here]] + along, starts)


def numbers_of(names: Sequence[str], found: dict[str, int]) -> list[int]:
    """The numbers of vertices.

    Args:
        names: their names.
        found: those that are there.

    Returns:
        list[int]: in the order of the names.

    Raises:
        InvalidRequestError: one is not there.
    """
    for name in names:
        if name not in found:
            raise InvalidRequestError(f"there is no node '{name.partition(':')[2]}' to start from")
    return [found[name] for name in names]
