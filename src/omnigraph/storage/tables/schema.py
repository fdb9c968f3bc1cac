"""Staging column changes: nothing is rewritten, whatever the table's size."""

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
from lance import LanceOperation

from omnigraph.errors import InternalError
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import Columns, read_columns
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.table import ID


def change_columns(
    handle: Handle,
    *,
    dropped: Iterable[str] = (),
    renamed: Mapping[str, str] | None = None,
    relaxed: Iterable[str] = (),
    added: Sequence["pa.Field[pa.DataType]"] = (),
) -> Handle:
    """A version with other columns; old rows have null in the new ones.

    Args:
        handle (Handle): the version to start from.
        dropped (Iterable[str]): columns to leave out.
        renamed (Mapping[str, str] | None): of those that stay, old names to new ones.
        relaxed (Iterable[str]): columns, by their old names, that shall allow nulls.
        added (Sequence[pa.Field]): columns to add at the end; they allow nulls.

    Returns:
        Handle: the new version, made in two steps where columns both change and are added.

    Raises:
        InternalError: a column is not there, a name is taken, a new column does not allow nulls, or the id column is
            to go.
    """
    renamed, dropped, relaxed = dict(renamed or {}), list(dropped), list(relaxed)
    with mapped(handle.table, handle.version):
        before = read_columns(handle.dataset.lance_schema)
        _check(handle, before, dropped=dropped, renamed=renamed, relaxed=relaxed, added=added)
        after = before.relaxed(relaxed).without(dropped).renamed(renamed)
        made = handle.dataset
        if after != before or not added:
            operation = LanceOperation.Project(after.as_schema(), preserves_nullability=not relaxed)
            made = commit_detached(made, operation, intermediate=bool(added))
        if added:
            # The next number after every one that a file of this version knows, dropped columns included.
            after = after.extended(added, first_id=handle.dataset.max_field_id + 1)
            made = commit_detached(
                made, LanceOperation.Merge(handle.fragments(), after.as_schema(), preserves_nullability=True)
            )
        return Handle(handle.table, made, handle.data_bytes, handle.rows)


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
