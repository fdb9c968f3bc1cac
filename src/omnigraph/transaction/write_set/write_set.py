"""One write while it runs: its pending rows laid over a snapshot, and the footprint it leaves.

Statements read through here, so a later one sees what an earlier one did. Nothing is written; nothing is visible.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ConflictError, InvalidRequestError, NotFoundError
from omnigraph.model.commit import Pin
from omnigraph.model.conflict import KeyConflict
from omnigraph.model.footprint import TokenKind, TypeFootprint
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.storage.tables.table import filter_rows
from omnigraph.storage.tables.tables import RowsToStage, Table
from omnigraph.transaction.snapshot import Snapshot
from omnigraph.transaction.write_set.committed import CommittedRows, FoundEdge, RowIndex
from omnigraph.transaction.write_set.pending import ID, Adopted, Pending, TableChange, TypeNotes, chained, tokens
from omnigraph.transaction.write_set.reshaped import Reshape, ReshapedTable


class WriteSet:
    """The changes of one attempt of one write."""

    def __init__(self, snapshot: Snapshot, finder: RowIndex | None = None) -> None:
        self.snapshot = snapshot
        self._committed = CommittedRows(finder)
        self.notes: dict[str, object] = {}
        self.pending: dict[str, Pending] = {}
        self.table_changes: dict[str, TableChange] = {}
        self._reshapes: dict[str, Reshape] = {}
        self.added: dict[str, Pin] = {}
        self.adopted: dict[str, Adopted] = {}
        self._removed: set[str] = set()
        self._touched: dict[str, TypeNotes] = {}
        self._schema = snapshot.record.schema

    # -- reading, with what is pending laid over the snapshot ---------------------------------------------------------

    def scan(self, type_key: str, *, columns: Sequence[str] | None = None, filter: str | None = None) -> pa.Table:
        """Rows that match, committed and pending together; one filter text judges both.

        The answer depends on every entity of the type, and the footprint says so.
        """
        self._touch(type_key).reads_whole = True
        pending = self.pending.get(type_key)
        if pending is not None and columns is not None and ID not in columns:
            raise InvalidRequestError(f"a scan of {type_key} over pending rows needs the column '{ID}'")
        committed = self._committed_schema_or_rows(type_key, columns=columns, filter=filter)
        return self._overlaid(pending, committed, columns=columns, filter=filter)

    def rows(self, type_key: str, ids: Sequence[str], *, columns: Sequence[str] | None = None) -> pa.Table:
        """The rows with these ids, committed or pending; only they enter the footprint."""
        self._touch(type_key).reads |= tokens(TokenKind.ID, ids)
        wanted = None if columns is None else list(dict.fromkeys([ID, *columns]))
        pending = self.pending.get(type_key)
        committed = self._committed_rows(type_key, ids, wanted)
        if pending is not None:
            committed = pending.laid_over(committed, pending.with_ids(ids))
        return committed if columns is None else committed.select(list(columns))

    def existing_ids(self, type_key: str, ids: Sequence[str]) -> list[str]:
        """Those of few ids, each named once, that there are, committed or pending; as in `rows`, all are noted."""
        if type_key in self.pending or type_key in self.added:
            return [str(row_id) for row_id in self.rows(type_key, ids, columns=[ID])[ID].to_pylist()]
        self._touch(type_key).reads |= tokens(TokenKind.ID, ids)
        return self._committed.existing_ids(self._table(type_key), ids)

    def missing(self, type_key: str, ids: Sequence[str]) -> list[str]:
        """Which of these ids are nowhere, committed or pending; that they exist or not enters the footprint."""
        wanted = list(dict.fromkeys(ids))
        self._touch(type_key).reads |= tokens(TokenKind.EXISTS, wanted)
        found = set(self._present(type_key, wanted))
        return [row_id for row_id in wanted if row_id not in found]

    def rows_where(
        self, type_key: str, column: str, values: "pa.Array[Any]", *, columns: Sequence[str] | None = None
    ) -> pa.Table:
        """The rows that have one of these values in a column, committed or pending.

        Nothing enters the footprint: the caller notes what its answer rests on.
        """
        wanted = None if columns is None else list(dict.fromkeys([ID, column, *columns]))
        pending = self.pending.get(type_key)
        if type_key in self.added or (pending is not None and pending.replaces):
            committed = self._no_rows(type_key, wanted)
        else:
            committed = self._committed.rows_where(self._table(type_key), column, values, wanted)
        if pending is None:
            return committed
        return pending.laid_over(committed, pending.rows.filter(pc.is_in(pending.rows[column], value_set=values)))

    def edges_at(self, type_key: str, column: str, nodes: Sequence[str]) -> list[str]:
        """The ids of the edges with one end, `src` or `dst`, at one of these nodes, committed or pending.

        Nothing enters the footprint, as in `rows_where`.
        """
        pending = self.pending.get(type_key)
        if type_key in self.added or (pending is not None and (pending.replaces or pending.has_rows)):
            rows = self.rows_where(type_key, column, pa.array(nodes, pa.string()), columns=[])
            return [str(row_id) for row_id in rows[ID].to_pylist()]
        found = self._committed.edges_at(self._table(type_key), column, nodes)
        return [edge_id for edge_id in found if pending is None or not pending.deletes(edge_id)]

    def replaced(self, type_key: str, *, columns: Sequence[str]) -> pa.Table:
        """The committed rows that what is pending replaces or deletes; these ids enter the footprint when staged."""
        wanted = list(dict.fromkeys([ID, *columns]))
        pending = self.pending.get(type_key)
        if pending is None or type_key in self.added:
            return self._no_rows(type_key, wanted)
        if pending.replaces:
            return self._table(type_key).scan(columns=wanted)
        ids = pending.maybe_in_base
        if not len(ids):
            return self._no_rows(type_key, wanted)
        found = self._committed.rows(self._table(type_key), ids, wanted)
        if len(found) < len(ids):
            # WriteSet need not look for the others again.
            texts = ids if isinstance(ids, list) else ids.to_pylist()
            pending.note_absent(set(map(str, texts)).difference(map(str, found[ID].to_pylist())))
        return found

    def replaced_edges(self, type_key: str) -> Sequence[FoundEdge] | None:
        """Return the same of edges from the cache; None unless all of them are in it."""
        pending = self.pending.get(type_key)
        if pending is None or pending.replaces or type_key in self.added:
            return None
        ids = pending.maybe_in_base
        return self._committed.cached_edges(self._table(type_key).pin, ids) if isinstance(ids, list) else None

    def remember_addresses(self, type_key: str, places: Mapping[str, int], absent: Iterable[str]) -> None:
        """Remember where committed rows of a type lie, and which ids are absent, so that they are not looked up."""
        self._committed.remember_addresses(self._table(type_key).pin, places, absent)

    def read_whole(self, type_key: str) -> None:
        """Note that the write's validity rests on every entity of a type being as it is."""
        self._touch(type_key).reads_whole = True

    def read_tokens(self, type_key: str, kind: TokenKind, names: Iterable[str]) -> None:
        """Note that the write's validity rests on these (unique values, the edges of a node, …)."""
        self._touch(type_key).reads |= tokens(kind, names)

    def write_tokens(self, type_key: str, kind: TokenKind, names: Iterable[str]) -> None:
        """Note that the write changes these."""
        self._touch(type_key).writes |= tokens(kind, names)

    def claim_tokens(self, type_key: str, kind: TokenKind, names: Iterable[str]) -> None:
        """Note that the write's validity rests on these, and that it changes them."""
        claimed = tokens(kind, names)
        touched = self._touch(type_key)
        touched.reads |= claimed
        touched.writes |= claimed

    # -- writing ------------------------------------------------------------------------------------------------------

    def insert(self, type_key: str, rows: pa.Table, *, fresh_ids: bool = False) -> None:
        """Add entities that must be new; ids just made here (`fresh_ids`) are not looked up."""
        if not fresh_ids:
            ids = [str(row_id) for row_id in rows[ID].to_pylist()]
            taken = [row_id for row_id, times in Counter(ids).items() if times > 1] or self._present(type_key, ids)
            self._touch(type_key).reads |= tokens(TokenKind.EXISTS, ids)
            if taken:
                raise ConflictError(
                    str(KeyConflict(type_key, taken[0])),
                    conflicts=tuple(KeyConflict(type_key, row_id) for row_id in sorted(taken)),
                    code="key_conflict",
                )
        self._pending_for(type_key).put(rows, known_new=True)

    def upsert(self, type_key: str, rows: pa.Table) -> None:
        """Insert or replace whole rows by id."""
        self._pending_for(type_key).put(rows, known_new=False)

    def delete(self, type_key: str, ids: Iterable[str]) -> None:
        """Delete by id. What is not there to be deleted was looked for all the same, and the footprint says so."""
        gone = list(ids)
        self._touch(type_key).reads |= tokens(TokenKind.ID, gone)
        self._pending_for(type_key).delete(gone)

    def withdraw(self, type_key: str) -> None:
        """Forget what is pending, taken over or reworked of a type; what was read for its sake stays noted."""
        for known in (self.pending, self.adopted, self.table_changes, self._reshapes):
            known.pop(type_key, None)

    def overwrite(self, type_key: str, rows: pa.Table) -> None:
        """Make these rows the type's whole content."""
        self._touch(type_key).writes_whole = True
        self._pending_for(type_key).replace(rows)

    # -- tables, columns, layout --------------------------------------------------------------------------------------

    def accept_schema(self, digest: str) -> None:
        """The schema that holds from this commit on."""
        self._schema = digest

    def add_table(self, type_key: str, pin: Pin) -> None:
        """A type's table, created empty beforehand, enters the map; also of a type that this write has removed."""
        known = type_key in self.snapshot.record.tables and type_key not in self._removed
        if known or type_key in self.added:
            raise InvalidRequestError(f"{type_key} exists already")
        self.added[type_key] = pin
        self._touch(type_key).writes_whole = True

    def remove_table(self, type_key: str) -> None:
        """A type leaves the map, with whatever this write did to it; older commits keep it."""
        self._table(type_key)
        if type_key in self.snapshot.record.tables:
            self._removed.add(type_key)
        self.added.pop(type_key, None)
        self.adopted.pop(type_key, None)
        self.pending.pop(type_key, None)
        self.table_changes.pop(type_key, None)
        self._reshapes.pop(type_key, None)
        self._touch(type_key).writes_whole = True

    def adopt(self, type_key: str, pin: Pin, changed: ChangedIds) -> None:
        """Take over a version that another line has made, in the place of what this write had pending for the type.

        The type is read whole: whoever changes it meanwhile is not in that version. It is written whole as well: what
        other writers' checks rest on, values and ends of edges, is not looked at here.
        """
        touched = self._touch(type_key)
        touched.reads_whole = touched.writes_whole = True
        self.pending.pop(type_key, None)
        self.adopted[type_key] = Adopted(pin, changed)

    def change_table(
        self, type_key: str, change: TableChange, *, keeps_content: bool, reshape: Reshape | None = None
    ) -> None:
        """Put a table through a change that is not one of rows: columns, an index, compaction; one after the other.

        With `reshape`, this write reads and writes the type in the columns that the change makes; nothing may be
        pending for it yet.
        """
        self._table(type_key)
        if reshape is not None:
            self._reshapes[type_key] = reshape
        touched = self._touch(type_key)
        if keeps_content:
            touched.changes_layout_only = True
        else:
            touched.writes_whole = True
        before = self.table_changes.get(type_key)
        self.table_changes[type_key] = change if before is None else chained(before, change)

    # -- what came of it ----------------------------------------------------------------------------------------------

    @property
    def schema(self) -> str:
        """The schema digest after this write."""
        return self._schema

    @property
    def touched(self) -> frozenset[str]:
        """The types whose tables this write changes."""
        changed = (self.pending, self.table_changes, self.added, self.adopted, self._removed)
        return frozenset().union(*changed)

    @property
    def removed(self) -> frozenset[str]:
        """Types that leave the map."""
        return frozenset(self._removed)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and bytes pending."""
        sizes = [pending.size for pending in self.pending.values()]
        return sum(rows for rows, _ in sizes), sum(size for _, size in sizes)

    def footprint_of(self, type_key: str) -> TypeFootprint:
        """What was read and noted so far; the ids written are added once they are staged."""
        return self._touch(type_key).frozen()

    @property
    def noted_types(self) -> frozenset[str]:
        """The types that have a footprint."""
        return frozenset(self._touched)

    def base_pin(self, type_key: str) -> Pin:
        """The version a table's write_set starts from; of a type that is removed, the one it had."""
        added = self.added.get(type_key)
        if added is not None:
            return added
        # A type that only the other line knows starts where it is taken over.
        adopted = self.adopted.get(type_key)
        return self.snapshot.record.tables.get(type_key, adopted.pin) if adopted else self.snapshot.table(type_key).pin

    def start_pin(self, type_key: str) -> Pin:
        """The version that a table's pending rows are staged on: the one taken over, where one is."""
        adopted = self.adopted.get(type_key)
        return adopted.pin if adopted is not None else self.base_pin(type_key)

    def effect(self, type_key: str) -> RowsToStage:
        """The pending rows of a type as one effect, with what is known of where the rows lie that they concern."""
        pending = self.pending[type_key]
        ids = [] if pending.replaces or type_key in self.added else pending.maybe_in_base
        if not len(ids):
            return pending.effect()
        few = ids if isinstance(ids, list) else []
        places, absent = self._committed.places(self._table(type_key), few)
        # Of many ids only what somebody has told is known.
        named = few if not absent or isinstance(ids, list) else [str(row_id) for row_id in ids.to_pylist()]
        pending.note_absent(absent.intersection(named))
        return pending.effect(places)

    # -- inside -------------------------------------------------------------------------------------------------------

    def _touch(self, type_key: str) -> TypeNotes:
        return self._touched.setdefault(type_key, TypeNotes())

    def _pending_for(self, type_key: str) -> Pending:
        self._touch(type_key)
        pending = self.pending.get(type_key)
        if pending is None:
            pending = self.pending[type_key] = Pending(self._table_schema(type_key))
        return pending

    def _table(self, type_key: str) -> Table:
        table = self._stored_table(type_key)
        reshape = self._reshapes.get(type_key)
        return table if reshape is None else ReshapedTable(table, reshape)

    def _stored_table(self, type_key: str) -> Table:
        added = self.added.get(type_key)
        if added is not None:
            return self.snapshot.open_pin(added)
        if type_key in self.adopted:
            return self.snapshot.open_pin(self.adopted[type_key].pin)
        if type_key in self._removed:
            raise NotFoundError(f"{type_key} was removed by this very write", code="type_not_found", type_key=type_key)
        return self.snapshot.table(type_key)

    def _table_schema(self, type_key: str) -> pa.Schema:
        return self._table(type_key).schema

    def _committed_schema_or_rows(
        self, type_key: str, *, columns: Sequence[str] | None, filter: str | None
    ) -> pa.Table:
        pending = self.pending.get(type_key)
        if type_key in self.added or (pending is not None and pending.replaces):
            return self._no_rows(type_key, columns)
        return self._table(type_key).scan(columns=columns, filter=filter)

    def _committed_rows(self, type_key: str, ids: Sequence[str], columns: Sequence[str] | None) -> pa.Table:
        if type_key in self.added:
            return self._no_rows(type_key, columns)
        return self._committed.rows(self._table(type_key), ids, columns)

    def _no_rows(self, type_key: str, columns: Sequence[str] | None) -> pa.Table:
        empty = self._table_schema(type_key).empty_table()
        return empty if columns is None else empty.select(list(columns))

    def _overlaid(
        self, pending: Pending | None, committed: pa.Table, *, columns: Sequence[str] | None, filter: str | None
    ) -> pa.Table:
        if pending is None:
            return committed
        return pa.concat_tables([pending.unshadowed(committed), filter_rows(pending.rows, filter, columns=columns)])

    def _present(self, type_key: str, ids: Sequence[str]) -> list[str]:
        pending = self.pending.get(type_key)
        found = [self._committed_rows(type_key, ids, [ID])]
        if pending is not None:
            found = [pending.unshadowed(found[0]), pending.with_ids(ids)]
        return [str(row_id) for rows in found for row_id in rows[ID].to_pylist()]
