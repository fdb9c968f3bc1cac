"""Predict what upkeep of a table version would do, from its manifest, before anything is staged."""

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph import limits
from omnigraph.storage.tables.compact import tail_to_rewrite, to_rewrite
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.indexes import IndexSpec, as_built, is_due, rows_with_value, segments_of, undeclared
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class PendingIndex:
    """An index that is declared and cannot be built yet.

    Attributes:
        property: what it is to be on.
        reason: why not yet.
    """

    property: str
    reason: str


def upkeep_is_due(table: Table, indexes: Sequence[IndexSpec], *, tail_only: bool = False, purge: bool = False) -> bool:
    """Whether upkeep would change anything.

    Args:
        tail_only: ask for the newest fragments only; indexes alone are then no reason.
        purge: a deleted row in a file is a reason.

    Returns:
        False for a version that upkeep has made, and for an empty table.
    """
    handle = table._handle
    with mapped(table.pin.table, table.pin.version):
        if tail_only:
            return bool(tail_to_rewrite(handle.fragments()))
        specs = [as_built(handle, spec) for spec in indexes]
        rewrites = to_rewrite(handle, purge=purge)
        return bool(rewrites or undeclared(handle, specs)) or any(is_due(handle, spec, purge=purge) for spec in specs)


def has_deleted_rows_of(table: Table, other: Table) -> bool:
    """True if files of a version may hold rows that it has deleted and another version of the same table shows."""
    with mapped(table.pin.table, table.pin.version):
        mine, others = table._handle.fragments(), other._handle.fragments()
        indexed, indexed_there = (_indexed_fragments(version) for version in (table, other))
    shown = {file.path: fragment.deletion_file for fragment in others for file in fragment.files}
    if any(
        file.path in shown and fragment.deletion_file != shown[file.path]
        for fragment in mine
        if fragment.num_deletions
        for file in fragment.files
    ):
        return True
    kept = {fragment.id: fragment.deletion_file for fragment in mine}
    return any(
        fragment.id in indexed[segment] and (fragment.id not in kept or kept[fragment.id] != fragment.deletion_file)
        for segment in indexed.keys() & indexed_there.keys()
        for fragment in others
    )


def _indexed_fragments(table: Table) -> dict[str, frozenset[int]]:
    """By the id of each index segment of a version, the fragments whose values its files hold."""
    return {
        str(segment.uuid): frozenset(segment.fragment_ids)
        for index in table._handle.dataset.describe_indices()
        for segment in index.segments
    }


def compaction_is_due(table: Table, *, purge: bool = False) -> bool:
    """Whether upkeep would rewrite rows.

    Args:
        purge: a deleted row in a file is a reason.
    """
    with mapped(table.pin.table, table.pin.version):
        return bool(to_rewrite(table._handle, purge=purge))


def settled_fragments(table: Table) -> int:
    """How many fragments of a version a compaction of its tail would leave as they are."""
    with mapped(table.pin.table, table.pin.version):
        fragments = table._handle.fragments()
        return len(fragments) - len(tail_to_rewrite(fragments))


def pending_indexes(table: Table, indexes: Sequence[IndexSpec]) -> tuple[PendingIndex, ...]:
    """The indexes that a version does not have because they cannot be built."""
    handle = table._handle
    found = []
    with mapped(table.pin.table, table.pin.version):
        fragments = [fragment.id for fragment in handle.fragments()]
        for spec in indexes:
            if segments_of(handle, as_built(handle, spec).name):
                continue
            if not fragments:
                found.append(PendingIndex(spec.column, "the table is empty"))
            elif spec.kind.is_vector:
                rows = rows_with_value(handle, spec.column, fragments)
                reason = f"{rows} vectors are too few to learn from; {limits.VECTOR_INDEX_ROWS_MIN} are enough"
                found.append(PendingIndex(spec.column, reason))
    return tuple(dict.fromkeys(found))


def existing_indexes(table: Table, indexes: Sequence[IndexSpec]) -> tuple[IndexSpec, ...]:
    """Those of some indexes that a version has, be it of a part of its rows."""
    handle = table._handle
    with mapped(table.pin.table, table.pin.version):
        return tuple(spec for spec in indexes if segments_of(handle, as_built(handle, spec).name))
