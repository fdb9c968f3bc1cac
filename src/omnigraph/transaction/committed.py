"""Look up committed rows by id: in the in-memory index if there is one, else by a table scan.

What was found is remembered with the places of the rows, so that staging need not look for them again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.table import ADDRESS
from omnigraph.storage.tables.tables import RowAddresses, Table
from omnigraph.transaction.finding import FoundEdge, RowIndex
from omnigraph.transaction.lookup import rows_with

_EDGE = (ID, SRC, DST)


@dataclass(slots=True)
class KnownRows:
    """What is known of the rows of one version of one table."""

    places: dict[str, int] = field(default_factory=dict)
    absent: set[str] = field(default_factory=set)
    edges: dict[str, FoundEdge] = field(default_factory=dict)

    def add(self, wanted: Iterable[str], found: Mapping[str, int]) -> None:
        """Remember the addresses of rows that were found, and that the other ids are absent."""
        self.places.update(found)
        self.absent.update(row_id for row_id in wanted if row_id not in found)

    def add_edges(self, edges: Iterable[FoundEdge]) -> None:
        """Remember edges that were found."""
        for edge in edges:
            self.places[edge.id] = edge.address
            self.edges[edge.id] = edge


class CommittedRows:
    """What one attempt of one write knows of committed rows. Used by one thread."""

    def __init__(self, finder: RowIndex | None) -> None:
        self._finder = finder
        self._known: dict[Pin, KnownRows] = {}

    def rows(self, table: Table, ids: "Sequence[str] | pa.Array[Any]", columns: Sequence[str] | None) -> pa.Table:
        """The rows with these ids.

        Args:
            table: the version to look in.
            ids: the ids, repeated or not.
            columns: which columns; all by default.

        Returns:
            pa.Table: the rows, in no promised order.
        """
        known_rows = self._of(table.pin)
        if len(ids) > limits.FOUND_ROWS_MAX and len(known_rows.places) < len(ids):
            return table.rows_with_ids(ids, columns=columns)
        texts = [str(row_id) for row_id in ids.to_pylist()] if isinstance(ids, pa.Array) else ids
        unseen = [
            row_id
            for row_id in dict.fromkeys(texts)
            if row_id not in known_rows.places and row_id not in known_rows.absent
        ]
        if unseen:
            found = None
            if self._finder is not None and len(unseen) <= limits.FOUND_ROWS_MAX:
                found = self._finder.places(table.pin, unseen)
            if found is None:
                return self._scan_for(table, texts, columns, known_rows)
            known_rows.add(unseen, found)
        return _read(
            table,
            {row_id: known_rows.places[row_id] for row_id in texts if row_id in known_rows.places},
            columns,
            known_rows,
        )

    def existing_ids(self, table: Table, ids: Sequence[str]) -> list[str]:
        """Those of few ids that rows have.

        Args:
            table: the version to look in.
            ids: the ids, each once.

        Returns:
            list[str]: in the same order.
        """
        known_rows = self._of(table.pin)
        unseen = [row_id for row_id in ids if row_id not in known_rows.places and row_id not in known_rows.absent]
        found = None if self._finder is None or not unseen else self._finder.places(table.pin, unseen)
        if found is not None:
            known_rows.add(unseen, found)
        elif unseen:
            self._scan_for(table, unseen, [ID], known_rows)
        return [row_id for row_id in ids if row_id in known_rows.places]

    def rows_where(self, table: Table, column: str, values: "pa.Array[Any]", columns: Sequence[str] | None) -> pa.Table:
        """The rows that have one of these values in a column; null is no value.

        Args:
            table: the version to look in.
            column: the column.
            values: of the column's own type.
            columns: which columns; all by default.

        Returns:
            pa.Table: the rows, in no promised order.
        """
        if column not in (SRC, DST) or len(values) > limits.FOUND_ROWS_MAX or not _has_ends(table):
            return rows_with(table, column, values, columns=columns)
        nodes = [str(node_id) for node_id in pc.drop_null(pc.unique(values)).to_pylist()]
        edges = self._edges(table, column, nodes)
        return _read(table, {edge.id: edge.address for edge in edges}, columns, self._of(table.pin))

    def edges_at(self, table: Table, column: str, nodes: Sequence[str]) -> list[str]:
        """The ids of the edges with one end at one of these nodes.

        Args:
            table: the version to look in.
            column: which end: `src` or `dst`.
            nodes: the nodes, each once.

        Returns:
            list[str]: each edge once.
        """
        if len(nodes) > limits.FOUND_ROWS_MAX:
            found = rows_with(table, column, pa.array(nodes, pa.string()), columns=[ID])
            return [str(row_id) for row_id in found.column(ID).to_pylist()]
        return [edge.id for edge in self._edges(table, column, nodes)]

    def cached_edges(self, pin: Pin, ids: Sequence[str]) -> list[FoundEdge] | None:
        """The edges with these ids, if all were found before.

        Returns:
            list[FoundEdge] | None: None if one of them was not.
        """
        known = self._of(pin).edges
        found = [edge for row_id in ids if (edge := known.get(row_id)) is not None]
        return found if len(found) == len(ids) else None

    def places(self, table: Table, ids: Sequence[str]) -> tuple[RowAddresses | None, set[str]]:
        """Return the known addresses of rows to replace or delete.

        Args:
            table: the version they are staged on.
            ids: their ids, each once; where there are many, none: then what is known is all.

        Returns:
            tuple[RowAddresses | None, set[str]]: the places, and the ids that the version certainly has not.
        """
        known_rows = self._of(table.pin)
        if self._finder is not None and len(ids) <= limits.FOUND_ROWS_MAX:
            unseen = [row_id for row_id in ids if row_id not in known_rows.places and row_id not in known_rows.absent]
            found = self._finder.places(table.pin, unseen) if unseen else None
            if found is not None:
                known_rows.add(unseen, found)
        return RowAddresses(table.pin.version, known_rows.places), known_rows.absent

    def remember_addresses(self, pin: Pin, places: Mapping[str, int], absent: Iterable[str]) -> None:
        """Remember where rows of a version lie, and which ids it does not have.

        Args:
            pin: the version.
            places: addresses by id.
            absent: ids that no row has.
        """
        known_rows = self._of(pin)
        known_rows.places.update(places)
        known_rows.absent.update(absent)

    def _edges(self, table: Table, column: str, nodes: Sequence[str]) -> Sequence[FoundEdge]:
        edges = None if self._finder is None else self._finder.edges(table.pin, column, nodes)
        if edges is None:
            values = pa.array(nodes, pa.string())
            edges = _edges_of(rows_with(table, column, values, columns=_EDGE, with_addresses=True))
        self._of(table.pin).add_edges(edges)
        return edges

    def _of(self, pin: Pin) -> KnownRows:
        return self._known.setdefault(pin, KnownRows())

    def _scan_for(
        self, table: Table, ids: Sequence[str], columns: Sequence[str] | None, known_rows: KnownRows
    ) -> pa.Table:
        names = table.schema.names if columns is None else list(columns)
        read = names if ID in names else [*names, ID]
        found = table.rows_with_ids(ids, columns=read, with_addresses=True)
        addresses = as_addresses(found.column(ADDRESS)).tolist()
        known_rows.add(ids, dict(zip(map(str, found.column(ID).to_pylist()), addresses, strict=True)))
        return found.select(names)


def _has_ends(table: Table) -> bool:
    names = table.schema.names
    return SRC in names and DST in names


def _edges_of(rows: pa.Table) -> list[FoundEdge]:
    texts = (map(str, rows.column(name).to_pylist()) for name in _EDGE)
    return [FoundEdge(*edge) for edge in zip(*texts, as_addresses(rows.column(ADDRESS)).tolist(), strict=True)]


def _read(table: Table, places: Mapping[str, int], columns: Sequence[str] | None, known_rows: KnownRows) -> pa.Table:
    """The rows at these places; what is known of them is not read."""
    schema = table.schema
    names = schema.names if columns is None else list(columns)
    wanted = set(names)
    if wanted <= {ID}:
        known = {ID: list(places)}
    elif wanted <= {*_EDGE} and all(row_id in known_rows.edges for row_id in places):
        edges = [known_rows.edges[row_id] for row_id in places]
        known = {ID: list(places), SRC: [edge.src for edge in edges], DST: [edge.dst for edge in edges]}
    elif places:
        return table.rows_at(list(places.values()), columns=names)
    else:
        known = {name: [] for name in names}
    return pa.table([known[name] for name in names], schema=pa.schema([schema.field(name) for name in names]))
