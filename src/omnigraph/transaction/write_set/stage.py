"""Stage a write set: one invisible version of every table it changes.

Per touched table exactly one detached version, tables in parallel; then the change set and the footprint, which are
known exactly only now.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from omnigraph import limits
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.change import NO_CHANGES, Changes, TypeChange
from omnigraph.model.commit import Pin, Record
from omnigraph.model.footprint import Footprint, TokenKind, TypeFootprint
from omnigraph.storage import paths
from omnigraph.storage.id_column import is_known
from omnigraph.storage.records.change_file import ChangedIds, change_file_bytes
from omnigraph.storage.records.read import footprint_bytes, read_footprint
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.pending import Adopted, chained, tokens


@dataclass(frozen=True, slots=True)
class StagedCommit:
    """Everything a publish needs; where the in-process and the bulk write paths join."""

    tables: Mapping[str, StagedVersion]  # per touched type, the staged version and what it was staged on
    added: Mapping[str, Pin]  # tables that are new in the map
    removed: frozenset[str]  # types that leave the map
    schema: str  # digest of the schema after the write
    footprint: Footprint
    changes: Changes
    notes: dict[str, object]  # further facts for the record
    # per type, how to stage it again on another version; types without cannot be
    restage: Mapping[str, Callable[[Pin], StagedVersion]]
    # of the types in `tables`, those whose version another line has made: it is nobody's here to move, to stage again
    # or to delete
    adopted: frozenset[str] = frozenset()

    def pins_on(self, head: Record) -> dict[str, Pin]:
        """The table map after this write, on top of `head`'s."""
        kept = {key: pin for key, pin in head.tables.items() if key not in self.removed}
        return kept | dict(self.added) | {key: table.pin for key, table in self.tables.items()}

    @property
    def files(self) -> tuple[str, ...]:
        """Every file, or folder of files, that must be durable before this is published."""
        created = tuple(f"{pin.table}/" for pin in self.added.values())
        return created + tuple(path for table in self.tables.values() for path in table.files)


def nothing_staged(head: Record) -> StagedCommit:
    """For an entry that says something and changes no table."""
    return StagedCommit({}, {}, frozenset(), head.schema, Footprint(), NO_CHANGES, {}, {})


def stage(context: GraphContext, write_set: WriteSet) -> StagedCommit:
    """Stage every touched table. Nothing is visible afterwards; what fails leaves unreferenced files at most."""
    restage: dict[str, Callable[[Pin], StagedVersion]] = {
        key: partial(context.tables.stage_rows, rows=write_set.effect(key)) for key in write_set.pending
    }
    for key, change in write_set.table_changes.items():
        # First the columns, then the rows that use them.
        restage[key] = chained(change, restage[key]) if key in restage else change
    tables = context.tables.stage_many(
        {key: partial(_one, stage_one, write_set.start_pin(key)) for key, stage_one in restage.items()},
        is_little=not write_set.table_changes
        and sum(map(len, write_set.pending.values())) <= limits.STAGE_IN_TURN_ROWS_MAX,
    )
    if context.finder is not None:
        for table in tables.values():
            context.finder.learn(table)
    # Rows that can be staged again elsewhere without running anything; another change has to be planned again.
    again = {
        key: restage_one
        for key, restage_one in restage.items()
        if key not in write_set.table_changes and key not in write_set.adopted
    }
    for key, adopted in write_set.adopted.items():
        tables[key] = _taken_over(write_set.base_pin(key), adopted, tables.get(key))
    footprint = _footprint(write_set, tables)
    brought = write_set.added.keys() | write_set.adopted.keys()
    return StagedCommit(
        tables={key: table for key, table in tables.items() if table.pin != table.base or key in brought},
        added=write_set.added,
        removed=write_set.removed,
        schema=write_set.schema,
        footprint=_outside_if_large(context, footprint),
        # A table whose layout alone changed has no changes, whatever was done to its files.
        changes=_changes(
            context,
            {
                key: table
                for key, table in tables.items()
                if key in write_set.pending or not write_set.footprint_of(key).changes_layout_only
            },
        ),
        notes=dict(write_set.notes),
        restage=again,
        adopted=frozenset(write_set.adopted),
    )


def restaged(context: GraphContext, staged: StagedCommit, head: Record) -> StagedCommit | None:
    """The same effect, with every file written again, on top of `head`; None where only running again would do."""
    if not staged.tables.keys() <= staged.restage.keys():
        return None
    tables = {
        key: staged.restage[key](staged.added.get(key, head.tables.get(key, table.base)))
        for key, table in staged.tables.items()
    }
    return replace(
        staged,
        tables=tables,
        footprint=_outside_if_large(context, replace(staged.footprint, file=None)),
        changes=_changes(context, tables),
    )


def _taken_over(base: Pin, adopted: Adopted, with_rows: StagedVersion | None) -> StagedVersion:
    """What taking a version over makes of a type, as it is or with rows of this write staged on it."""
    inserted, updated, deleted = (tuple(some) for some in adopted.changed)
    pin, files = (adopted.pin, ()) if with_rows is None else (with_rows.pin, with_rows.files)
    return StagedVersion(base, pin, inserted, updated, deleted, files)


def _one(each: Callable[[Pin], StagedVersion], base: Pin) -> StagedVersion:
    table = each(base)
    reached(Failpoint.WRITE_TABLE_STAGED)
    return table


def _footprint(write_set: WriteSet, tables: Mapping[str, StagedVersion]) -> Footprint:
    found = {}
    for key in sorted(write_set.noted_types | tables.keys()):
        part = write_set.footprint_of(key)
        table = tables.get(key)
        if table is not None:
            part = replace(
                part, writes=part.writes | _written(table), writes_whole=part.writes_whole or _is_huge(table)
            )
        if part.writes_whole or len(part.reads) + len(part.writes) > limits.FOOTPRINT_TOKENS_MAX:
            # Everything, or too much to name: "all of it" is never wrong, only less lucky in a race.
            part = replace(part, writes=frozenset(), writes_whole=part.writes_whole or bool(part.writes))
        if len(part.reads) > limits.FOOTPRINT_TOKENS_MAX:
            part = replace(part, reads=frozenset(), reads_whole=True)
        if part != TypeFootprint():
            found[key] = part
    return Footprint(found)


def _written(table: StagedVersion) -> frozenset[int]:
    """The tokens of the entities a staged table changes."""
    if _is_huge(table):
        return frozenset()
    appeared_or_gone = (*table.inserted_ids, *table.deleted_ids)
    written = tokens(TokenKind.ID, (*appeared_or_gone, *table.updated_ids))
    return written | tokens(TokenKind.EXISTS, appeared_or_gone)


def _is_huge(table: StagedVersion) -> bool:
    """Whether the changed entities alone would be too many to name."""
    twice = 2 * (len(table.inserted_ids) + len(table.deleted_ids))
    return twice + len(table.updated_ids) > limits.FOOTPRINT_TOKENS_MAX


def _outside_if_large(context: GraphContext, footprint: Footprint) -> Footprint:
    """The footprint with a file of its own written, when it is too large for the record; still at hand in memory."""
    if footprint.token_count <= limits.INLINE_FOOTPRINT_TOKENS_MAX:
        return footprint
    path = paths.footprint_file(context.ids.new())
    context.store.put(path, footprint_bytes(footprint))
    return replace(footprint, file=path)


def at_hand(context: GraphContext, footprint: Footprint) -> Footprint:
    """The footprint with its parts, fetched when they lie in a file of their own."""
    if footprint.file is None or footprint.types:
        return footprint
    found = read_footprint(context.store.get(footprint.file), path=paths.absolute(context.store, footprint.file))
    return replace(found, file=footprint.file)


def _changes(context: GraphContext, tables: Mapping[str, StagedVersion]) -> Changes:
    ids = {
        key: ChangedIds(table.inserted_ids, table.updated_ids, table.deleted_ids)
        for key, table in tables.items()
        if table.inserted_ids or table.updated_ids or table.deleted_ids
    }
    if not ids:
        return NO_CHANGES
    inline = sum(len(some) for changed in ids.values() for some in changed) <= limits.INLINE_CHANGE_IDS_MAX
    types = {
        key: TypeChange(
            len(changed.inserted), len(changed.updated), len(changed.deleted), *(map(tuple, changed) if inline else ())
        )
        for key, changed in ids.items()
    }
    if inline or not all(is_known(some) for changed in ids.values() for some in changed):
        return Changes(types)  # of very many only the number is known: whoever wants them compares the versions
    path = paths.change_file(context.ids.new())
    context.store.put(path, change_file_bytes(ids))
    return Changes(types, path)
