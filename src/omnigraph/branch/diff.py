"""What lies between any two states of a graph: every entity that differs, as it was and as it is.

A type is followed by its table, whatever it is called. Fragments that both versions have are not read; across a
compaction, and between tables that have nothing in common, rows are compared by their ids.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.branch.entity_change import ChangeFilter, EntityChange, EntityKind, Op, type_id
from omnigraph.branch.images import told_changes
from omnigraph.branch.row_changes import RowChanges, row_changes
from omnigraph.branch.told import DiffStats
from omnigraph.model.commit import Pin, Record
from omnigraph.model.schema import ID
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
    """What lies between two states. Read when somebody asks, a type at a time, and once; counting reads less.

    Iterating gives every change: nodes before edges, then by the type's name, then by id.

    Attributes:
        older: the entry of the one state.
        newer: the entry of the other.
        wanted: which changes.
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
        return tuple(each.type_key for each in self._differing() if self._stats(each).total)

    def __iter__(self) -> Iterator[EntityChange]:
        for each in self._differing():
            for told in told_changes(self._changes(each), self.wanted):
                yield EntityChange(each.kind, each.type_id, each.name, told.id, told.op, told.before, told.after)

    def __bool__(self) -> bool:
        return any(self._stats(each).total for each in self._differing())

    def __len__(self) -> int:
        return sum(each.total for each in self.stats.values())

    def to_pylist(self) -> list[dict[str, Any]]:
        """Return every change as a dictionary of JSON values."""
        return [each.to_dict() for each in self]

    @property
    def stats(self) -> Mapping[str, DiffStats]:
        """By type key, how many entities differ; types without change are absent."""
        found = {each.type_key: self._stats(each) for each in self._differing()}
        return {key: stats for key, stats in found.items() if stats.total}

    def to_arrow(self) -> dict[str, pa.Table]:
        """By type key, the changes as a table, in the order of ids.

        Returns:
            dict[str, pa.Table]: the columns `op`, `id`, and `before` and `after`: the whole rows, null where there is
                none.
        """
        return {each.type_key: _table(rows) for each in self._differing() if (rows := self._changes(each)).count}

    def _differing(self) -> tuple[DiffedType, ...]:
        if self._types is None:
            found = [each for each in _paired(self.older, self.newer) if self.wanted.takes_type(each.kind, each.name)]
            self._types = tuple(sorted(found, key=lambda each: (each.kind is EntityKind.EDGE, each.name)))
        return self._types

    def _changes(self, each: DiffedType) -> RowChanges:
        known = self._rows.get(each.key)
        if known is None:
            known = self._rows[each.key] = _only(self._compare(each.older, each.newer), self.wanted)
        return known

    def _stats(self, each: DiffedType) -> DiffStats:
        known = self._counts.get(each.key)
        if known is None:
            counted = None if each.key in self._rows else self._count(each.older, each.newer)
            known = self._counts[each.key] = _stats(self._changes(each)) if counted is None else self._wanted(counted)
        return known

    def _wanted(self, stats: DiffStats) -> DiffStats:
        """What is left of it, of the wanted operations."""
        counts = {Op.INSERT: stats.inserted, Op.UPDATE: stats.updated, Op.DELETE: stats.deleted}
        return DiffStats(*(count if self.wanted.takes_op(op) else 0 for op, count in counts.items()))


def compared_here(tables: Tables, older: Pin | None, newer: Pin | None) -> RowChanges:
    """What happened to the rows of a type, found out in this process.

    Args:
        tables (Tables): of the graph.
        older (Pin | None): one version; None where the type is not there.
        newer (Pin | None): another.

    Returns:
        RowChanges: all of it in memory.
    """
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
