"""Neighbours from adjacency files: reads the files that have the nodes asked for, and no others."""

from collections.abc import Callable, Sequence

import numpy as np

from omnigraph.execution.adjacency_files import Chunk, Head
from omnigraph.execution.arrays import NO_ORDINALS, Ordinals, Positions
from omnigraph.execution.csr import Csr, Spread
from omnigraph.execution.neighbours import Neighbours, OneWayAtATime
from omnigraph.language.plan.pattern import Direction

# Gives the rows of a file; None if it is not what it should be.
ReadChunk = Callable[[Head, Chunk], Csr | None]


class _MissingError(Exception):
    """A file that the head names is gone or damaged; never leaves this module."""


class StoredNeighbours(OneWayAtATime):
    """Through files made for the very versions that are asked about; another way where one of them is gone."""

    def __init__(self, head: Head, read: ReadChunk, direction: Direction, instead: Callable[[], Neighbours]) -> None:
        super().__init__(direction)
        self._head = head
        self._read = read
        self._instead = instead

    def spread(self, nodes: Ordinals, *, each_record: bool) -> Spread:
        """The neighbours of some nodes."""
        try:
            return super().spread(nodes, each_record=each_record)
        except _MissingError:
            return self._instead().spread(nodes, each_record=each_record)

    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """The edges that leave, or reach, some nodes."""
        chunks = self._head.outgoing if leaving else self._head.incoming
        rows, targets, records = [np.empty(0, dtype=np.int64)], [NO_ORDINALS], [NO_ORDINALS]
        for chunk, some in _by_chunk(chunks, nodes):
            csr = self._read(self._head, chunk)
            if csr is None:
                raise _MissingError
            spread = csr.spread(nodes[some] - np.int32(chunk.first), each_record=True)
            assert spread.records is not None
            rows.append(spread.rows + some.start)
            targets.append(spread.targets)
            records.append(spread.records)
        return np.concatenate(rows), np.concatenate(targets), np.concatenate(records)


def _by_chunk(chunks: Sequence[Chunk], nodes: Ordinals) -> list[tuple[Chunk, slice]]:
    """The chunks that have rows of these nodes, which are ascending, and which of them; nodes behind all have none."""
    found = []
    for chunk in chunks:
        first, last = np.searchsorted(nodes, (chunk.first, chunk.first + chunk.nodes)).tolist()
        if first < last:
            found.append((chunk, slice(first, last)))
    return found
