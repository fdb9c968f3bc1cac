"""What lies between any two states of a graph: every entity that differs, as it was and as it is.

A type is followed by its table, whatever it is called. Fragments that both versions have are not read; across a
compaction, and between tables that have nothing in common, rows are compared by their ids.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph import limits
from omnigraph.branch.entity_change import ChangeFilter, EntityChange, EntityKind, Op, type_id
from omnigraph.branch.history_values import DiffStats
from omnigraph.branch.row_changes import RowChanges, changes_in_order, differing, row_changes
from omnigraph.model.commit import Pin, Record
from omnigraph.model.schema import ID
from omnigraph.storage.tables.addresses import Addresses
from omnigraph.storage.tables.delta import VersionDelta
from omnigraph.storage.tables.tables import Tables

# Tells what happened to the rows of a type from its older to its newer version; None where it is not there.
Compare = Callable[[Pin | None, Pin | None], RowChanges]
# Tells only how much; None where it must be compared to know.
Count = Callable[[Pin | None, Pin | None], "DiffStats | None"]


@dataclass(frozen=True, slots=True)
class DiffedType:
    """One type in both states.

    Attributes:
        kind: of nodes or of edges.
        name: what it is called in the newer state, or was in the older.
        older: its version there; None where it is not.
        newer: its version there; None where it is not.
    """

    kind: EntityKind
    name: str
    older: Pin | None
    newer: Pin | None

    @property
    def type_key(self) -> str:
        """`node:Name` or `edge:Name`."""
        return f"{self.kind}:{self.name}"

    @property
    def key(self) -> str:
        """What tells it from every other type of a diff."""
        return f"{self.type_key} {self.type_id}"

    @property
    def type_id(self) -> str:
        """What the type is known by outside, whatever it is called."""
        pin = self.newer if self.newer is not None else self.older
        return "" if pin is None else type_id(pin.table)


@dataclass(slots=True)
class Diff:
    """The differences between two states. Read lazily, a type at a time, and once; counting reads less.

    Iterating gives every change: nodes before edges, then by the type's name, then by id.

    Attributes:
        older: the entry of the one state.
        newer: the entry of the other.
    """

    _compare: Compare
    older: Record
    newer: Record
    wanted: ChangeFilter = field(default_factory=ChangeFilter)
    _count: Count = lambda _older, _newer: None
    _rows: dict[str, RowChanges] = field(default_factory=dict)
    _counts: dict[str, "DiffStats"] = field(default_factory=dict)
    _types: tuple[DiffedType, ...] | None = None

    @property
    def from_commit(self) -> str:
        """The commit of the older state."""
        return self.older.head_commit

    @property
    def to_commit(self) -> str:
        """The commit of the newer state."""
        return self.newer.head_commit

    @property
    def types(self) -> tuple[str, ...]:
        """The keys of the types that have changes."""
        return tuple(pair.type_key for pair in self._differing() if self._stats(pair).total)

    def __iter__(self) -> Iterator[EntityChange]:
        for pair in self._differing():
            for change in changes_in_order(self._changes(pair), self.wanted):
                yield EntityChange(
                    pair.kind, pair.type_id, pair.name, change.id, change.op, change.before, change.after
                )

    def __bool__(self) -> bool:
        return any(self._stats(pair).total for pair in self._differing())

    def __len__(self) -> int:
        return sum(stats.total for stats in self.stats.values())

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return every change as a dictionary of JSON values."""
        return [change.to_dict() for change in self]

    @property
    def stats(self) -> Mapping[str, DiffStats]:
        """By type key, how many entities differ; types without change are absent."""
        found = {pair.type_key: self._stats(pair) for pair in self._differing()}
        return {key: stats for key, stats in found.items() if stats.total}

    def to_arrow(self) -> dict[str, pa.Table]:
        """By type key, the changes as a table, in the order of ids.

        Returns:
            dict[str, pa.Table]: the columns `op`, `id`, and `before` and `after`: the whole rows, null where there is
                none.
        """
        return {pair.type_key: _table(rows) for pair in self._differing() if (rows := self._changes(pair)).count}

    def _differing(self) -> tuple[DiffedType, ...]:
        if self._types is None:
            found = [pair for pair in _paired(self.older, self.newer) if self.wanted.takes_type(pair.kind, pair.name)]
            self._types = tuple(sorted(found, key=lambda pair: (pair.kind is EntityKind.EDGE, pair.name)))
        return self._types

    def _changes(self, pair: DiffedType) -> RowChanges:
        known = self._rows.get(pair.key)
        if known is None:
            known = self._rows[pair.key] = _only(self._compare(pair.older, pair.newer), self.wanted)
        return known

    def _stats(self, pair: DiffedType) -> DiffStats:
        known = self._counts.get(pair.key)
        if known is None:
            counted = None if pair.key in self._rows else self._count(pair.older, pair.newer)
            known = self._counts[pair.key] = _stats(self._changes(pair)) if counted is None else self._wanted(counted)
        return known

    def _wanted(self, stats: DiffStats) -> DiffStats:
        """What is left of it, of the wanted operations."""
        counts = {Op.INSERT: stats.inserted, Op.UPDATE: stats.updated, Op.DELETE: stats.deleted}
        return DiffStats(*(count if self.wanted.takes_op(op) else 0 for op, count in counts.items()))


def compared_here(tables: Tables, older: Pin | None, newer: Pin | None) -> RowChanges:
    """What happened to the rows of a type, found out in this process."""
    if older is not None and newer is not None:
        difference = tables.difference(older, newer)
        return row_changes(difference.removed, difference.added)
    there = newer if newer is not None else older
    assert there is not None, "a type is in one of both states"
    rows = tables.open(there).scan()
    none = rows.slice(0, 0)
    return row_changes(none, rows) if older is None else row_changes(rows, none)


def _paired(older: Record, newer: Record) -> Iterator[DiffedType]:
    """The types that have another version, or another table, or are in one state only."""
    before = {pin.table: (key, pin) for key, pin in older.tables.items()}
    after = {pin.table: (key, pin) for key, pin in newer.tables.items()}
    alone = {key: pin for table, (key, pin) in before.items() if table not in after}
    for table, (key, pin) in after.items():
        # A type of one name with two tables: dropped and made anew, or made twice; compared by ids.
        was = before[table][1] if table in before else alone.pop(key, None)
        if was is None or (was.table, was.version) != (pin.table, pin.version):
            yield _typed(key, was, pin)
    for key, pin in alone.items():
        yield _typed(key, pin, None)


def _typed(type_key: str, older: Pin | None, newer: Pin | None) -> DiffedType:
    kind, _, name = type_key.partition(":")
    return DiffedType(EntityKind(kind), name, older, newer)


def _only(rows: RowChanges, wanted: ChangeFilter) -> RowChanges:
    """The changes with wanted operations."""
    kept = {op: None if wanted.takes_op(op) else 0 for op in Op}
    return RowChanges(
        rows.inserted.slice(0, kept[Op.INSERT]),
        rows.before.slice(0, kept[Op.UPDATE]),
        rows.after.slice(0, kept[Op.UPDATE]),
        rows.deleted.slice(0, kept[Op.DELETE]),
    )


def _stats(rows: RowChanges) -> DiffStats:
    return DiffStats(rows.inserted.num_rows, rows.after.num_rows, rows.deleted.num_rows)


def _table(rows: RowChanges) -> pa.Table:
    parts = ((Op.INSERT, None, rows.inserted), (Op.UPDATE, rows.before, rows.after), (Op.DELETE, rows.deleted, None))
    tables = []
    for op, before, after in parts:
        present = after if after is not None else before
        assert present is not None, "a change has a row before or after"
        count = present.num_rows
        tables.append(
            pa.table(
                {
                    "op": pa.array([op.value], pa.string()).take(np.zeros(count, np.int64)),
                    ID: present.column(ID),
                    "before": _rows(before, rows.deleted.schema, count),
                    "after": _rows(after, rows.inserted.schema, count),
                }
            )
        )
    return pa.concat_tables(tables).sort_by(ID)


def _rows(rows: pa.Table | None, schema: pa.Schema, count: int) -> "pa.Array[Any]":
    kind = pa.struct([field.with_nullable(nullable=True) for field in schema])
    if rows is None:
        return pa.nulls(count, kind)
    return pa.StructArray.from_arrays([column.combine_chunks() for column in rows.columns], fields=list(kind))


# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


def counted_here(tables: Tables, older: Pin | None, newer: Pin | None) -> DiffStats | None:
    """How many entities differ.

    Returns:
        DiffStats | None: None where so many may have been updated that it is better to read them whole.
    """
    if older is None or newer is None:
        there = newer if newer is not None else older
        assert there is not None, "a type is in one of both states"
        count = tables.open(there).count()
        return DiffStats(inserted=count) if older is None else DiffStats(deleted=count)
    apart = tables.delta(older, newer)
    removed, added = len(apart.removed_at), apart.added_rows
    if not removed or not added:
        return DiffStats(inserted=added, deleted=removed)
    if max(removed, added) > limits.COUNTED_ROWS_MAX:
        return None
    rows = apart.added()
    ids = apart.taken(apart.removed_at, [ID]).column(ID).combine_chunks()
    place = pc.index_in(rows.column(ID).combine_chunks(), value_set=ids)
    addresses = apart.removed_at[np.asarray(pc.drop_null(place))]
    updated = _updated(apart, addresses, rows.filter(pc.is_valid(place)))
    return DiffStats(added - len(addresses), updated, removed - len(addresses))


def _updated(apart: VersionDelta, addresses: Addresses, after: pa.Table) -> int:
    """How many rows are not as they were where they lay before."""
    order = np.argsort(addresses)
    addresses, after = addresses[order], after.take(order)
    same = np.arange(len(addresses))
    for name in sorted(after.column_names, key=lambda name: _cost(after.schema.field(name).type)):
        if not len(same) or name == ID:
            continue
        if name in apart.older.schema.names:
            was = apart.taken(addresses[same], [name])
        else:
            was = pa.table({ID: pa.nulls(len(same), pa.string())})
        same = same[~differing(was, after.select([name]).take(same))]
    return len(addresses) - len(same)


def _cost(type_: "pa.DataType") -> int:
    """How dear a value of a type is to fetch, against others."""
    if pa.types.is_primitive(type_):
        return 0
    return 1 if pa.types.is_string(type_) else 2
