"""What those who keep columns in memory must know of a version: its fragments, and which of their rows are alive.

A fragment's rows never change; what changes from version to version is which fragments there are, and which of their
rows are deleted. So whoever has read a column of one version needs only the new fragments to have it of the next.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.storage.tables.addresses import FragmentKey, deleted_offsets, key_of, parse_vector
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import read_columns
from omnigraph.storage.tables.table import Table


@dataclass(frozen=True, slots=True)
class StoredFragment:
    """One fragment of one version.

    Attributes:
        key: what makes it the same one in every version.
        number: the upper half of its rows' addresses in this version.
        rows: how many rows its files hold, deleted ones included.
        deletions: names its deletion vector; empty where no row is deleted.
    """

    key: FragmentKey
    number: int
    rows: int
    deletions: str


def stored_fragments(table: Table) -> tuple[StoredFragment, ...]:
    """Return the fragments of a version in the order of its scans, from the manifest alone."""
    with mapped(table.pin.table, table.pin.version):
        return tuple(map(_stored, table._handle.fragments()))


def stored_fragment(table: Table, number: int) -> StoredFragment | None:
    """Return a fragment of a version by its number; None if there is no such."""
    with mapped(table.pin.table, table.pin.version):
        found = table._handle.dataset.get_fragment(number)
        return None if found is None else _stored(found.metadata)


def _stored(fragment: FragmentMetadata) -> StoredFragment:
    vector = fragment.deletion_file
    return StoredFragment(
        key_of(fragment), fragment.id, fragment.physical_rows, "" if vector is None else vector.path(fragment.id)
    )


def deleted_rows(table: Table, fragment: StoredFragment) -> "npt.NDArray[np.int64]":
    """Return the offsets of a fragment's deleted rows, ascending; reads its deletion vector and no data."""
    with mapped(table.pin.table, table.pin.version):
        handle = table._handle
        if not handle.is_local:
            found = handle.dataset.get_fragment(fragment.number)
            return NO_OFFSETS if found is None else deleted_offsets(handle.dataset, found.metadata).astype(np.int64)
        # A local file is read faster than Lance hands it over.
        offsets = parse_vector(fragment.deletions, Path(handle.folder, fragment.deletions).read_bytes())
        if len(offsets) and offsets[-1] >= fragment.rows:
            raise ValueError(f"corrupt deletion vector {fragment.deletions}: row {offsets[-1]} of {fragment.rows}")
        return offsets.astype(np.int64)


NO_OFFSETS = np.empty(0, dtype=np.int64)


def column_numbers(table: Table) -> Mapping[str, int]:
    """The numbers by which data files know the columns: a column dropped and added again is another one."""
    with mapped(table.pin.table, table.pin.version):
        return {column[0].name: column[0].id for column in read_columns(table._handle.dataset.lance_schema).columns}


def fragment_rows(
    table: Table, fragments: Sequence[StoredFragment], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """Every row of some fragments, deleted ones included: as many as their files hold.

    Yields:
        The columns; fragments in the order given, rows in the order they lie.
    """
    pin = table.pin
    if not fragments:
        return
    with mapped(pin.table, pin.version):
        dataset = table._handle.dataset
        opened = [found for fragment in fragments if (found := dataset.get_fragment(fragment.number)) is not None]
        scanner = dataset.scanner(
            columns=list(columns),
            fragments=opened,
            scan_in_order=True,
            include_deleted_rows=True,
            with_row_id=True,  # demanded by Lance together with deleted rows
            blob_handling="all_binary",
        )
        rest = iter(scanner.to_batches())
    while True:
        with mapped(pin.table, pin.version):
            batch = next(rest, None)
        if batch is None:
            return
        yield batch.select(list(columns))


def fragment_groups(table: Table, *, rows: int) -> tuple[tuple[int, ...], ...]:
    """The fragments of a version in groups of about so many rows, for as many readers.

    Args:
        rows: how many rows a group should have; one fragment is never divided.

    Returns:
        Numbers of fragments; every fragment is in exactly one group.
    """
    groups: list[tuple[int, ...]] = []
    filled = 0
    for fragment in stored_fragments(table):
        if not groups or (filled and filled + fragment.rows > rows):
            groups.append(())
            filled = 0
        groups[-1] += (fragment.number,)
        filled += fragment.rows
    return tuple(groups)


def rows_of_fragments(
    table: Table,
    numbers: Sequence[int],
    *,
    columns: Sequence[str],
    filter: str | None = None,
    with_addresses: bool = False,
) -> Iterator[pa.RecordBatch]:
    """The living rows of some fragments."""
    pin = table.pin
    with mapped(pin.table, pin.version):
        dataset = table._handle.dataset
        opened = [found for number in numbers if (found := dataset.get_fragment(number)) is not None]
        scanner = dataset.scanner(
            columns=list(columns),
            filter=filter,
            fragments=opened,
            with_row_address=with_addresses,
            blob_handling="all_binary",
        )
        rest = iter(scanner.to_batches() if opened else ())
    while True:
        with mapped(pin.table, pin.version):
            batch = next(rest, None)
        if batch is None:
            return
        yield batch
