"""Undoing commits: what they did to entities is done backwards, on top of whatever came later.

An entity is put back as it was before the first of them only if it still is as the last of them left it. Where somebody
changed it since, or where a rule of the schema would be broken, nothing is undone at all and everything that is in the
way is listed. Rows are written anew: no version of an earlier commit is taken over.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.images import images_of
from omnigraph.branch.lines import lines
from omnigraph.branch.points import entry_before, of_commit
from omnigraph.branch.row_changes import RowChanges, ids_of, row_changes
from omnigraph.errors import InvalidRequestError, RevertConflictError
from omnigraph.model.commit import CommitKind, Pin, Record
from omnigraph.model.conflict import RevertConflict, RevertConflictKind
from omnigraph.model.schema import ID
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.retention import reclaimed
from omnigraph.transaction.staging import Staging
from omnigraph.transaction.write import Operation

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

REVERT_NOTE = "revert"
_TOLD_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Reverted:
    """The commits to be undone, as one step.

    Attributes:
        before: the entry before the first of them, whose state is to come back.
        first: the first of them.
        last: the last of them; may be the same.
    """

    before: Record
    first: Record
    last: Record


def to_revert(parts: Parts, first: str, last: str | None = None, *, branch: str) -> Reverted:
    """Find the commits to be undone.

    Args:
        parts: of the graph.
        first: a commit by its id, whatever its branch.
        last: the last of a range, in which both are included.
        branch: where they are probably found.

    Raises:
        NotFoundError: there is no such commit.
        ReclaimedError: one of them, or the state before the first, was pruned.
        InvalidRequestError: the first does not come before the last, or is the first of all.
    """
    begin = of_commit(parts, first, near=branch)
    end = begin if last is None or last == first else of_commit(parts, last, near=branch)
    if not any(line.branch == begin.branch and line.first <= begin.number <= line.last for line in lines(parts, end)):
        raise InvalidRequestError(f"commit '{first}' does not come before commit '{last}' on one line")
    if begin.parent is None:
        raise InvalidRequestError(f"commit '{first}' is the first of all; there is nothing to go back to")
    before = entry_before(parts, begin)
    if before is None:
        raise reclaimed(begin.branch, begin.number - 1, next_number=begin.number)
    return Reverted(before, begin, end)


def revert_operation(parts: Parts, accepted: Accepted, reverted: Reverted, head: Record) -> Operation:
    """The write that undoes commits.

    Args:
        parts: of the graph.
        accepted: the schema of the branch.
        reverted: what to undo.
        head: an entry of the branch, for the names that its types have there.

    Returns:
        It may run again on a newer head, and then means the same; it raises `RevertConflictError` where something is
        in the way.
    """
    tables = {pin.table for _, pin, _ in _differing(reverted)}

    def run(staging: Staging) -> None:
        refuse_other_schema(accepted, staging)
        conflicts = list(_undo(parts, staging, reverted))
        if not conflicts:
            conflicts = [_breach(each) for each in constraints.breaches(staging, accepted.rules)]
        if conflicts:
            raise RevertConflictError(_told(conflicts), conflicts=tuple(conflicts))
        staging.notes[REVERT_NOTE] = {"first": reverted.first.commit, "last": reverted.last.commit}

    return Operation(
        kind=CommitKind.REVERT,
        type_keys=frozenset(key for key, pin in head.tables.items() if pin.table in tables),
        run=run,
        redoable=True,
    )


def _undo(parts: Parts, staging: Staging, reverted: Reverted) -> Iterator[RevertConflict]:
    """Stage the way back; yields what is in the way."""
    tables = [{pin.table for pin in entry.tables.values()} for entry in (reverted.before, reverted.last)]
    if reverted.before.schema != reverted.last.schema or tables[0] != tables[1]:
        yield _schema_conflict("schema", "the schema was changed; apply the earlier schema instead")
        return
    now = {pin.table: (key, pin) for key, pin in staging.snapshot.record.tables.items()}
    for type_key, older, newer in _differing(reverted):
        here = now.get(older.table)
        columns = [parts.tables.open(pin).schema for pin in (older, newer, *(() if here is None else (here[1],)))]
        if here is None or any(each.names != columns[0].names or each.types != columns[0].types for each in columns):
            yield _schema_conflict(type_key, f"type '{type_key}' has been changed or dropped since")
            continue
        difference = parts.tables.difference(older, newer)
        yield from _undo_rows(staging, here[0], row_changes(difference.removed, difference.added))


def _differing(reverted: Reverted) -> list[tuple[str, Pin, Pin]]:
    """Type keys, with the versions before and after, of the tables that differ."""
    older = {pin.table: pin for pin in reverted.before.tables.values()}
    return [
        (key, older[pin.table], pin)
        for key, pin in sorted(reverted.last.tables.items())
        if pin.table in older and older[pin.table].version != pin.version
    ]


def _undo_rows(staging: Staging, type_key: str, done: RowChanges) -> Iterator[RevertConflict]:
    left = pa.concat_tables([done.inserted, done.after])
    wanted = pa.concat_tables([done.before, done.deleted])
    current = staging.rows(type_key, ids_of(left) + ids_of(done.deleted))
    moved = row_changes(left, current)
    missing = row_changes(current, wanted)
    # What is as it was before already needs nothing; what is neither that nor as it was left was changed since.
    in_the_way = pc.is_in(missing.ids, value_set=moved.ids)
    for each in sorted(str(each) for each in missing.ids.filter(in_the_way).to_pylist()):
        yield _changed_since(type_key, each, left=left, current=current, wanted=wanted)
    to_restore = missing.ids.filter(pc.invert(in_the_way))
    rows = wanted.filter(pc.is_in(wanted.column(ID), value_set=to_restore))
    gone = to_restore.filter(pc.invert(pc.is_in(to_restore, value_set=wanted.column(ID).combine_chunks())))
    if rows.num_rows:
        staging.upsert(type_key, rows)
    if len(gone):
        staging.delete(type_key, [str(each) for each in gone.to_pylist()])


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


def _told(conflicts: list[RevertConflict]) -> str:
    first = "; ".join(each.message for each in conflicts[:_TOLD_AT_MOST])
    more = len(conflicts) - _TOLD_AT_MOST
    return f"cannot revert: {first}" + (f"; +{more} more" if more > 0 else "")
