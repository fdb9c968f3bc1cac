"""Upkeep of a branch's tables: fewer fragments, indexes that reach every row. No answer changes.

One call is at most one commit. It queues for nothing: writers do not wait for it, nor it for them. Rows written while
it works are no hindrance, it is published on top of them (`storage/tables/compact.py`); only where others laid out
the same table anew, or replaced its content, it is planned again.
"""

import contextlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from omnigraph.errors import FormatError, GraphError, NotFoundError, ReclaimedError
from omnigraph.model.commit import UPKEEP_ACTOR, CommitKind, Pin, Record
from omnigraph.model.schema import EntityType, Schema
from omnigraph.storage import paths
from omnigraph.storage.tables.compact import Groups
from omnigraph.storage.tables.declared import declared_indexes, system_indexes
from omnigraph.storage.tables.fragments import stored_fragments
from omnigraph.storage.tables.indexes import IndexSpec
from omnigraph.storage.tables.tables import StagedVersion, Table
from omnigraph.storage.tables.upkeep import (
    PendingIndex,
    compaction_is_due,
    existing_indexes,
    pending_indexes,
    upkeep_is_due,
)
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.pruning import checksums
from omnigraph.transaction.write import IntentPolicy, Operation, write
from omnigraph.transaction.write_set import WriteSet

SchemaOf = Callable[[str], Schema]
"""The schema that entries name by a digest."""
Rewriter = Callable[[Pin, Groups, int], Sequence[str] | None]
"""Rewrites fragments of a version in other processes; None where this one is to do it."""


@dataclass(frozen=True, slots=True)
class OptimizedTable:
    """What upkeep did to one table."""

    type_key: str
    fragments_removed: int  # how many fragments are gone
    fragments_added: int  # how many there are instead
    indexes: tuple[str, ...]  # the indexes that were built or changed, by their names
    changed: bool  # whether the table has a new version
    version: int  # the version it has now
    pending: tuple[PendingIndex, ...]  # indexes that are declared and cannot be built yet


@dataclass(frozen=True, slots=True)
class Optimized:
    """What one call did."""

    entry: Record | None  # its commit; None where there was nothing to do
    head: Record  # the entry of the branch afterwards
    tables: tuple[OptimizedTable, ...]  # every table of the branch, or those asked for
    checkpoints: int  # how many blocks of old log entries were folded into one file each
    attempts: int  # how often it was planned


def optimize(
    context: GraphContext,
    branch: str,
    schema_of: SchemaOf,
    *,
    type_keys: Iterable[str] | None = None,
    options: WriteOptions | None = None,
    rewriter: Rewriter = lambda _pin, _groups, _size: None,
    purge: bool = False,
) -> Optimized:
    """Compact the tables of a branch, build, extend and fold their indexes, note checksums, and fold its log."""
    context.refuse_read_only()
    name = paths.branch_name(branch)
    work = _Work(context, schema_of, None if type_keys is None else frozenset(type_keys), rewriter, _purge=purge)
    receipt = write(context, name, work.operation(context.log.live_head(name)), options)
    after = receipt.entry if receipt.entry is not None else receipt.head
    recorded = checksums.NewestDigests(context, after)
    for key in work.planned:
        if key in after.tables:
            # What was published stands, also where others have pruned and swept it by now.
            with contextlib.suppress(GraphError):
                checksums.record(context, after.tables[key].table, context.tables.files(after.tables[key]), recorded)
    return Optimized(
        entry=receipt.entry,
        head=after,
        tables=tuple(work.report(key, after.tables[key]) for key in sorted(work.planned) if key in after.tables),
        checkpoints=context.log.fold(name),
        attempts=receipt.attempts,
    )


def compact_tail(context: GraphContext, branch: str, type_keys: frozenset[str], schema_of: SchemaOf) -> Record | None:
    """Compact the newest fragments of some tables, with the indexes they have and those that every table has."""
    work = _Work(context, schema_of, type_keys, lambda _pin, _groups, _size: None, _tail_only=True)
    options = WriteOptions(actor=UPKEEP_ACTOR)
    return write(context, paths.branch_name(branch), work.operation(None), options).entry


@dataclass(slots=True)
class _Work:
    """One call: what was planned, and what came of it, of the last attempt."""

    _context: GraphContext
    _schema_of: SchemaOf
    _type_keys: frozenset[str] | None
    _rewriter: Rewriter
    _tail_only: bool = False
    _purge: bool = False
    _staged: dict[str, StagedVersion] = field(default_factory=dict)
    planned: dict[str, tuple[IndexSpec, ...]] = field(default_factory=dict)

    def operation(self, head: Record | None) -> Operation:
        """The whole call as one write; it is called after what is due at `head`."""
        compacts = head is None or any(
            compaction_is_due(self._context.tables.open(head.tables[key]), purge=self._purge)
            for key in self._chosen(head)
        )
        return Operation(
            kind=CommitKind.COMPACT if compacts else CommitKind.INDEX,
            type_keys=frozenset(),
            run=self._run,
            redoable=True,
            queued=False,
            intent=IntentPolicy.NEVER if self._tail_only else IntentPolicy.BY_SIZE,
        )

    def report(self, type_key: str, now: Pin) -> OptimizedTable:
        """What became of a table; where others have pruned and swept it by now, only whether it was changed."""
        staged = self._staged.get(type_key)
        try:
            return self._describe(type_key, now, staged)
        except FormatError as fault:
            if fault.code != ReclaimedError.code:
                raise
            changed = staged is not None and not staged.is_unchanged
            return OptimizedTable(type_key, 0, 0, (), changed=changed, version=now.version, pending=())

    def _describe(self, type_key: str, now: Pin, staged: StagedVersion | None) -> OptimizedTable:
        table = self._context.tables.open(now)
        before = self._context.tables.open(now if staged is None else staged.base)
        after = before if staged is None else self._context.tables.open(staged.pin)
        old, new = ({fragment.key for fragment in stored_fragments(one)} for one in (before, after))
        return OptimizedTable(
            type_key=type_key,
            fragments_removed=len(old - new),
            fragments_added=len(new - old),
            indexes=_changed_indexes(before, after),
            changed=staged is not None and not staged.is_unchanged,
            version=now.version,
            pending=pending_indexes(table, self.planned[type_key]),
        )

    def _run(self, write_set: WriteSet) -> None:
        record = write_set.snapshot.record
        schema = self._schema_of(record.schema)
        self.planned, self._staged = {}, {}
        for type_key in self._chosen(record):
            entity = schema.entity(type_key)
            if entity is None:
                continue
            table = write_set.snapshot.table(type_key)
            specs = self._indexes(entity, table)
            self.planned[type_key] = specs
            if upkeep_is_due(table, specs, tail_only=self._tail_only, purge=self._purge):
                write_set.change_table(type_key, partial(self._rework, type_key), keeps_content=True)

    def _chosen(self, record: Record) -> list[str]:
        if self._type_keys is None:
            return sorted(record.tables)
        missing = sorted(self._type_keys - record.tables.keys())
        if missing and not self._tail_only:
            raise NotFoundError(f"there is no {missing[0]}", code="type_not_found", type_key=missing[0])
        return sorted(self._type_keys & record.tables.keys())

    def _indexes(self, entity: EntityType, table: Table) -> tuple[IndexSpec, ...]:
        declared = declared_indexes(entity)
        if not self._tail_only:
            return declared
        # What was never built is left to a call for it; it may take long.
        system = system_indexes(entity)
        return (*system, *existing_indexes(table, [spec for spec in declared if spec not in system]))

    def _rework(self, type_key: str, base: Pin) -> StagedVersion:
        staged = self._context.tables.stage_upkeep(
            base,
            self.planned[type_key],
            tail_only=self._tail_only,
            purge=self._purge,
            elsewhere=partial(self._rewriter, base),
        )
        self._staged[type_key] = staged
        return staged


def _changed_indexes(before: Table, after: Table) -> tuple[str, ...]:
    known = {replace(index, rows_missing=0) for index in before.indexes()}
    return tuple(index.name for index in after.indexes() if replace(index, rows_missing=0) not in known)
