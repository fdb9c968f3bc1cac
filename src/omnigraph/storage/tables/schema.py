"""Staging column changes: no row is rewritten; columns that come with values lie in files of their own."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance import LanceOperation

from omnigraph.errors import InternalError
from omnigraph.storage.tables.blobs import stored_field
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import Columns, read_columns
from omnigraph.storage.tables.files import fragment_files
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.table import ID


@dataclass(frozen=True, slots=True)
class ComputedColumn:
    """A column whose values follow from those of another in the same row.

    Attributes:
        field: the new column.
        source: the column it is made from.
        compute: from the source's values to its own, as many.
    """

    field: "pa.Field[pa.DataType]"
    source: str
    compute: Callable[["pa.Array[Any]"], "pa.Array[Any]"]


@dataclass(frozen=True, slots=True)
class ChangedColumns:
    """A version with other columns.

    Attributes:
        handle: of the version.
        files: data files it needs and the version before did not have, under the table's folder.
    """

    handle: Handle
    files: frozenset[str] = frozenset()


def change_columns(
    handle: Handle,
    *,
    computed: Sequence[ComputedColumn] = (),
    dropped: Iterable[str] = (),
    renamed: Mapping[str, str] | None = None,
    relaxed: Iterable[str] = (),
    tightened: Iterable[str] = (),
    added: Sequence["pa.Field[pa.DataType]"] = (),
) -> ChangedColumns:
    """A version with other columns; old rows have null in the new ones.

    Args:
        computed: columns to make first; they may be renamed in the same call.
        renamed: of those that stay, old names to new ones.
        relaxed: columns, by their old names, that shall allow nulls.
        tightened: columns, by their old names, that have no nulls and shall not allow any.
        added: columns to add at the end; they allow nulls.

    Returns:
        The new version, made in steps where columns are computed, change and are added.

    Raises:
        InternalError: a column is not there, a name is taken, a new column does not allow nulls, or the id column is to
            go.
    """
    renamed, dropped, relaxed, tightened = dict(renamed or {}), list(dropped), list(relaxed), list(tightened)
    with mapped(handle.table, handle.version):
        was = fragment_files(handle.fragments()) if computed else set()
        if computed:
            handle = _with_computed(handle, computed, intermediate=True)
        before = read_columns(handle.dataset.lance_schema)
        _check(handle, before, dropped=dropped, renamed=renamed, relaxed=[*relaxed, *tightened], added=added)
        after = before.relaxed(relaxed).tightened(tightened).without(dropped).renamed(renamed)
        made = handle.dataset
        if after != before or not added:
            operation = LanceOperation.Project(after.as_schema(), preserves_nullability=not (relaxed or tightened))
            made = commit_detached(made, operation, intermediate=bool(added))
        if added:
            # The next number after every one that a file of this version knows, dropped columns included.
            after = after.extended([stored_field(field) for field in added], first_id=handle.dataset.max_field_id + 1)
            made = commit_detached(
                made, LanceOperation.Merge(handle.fragments(), after.as_schema(), preserves_nullability=True)
            )
        changed = Handle(handle.table, made, handle.data_bytes)
        return ChangedColumns(
            changed, frozenset(fragment_files(changed.fragments()) - was) if computed else frozenset()
        )


def _with_computed(handle: Handle, computed: Sequence[ComputedColumn], *, intermediate: bool) -> Handle:
    """A version with further columns, their values in files beside those there are."""
    fields = pa.schema([column.field for column in computed])
    sources = sorted({column.source for column in computed})

    def values(rows: pa.RecordBatch) -> pa.RecordBatch:
        made = [column.compute(rows.column(column.source)) for column in computed]
        return pa.RecordBatch.from_arrays(made, schema=fields)

    fragments = [fragment.merge_columns(values, columns=sources)[0] for fragment in handle.dataset.get_fragments()]
    # Lance numbers the columns it writes so, fragment by fragment.
    first_id = handle.dataset.max_field_id + 1
    after = read_columns(handle.dataset.lance_schema).extended(list(fields), first_id=first_id)
    operation = LanceOperation.Merge(fragments, after.as_schema(), preserves_nullability=True)
    return Handle(handle.table, commit_detached(handle.dataset, operation, intermediate=intermediate))


def _check(
    handle: Handle,
    before: Columns,
    *,
    dropped: Sequence[str],
    renamed: Mapping[str, str],
    relaxed: Sequence[str],
    added: Sequence["pa.Field[pa.DataType]"],
) -> None:
    unknown = sorted({*dropped, *renamed, *relaxed} - set(before.names))
    if unknown:
        raise InternalError(f"table {handle.table} has no column {', '.join(unknown)}")
    if ID in dropped or ID in renamed or ID in relaxed:
        raise InternalError(f"table {handle.table}: the column {ID} cannot change")
    strict = sorted(field.name for field in added if not field.nullable)
    if strict:
        raise InternalError(f"table {handle.table}: rows there are have no value for {', '.join(strict)}")
    names = [renamed.get(name, name) for name in before.names if name not in dropped]
    names += [field.name for field in added]
    if len(set(names)) != len(names):
        raise InternalError(f"table {handle.table}: two columns would have one name among {', '.join(sorted(names))}")
