"""Row addresses: `fragment << 32 | offset`, and deleting the rows they name."""

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.bitmap import Bitmap
from lance.fragment import DataFile, FragmentMetadata, LanceFragment

from omnigraph import limits
from omnigraph.errors import InternalError

Addresses = npt.NDArray[np.uint64]
Offsets = npt.NDArray[np.uint64]

_OFFSET_BITS = np.uint64(32)
_OFFSET_MASK = np.uint64(0xFFFF_FFFF)
_AS_ARROW = ".arrow"
_BITMAP: Any = Bitmap  # its readers of bytes are missing from the stubs
NO_ADDRESSES: Addresses = np.empty(0, dtype=np.uint64)


@dataclass(frozen=True, slots=True)
class Deletion:
    """What deleting rows makes of the fragments they lie in.

    Attributes:
        updated: fragments with a longer deletion vector.
        gone_ids: fragments of which no row is left.
        gone: those fragments as they were.
        rows: how many rows go.
    """

    updated: tuple[FragmentMetadata, ...] = ()
    gone_ids: tuple[int, ...] = ()
    gone: tuple[FragmentMetadata, ...] = ()
    rows: int = 0


def as_addresses(column: "pa.Array[Any] | pa.ChunkedArray[Any]") -> Addresses:
    """A column of addresses as one array."""
    return np.asarray(column, dtype=np.uint64)


def by_fragment(addresses: Addresses) -> Iterator[tuple[int, Offsets]]:
    """The fragments that addresses lie in, each with its sorted offsets."""
    if not len(addresses):
        return
    ordered = np.sort(addresses)
    fragment_ids, starts = np.unique(ordered >> _OFFSET_BITS, return_index=True)
    for fragment_id, offsets in zip(fragment_ids.tolist(), np.split(ordered & _OFFSET_MASK, starts[1:]), strict=True):
        yield int(fragment_id), offsets


def at(fragment_id: int, offsets: Offsets) -> Addresses:
    """The addresses of offsets in a fragment."""
    return offsets.astype(np.uint64) | np.uint64(fragment_id << 32)


def live_offsets(dataset: LanceDataset, fragment: FragmentMetadata) -> Offsets:
    """The offsets of a fragment's rows that are not deleted; reads at most the deletion vector, never data."""
    if fragment.deletion_file is None:
        return np.arange(fragment.physical_rows, dtype=np.uint64)
    scanned = dataset.scanner(
        columns=[], fragments=open_fragments(dataset, [fragment]), with_row_address=True
    ).to_table()
    return np.sort(as_addresses(scanned.column("_rowaddr")) & _OFFSET_MASK)


def deleted_offsets(dataset: LanceDataset, fragment: FragmentMetadata) -> Offsets:
    """The offsets of a fragment's rows that are deleted, ascending.

    Where they are few their own file tells, at a cost that does not follow the fragment's size.
    """
    file = fragment.deletion_file
    if file is None:
        return NO_ADDRESSES
    if fragment.num_deletions > limits.DELETIONS_READ_MAX:
        alive = np.zeros(fragment.physical_rows, np.bool_)
        alive[live_offsets(dataset, fragment)] = True
        return np.flatnonzero(~alive).astype(np.uint64)
    path = file.path(fragment.id)
    with tempfile.NamedTemporaryFile() as local:
        session: Any = dataset.new_file_session()  # type: ignore[no-untyped-call]  # it comes without types
        session.download_file(path, local.name)
        body = local.read()
    found = parse_vector(path, body)
    if len(found) != fragment.num_deletions:
        raise InternalError(f"the deletion vector {path} has {len(found)} rows instead of {fragment.num_deletions}")
    return found


def parse_vector(path: str, body: bytes) -> Offsets:
    """Return the offsets in a deletion vector, ascending."""
    if path.endswith(_AS_ARROW):
        return np.sort(np.asarray(pa.ipc.open_file(pa.BufferReader(body)).read_all().column(0), np.uint64))
    return np.sort(np.fromiter(_BITMAP._from_bytes(body), np.uint64))


def vector_bytes(path: str, deleted: Sequence[int]) -> bytes:
    """The content of a deletion vector, in the form that its name tells."""
    if not path.endswith(_AS_ARROW):
        bitmap: bytes = _BITMAP(list(deleted)).__reduce__()[1][0]
        return bitmap
    rows = pa.table({"row_id": deleted}, schema=pa.schema([pa.field("row_id", pa.uint32(), nullable=False)]))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, rows.schema) as file:
        file.write_table(rows)
    return sink.getvalue().to_pybytes()


def open_fragments(dataset: LanceDataset, fragments: Iterable[FragmentMetadata]) -> list[LanceFragment]:
    """Fragments of a version, ready to be read."""
    opened = (dataset.get_fragment(fragment.id) for fragment in fragments)
    return [fragment for fragment in opened if fragment is not None]


def delete_at(dataset: LanceDataset, addresses: Addresses) -> Deletion | None:
    """Write the deletion vectors that remove the rows at `addresses`, all of them.

    Args:
        dataset: the version to remove them from; it does not change.

    Returns:
        The changed fragments; None if one of the rows is not there or is deleted already.
    """
    updated, gone = [], []
    for fragment_id, offsets in by_fragment(addresses):
        opened = dataset.get_fragment(fragment_id)
        if opened is None:
            return None
        before = opened.metadata
        after = opened.delete_rows(offsets.tolist())
        # The new vector is the union of the old one and ours: it is as long as both exactly when they are disjoint.
        left = 0 if after is None else after.num_rows
        if before.num_rows - left != len(offsets):
            return None
        if after is None:
            gone.append(before)
        else:
            updated.append(after)
    return Deletion(tuple(updated), tuple(fragment.id for fragment in gone), tuple(gone), len(addresses))


FragmentKey = tuple[str, ...]


def name_of(file: DataFile) -> str:
    """The name of a data file; Lance's own property makes a new class for every answer."""
    return str(file._path)


def key_of(fragment: FragmentMetadata) -> FragmentKey:
    """What makes a fragment the same one in every version: its data files."""
    return tuple(map(name_of, fragment.files))


def keyed(fragments: list[FragmentMetadata]) -> dict[FragmentKey, FragmentMetadata]:
    """Fragments by what makes them the same."""
    return {key_of(fragment): fragment for fragment in fragments}


def same_rows(one: FragmentMetadata, other: FragmentMetadata) -> bool:
    """Whether two states of a fragment have the same deletion vector, as far as can be seen without reading it."""
    if one.deletion_file is None or other.deletion_file is None:
        return one.num_deletions == other.num_deletions
    return one.deletion_file.path(one.id) == other.deletion_file.path(other.id)
