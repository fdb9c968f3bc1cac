"""The changes of one commit against its first parent, in one order, a page at a time.

Nodes before edges, then by type, then by id. The record tells which types changed and how much; the rows come from
where the two versions of a table differ, so the cost follows the change and not the table. Very large changes are read
page by page instead, by the ids that were stored with the commit. What only looks like a change, a row written again as
it was or moved by a compaction, is none.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from omnigraph import limits
from omnigraph.branch.entity_change import ChangeFilter, EntityChange, EntityKind, Op, type_id
from omnigraph.branch.row_changes import RowChanges, changes_in_order, row_changes
from omnigraph.errors import ChangeGapError, ChangeRefusedError, GraphError, ReclaimedError
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import UNKNOWN, CommitKind, Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.transaction.graph_context import GraphContext

_OPS = (Op.INSERT, Op.UPDATE, Op.DELETE)
# Commits that lay tables out anew and change no entity.
_LAYOUT = frozenset({CommitKind.INDEX, CommitKind.COMPACT})


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the changes of a commit a page goes on: at which change of which type."""

    type_id: str = ""
    offset: int = 0


@dataclass(slots=True)
class Room:
    """What is left of a page. The first change always fits, so that no change is too large for every page."""

    changes: int
    bytes: int
    taken: int = 0

    def take(self, change: EntityChange) -> bool:
        """Whether a change still fits; if so it is counted."""
        size = len(json.dumps(change.to_dict()))
        if self.taken and (not self.changes or size > self.bytes):
            return False
        self.taken += 1
        self.changes -= 1
        self.bytes = max(0, self.bytes - size)
        return True

    @property
    def is_full(self) -> bool:
        """Whether nothing more fits for certain."""
        return self.changes <= 0


@dataclass(frozen=True, slots=True)
class _Touched:
    """One type a commit changed."""

    kind: EntityKind
    name: str
    type_key: str
    type_id: str
    older: Pin | None
    newer: Pin
    stored: TypeChange | None

    def entity_changes(
        self, rows: RowChanges, wanted: ChangeFilter, offset: int = 0
    ) -> Iterator[tuple[int, EntityChange]]:
        """Changes of the type in the order of their ids, from a place on, each with its place."""
        for at, change in enumerate(changes_in_order(rows, wanted, offset), offset):
            yield (
                at,
                EntityChange(self.kind, self.type_id, self.name, change.id, change.op, change.before, change.after),
            )


@dataclass(slots=True)
class CommitChanges:
    """The changes of one commit.

    Attributes:
        entry: the commit.
        previous: the entry before it in the same log, whose state is that of its first parent.
    """

    context: GraphContext
    entry: Record
    previous: Record | None
    wanted: ChangeFilter = field(default_factory=ChangeFilter)

    def page(self, start: Place, room: Room) -> tuple[list[EntityChange], Place | None]:
        """The changes from a place on, as many as there is room for, and where the rest begins.

        Raises:
            ChangeRefusedError: there is no first parent, or the schema changed in a way no change of rows can tell.
            ChangeGapError: the commit, or the state before it, was pruned.
        """
        found: list[EntityChange] = []
        with self._readable():
            for touched in self._touched():
                if (touched.kind is EntityKind.EDGE, touched.type_id) < self._order_of(start):
                    continue
                offset = start.offset if touched.type_id == start.type_id else 0
                for at, change in self._changes(touched, offset, room):
                    if not room.take(change):
                        return found, Place(touched.type_id, at)
                    found.append(change)
        return found, None

    def rows(self) -> Iterator[tuple[str, RowChanges]]:
        """All changes as rows, by type key, whatever their number.

        Raises:
            ChangeRefusedError: there is no first parent, or the schema changed in a way no change of rows can tell.
            ChangeGapError: the commit, or the state before it, was pruned.
        """
        with self._readable():
            for touched in self._touched():
                yield touched.type_key, self._difference(touched)

    def _touched(self) -> list[_Touched]:
        """The types that have changes, in order."""
        before = self._before()
        if self.entry.kind in _LAYOUT:
            return []
        older = {pin.table: (key, pin) for key, pin in before.tables.items()}
        newer = {pin.table: (key, pin) for key, pin in self.entry.tables.items()}
        for table, (key, pin) in older.items():
            if table not in newer and self._holds_rows(pin):
                raise self._boundary(key)
        found = []
        for table, (key, pin) in newer.items():
            was = older.get(table, (key, None))[1]
            if was is not None and was.version == pin.version:
                continue
            word, _, name = key.partition(":")
            kind = EntityKind(word)
            stored = self.entry.changes.types.get(key)
            if not self.wanted.takes_type(kind, name) or not self._may_have(stored) or not self._differ(key, was, pin):
                continue
            found.append(_Touched(kind, name, key, type_id(table), was, pin, stored))
        return sorted(found, key=lambda touched: (touched.kind is EntityKind.EDGE, touched.type_id))

    def _before(self) -> Record:
        if self.entry.parent is None:
            raise ChangeRefusedError(
                f"commit '{self.entry.commit}' has no first parent; bootstrap from an exact baseline",
                reason="parentless_commit",
                commit=self.entry.commit,
            )
        if self.previous is None:
            raise gap(self.entry.commit)
        return self.previous

    def _order_of(self, start: Place) -> tuple[bool, str]:
        """Where a place is in the order of types; its type tells whether it is one of nodes."""
        is_edge = any(
            type_id(pin.table) == start.type_id and key.startswith(EntityKind.EDGE)
            for key, pin in self.entry.tables.items()
        )
        return is_edge, start.type_id

    def _may_have(self, stored: TypeChange | None) -> bool:
        """Whether the counts in the record leave a wanted change possible; without counts, everything is."""
        if stored is None:
            return True
        counts = (stored.inserted, stored.updated, stored.deleted)
        return any(count and self.wanted.takes_op(op) for op, count in zip(_OPS, counts, strict=True))

    def _differ(self, key: str, older: Pin | None, newer: Pin) -> bool:
        """Whether the rows of two versions can be compared, and not only the columns were changed."""
        if older is None:
            return self._holds_rows(newer)
        columns = [{field.name: field.type for field in self.context.tables.open(pin).schema} for pin in (older, newer)]
        if columns[0] != columns[1]:
            raise self._boundary(key)
        return True

    def _boundary(self, type_key: str) -> ChangeRefusedError:
        name = type_key.partition(":")[2]
        return ChangeRefusedError(
            f"entity changes for commit '{self.entry.commit}' cross an unprovable schema boundary at type '{name}'",
            reason="schema_boundary",
            commit=self.entry.commit,
            type_name=name,
        )

    def _holds_rows(self, pin: Pin) -> bool:
        return (self.context.tables.open(pin).count() if pin.rows == UNKNOWN else pin.rows) > 0

    def _changes(self, touched: _Touched, offset: int, room: Room) -> Iterator[tuple[int, EntityChange]]:
        """The changes of one type from a place on, each with its own place, read lazily."""
        stored = touched.stored
        count = None if stored is None else stored.inserted + stored.updated + stored.deleted
        if count is None or count <= limits.CHANGE_ROWS_AT_ONCE_MAX:
            yield from touched.entity_changes(self._difference(touched), self.wanted, offset)
            return
        ids, ops = self._stored_ids(touched.type_key)
        read = self._by_ids(touched)
        while offset < len(ids):
            some = slice(offset, offset + max(room.changes, 1))
            new, gone = (ids[some][ops[some] != _OPS.index(op)].tolist() for op in (Op.DELETE, Op.INSERT))
            rows = read(new, gone)
            places = {entity_id: offset + place for place, entity_id in enumerate(ids[some].tolist())}
            for _, change in touched.entity_changes(rows, self.wanted):
                yield places[change.id], change
            offset = some.stop

    def _difference(self, touched: _Touched) -> RowChanges:
        tables = self.context.tables
        if touched.older is None:
            added = tables.open(touched.newer).scan()
            return row_changes(added.slice(0, 0), added)
        found = tables.difference(touched.older, touched.newer)
        return row_changes(found.removed, found.added)

    def _by_ids(self, touched: _Touched) -> Callable[[list[str], list[str]], RowChanges]:
        """What tells the changes with some ids: of rows that are there now, and of rows that are not as they were."""
        if touched.older is None:
            table = self.context.tables.open(touched.newer)
            nothing = table.schema.empty_table()
            return lambda new, _gone: row_changes(nothing, table.rows_with_ids(new))
        # Only where the versions differ: what else the table holds does not count.
        apart = self.context.tables.delta(touched.older, touched.newer)
        return lambda new, gone: row_changes(apart.removed_with(gone), apart.added_with(new))

    def _stored_ids(self, type_key: str) -> "tuple[np.typing.NDArray[Any], np.typing.NDArray[Any]]":
        """The stored ids of one type that are wanted, in order, and what happened to each."""
        stored = stored_changes(self.context, self.entry)[type_key]
        found = (stored.inserted_ids or (), stored.updated_ids or (), stored.deleted_ids or ())
        kept = [(op, ids) for op, ids in enumerate(found) if self.wanted.takes_op(_OPS[op])]
        ids = np.array([entity_id for _, some in kept for entity_id in some], dtype=object)
        ops = np.concatenate([np.full(len(some), op, np.int8) for op, some in kept])
        order = np.argsort(ids, kind="stable")
        return ids[order], ops[order]

    @contextmanager
    def _readable(self) -> Iterator[None]:
        """Tell of data that is gone as of a gap."""
        try:
            yield
        except ChangeGapError:
            raise
        except (GraphError, ObjectNotFound) as fault:
            if fault.code == ReclaimedError.code or isinstance(fault, ObjectNotFound):
                raise gap(self.entry.commit) from fault
            raise


def gap(commit: str, *, cursor: str | None = None) -> ChangeGapError:
    """The error of a commit whose changes can no longer be read."""
    return ChangeGapError(f"change feed gap at commit '{commit}'", first_unreadable_commit_id=commit, cursor=cursor)


def stored_changes(context: GraphContext, entry: Record) -> dict[str, TypeChange]:
    """The changes a commit has stored, with the ids, by type key; from their file where they are many.

    Raises:
        ObjectNotFound: the file is gone.
        FormatError: it is damaged.
    """
    path = entry.changes.file
    if path is None:
        return dict(entry.changes.types)
    return read_change_file(context.store.get(path), path=paths.absolute(context.store, path))
