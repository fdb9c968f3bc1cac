"""Ways to the neighbours of nodes: rows in memory, or looked up in the edge table by index. Both give the same."""

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.execution.arrays import NO_ORDINALS, NONE, Mask, Ordinals, Positions, Values, places_in
from omnigraph.execution.columns import Columns
from omnigraph.execution.csr import Csr, Spread, repeated_places
from omnigraph.language.plan.pattern import Direction
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.table import ADDRESS, Table, quoted


class Neighbours(ABC):
    """The edges of one type, followed one way."""

    @abstractmethod
    def spread(self, nodes: Ordinals, *, each_record: bool) -> Spread:
        """The neighbours of some nodes.

        Args:
            nodes (Ordinals): which, in any order, repeated or not; none is `NONE`.
            each_record (bool): whether parallel edges count each.

        Returns:
            Spread: in the order of `nodes`, the neighbours of each ascending.
        """

    @property
    @abstractmethod
    def rows(self) -> Csr | None:
        """The rows in memory, where this is a way through memory."""

    def degrees(self, nodes: Ordinals, *, each_record: bool) -> Positions:
        """How many neighbours, or edges, each node has."""
        rows = self.rows
        if rows is not None:
            return (rows if each_record else rows.simple).degrees[nodes]
        return np.bincount(self.spread(nodes, each_record=each_record).rows, minlength=len(nodes))

    def joins(self, nodes: Ordinals, targets: Ordinals) -> Mask:
        """Whether each node has an edge to its target."""
        rows = self.rows
        if rows is not None:
            return rows.joins(nodes, targets)
        found = np.zeros(len(nodes), dtype=np.bool_)
        spread = self.spread(nodes, each_record=False)
        found[spread.rows[spread.targets == targets[spread.rows]]] = True
        return found

    def between(self, nodes: Ordinals, targets: Ordinals) -> tuple[Positions, Ordinals]:
        """The edges from each node to its target: positions among `nodes`, and records."""
        rows = self.rows
        if rows is not None:
            first, stop = rows.span(nodes, targets)
            positions, places = repeated_places(first, stop - first)
            return positions, rows.records[places]
        spread = self.spread(nodes, each_record=True)
        assert spread.records is not None
        hits = spread.targets == targets[spread.rows]
        return spread.rows[hits], spread.records[hits]


class InMemory(Neighbours):
    """Through rows in memory."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Csr) -> None:
        self._rows = rows

    def spread(self, nodes: Ordinals, *, each_record: bool) -> Spread:
        """The neighbours of some nodes."""
        return self._rows.spread(nodes, each_record=each_record)

    @property
    def rows(self) -> Csr:
        """The rows in memory."""
        return self._rows


class OneWayAtATime(Neighbours):
    """Through something that knows edges by one of their ends."""

    def __init__(self, direction: Direction) -> None:
        self._direction = direction

    @property
    def rows(self) -> None:
        """Nothing is in memory."""
        return

    @abstractmethod
    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """The edges that leave, or reach, some nodes.

        Args:
            nodes (Ordinals): ascending, each once.
            leaving (bool): whether they are where edges start.

        Returns:
            tuple[Positions, Ordinals, Ordinals]: positions among the nodes, the nodes at the other end, and records.
        """

    def spread(self, nodes: Ordinals, *, each_record: bool) -> Spread:
        """The neighbours of some nodes."""
        wanted, back = np.unique(nodes, return_inverse=True)
        ways = []
        if self._direction is not Direction.IN:
            ways.append(self.edges_at(wanted, leaving=True))
        if self._direction is not Direction.OUT:
            ways.append(self.edges_at(wanted, leaving=False))
        places = np.concatenate([way[0] for way in ways])
        targets = np.concatenate([way[1] for way in ways])
        records = np.concatenate([way[2] for way in ways])
        # Both ways, an edge from a node to itself is found twice; and parallel edges, where they count once, are many.
        last = records if each_record else np.zeros(len(records), dtype=np.int32)
        _, kept = np.unique(np.stack([places, targets, last]), axis=1, return_index=True)
        places, targets, records = places[kept], targets[kept], records[kept]
        starts = np.searchsorted(places, np.arange(len(wanted) + 1))
        rows, at = repeated_places(starts[back], np.diff(starts)[back])
        return Spread(rows, targets[at], records[at] if each_record else None)


class LookedUp(OneWayAtATime):
    """Through the edge table and its indexes: reads the edges of the nodes asked for, and no others."""

    def __init__(self, edges: Columns, sources: Columns, targets: Columns, direction: Direction) -> None:
        super().__init__(direction)
        self._edges = edges
        self._sources = sources
        self._targets = targets

    def edges_at(self, nodes: Ordinals, *, leaving: bool) -> tuple[Positions, Ordinals, Ordinals]:
        """The edges that leave, or reach, some nodes."""
        if not len(nodes):
            return np.empty(0, dtype=np.int64), NO_ORDINALS, NO_ORDINALS
        near, far = (self._sources, self._targets) if leaving else (self._targets, self._sources)
        near_end, far_end = (SRC, DST) if leaving else (DST, SRC)
        ids = near.take(ID, nodes)
        found = _rows_where_in(self._edges.table, near_end, ids, far_end)
        targets = far.locate(found.column(far_end))
        addresses: Any = found.column(ADDRESS).to_numpy()
        records = self._edges.numbering.at(addresses.astype(np.uint64, copy=False))
        known = targets != NONE
        places = places_in(found.column(near_end), ids).astype(np.int64)
        return places[known], targets[known], records[known]


def _rows_where_in(table: Table, end: str, ids: Values, other: str) -> pa.Table:
    """Both ends and the addresses of the edges that have one of these ids at one end."""
    step = limits.ID_FILTER_IDS_MAX
    texts: list[Any] = ids.to_pylist()
    return pa.concat_tables(
        table.scan(
            columns=list(dict.fromkeys((end, other))),
            filter=f"{end} IN ({','.join(quoted(text) for text in texts[start : start + step])})",
            with_addresses=True,
        )
        for start in range(0, len(texts), step)
    )
