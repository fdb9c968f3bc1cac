"""Staging rows: one call makes exactly one version, with everything the write does to the table."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import Deletion, as_addresses, delete_at
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.effect import Effect
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import deletion_files, fragment_files
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.staged import RowsToStage
from omnigraph.storage.tables.staging import Staging, as_staged, unchanged
from omnigraph.storage.tables.table import ADDRESS, ID, Table


def stage_rows(base: Pin, handle: Handle, rows: RowsToStage) -> Staging:
    """Write rows and deletion vectors, and one version on `base` that has them.

    Args:
        base (Pin): the version to start from.
        handle (Handle): the same, open.
        rows (RowsToStage): what to change.

    Returns:
        Staging: the new version, or the base itself when nothing changes.

    Raises:
        InternalError: an id occurs twice, or rows do not fit the table.
    """
    upserts, appends = _conform(rows.upserts, handle), _conform(rows.appends, handle)
    deleted = pa.array(rows.deleted_ids, pa.string())
    _check_ids_are_distinct(handle, upserts.column(ID), appends.column(ID), deleted)
    content = pa.concat_tables([upserts, appends])
    if rows.replaces:
        if len(deleted):
            raise InternalError(f"table {handle.table}: a write that replaces everything names rows to delete")
        return _replace(base, handle, content)
    looked_up = pa.concat_arrays([flat(upserts.column(ID)), deleted])
    found = Table(handle, base).rows_with_ids(looked_up, columns=[ID], with_addresses=True) if len(looked_up) else None
    if found is None or not len(found):
        return _append(base, handle, content) if len(content) else unchanged(base, handle)
    is_old = pc.is_in(upserts.column(ID), value_set=found.column(ID))
    addresses = as_addresses(found.column(ADDRESS))
    with mapped(handle.table, handle.version):
        deletion = delete_at(handle.dataset, addresses)
        if deletion is None:
            raise InternalError(f"table {handle.table} at {handle.version}: a row that was found cannot be deleted")
        added = _written(handle, content)
        made = make_version(handle, added, deletion)
    staged = as_staged(
        base,
        made,
        fragment_files(added) | deletion_files(deletion.updated),
        inserted_ids=as_ids(upserts.column(ID).filter(pc.invert(is_old)), appends.column(ID)),
        updated_ids=as_ids(upserts.column(ID).filter(is_old)),
        deleted_ids=as_ids(deleted.filter(pc.is_in(deleted, value_set=found.column(ID)))),
    )
    return Staging(staged, made, Effect(added, addresses))


def make_version(
    handle: Handle, added: Sequence[FragmentMetadata], deletion: Deletion, *, intermediate: bool = False
) -> Handle:
    """One version on `handle` with fragments added and rows deleted.

    Args:
        handle (Handle): the version to start from.
        added (Sequence[FragmentMetadata]): fragments that no version numbered yet.
        deletion (Deletion): deletion vectors written against `handle`.
        intermediate (bool): another version will be made on top at once.

    Returns:
        Handle: the new version.
    """
    operation: LanceOperation.BaseOperation
    updated, gone_ids = list(deletion.updated), list(deletion.gone_ids)
    if not updated and not gone_ids:
        operation = LanceOperation.Append(list(added))
    elif not added:
        operation = LanceOperation.Delete(updated, gone_ids, "rows by address")
    else:
        operation = LanceOperation.Update(
            removed_fragment_ids=gone_ids,
            updated_fragments=updated,
            new_fragments=list(added),
            update_mode="rewrite_rows",
        )
    made = commit_detached(handle.dataset, operation, intermediate=intermediate)
    return Handle(handle.table, made, handle.data_bytes + bytes_of(added) - bytes_of(deletion.gone))


def replace_content(handle: Handle, added: Sequence[FragmentMetadata], *, intermediate: bool = False) -> Handle:
    """One version on `handle` that holds exactly these fragments, which no version numbered yet."""
    operation = LanceOperation.Overwrite(handle.dataset.lance_schema, list(added))
    made = commit_detached(handle.dataset, operation, intermediate=intermediate)
    return Handle(handle.table, made, bytes_of(added))


def flat(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """A column in one piece."""
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def as_ids(*columns: "pa.Array[Any] | pa.ChunkedArray[Any]") -> tuple[str, ...]:
    """The ids in columns, one column after the other."""
    return tuple(one for column in columns for one in column.to_pylist() if one is not None)


def _append(base: Pin, handle: Handle, content: pa.Table) -> Staging:
    with mapped(handle.table, handle.version):
        added = _written(handle, content)
        made = make_version(handle, added, Deletion())
    staged = as_staged(base, made, fragment_files(added), inserted_ids=as_ids(content.column(ID)))
    return Staging(staged, made, Effect(added))


def _replace(base: Pin, handle: Handle, content: pa.Table) -> Staging:
    before = Table(handle, base).scan(columns=[ID], with_addresses=True)
    if not len(before) and not len(content):
        return unchanged(base, handle)
    with mapped(handle.table, handle.version):
        added = _written(handle, content)
        made = replace_content(handle, added)
    is_old = pc.is_in(content.column(ID), value_set=before.column(ID))
    is_kept = pc.is_in(before.column(ID), value_set=content.column(ID))
    staged = as_staged(
        base,
        made,
        fragment_files(added),
        inserted_ids=as_ids(content.column(ID).filter(pc.invert(is_old))),
        updated_ids=as_ids(content.column(ID).filter(is_old)),
        deleted_ids=as_ids(before.column(ID).filter(pc.invert(is_kept))),
    )
    return Staging(staged, made, Effect(added, as_addresses(before.column(ADDRESS))), replaces=True)


def _written(handle: Handle, content: pa.Table) -> tuple[FragmentMetadata, ...]:
    return tuple(write_fragments(content, handle.dataset)) if len(content) else ()


def _conform(rows: pa.Table | None, handle: Handle) -> pa.Table:
    """Rows in the table's own columns, order and types; columns that are missing are null."""
    schema = handle.dataset.schema
    if rows is None:
        return schema.empty_table()
    if rows.schema.equals(schema):
        return rows
    unknown = sorted(set(rows.column_names) - set(schema.names))
    if unknown:
        raise InternalError(f"table {handle.table} has no column {', '.join(unknown)}")
    try:
        return pa.Table.from_arrays(
            [
                rows.column(field.name) if field.name in rows.column_names else pa.nulls(len(rows), field.type)
                for field in schema
            ],
            names=schema.names,
        ).cast(schema)
    except (ValueError, pa.ArrowException) as error:
        raise InternalError(f"table {handle.table}: rows do not fit: {error}") from error


def _check_ids_are_distinct(handle: Handle, *columns: "pa.Array[Any] | pa.ChunkedArray[Any]") -> None:
    ids = pa.concat_arrays([flat(column) for column in columns])
    if ids.null_count:
        raise InternalError(f"table {handle.table}: a row has no id")
    if pc.count_distinct(ids).as_py() != len(ids):
        raise InternalError(f"table {handle.table}: an id occurs twice in one write")
