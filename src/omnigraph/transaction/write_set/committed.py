"""Look up committed rows: in the in-memory index if there is one, else by a table scan.

The index is a port, `RowIndex`: the layer above implements it from what it has in memory. An answer is about exactly
the version asked for; None means that the tables must be searched. What was found is remembered with the addresses of
the rows, so that staging need not look for them again.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.instants import milliseconds
from omnigraph.storage.tables.addresses import as_addresses
from omnigraph.storage.tables.table import ADDRESS, quoted
from omnigraph.storage.tables.tables import RowAddresses, StagedVersion, Table

_EDGE = (ID, SRC, DST)


@dataclass(frozen=True, slots=True)
class FoundEdge:
    """An edge of one version."""

    id: str  # unique within its type
    src: str  # the node it leaves
    dst: str  # the node it reaches
    address: int  # where it lies in that version


class RowIndex(Protocol):
    """Knows where rows are. Safe to use from several threads."""

    def places(self, pin: Pin, ids: Sequence[str]) -> Mapping[str, int] | None:
        """Where the rows with these ids lie in a version."""
        ...

    def edges(self, pin: Pin, column: str, nodes: Sequence[str]) -> Sequence[FoundEdge] | None:
        """The edges of a version with one end at one of these nodes."""
        ...

    def learn(self, staged: StagedVersion) -> None:
        """Take note of what a version has that was just made, be it ever published or not."""
        ...


def rows_with(
    table: Table,
    column: str,
    values: "pa.Array[Any]",
    *,
    columns: Sequence[str] | None = None,
    with_addresses: bool = False,
) -> pa.Table:
    """The rows that have one of these values in a column; null is no value, and both zeros are one.

    Few values are looked up, through the index where there is one; many are found in one pass over the table.
    """
    wanted = pc.drop_null(pc.unique(values))
    if pa.types.is_floating(wanted.type):
        wanted = pa.concat_arrays([wanted, pc.negate(wanted.filter(pc.equal(wanted, pa.scalar(0.0, wanted.type))))])
    if len(wanted) <= limits.ID_FILTER_IDS_MAX:
        literals = [literal(value) for value in wanted.to_pylist()]
        if all(text is not None for text in literals):
            listed = ", ".join(text for text in literals if text is not None)
            condition = f"{identifier(column)} IN ({listed})" if listed else "false"
            return table.scan(columns=columns, filter=condition, with_addresses=with_addresses)
    names = table.schema.names if columns is None else list(columns)
    read = names if column in names else [*names, column]
    returned = [*names, ADDRESS] if with_addresses else names
    found = [
        batch.filter(pc.is_in(batch.column(column), value_set=wanted)).select(returned)
        for batch in table.batches(columns=read, with_addresses=with_addresses)
    ]
    if found:
        return pa.Table.from_batches(found)
    return table.scan(columns=names, filter="false", with_addresses=with_addresses)


def identifier(column: str) -> str:
    """A column's name in the filter language, whatever its letters."""
    return f"`{column}`"


def literal(value: object) -> str | None:
    """A value in the filter language; None where it has no spelling that means exactly this value."""
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            # Others would be read as floats.
            return str(value) if abs(value) < 2**63 else None
        case str():
            return quoted(value)
        case datetime():
            # A literal of that type counts nanoseconds and ends in the year 2262.
            return f"to_timestamp_millis({milliseconds(value)})"
        case date():
            return f"date '{value.isoformat()}'"
        case _:
            return None


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
        """The rows with these ids."""
        known_rows = self._of(table.pin)
        if len(ids) > limits.FOUND_ROWS_MAX and len(known_rows.places) < len(ids):
            return table.rows_with_ids(ids, columns=columns)
        texts = [str(row_id) for row_id in ids.to_pylist()] if isinstance(ids, pa.Array) else ids
        if self._find(table.pin, list(dict.fromkeys(texts))):
            return self._scan_for(table, texts, columns, known_rows)
        places = {row_id: known_rows.places[row_id] for row_id in texts if row_id in known_rows.places}
        return _read(table, places, columns, known_rows)

    def _find(self, pin: Pin, ids: Sequence[str]) -> list[str]:
        """Look ids up in the index; returns those that it cannot tell of."""
        known = self._of(pin)
        unseen = [row_id for row_id in ids if row_id not in known.places and row_id not in known.absent]
        if unseen and self._finder is not None and len(unseen) <= limits.FOUND_ROWS_MAX:
            found = self._finder.places(pin, unseen)
            if found is not None:
                known.add(unseen, found)
                return []
        return unseen

    def existing_ids(self, table: Table, ids: Sequence[str]) -> list[str]:
        """Those of few ids that rows have."""
        known_rows = self._of(table.pin)
        if unseen := self._find(table.pin, ids):
            self._scan_for(table, unseen, [ID], known_rows)
        return [row_id for row_id in ids if row_id in known_rows.places]

    def rows_where(self, table: Table, column: str, values: "pa.Array[Any]", columns: Sequence[str] | None) -> pa.Table:
        """The rows that have one of these values in a column; null is no value."""
        if column not in (SRC, DST) or len(values) > limits.FOUND_ROWS_MAX or not _has_ends(table):
            return rows_with(table, column, values, columns=columns)
        nodes = [str(node_id) for node_id in pc.drop_null(pc.unique(values)).to_pylist()]
        edges = self._edges(table, column, nodes)
        return _read(table, {edge.id: edge.address for edge in edges}, columns, self._of(table.pin))

    def edges_at(self, table: Table, column: str, nodes: Sequence[str]) -> list[str]:
        """The ids of the edges with one end at one of these nodes."""
        if len(nodes) > limits.FOUND_ROWS_MAX:
            found = rows_with(table, column, pa.array(nodes, pa.string()), columns=[ID])
            return [str(row_id) for row_id in found.column(ID).to_pylist()]
        return [edge.id for edge in self._edges(table, column, nodes)]

    def cached_edges(self, pin: Pin, ids: Sequence[str]) -> list[FoundEdge] | None:
        """The edges with these ids, if all were found before."""
        known = self._of(pin).edges
        found = [edge for row_id in ids if (edge := known.get(row_id)) is not None]
        return found if len(found) == len(ids) else None

    def places(self, table: Table, ids: Sequence[str]) -> tuple[RowAddresses | None, set[str]]:
        """Return the known addresses of rows to replace or delete."""
        known_rows = self._of(table.pin)
        self._find(table.pin, ids)
        return RowAddresses(table.pin.version, known_rows.places), known_rows.absent

    def remember_addresses(self, pin: Pin, places: Mapping[str, int], absent: Iterable[str]) -> None:
        """Remember where rows of a version lie, and which ids it does not have."""
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
