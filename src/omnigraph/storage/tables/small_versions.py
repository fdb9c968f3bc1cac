"""Few rows added or deleted on local disk: the version is written straight into its file.

For a change of a few rows, most of the time of Lance's own commit goes into what is the same in every version, and
into files that nobody reads. Here a version is one file, its manifest, which is its base's with the change put in
(`manifests.py`), and a deletion vector is one more. Readers cannot tell it from one that Lance has made. Whatever is
not plainly such a change is left to Lance.

The files have random names that nobody knows before a commit tells them, so they are written in place: one that was
begun and not finished is never looked at, and swept like every other file that no commit names.
"""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.fragment import DataFile, FragmentMetadata

from omnigraph import limits
from omnigraph.clock import SystemClock
from omnigraph.lru import LruCache
from omnigraph.storage.tables.addresses import Addresses, by_fragment
from omnigraph.storage.tables.effect import name_of
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import manifest_file
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.manifests import NOT_FOR_US, Fragment, Manifest, Vector, read_manifest
from omnigraph.storage.tables.messages import number, varint, within

_BITMAP: Any = Bitmap  # its readers of bytes are missing from the stubs
# As Lance does, by the machine's own clock: it is for people who look into the file.
_CLOCK = SystemClock()
_DETACHED = 1 << 63
# Entries of a transaction, and of the operations in it.
_READ_VERSION, _UUID, _APPEND, _DELETE, _UPDATE = 1, 2, 100, 101, 108
_APPENDED, _DELETE_UPDATED, _DELETE_PREDICATE, _UPDATED, _UPDATE_ADDED = 1, 1, 3, 2, 3
# Entries of a data file.
_PATH, _FIELDS, _COLUMNS, _MAJOR, _MINOR, _SIZE = 1, 2, 3, 4, 5, 6
_FILE = 2


@dataclass(frozen=True, slots=True)
class _Shortened:
    """A fragment of which rows are deleted.

    Attributes:
        entry: as its manifest holds it.
        fragment: the same, taken apart.
        deleted: which rows; a bitmap of Lance's, which comes without types.
    """

    entry: bytes
    fragment: Fragment
    deleted: Any


# Fragments as the last deletion left them, by folder and number: the next one need not read what that has written.
_recent: LruCache[tuple[str, int], _Shortened] = LruCache(limits.VECTORS_KEPT_MAX)


def _fragment(folder: str, base: Manifest, number: int) -> _Shortened | None:
    """Return a fragment of a version; None if it is not there or has parts that this module does not know."""
    entry = base.fragments.get(number)
    if entry is None:
        return None
    known = _recent.get((folder, number))
    if known is not None and known.entry == entry:
        return known
    fragment = base.fragment(number)
    if fragment is None:
        return None
    deleted = _BITMAP() if fragment.vector is None else _read(folder, number, fragment.vector)
    return _Shortened(entry, fragment, deleted)


def small_version(
    handle: Handle, added: Sequence[FragmentMetadata], removed: Addresses
) -> tuple[Handle, set[str]] | None:
    """One version on `handle` with a fragment added and rows removed.

    Args:
        handle (Handle): the version to start from.
        added (Sequence[FragmentMetadata]): fragments that no version numbered yet.
        removed (Addresses): where rows lie that the new version does not have, each once.

    Returns:
        tuple[Handle, set[str]] | None: the new version and the deletion vectors written for it, under the table's
            folder; None where Lance has to make it: nothing it needs was written then.
    """
    if len(added) > 1 or len(removed) > limits.SMALL_DELETION_ROWS_MAX:
        return None
    fresh = _message_of(added[0]) if added else None
    base = manifest_of(handle) if fresh is not None or not added else None
    if base is None:
        return None
    folder = handle.folder
    shortened = _shortened(base, folder, removed)
    if shortened is None:
        return None
    files = set()
    for fragment, vector, deleted in shortened:
        file = vector.file(fragment.number)
        _write(f"{folder}/{file}", deleted.__reduce__()[1][0])
        files.add(file)
    updated = {fragment.number: fragment.message() for fragment, _, _ in shortened}
    made = base.changed(_random() | _DETACHED, updated, fresh)
    transaction = _transaction(base.version, list(updated.values()), None if fresh is None else fresh.message())
    _write(f"{folder}/{manifest_file(made.version)}", made.file(_CLOCK.now_us(), transaction))
    successor = handle.succeeded_by_file(
        made,
        data_bytes=handle.data_bytes + bytes_of(added),
        rows=handle.rows + sum(fragment.num_rows for fragment in added) - len(removed),
    )
    for fragment, _, deleted in shortened:
        _recent.put((folder, fragment.number), _Shortened(made.fragments[fragment.number], fragment, deleted))
    return successor, files


def manifest_of(handle: Handle) -> Manifest | None:
    """The manifest of a version.

    Args:
        handle (Handle): the version.

    Returns:
        Manifest | None: None where it is not for us to change, or not on local disk.
    """
    if not handle.is_local:
        return None
    found = handle.manifest
    if found is None:
        with mapped(handle.table, handle.version):
            body = Path(handle.folder, manifest_file(handle.version)).read_bytes()
            found = read_manifest(body) or NOT_FOR_US
            if found is not NOT_FOR_US and found.version != handle.version:
                raise ValueError(f"corrupt manifest: it is that of version {found.version}")
            handle.manifest = found
    return None if found is NOT_FOR_US or len(found.fragments) > limits.SMALL_VERSION_FRAGMENTS_MAX else found


def _shortened(base: Manifest, folder: str, removed: Addresses) -> list[tuple[Fragment, Vector, Any]] | None:
    """Fragments without some of their rows, each with its new vector; None where that is not for us to make."""
    found = []
    for number_, offsets in _by_fragment(removed).items():
        known = _fragment(folder, base, number_)
        if known is None or offsets[-1] >= known.fragment.rows:
            return None
        fragment, before = known.fragment, known.deleted
        after = before | _BITMAP(offsets)
        # As long as both exactly when they are disjoint. A fragment without rows leaves the version: Lance knows how.
        if len(after) != len(before) + len(offsets) or len(after) >= fragment.rows:
            return None
        vector = Vector(base.version, _random(), len(after), is_bitmap=True)
        found.append((Fragment(number_, fragment.files, fragment.rows, vector), vector, after))
    return found


def _by_fragment(removed: Addresses) -> dict[int, list[int]]:
    """The offsets in each fragment, ascending."""
    if len(removed) > limits.GROUPED_ONE_BY_ONE_MAX:
        return {number_: offsets.tolist() for number_, offsets in by_fragment(removed)}
    found: dict[int, list[int]] = {}
    for address in sorted(removed.tolist()):
        found.setdefault(address >> 32, []).append(address & 0xFFFF_FFFF)
    return found


def _message_of(added: FragmentMetadata) -> Fragment | None:
    """A fragment just written, as a manifest holds it; None where more is to be said of it than here is known."""
    if len(added.files) != 1 or added.physical_rows <= 0:
        return None
    if any((added.deletion_file, added.row_id_meta, added.overlays)):
        return None
    if added.created_at_version_meta is not None or added.last_updated_at_version_meta is not None:
        return None
    file = added.files[0]
    if file.base_id is not None or any(each < 0 for each in (*file.fields, *file.column_indices)):
        return None
    return Fragment(0, within(_FILE, _file_message(file)), added.physical_rows)


def _file_message(file: DataFile) -> bytes:
    shape = _shape(tuple(file.fields), tuple(file.column_indices), file.file_major_version, file.file_minor_version)
    return within(_PATH, name_of(file).encode()) + shape + number(_SIZE, file.file_size_bytes or 0)


@lru_cache(limits.OPEN_TABLES_MAX)
def _shape(fields: tuple[int, ...], columns: tuple[int, ...], major: int, minor: int) -> bytes:
    """What all files of a table with the same columns have in common."""
    return b"".join(
        (
            within(_FIELDS, b"".join(map(varint, fields))),
            within(_COLUMNS, b"".join(map(varint, columns))),
            number(_MAJOR, major),
            number(_MINOR, minor),
        )
    )


def _transaction(read_version: int, updated: Sequence[bytes], added: bytes | None) -> bytes:
    """What made the version, in the words Lance has for it."""
    if not updated:
        operation = within(_APPEND, b"" if added is None else within(_APPENDED, added))
    elif added is None:
        fragments = b"".join(within(_DELETE_UPDATED, each) for each in updated)
        operation = within(_DELETE, fragments + within(_DELETE_PREDICATE, b"rows by address"))
    else:
        fragments = b"".join(within(_UPDATED, each) for each in updated)
        operation = within(_UPDATE, fragments + within(_UPDATE_ADDED, added))
    digits = os.urandom(16).hex()
    name = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
    return number(_READ_VERSION, read_version) + within(_UUID, name.encode()) + operation


def _read(folder: str, fragment: int, vector: Vector) -> Any:  # noqa: ANN401  (a bitmap of Lance's, without types)
    body = Path(folder, vector.file(fragment)).read_bytes()
    try:
        if vector.is_bitmap:
            found = _BITMAP._from_bytes(body)
        else:
            column = pa.ipc.open_file(pa.BufferReader(body)).read_all().column(0)
            found = _BITMAP(np.asarray(column, np.uint64).tolist())
    except (ValueError, OverflowError, OSError, pa.ArrowException) as error:
        raise ValueError(f"corrupt deletion vector {vector.file(fragment)}: {error}") from error
    if len(found) != vector.rows:
        raise ValueError(f"corrupt deletion vector {vector.file(fragment)}: {len(found)} rows instead of {vector.rows}")
    return found


def _write(path: str, body: bytes) -> None:
    """Write a file that nobody has the name of."""
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    except FileNotFoundError:
        # The first deletion vector of a table.
        Path(path).parent.mkdir(exist_ok=True)
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666)
    try:
        try:
            left = memoryview(body)
            while left:
                left = left[os.write(handle, left) :]
        finally:
            os.close(handle)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(path).unlink()
        raise


def _random() -> int:
    return int.from_bytes(os.urandom(8), "big")
