"""The changes of each side of a merge since the base, read lazily and once.

Ids come from the records where these tell; rows come from the tables, of which only fragments that differ are read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.branch.commit_changes import stored_changes
from omnigraph.branch.merge.base import Base, VirtualRows, changes_since, virtual_rows
from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.sides import Lineage, Sides, State, relaxed
from omnigraph.branch.merge.three_way import NO_OPEN_CELLS, Image, OpenCells, images_since
from omnigraph.branch.row_changes import RowChanges, row_changes
from omnigraph.errors import FormatError
from omnigraph.model.commit import Pin, Record
from omnigraph.model.schema import ID
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.storage.tables.addresses import Addresses
from omnigraph.storage.tables.errors import VERSION_RECLAIMED
from omnigraph.transaction.graph_context import GraphContext

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

# What happened to the rows of a type between two versions, told by somebody else; None where it is to be read here.
Differ = Callable[[Pin, Pin], RowChanges | None]
NOTHING = ChangedIds((), (), ())


@dataclass(slots=True)
class Changed:
    """The changes of both sides.

    Attributes:
        base: what both sides are compared with.
        records: the record of each side.
        chains: of each side, the commits since the base's commit; None where they are not known.
        sides: how the sides go together.
        differ: tells differences that are too large to be read here.
    """

    context: GraphContext
    base: Base
    records: Mapping[Side, Record]
    chains: Callable[[Side], list[Record] | None]
    sides: Sides
    differ: Differ = lambda _older, _newer: None
    _nets: dict[Side, dict[str, ChangedIds] | None] = field(default_factory=dict)
    _rows: dict[tuple[Side, str], RowChanges] = field(default_factory=dict)
    _ids: dict[tuple[Side, str], ChangedIds] = field(default_factory=dict)
    _open_cells: dict[str, OpenCells] = field(default_factory=dict)
    _at_base: dict[tuple[Side, str], tuple["pa.Array[Any]", Addresses]] = field(default_factory=dict)

    def pin(self, lineage: Lineage, side: Side) -> Pin | None:
        """The version that a side has of a type."""
        return lineage.pins.get(side)

    def differs(self, lineage: Lineage, side: Side) -> bool:
        """Whether a side has another version than the base."""
        return lineage.differs(side)

    def ids(self, lineage: Lineage, side: Side) -> ChangedIds:
        """Which entities a side changed, net of what cancels out."""
        if not self.differs(lineage, side):
            return NOTHING
        known = self._ids.get((side, lineage.key))
        if known is None:
            known = self._ids[side, lineage.key] = self._changed_ids(lineage, side)
        return known

    def _changed_ids(self, lineage: Lineage, side: Side) -> ChangedIds:
        """Ask the records; of entities that were written again, only rows tell whether they are as they were."""
        net = None if lineage.is_virtual or lineage.base_at else self._net(side)
        if net is None or lineage.base_key is None:
            return self.rows(lineage, side).changed_ids
        known, pin = net.get(lineage.base_key, NOTHING), self.pin(lineage, side)
        written = list(known.updated)
        if not written or lineage.base is None or pin is None:
            return known
        if len(written) > limits.FOUND_ROWS_MAX or (side, lineage.key) in self._rows:
            return self.rows(lineage, side).changed_ids
        # Few are looked up: after a compaction, what lies elsewhere is the whole table.
        before, after = (self.rows_of(lineage, state, written) for state in (None, side))
        return ChangedIds(known.inserted, row_changes(before, after).changed_ids.updated, known.deleted)

    def rows(self, lineage: Lineage, side: Side) -> RowChanges:
        """Which rows a side changed, before and after, in the columns that the result has."""
        if (side, lineage.key) not in self._rows:
            if lineage.is_virtual:
                self._read_since_virtual(lineage)
            else:
                self._rows[side, lineage.key] = self._read(lineage, side)
        return self._rows[side, lineage.key]

    def open_cells(self, lineage: Lineage) -> OpenCells:
        """The cells in which several common ancestors disagree, and both sides, too."""
        if lineage.is_virtual:
            self.rows(lineage, lineage.side)
        return self._open_cells.get(lineage.key, NO_OPEN_CELLS)

    def places_on_ground(self, lineage: Lineage) -> dict[str, int]:
        """Where the rows lie that the other side replaced or deleted and the ground left alone, as far as is known."""
        side, ground = lineage.side.other, lineage.side
        delta, _ = self.rows(lineage, side), self.rows(lineage, ground)
        found, gone = (self._at_base.get((state, lineage.key)) for state in (side, ground))
        if lineage.base is None or found is None or (gone is None and self.differs(lineage, ground)):
            return {}
        if lineage.base.table != lineage.ground.table:
            return {}
        ids, addresses = found
        # Not by id: a row that the ground wrote again as it was is no change, and lies elsewhere all the same.
        stayed = np.ones(len(addresses), np.bool_) if gone is None else ~np.isin(addresses, gone[1])
        wanted = pc.and_(pc.is_in(ids, value_set=delta.ids), pa.array(stayed))
        chosen = addresses[np.array(wanted.to_numpy(zero_copy_only=False), np.bool_)]
        places, known = self.context.tables.addresses_in(lineage.ground, lineage.base, chosen)
        names = ids.filter(wanted).filter(pa.array(known)).to_pylist()
        return dict(zip(map(str, names), places[known].tolist(), strict=True))

    def rows_of(self, lineage: Lineage, state: State, ids: list[str]) -> pa.Table:
        """Entities of a state, in the columns that the result has."""
        pin = lineage.pins[state]
        return self._fitted(lineage, self.context.tables.open(pin).rows_with_ids(ids), state)

    def _net(self, side: Side) -> dict[str, ChangedIds] | None:
        if side not in self._nets:
            self._nets[side] = net_changes(self.context, self.chains(side), self.base.state.schema)
        return self._nets[side]

    def _read(self, lineage: Lineage, side: Side) -> RowChanges:
        """What a side did since the one ancestor that the type is compared with."""
        if not self.differs(lineage, side):
            return self._nothing(lineage)
        pin, base = lineage.pins[side], lineage.base
        if base is not None:
            known = self._read_large_changes(lineage, base, side)
            if known is not None:
                return known
        difference = None if base is None else self.context.tables.difference(base, pin)
        if difference is not None and len(difference.removed_at) == difference.removed.num_rows:
            self._at_base[side, lineage.key] = (
                difference.removed.column(ID).combine_chunks(),
                difference.removed_at,
            )
        if difference is None:
            return row_changes(self._nothing(lineage).deleted, self._whole(lineage, side))
        removed = self._fitted(lineage, difference.removed, None)
        added = self._fitted(lineage, difference.added, side)
        return row_changes(removed, _taken_from(removed, added, self.sides.restored(lineage, side)))

    def _read_large_changes(self, lineage: Lineage, base: Pin, state: State) -> RowChanges | None:
        """Return the changes since an ancestor that are too large for this process, computed elsewhere; else None."""
        at = self.base.states[lineage.base_at]
        record = self.records[state] if isinstance(state, Side) else self.base.states[state or 0]
        # Under another schema rows are compared in the columns of the result, which only this process knows.
        if not at.schema == record.schema == self.sides.accepted.digest:
            return None
        known = self.differ(base, lineage.pins[state])
        if known is None:
            return None
        tables = (known.inserted, known.before, known.after, known.deleted)
        # In an order that does not depend on who told them.
        return RowChanges(*(self._fitted(lineage, table.sort_by(ID), state) for table in tables))

    def _whole(self, lineage: Lineage, state: State) -> pa.Table:
        pin = lineage.pins.get(state)
        if pin is None:
            return self._nothing(lineage).inserted
        return self._fitted(lineage, self.context.tables.open(pin).scan(), state)

    def _nothing(self, lineage: Lineage) -> RowChanges:
        nothing = relaxed(self.sides.accepted.columns[lineage.key]).empty_table()
        return RowChanges(nothing, nothing, nothing, nothing)

    # -- several common ancestors -------------------------------------------------------------------------------------

    def _read_since_virtual(self, lineage: Lineage) -> None:
        """What both sides did since what several common ancestors come to."""
        unknown: set[int] = set()
        since: dict[int, RowChanges] = {}
        for place in range(1, len(self.base.states)):
            try:
                since[place] = self._since_ancestor(lineage, place)
            except FormatError as fault:
                if place in self.base.ancestors.places or fault.code != VERSION_RECLAIMED:
                    raise
                since[place] = self._nothing(lineage)
                unknown.add(place)  # swept: what the ancestors disagree about is open
        ids = pc.unique(pa.chunked_array([rows.ids for rows in since.values()], pa.string()))
        sides = {side: self._since_ancestor(lineage, side) for side in Side}
        images = images_since([*since.values(), *sides.values()], ids)
        ancestors = self.base.ancestors.without(unknown)
        base = virtual_rows(ids, ancestors, images[: len(self.base.states)])
        own = [
            _restored(base, image, self.sides.restored(lineage, side))
            for side, image in zip(sides, images[len(self.base.states) :], strict=True)
        ]
        changes, self._open_cells[lineage.key] = changes_since(base, own)
        for (side, known), met in zip(sides.items(), changes, strict=True):
            self._rows[side, lineage.key] = known.without(ids).and_also(met)

    def _since_ancestor(self, lineage: Lineage, state: State) -> RowChanges:
        """In what a state differs from the ancestor that the type is compared with."""
        base, pin = lineage.base, lineage.pins.get(state)
        if base is None or pin is None:
            return row_changes(self._whole(lineage, None), self._whole(lineage, state))
        if (base.table, base.version) == (pin.table, pin.version):
            return self._nothing(lineage)
        known = self._read_large_changes(lineage, base, state)
        if known is not None:
            return known
        difference = self.context.tables.difference(base, pin)
        removed, added = self._fitted(lineage, difference.removed, None), self._fitted(lineage, difference.added, state)
        return row_changes(removed, added)

    def _fitted(self, lineage: Lineage, rows: pa.Table, state: State) -> pa.Table:
        """Rows of a state, in the columns of the type in the result."""
        return self.sides.reshape(lineage, state).rows(rows)


def _taken_from(others: pa.Table, rows: pa.Table, columns: Sequence[str]) -> pa.Table:
    """Rows with some of their columns as others with the same ids have them; null where there is no such row."""
    if not columns:
        return rows
    places = pc.index_in(rows.column(ID), value_set=others.column(ID).combine_chunks())
    for name in columns:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), others.column(name).take(places))
    return rows


def _restored(base: VirtualRows, image: Image, columns: Sequence[str]) -> Image:
    """Rows of a side with the base's values in columns that the side has dropped."""
    rows, places = image.rows, pa.array(np.arange(len(image.there)), pa.int64(), mask=~base.image.there)
    for name in columns:
        at = rows.schema.get_field_index(name)
        rows = rows.set_column(at, rows.schema.field(at), base.image.rows.column(name).take(places))
    return Image(rows, image.there)


@dataclass(slots=True)
class Net:
    """The ids of one type's changes, one commit on top of the other; what cancels out is not among them."""

    inserted: set[str] = field(default_factory=set)
    updated: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)

    def then(self, inserted: Iterable[str], updated: Iterable[str], deleted: Iterable[str]) -> None:
        """Add what the next commit did."""
        came, changed, went = set(inserted), set(updated), set(deleted)
        returned = came & self.deleted
        self.deleted -= returned
        self.updated |= returned
        self.inserted |= came - returned
        self.updated |= changed - self.inserted
        vanished = went & self.inserted
        self.inserted -= vanished
        self.updated -= went
        self.deleted |= went - vanished

    @property
    def ids(self) -> ChangedIds:
        """By what happened, each in order."""
        return ChangedIds(sorted(self.inserted), sorted(self.updated), sorted(self.deleted))


def net_changes(context: GraphContext, chain: Sequence[Record] | None, schema: str) -> dict[str, ChangedIds] | None:
    """What a chain of commits did in all.

    Args:
        chain: the commits, oldest first; None where they are not known.
        schema: the schema before the first of them.

    Returns:
        By type key; None where the records do not tell: the schema changed on the way, or a change set is gone.
    """
    if chain is None or any(entry.schema != schema for entry in chain):
        return None
    found: dict[str, Net] = {}
    for entry in chain:
        try:
            stored = stored_changes(context, entry)
        except ObjectNotFound:
            return None  # swept with its commit
        for key, change in stored.items():
            if change.inserted_ids is None or change.updated_ids is None or change.deleted_ids is None:
                return None
            found.setdefault(key, Net()).then(change.inserted_ids, change.updated_ids, change.deleted_ids)
    return {key: net.ids for key, net in found.items()}
