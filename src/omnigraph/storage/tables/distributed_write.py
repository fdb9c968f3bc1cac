"""Write rows from many processes, and stage one version of all their files.

A writing process needs only the base version, and returns a small description of each file. No version names the files
until the driver stages one; files of a process that failed, or that repeated another's work, are never named.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance.file import LanceFileReader
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.id_column import IdColumn, id_array, is_known
from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Deletion,
    Offsets,
    at,
    delete_at,
    key_of,
    keyed,
    open_fragments,
)
from omnigraph.storage.tables.blobs import write_rows
from omnigraph.storage.tables.compact import rewritten_rows
from omnigraph.storage.tables.delta import FragmentDelta
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import deletion_files, fragment_files
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.stage_rows import make_version, replace_content
from omnigraph.storage.tables.staged_version import OpenStagedVersion, StagedVersion, as_staged, unchanged
from omnigraph.storage.tables.table import ID
from omnigraph.storage.tables.tables import Tables

_READ_ROWS = 65_536


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """Rows that were written and that no version has yet.

    Attributes:
        description: what a version needs to know, as JSON.
        rows: how many.
        path: of the file, under the table's folder.
    """

    description: str
    rows: int
    path: str


@dataclass(frozen=True, slots=True)
class FilesToStage:
    """The changes of one write to one table, its rows written already.

    Attributes:
        dropped: by the number of a file among them, the rows in it that shall not count.
        removed: addresses, in the base, of rows that go.
        replaces: the table's content becomes exactly the files.
        updated_ids: ids among the new rows that the base has too.
        deleted_ids: ids that only the base has.
        ids_max: of more new ids than this only the number is told.
    """

    added: tuple[WrittenFile, ...] = ()
    dropped: Mapping[int, Offsets] = field(default_factory=dict)
    removed: Addresses = field(default_factory=lambda: NO_ADDRESSES)
    replaces: bool = False
    updated_ids: Sequence[str] = ()
    deleted_ids: Sequence[str] = ()
    ids_max: int = 2**62


def write_files(tables: Tables, base: Pin, rows: pa.Table) -> tuple[WrittenFile, ...]:
    """Write rows for a table, in any process that reaches it.

    Args:
        base: the version they are for; its columns are theirs.
    """
    handle = tables._handles.open(base)
    with mapped(base.table, base.version):
        written = write_rows(rows, handle.dataset, handle.schema)
    return tuple(
        WrittenFile(json.dumps(fragment.to_json()), fragment.num_rows, f"data/{fragment.files[0].path}")
        for fragment in written
    )


def read_file(tables: Tables, base: Pin, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield columns of the rows in a file that no version has yet.

    Args:
        base: the version that the rows were written for.
        path: of the file, under the table's folder.
    """
    handles = tables._handles
    with mapped(base.table, base.version):
        reader = LanceFileReader(
            f"{handles._uri}/{base.table}/{path}", storage_options=handles.storage_options, columns=list(columns)
        )
        rest = iter(reader.read_all(batch_size=_READ_ROWS).to_batches())
    while True:
        with mapped(base.table, base.version):
            batch = next(rest, None)
        if batch is None:
            return
        yield batch


def rewrite_files(tables: Tables, base: Pin, numbers: Sequence[int]) -> list[str]:
    """Write the rows of some fragments again, in any process that reaches their table.

    Returns:
        What a version needs to know of each new fragment, as JSON; in the order of the rows.
    """
    handle = tables._handles.open(base)
    there = {fragment.id: fragment for fragment in handle.fragments()}
    with mapped(base.table, base.version):
        written = rewritten_rows(handle, [there[number] for number in numbers])
    return [json.dumps(fragment.to_json()) for fragment in written]


def stage_files(tables: Tables, base: Pin, files: FilesToStage) -> StagedVersion:
    """Make one version of files that were written apart.

    Returns:
        The new version, or the base itself when nothing changes.

    Raises:
        InternalError: a row to remove is not there.
    """
    handle = tables._handles.open(base)
    kept = [
        (number, FragmentMetadata.from_json(file.description))
        for number, file in enumerate(files.added)
        if file.rows > len(files.dropped.get(number, ()))
    ]
    added = tuple(fragment for _, fragment in kept)
    if not added and not len(files.removed) and not (files.replaces and handle.rows):
        return tables._keep(unchanged(base, handle))
    short = {key_of(fragment): files.dropped[number] for number, fragment in kept if len(files.dropped.get(number, ()))}
    with mapped(base.table, base.version):
        deletion = Deletion() if files.replaces else delete_at(handle.dataset, files.removed)
        if deletion is None:
            raise InternalError(f"table {base.table} at {base.version}: a row to be replaced is not there")
        if files.replaces:
            made = replace_content(handle, added, intermediate=bool(short))
        else:
            made = make_version(handle, added, deletion, intermediate=bool(short))
        paths = fragment_files(added) | deletion_files(deletion.updated)
        if short:
            made, dropped = _without(made, short)
            paths |= deletion_files(dropped.updated)
        own = {key_of(fragment) for fragment in added}
        present = tuple(fragment for key, fragment in keyed(made.fragments()).items() if key in own)
        inserted = _inserted(made, present, files)
    staged = as_staged(
        base,
        made,
        paths,
        inserted_ids=inserted,
        updated_ids=files.updated_ids,
        deleted_ids=files.deleted_ids,
    )
    # A fragment without a dropped row is as it was written, under whatever number.
    effect = FragmentDelta(present if short else added, files.removed)
    return tables._keep(OpenStagedVersion(staged, made, effect, replaces=files.replaces))


def _without(made: Handle, short: "Mapping[tuple[str, ...], Offsets]") -> tuple[Handle, Deletion]:
    """A version without some rows of the fragments just added."""
    numbers = {key: fragment.id for key, fragment in keyed(made.fragments()).items()}
    dead = np.concatenate([at(numbers[key], offsets) for key, offsets in short.items()])
    deletion = delete_at(made.dataset, dead)
    if deletion is None:
        raise InternalError(f"table {made.table} at {made.version}: a row just written is not there")
    return make_version(made, (), deletion), deletion


def _inserted(made: Handle, present: Sequence[FragmentMetadata], files: FilesToStage) -> Sequence[str]:
    count = sum(fragment.num_rows for fragment in present) - len(files.updated_ids)
    if count > files.ids_max or not is_known(files.updated_ids):
        return IdColumn(None, count)
    if not count or not present:
        return ()
    scanned = made.dataset.scanner(columns=[ID], fragments=open_fragments(made.dataset, present)).to_table()
    ids = scanned.column(ID)
    if len(files.updated_ids):
        ids = ids.filter(pc.invert(pc.is_in(ids, value_set=id_array(files.updated_ids).combine_chunks())))
    return IdColumn(ids)
