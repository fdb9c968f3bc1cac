"""The changes of one entity along a chain of commits, newest first.

The change sets of the commits say which of them touched it, so only those open a table. Commits that stored none, as in
graphs of earlier formats, are looked at by its row before and after.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise

from omnigraph import limits
from omnigraph.branch.commit_changes import stored_changes
from omnigraph.branch.entity_change import Image, Op
from omnigraph.branch.history_values import EntityEvent
from omnigraph.branch.lineage import lines
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.branch.row_changes import images_of
from omnigraph.errors import FormatError, ReclaimedError
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.transaction.graph_context import GraphContext

# Commits that lay tables out anew and change no entity.
_LAYOUT = frozenset({CommitKind.INDEX, CommitKind.COMPACT})


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity of a type.

    Attributes:
        table: the table of its type where the search begins.
        type_id: the number of its type, which has another table on a branch that added the same type by itself.
    """

    table: str
    type_id: int
    id: str


def events(
    context: GraphContext, schema_of: SchemaOf, entity: Entity, start: Record, *, head: Record | None = None
) -> Iterator[EntityEvent]:
    """What the commits up to an entry did to an entity, newest first.

    Args:
        schema_of: the accepted schema of a digest.
        start: the last commit of the chain.
        head: the head of its branch, where that was just read.

    Yields:
        One event for each commit that changed it or renamed its properties, also for those that were pruned one by one.
        The oldest commit that can be seen tells nothing, for want of one to compare it with, unless it is the first of
        all.
    """
    for line in lines(context, start, head=head):
        newer: Record | None = None
        gone: list[Record] = []
        first = max(line.lowest, line.pruned.through + 1)
        for entry in context.log.backwards(
            line.branch, start=line.last, first=first, step=limits.HISTORY_READ_AHEAD_ENTRIES
        ):
            is_listed = line.pruned.is_listed(entry.number)
            if newer is not None and not is_listed and not _is_readable(context, schema_of, entity, entry):
                gone.append(entry)
                continue
            if newer is not None:
                was_listed = line.pruned.is_listed(newer.number)
                yield from _event(context, schema_of, entity, entry, newer, gone=gone, pruned=not was_listed)
            newer, gone = entry, []


def shown(found: Iterable[EntityEvent]) -> Iterator[EntityEvent]:
    """Events that readers are shown: of commits that are not pruned, and that changed the entity."""
    for event in found:
        if event.own_op is not None:
            yield replace(event, op=event.own_op)
        elif not event.pruned and (event.changed or event.op is not Op.UPDATE):
            yield event


def image_at(context: GraphContext, schema_of: SchemaOf, entity: Entity, entry: Record) -> Image | None:
    """The entity as an entry shows it; None where it is not there."""
    pin = _pin(schema_of, entry, entity)[1]
    return None if pin is None else _image(context, pin, entity)


def renamed(schema_of: SchemaOf, entity: Entity, older: Record, newer: Record) -> dict[str, str]:
    """The properties that have another name at one entry than at an earlier one, new name to old."""
    if older.schema == newer.schema:
        return {}
    types = [schema_of(entry.schema).schema.entity(_pin(schema_of, entry, entity)[0]) for entry in (older, newer)]
    old, new = ({part.property_id: part.name for part in (() if of is None else of.properties)} for of in types)
    return {name: old[number] for number, name in new.items() if old.get(number, name) != name}


def _event(
    context: GraphContext,
    schema_of: SchemaOf,
    entity: Entity,
    older: Record,
    newer: Record,
    *,
    gone: Sequence[Record],
    pruned: bool,
) -> Iterator[EntityEvent]:
    """What happened to an entity from one entry to the next that can be read; `gone` are those between."""
    was, now = (_pin(schema_of, entry, entity)[1] for entry in (older, newer))
    if now is None or (was is not None and (was.table, was.version) == (now.table, now.version)):
        return
    touched = [
        entry
        for entry, below in pairwise((newer, *gone, older))
        # A change of the schema, as by a merge that brings a property back, is in no change set.
        if entry.schema != below.schema or _may_have_changed(context, schema_of, entity, entry)
    ]
    if not touched:
        return
    own_op = None if pruned or touched == [newer] else _own_op(context, schema_of, entity, newer)
    names = renamed(schema_of, entity, older, newer)
    before = None if was is None else _under_other_names(_image(context, was, entity), names)
    after = _image(context, now, entity)
    if before is None and after is None and own_op is None:
        return
    op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
    event = EntityEvent(newer, op, before, after, names, pruned or touched != [newer], own_op)
    if event.changed or event.renamed or op is not Op.UPDATE or own_op is not None:
        yield event


def _under_other_names(image: Image | None, names: Mapping[str, str]) -> Image | None:
    if image is None or not names:
        return image
    moved = {old: new for new, old in names.items()}
    kept = {name: value for name, value in image.properties.items() if name not in names and name not in moved}
    values = {moved[name]: value for name, value in image.properties.items() if name in moved}
    return replace(image, properties=kept | values)


def _is_readable(context: GraphContext, schema_of: SchemaOf, entity: Entity, entry: Record) -> bool:
    try:
        image_at(context, schema_of, entity, entry)
    except FormatError as fault:
        if fault.code != ReclaimedError.code:
            raise
        return False
    return True


def _may_have_changed(context: GraphContext, schema_of: SchemaOf, entity: Entity, entry: Record) -> bool:
    """Whether the stored changes of a commit leave it possible."""
    if not entry.is_commit or entry.kind in _LAYOUT:
        return False
    type_key = _pin(schema_of, entry, entity)[0]
    stored = entry.changes.types.get(type_key)
    if stored is None:
        # A write of rows stores every change it makes; others may have brought a version in without.
        return entry.kind not in (CommitKind.MUTATION, CommitKind.LOAD, CommitKind.REVERT) or not entry.changes.types
    if stored.inserted_ids is None:
        try:
            stored = stored_changes(context, entry).get(type_key, TypeChange(0, 0, 0))
        except ObjectNotFound:
            return True  # swept with its commit
    return _op_on(entity, stored) is not None


def _own_op(context: GraphContext, schema_of: SchemaOf, entity: Entity, entry: Record) -> Op | None:
    """What the stored changes of a commit say that it did to an entity; None where they say nothing of it."""
    with suppress(ObjectNotFound):
        stored = stored_changes(context, entry).get(_pin(schema_of, entry, entity)[0])
        return None if stored is None else _op_on(entity, stored)
    return None


def _op_on(entity: Entity, stored: TypeChange) -> Op | None:
    by_op = {Op.INSERT: stored.inserted_ids, Op.UPDATE: stored.updated_ids, Op.DELETE: stored.deleted_ids}
    return next((op for op, ids in by_op.items() if entity.id in (ids or ())), None)


def _pin(schema_of: SchemaOf, entry: Record, entity: Entity) -> tuple[str, Pin | None]:
    """The type key and the version of an entity's type at an entry; no version where it does not have the type."""
    for key, pin in entry.tables.items():
        if pin.table == entity.table:
            return key, pin
    for known in schema_of(entry.schema).schema.entities:
        if known.type_id == entity.type_id:
            return known.type_key, entry.tables.get(known.type_key)
    return "", None


def _image(context: GraphContext, pin: Pin, entity: Entity) -> Image | None:
    found = images_of(context.tables.open(pin).rows_with_ids([entity.id]))
    return found[0] if found else None
