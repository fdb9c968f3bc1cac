"""What happened to one entity, told along a chain of commits, newest first.

The change sets of the commits say which of them touched it, so only those open a table. Commits that stored none, as in
graphs of earlier formats, are looked at by its row before and after.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.branch.commit_changes import stored_changes
from omnigraph.branch.entity_change import Image, Op
from omnigraph.branch.images import images_of
from omnigraph.branch.lines import backwards, lines
from omnigraph.branch.told import EntityEvent
from omnigraph.model.change import TypeChange
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.transaction.parts import Parts

# Commits that lay tables out anew and change no entity.
_LAYOUT = frozenset({CommitKind.INDEX, CommitKind.COMPACT})


@dataclass(frozen=True, slots=True)
class Entity:
    """One entity, named by the table that holds its type for as long as that lives."""

    table: str
    id: str


def events(parts: Parts, entity: Entity, start: Record, *, head: Record | None = None) -> Iterator[EntityEvent]:
    """What the commits up to an entry did to an entity, newest first.

    Args:
        parts: of the graph.
        entity: which.
        start: the last commit of the chain.
        head: the head of its branch, where that was just read.

    Yields:
        One event for each commit that changed it. The oldest commit that can be seen tells nothing, for want of one to
        compare it with, unless it is the first of all.
    """
    for line in lines(parts, start, head=head):
        newer: Record | None = None
        for entry in backwards(parts, line, line.last):
            if newer is not None and newer.is_commit:
                yield from _event(parts, entity, entry, newer)
            newer = entry


def image_at(parts: Parts, entity: Entity, entry: Record) -> Image | None:
    """The entity as an entry shows it; None where it is not there."""
    pin = _pin(entry, entity)[1]
    return None if pin is None else _image(parts, pin, entity)


def _event(parts: Parts, entity: Entity, older: Record, newer: Record) -> Iterator[EntityEvent]:
    was, now = _pin(older, entity)[1], _pin(newer, entity)
    if now[1] is None or newer.kind in _LAYOUT or (was is not None and was.version == now[1].version):
        return
    if not _may_have_changed(parts, entity, newer, now[0]):
        return
    before = None if was is None else _image(parts, was, entity)
    after = _image(parts, now[1], entity)
    if before is None and after is None:
        return
    op = Op.INSERT if before is None else Op.DELETE if after is None else Op.UPDATE
    event = EntityEvent(newer, op, before, after)
    if event.changed or op is not Op.UPDATE:
        yield event


def _may_have_changed(parts: Parts, entity: Entity, entry: Record, type_key: str) -> bool:
    """Whether the stored changes of a commit leave it possible."""
    stored = entry.changes.types.get(type_key)
    if stored is None:
        # A write of rows stores every change it makes; others may have brought a version in without.
        return entry.kind not in (CommitKind.MUTATION, CommitKind.LOAD, CommitKind.REVERT) or not entry.changes.types
    if stored.inserted_ids is None:
        stored = stored_changes(parts, entry).get(type_key, TypeChange(0, 0, 0))
    ids = (stored.inserted_ids or (), stored.updated_ids or (), stored.deleted_ids or ())
    return any(entity.id in some for some in ids)


def _pin(entry: Record, entity: Entity) -> tuple[str, Pin | None]:
    return next(((key, pin) for key, pin in entry.tables.items() if pin.table == entity.table), ("", None))


def _image(parts: Parts, pin: Pin, entity: Entity) -> Image | None:
    found = images_of(parts.tables.open(pin).rows_with_ids([entity.id]))
    return found[0] if found else None
