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
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from lance.bitmap import Bitmap
from lance.fragment import DataFile, FragmentMetadata

from omnigraph import limits
from omnigraph.clock import SystemClock
from omnigraph.storage.tables.addresses import Addresses, by_fragment
from omnigraph.storage.tables.effect import name_of
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


class Vectors:
    """The newest deletion vectors of fragments, in memory: the next deletion need not read what the last one wrote."""

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[str, int], tuple[Vector, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, folder: str, fragment: Fragment) -> Any:  # noqa: ANN401  (a bitmap of Lance's, which has no types)
        """Which rows of a fragment are deleted."""
        vector = fragment.vector
        if vector is None:
            return _BITMAP()
        with self._lock:
            known = self._kept.get((folder, fragment.number))
        return known[1] if known is not None and known[0] == vector else _read(folder, fragment.number, vector)

    def keep(self, folder: str, fragment: Fragment, deleted: Any) -> None:  # noqa: ANN401  (as above)
        """Remember a vector that was just written."""
        if fragment.vector is None:
            return
        with self._lock:
            self._kept[folder, fragment.number] = (fragment.vector, deleted)
            self._kept.move_to_end((folder, fragment.number))
            while len(self._kept) > limits.VECTORS_KEPT_MAX:
                self._kept.popitem(last=False)


_VECTORS = Vectors()


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
    if not handle.is_local or len(added) > 1 or len(removed) > limits.SMALL_DELETION_ROWS_MAX:
        return None
    fresh = _message_of(added[0]) if added else None
    base = _manifest(handle) if fresh is not None or not added else None
    if base is None:
        return None
    folder = handle.folder
    shortened = _shortened(base, folder, removed)
    if shortened is None:
        return None
    for fragment, deleted in shortened:
        assert fragment.vector is not None
        _write(f"{folder}/{fragment.vector.file(fragment.number)}", deleted.__reduce__()[1][0])
        _VECTORS.keep(folder, fragment, deleted)
    updated = {fragment.number: fragment.message() for fragment, _ in shortened}
    made = base.changed(_random() | _DETACHED, updated, fresh)
    transaction = _transaction(base.version, list(updated.values()), None if fresh is None else fresh.message())
    _write(f"{folder}/{manifest_file(made.version)}", made.file(_CLOCK.now_us(), transaction))
    successor = handle.succeeded_by_file(
        made,
        data_bytes=handle.data_bytes + bytes_of(added),
        rows=handle.rows + sum(fragment.num_rows for fragment in added) - len(removed),
    )
    return successor, {each.vector.file(each.number) for each, _ in shortened if each.vector is not None}


def _manifest(handle: Handle) -> Manifest | None:
    """The manifest of an open version; None where it is not for us to change."""
    found = handle.manifest
    if found is None:
        body = Path(handle.folder, manifest_file(handle.version)).read_bytes()
        handle.manifest = found = read_manifest(body) or NOT_FOR_US
    return None if found is NOT_FOR_US or len(found.fragments) > limits.SMALL_VERSION_FRAGMENTS_MAX else found


def _shortened(base: Manifest, folder: str, removed: Addresses) -> list[tuple[Fragment, Any]] | None:
    """Fragments without some of their rows, each with its new vector; None where that is not for us to make."""
    found = []
    for number_, offsets in by_fragment(removed):
        fragment = base.fragment(number_)
        if fragment is None or int(offsets[-1]) >= fragment.rows:
            return None
        before = _VECTORS.of(folder, fragment)
        after = before | _BITMAP(offsets.tolist())
        # As long as both exactly when they are disjoint. A fragment without rows leaves the version: Lance knows how.
        if len(after) != len(before) + len(offsets) or len(after) >= fragment.rows:
            return None
        vector = Vector(base.version, _random(), len(after), is_bitmap=True)
        found.append((replace(fragment, vector=vector), after))
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
    return b"".join(
        (
            within(_PATH, name_of(file).encode()),
            within(_FIELDS, b"".join(map(varint, file.fields))),
            within(_COLUMNS, b"".join(map(varint, file.column_indices))),
            number(_MAJOR, file.file_major_version),
            number(_MINOR, file.file_minor_version),
            number(_SIZE, file.file_size_bytes or 0),
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
    if vector.is_bitmap:
        found = _BITMAP._from_bytes(body)
    else:
        column = pa.ipc.open_file(pa.BufferReader(body)).read_all().column(0)
        found = _BITMAP(np.asarray(column, np.uint64).tolist())
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
