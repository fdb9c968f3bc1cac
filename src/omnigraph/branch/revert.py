"""Undoing commits: what they did to entities is done backwards, on top of whatever came later.

An entity is put back as it was before the first of them only if it still is as the last of them left it. Where somebody
changed it since, or where a rule of the schema would be broken, nothing is undone at all and everything that is in the
way is listed. Rows are written anew: no version of an earlier commit is taken over.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.find_entry import entry_before, of_commit
from omnigraph.branch.lineage import lines
from omnigraph.branch.row_changes import RowChanges, ids_of, images_of, row_changes
from omnigraph.errors import InvalidRequestError, RevertConflictError
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.model.conflict import RevertConflict, RevertConflictKind
from omnigraph.model.schema import ID, Schema
from omnigraph.model.types import PropertyType
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pruning.retention import reclaimed
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

REVERT_NOTE = "revert"
_NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Reverted:
    """The commits to be undone, as one step.

    Attributes:
        before: the entry before the first of them, whose state is to come back.
        last: the last of them; may be the same.
    """

    before: Record
    first: Record
    last: Record


def to_revert(context: GraphContext, first: str, last: str | None = None, *, branch: str) -> Reverted:
    """Find the commits to be undone.

    Args:
        first: a commit by its id, whatever its branch.
        last: the last of a range, in which both are included.
        branch: where they are probably found.

    Raises:
        NotFoundError: there is no such commit.
        ReclaimedError: one of them, or the state before the first, was pruned.
        InvalidRequestError: the first does not come before the last, or is the first of all.
    """
    begin = of_commit(context, first, near=branch)
    end = begin if last is None or last == first else of_commit(context, last, near=branch)
    if not any(line.branch == begin.branch and line.first <= begin.number <= line.last for line in lines(context, end)):
        raise InvalidRequestError(f"commit '{first}' does not come before commit '{last}' on one line")
    if begin.parent is None:
        raise InvalidRequestError(f"commit '{first}' is the first of all; there is nothing to go back to")
    before = entry_before(context, begin)
    if before is None:
        raise reclaimed(begin.branch, begin.number - 1, next_number=begin.number)
    return Reverted(before, begin, end)


def revert_operation(
    context: GraphContext, accepted: Accepted, then: Accepted, reverted: Reverted, head: Record
) -> Operation:
    """The write that undoes commits.

    Args:
        accepted: the schema of the branch.
        then: the schema of the last commit to undo.
        reverted: what to undo.
        head: an entry of the branch, for the names that its types have there.

    Returns:
        It may run again on a newer head, and then means the same; it raises `RevertConflictError` where something is
        in the way.
    """
    tables = {pin.table for _, pin, _ in _differing(reverted)}

    def run(staging: WriteSet) -> None:
        refuse_other_schema(accepted, staging)
        conflicts = list(_undo(context, staging, (then.schema, accepted.schema), reverted))
        if not conflicts:
            conflicts = [_breach(breach) for breach in constraints.breaches(staging, accepted.rules)]
        if conflicts:
            raise RevertConflictError(_message_for(conflicts), conflicts=tuple(conflicts))
        staging.notes[REVERT_NOTE] = {"first": reverted.first.commit, "last": reverted.last.commit}

    return Operation(
        kind=CommitKind.REVERT,
        type_keys=frozenset(key for key, pin in head.tables.items() if pin.table in tables),
        run=run,
        redoable=True,
    )


def _undo(
    context: GraphContext, staging: WriteSet, schemas: tuple[Schema, Schema], reverted: Reverted
) -> Iterator[RevertConflict]:
    """Stage the way back; yields what is in the way."""
    tables = [{pin.table for pin in entry.tables.values()} for entry in (reverted.before, reverted.last)]
    if reverted.before.schema != reverted.last.schema or tables[0] != tables[1]:
        yield _schema_conflict("schema", "the schema was changed; apply the earlier schema instead")
        return
    now = {pin.table: (key, pin) for key, pin in staging.snapshot.record.tables.items()}
    for type_key, older, newer in _differing(reverted):
        here = now.get(older.table)
        names = None if here is None else _names_now(schemas, type_key, here[0])
        if here is None or names is None:
            yield _schema_conflict(type_key, f"type '{type_key}' has been changed or dropped since")
            continue
        difference = context.tables.difference(older, newer)
        done = (_named(rows, names) for rows in (difference.removed, difference.added))
        yield from _undo_rows(staging, here[0], row_changes(*done))


def _names_now(schemas: tuple[Schema, Schema], type_key: str, key_now: str) -> dict[str, str] | None:
    """What the properties of a type are called now, by what they were called; None where one means something else."""
    then, now = (schema.entity(key) for schema, key in zip(schemas, (type_key, key_now), strict=True))
    if then is None or now is None:
        return None
    known = {part.property_id: part for part in now.properties}
    pairs = [(part, known.get(part.property_id)) for part in then.properties]
    if any(part is None or _layout(part.type) != _layout(was.type) for was, part in pairs):
        return None
    return {was.name: part.name for was, part in pairs if part is not None}


def _layout(of: PropertyType) -> tuple[object, ...]:
    return of.scalar, of.list, of.vector_dim


def _named(rows: pa.Table, names: Mapping[str, str]) -> pa.Table:
    return rows.rename_columns([names.get(name, name) for name in rows.column_names])


def _differing(reverted: Reverted) -> list[tuple[str, Pin, Pin]]:
    """Type keys, with the versions before and after, of the tables that differ."""
    older = {pin.table: pin for pin in reverted.before.tables.values()}
    return [
        (key, older[pin.table], pin)
        for key, pin in sorted(reverted.last.tables.items())
        if pin.table in older and older[pin.table].version != pin.version
    ]


def _undo_rows(staging: WriteSet, type_key: str, done: RowChanges) -> Iterator[RevertConflict]:
    left = pa.concat_tables([done.inserted, done.after])
    wanted = pa.concat_tables([done.before, done.deleted])
    found = staging.rows(type_key, ids_of(left) + ids_of(done.deleted))
    common = [name for name in found.column_names if name in left.column_names]
    left, wanted, current = (rows.select(common) for rows in (left, wanted, found))
    moved = row_changes(left, current)
    missing = row_changes(current, wanted)
    # What is as it was before already needs nothing; what is neither that nor as it was left was changed since.
    in_the_way = pc.is_in(missing.ids, value_set=moved.ids)
    for entity_id in sorted(str(entity_id) for entity_id in missing.ids.filter(in_the_way).to_pylist()):
        yield _changed_since(type_key, entity_id, left=left, current=current, wanted=wanted)
    to_restore = missing.ids.filter(pc.invert(in_the_way))
    rows = wanted.filter(pc.is_in(wanted.column(ID), value_set=to_restore))
    gone = to_restore.filter(pc.invert(pc.is_in(to_restore, value_set=wanted.column(ID).combine_chunks())))
    if rows.num_rows:
        staging.upsert(type_key, _with_later_columns(rows, found))
    if len(gone):
        staging.delete(type_key, [str(entity_id) for entity_id in gone.to_pylist()])


def _with_later_columns(rows: pa.Table, current: pa.Table) -> pa.Table:
    """Rows with the columns that were added since, as they are now; null for rows that are not there."""
    at = pc.index_in(rows.column(ID), value_set=current.column(ID).combine_chunks())
    columns = [
        rows.column(name) if name in rows.column_names else current.column(name).take(at)
        for name in current.column_names
    ]
    return pa.Table.from_arrays(columns, schema=current.schema)


def _changed_since(
    type_key: str, entity_id: str, *, left: pa.Table, current: pa.Table, wanted: pa.Table
) -> RevertConflict:
    kind, _, name = type_key.partition(":")
    return RevertConflict(
        RevertConflictKind.CHANGED_SINCE,
        type_key,
        entity_id,
        f"{kind} '{entity_id}' of type '{name}' was changed since",
        before=_values(wanted, entity_id),
        after=_values(left, entity_id),
        current=_values(current, entity_id),
    )


def _values(rows: pa.Table, entity_id: str) -> dict[str, object] | None:
    found = images_of(rows.filter(pc.equal(rows.column(ID), entity_id)))
    return dict(found[0].properties) if found else None


def _schema_conflict(type_key: str, message: str) -> RevertConflict:
    return RevertConflict(RevertConflictKind.SCHEMA_CHANGED, type_key, None, message)


def _breach(breach: constraints.Breach) -> RevertConflict:
    return RevertConflict(RevertConflictKind.CONSTRAINT, breach.type_key, None, breach.error.message)


def _message_for(conflicts: list[RevertConflict]) -> str:
    first = "; ".join(conflict.message for conflict in conflicts[:_NAMED_AT_MOST])
    more = len(conflicts) - _NAMED_AT_MOST
    return f"cannot revert: {first}" + (f"; +{more} more" if more > 0 else "")
