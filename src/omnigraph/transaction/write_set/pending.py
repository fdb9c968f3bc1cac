"""What one write has pending for one table, and the tokens of what it read and wrote.

Of rows, the last write of each id wins, deletes too. Tokens of many names are computed in passes over their bytes, to
the bit like `model.footprint.tokens`; a test compares the two.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph import limits
from omnigraph.model import footprint
from omnigraph.model.commit import Pin
from omnigraph.model.footprint import TokenKind, TypeFootprint
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.storage.tables.tables import RowAddresses, RowsToStage, StagedVersion

_Words = np.ndarray[tuple[int], np.dtype[np.uint64]]
ID = "id"
# A change of a table that is not a change of rows: from the pinned version to a staged one.
TableChange = Callable[[Pin], StagedVersion]


def tokens(kind: TokenKind, names: Iterable[str]) -> frozenset[int]:
    """The tokens of `names`."""
    known = names if isinstance(names, list | tuple) else list(names)
    if len(known) < limits.TOKENS_AT_ONCE_MIN:
        return footprint.tokens(kind, known)
    try:
        column = pa.array(known, pa.large_string())
    except ValueError:  # half a surrogate pair: no column can hold it
        return footprint.tokens(kind, known)
    return frozenset(_hashed(kind, column).tolist())


def _hashed(kind: TokenKind, column: pa.LargeStringArray) -> _Words:
    _, starts, text = column.buffers()
    offsets = np.frombuffer(memoryview(starts or b""), np.int64)[: len(column) + 1]
    lengths = np.diff(offsets)
    totals = np.zeros(len(column), np.uint64)
    filled = lengths > 0
    if filled.any():
        raw = np.frombuffer(memoryview(text or b""), np.uint8)[: offsets[-1]].astype(np.uint64)
        place = np.arange(len(raw)) - np.repeat(offsets[:-1], lengths)
        weighted = (raw + np.uint64(1)) * _weights(int(lengths.max()))[place]
        totals[filled] = np.add.reduceat(weighted, offsets[:-1][filled])
    return _mixed((totals ^ np.uint64(footprint.seed(kind))) + lengths.astype(np.uint64))


def _weights(count: int) -> _Words:
    return _mixed(np.arange(count, dtype=np.uint64))


def _mixed(value: _Words) -> _Words:
    value = value + np.uint64(0x9E3779B97F4A7C15)
    value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


def chained(first: TableChange, then: TableChange) -> TableChange:
    """Both, one after the other; only the last version is ever named."""

    def both(base: Pin) -> StagedVersion:
        before = first(base)
        after = then(before.pin)
        return replace(after, base=base, files=before.files + after.files, written=None)

    return both


@dataclass(frozen=True, slots=True)
class Adopted:
    """A version of a type's table that another line of commits has made."""

    pin: Pin
    changed: ChangedIds  # the entities in which it differs from the version the type had


@dataclass(slots=True)
class TypeNotes:
    """What a write has read and changed of one type, for its footprint."""

    reads: set[int] = field(default_factory=set)
    writes: set[int] = field(default_factory=set)
    reads_whole: bool = False
    writes_whole: bool = False
    changes_layout_only: bool = False

    def frozen(self) -> TypeFootprint:
        """Return the footprint so far."""
        return TypeFootprint(
            frozenset(self.reads), frozenset(self.writes), self.reads_whole, self.writes_whole, self.changes_layout_only
        )


class Pending:
    """What a table will get: rows by id, ids to delete, or a whole new content. As long as there are of both."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._put: pa.Table | None = None
        self._deleted: set[str] = set()
        # Ids among the rows that are certain not to be in the base: write_set them needs no lookup.
        self._known_new: set[str] = set()
        self._replaces = False

    @property
    def rows(self) -> pa.Table:
        """The pending rows, each id once."""
        if self._put is None:
            self._put = self._schema.empty_table()
        return self._put

    def __len__(self) -> int:
        return len(self._deleted) + (0 if self._put is None else self._put.num_rows)

    @property
    def size(self) -> tuple[int, int]:
        """How many rows are pending, and their bytes; of few, the bytes they lie in, which may be more."""
        if self._put is None or not self._put.num_rows:
            return 0, 0
        held = self._put.get_total_buffer_size()
        return self._put.num_rows, held if held <= limits.PENDING_BYTES_NOT_COUNTED_MAX else self._put.nbytes

    @property
    def replaces(self) -> bool:
        """Whether the table's committed rows no longer count."""
        return self._replaces

    @property
    def has_rows(self) -> bool:
        """Whether any row is pending."""
        return self._put is not None and self._put.num_rows > 0

    def deletes(self, entity: str) -> bool:
        """Whether an id is to be deleted."""
        return entity in self._deleted

    @property
    def deleted(self) -> frozenset[str]:
        """Ids to delete that the base may have; empty where the whole content is replaced."""
        return frozenset(self._deleted)

    @property
    def maybe_in_base(self) -> "list[str] | pa.StringArray":
        """Ids that the base may have and that this replaces or deletes; texts where they are few, else a column."""
        gone = sorted(self._deleted)
        if self._put is None or len(self._known_new) == self._put.num_rows:
            return gone
        if len(self) <= limits.FOUND_ROWS_MAX:
            return [*(row_id for row_id in map(str, self._put[ID].to_pylist()) if row_id not in self._known_new), *gone]
        rows = _flat(self._put)
        if self._known_new:
            rows = rows.filter(pc.invert(pc.is_in(rows, value_set=pa.array(list(self._known_new), pa.string()))))
        return pa.concat_arrays([rows, pa.array(gone, pa.string())])

    def note_absent(self, ids: Iterable[str]) -> None:
        """Remember that these ids were looked up in the base and are absent."""
        self._known_new |= set(ids) - self._deleted

    def unshadowed(self, committed: pa.Table) -> pa.Table:
        """The committed rows that are neither superseded nor deleted by what is pending."""
        if self._replaces:
            return committed.slice(0, 0)
        if not self._deleted and not self.has_rows:
            return committed
        hidden = pa.concat_arrays([_flat(self.rows), pa.array(sorted(self._deleted), pa.string())])
        return committed.filter(pc.invert(pc.is_in(committed[ID], value_set=hidden)))

    def laid_over(self, committed: pa.Table, pending: pa.Table) -> pa.Table:
        """Committed rows with some of the pending ones in their place, in the columns of the former."""
        return pa.concat_tables([self.unshadowed(committed), pending.select(committed.column_names)])

    def with_ids(self, ids: Iterable[str]) -> pa.Table:
        """The pending rows with these ids."""
        return self.rows.filter(pc.is_in(self.rows[ID], value_set=pa.array(list(ids), pa.string())))

    def put(self, rows: pa.Table, *, known_new: bool) -> None:
        """Insert or replace rows; a later row of the same id wins."""
        same = rows.schema is self._schema or rows.schema.equals(self._schema)
        added = rows if same else rows.select(self._schema.names).cast(self._schema)
        ids = {str(row_id) for row_id in added[ID].to_pylist()}
        if known_new:
            self._known_new |= ids - self._deleted
        self._deleted -= ids
        self._put = _last_per_id(pa.concat_tables([self.rows, added]) if self.has_rows else added)

    def delete(self, ids: Iterable[str]) -> None:
        """Delete by id; ids that are nowhere do nothing."""
        gone = set(ids)
        if self._put is not None and self.has_rows:
            kept = pc.invert(pc.is_in(self._put[ID], value_set=pa.array(sorted(gone), pa.string())))
            self._put = self._put.filter(kept)
        if not self._replaces:
            self._deleted |= gone - self._known_new
        # Nothing of it is pending any more. If it comes back it is looked up, which is never wrong.
        self._known_new -= gone

    def replace(self, rows: pa.Table) -> None:
        """From now on the table's content is exactly these rows."""
        self._replaces = True
        self._deleted.clear()
        self._known_new.clear()
        self._put = None
        self.put(rows, known_new=False)

    def effect(self, known: RowAddresses | None = None) -> RowsToStage:
        """What is to be staged, as one effect; with where the rows it concerns are known to lie."""
        if self._replaces:
            return RowsToStage(upserts=self.rows, replaces=True)
        deleted = tuple(sorted(self._deleted))
        if not self.has_rows:
            return RowsToStage(deleted_ids=deleted, known_addresses=known)
        if not self._known_new:
            return RowsToStage(upserts=self.rows, deleted_ids=deleted, known_addresses=known)
        if len(self._known_new) == self.rows.num_rows:
            return RowsToStage(appends=self.rows, deleted_ids=deleted, known_addresses=known)
        new = pc.is_in(self.rows[ID], value_set=pa.array(sorted(self._known_new), pa.string()))
        return RowsToStage(
            appends=self.rows.filter(new),
            upserts=self.rows.filter(pc.invert(new)),
            deleted_ids=deleted,
            known_addresses=known,
        )


def _flat(rows: pa.Table) -> pa.StringArray:
    return pa.array(rows[ID].combine_chunks(), pa.string())


def _last_per_id(rows: pa.Table) -> pa.Table:
    if rows.num_rows <= 1:
        return rows
    codes = rows[ID].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
    _, first_from_behind = np.unique(codes[::-1], return_index=True)
    if len(first_from_behind) == rows.num_rows:
        return rows
    return rows.take(np.sort(rows.num_rows - 1 - first_from_behind))
