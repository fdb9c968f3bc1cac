"""Staging rows: one call makes exactly one version, with everything the write does to the table."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph import limits
from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, Deletion, as_addresses, at, delete_at, key_of
from omnigraph.storage.tables.blobs import write_rows
from omnigraph.storage.tables.delta import FragmentDelta
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import deletion_files, fragment_files
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.staged_version import (
    OpenStagedVersion,
    RowAddresses,
    RowsToStage,
    Written,
    as_staged,
    unchanged,
)
from omnigraph.storage.tables.table import ADDRESS, ID, Table


def stage_rows(base: Pin, handle: Handle, rows: RowsToStage) -> OpenStagedVersion:
    """Write rows and deletion vectors, and one version on `base` that has them.

    Returns:
        The new version, or the base itself when nothing changes.

    Raises:
        InternalError: an id occurs twice, or rows do not fit the table.
    """
    upserts, appends = _conform(rows.upserts, handle), _conform(rows.appends, handle)
    content = _together(upserts, appends)
    _check_ids_are_distinct(handle, content, rows.deleted_ids)
    if rows.replaces:
        if rows.deleted_ids:
            raise InternalError(f"table {handle.table}: a write that replaces everything names rows to delete")
        return _replace(base, handle, handle.schema.empty_table() if content is None else content)
    upserted = () if upserts is None else as_ids(upserts.column(ID))
    there, addresses = _find(base, handle, (*upserted, *rows.deleted_ids), rows.known_addresses)
    if not there:
        return unchanged(base, handle) if content is None else _append(base, handle, content)
    with mapped(handle.table, handle.version):
        added = () if content is None else _written(handle, content)
        made, files = _changed(handle, added, addresses)
    is_there = frozenset(there)
    appended = () if appends is None else as_ids(appends.column(ID))
    staged = as_staged(
        base,
        made,
        files,
        inserted_ids=(*(row_id for row_id in upserted if row_id not in is_there), *appended),
        updated_ids=tuple(row_id for row_id in upserted if row_id in is_there),
        deleted_ids=tuple(row_id for row_id in rows.deleted_ids if row_id in is_there),
        written=_telling(
            partial(_known, handle, made, added, content, gone_ids=there, gone=addresses),
            0 if content is None else len(content),
            len(there),
        ),
    )
    return OpenStagedVersion(staged, made, FragmentDelta(added, addresses))


def _find(
    base: Pin, handle: Handle, ids: Sequence[str], known: RowAddresses | None
) -> tuple[tuple[str, ...], Addresses]:
    """Those of some ids that the version has, and where their rows lie."""
    places = {}
    if known is not None and known.version == base.version:
        places = {row_id: known.by_id[row_id] for row_id in ids if row_id in known.by_id}
    unknown = [row_id for row_id in ids if row_id not in places] if places else ids
    if not unknown:
        return tuple(places), np.fromiter(places.values(), np.uint64, len(places))
    found = Table(handle, base).rows_with_ids(unknown, columns=[ID], with_addresses=True)
    addresses = as_addresses(found.column(ADDRESS))
    if places:
        addresses = np.concatenate([np.fromiter(places.values(), np.uint64, len(places)), addresses])
    return (*places, *as_ids(found.column(ID))), addresses


def make_version(
    handle: Handle, added: Sequence[FragmentMetadata], deletion: Deletion, *, intermediate: bool = False
) -> Handle:
    """One version on `handle` with fragments added and rows deleted.

    Args:
        intermediate: another version will be made on top at once.
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
    return handle.succeeded_by(
        made,
        data_bytes=handle.data_bytes + bytes_of(added) - bytes_of(deletion.gone),
        rows=handle.rows + _rows_of(added) - deletion.rows,
    )


def replace_content(handle: Handle, added: Sequence[FragmentMetadata], *, intermediate: bool = False) -> Handle:
    """One version on `handle` that holds exactly these fragments, which no version numbered yet."""
    operation = LanceOperation.Overwrite(handle.dataset.lance_schema, list(added))
    made = commit_detached(handle.dataset, operation, intermediate=intermediate)
    return handle.succeeded_by(made, data_bytes=bytes_of(added), rows=_rows_of(added))


def flat(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> "pa.Array[Any]":
    """A column in one piece."""
    if isinstance(column, pa.ChunkedArray):
        return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column


def as_ids(*columns: "pa.Array[Any] | pa.ChunkedArray[Any]") -> tuple[str, ...]:
    """The ids in columns, one column after the other."""
    return tuple(one for column in columns for one in column.to_pylist() if one is not None)


def _append(base: Pin, handle: Handle, content: pa.Table) -> OpenStagedVersion:
    with mapped(handle.table, handle.version):
        added = _written(handle, content)
        made, files = _changed(handle, added, NO_ADDRESSES)
    staged = as_staged(
        base,
        made,
        files,
        inserted_ids=as_ids(content.column(ID)),
        written=_telling(partial(_known, handle, made, added, content), len(content)),
    )
    return OpenStagedVersion(staged, made, FragmentDelta(added))


def _replace(base: Pin, handle: Handle, content: pa.Table) -> OpenStagedVersion:
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
    return OpenStagedVersion(staged, made, FragmentDelta(added, as_addresses(before.column(ADDRESS))), replaces=True)


def _written(handle: Handle, content: pa.Table) -> tuple[FragmentMetadata, ...]:
    return tuple(write_rows(content, handle.dataset, handle.schema)) if len(content) else ()


def _changed(handle: Handle, added: Sequence[FragmentMetadata], removed: Addresses) -> tuple[Handle, set[str]]:
    """Make one version with fragments added and rows removed; return its new files too."""
    deletion = delete_at(handle.dataset, removed)
    if deletion is None:
        raise InternalError(f"table {handle.table} at {handle.version}: a row that was found cannot be deleted")
    return make_version(handle, added, deletion), fragment_files(added) | deletion_files(deletion.updated)


def _rows_of(added: Sequence[FragmentMetadata]) -> int:
    return sum(fragment.num_rows for fragment in added)


def _telling(known: Callable[[], Written | None], *rows: int) -> Callable[[], Written | None] | None:
    """What can tell of a write of so many rows; nothing keeps the rows of a large one."""
    return known if sum(rows) <= limits.WRITTEN_ROWS_MAX else None


def _known(
    base: Handle,
    made: Handle,
    added: Sequence[FragmentMetadata],
    content: pa.Table | None,
    *,
    gone_ids: tuple[str, ...] = (),
    gone: Addresses = NO_ADDRESSES,
) -> Written | None:
    """What a small write did, with the places of its rows in the version made; None where they are not certain."""
    if len(added) > 1:
        return None
    if not added or content is None:
        return Written(None, NO_ADDRESSES, gone_ids, gone)
    new = list(made.dataset.fragment_ids().difference(base.dataset.fragment_ids()))
    found = made.dataset.get_fragment(new[0]) if len(new) == 1 else None
    if found is None or key_of(found.metadata) != key_of(added[0]):
        return None
    return Written(content, at(new[0], np.arange(len(content), dtype=np.uint64)), gone_ids, gone)


def _together(*parts: pa.Table | None) -> pa.Table | None:
    there = [part for part in parts if part is not None]
    return there[0] if len(there) == 1 else pa.concat_tables(there) if there else None


def _conform(rows: pa.Table | None, handle: Handle) -> pa.Table | None:
    """Rows in the table's own columns, order and types, null in those that are missing; None where there are none."""
    if rows is None or not len(rows):
        return None
    schema = handle.schema
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


def _check_ids_are_distinct(handle: Handle, content: pa.Table | None, deleted: Sequence[str]) -> None:
    if content is None:
        if len(set(deleted)) != len(deleted):
            raise InternalError(f"table {handle.table}: an id occurs twice in one write")
        return
    ids = content.column(ID)
    if ids.null_count:
        raise InternalError(f"table {handle.table}: a row has no id")
    count = len(ids) + len(deleted)
    if count > 1 and pc.count_distinct(pa.chunked_array([*ids.chunks, pa.array(deleted, ids.type)])).as_py() != count:
        raise InternalError(f"table {handle.table}: an id occurs twice in one write")
