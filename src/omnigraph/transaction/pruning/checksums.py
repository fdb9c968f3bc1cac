"""Checksums of table files: the table library keeps none, so a flipped bit inside a value would pass as another value.

On local disk a record names those of the files its commit has added. Upkeep notes them beside the log, in one object
per table, so that they outlive the record, together with those of files that have none. Nobody needs them to read or
write; without them a verification has less to compare.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from hashlib import blake2b, sha256
from typing import Any

from omnigraph import limits
from omnigraph.errors import GraphError
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import Listed, ObjectNotFound, StoreError, StoreRefused
from omnigraph.transaction.graph_context import GraphContext

_BYTES = 16
# Before the digits of a checksum by SHA-256, which most processors compute twice as fast as the older BLAKE2b.
_SHA = "s"
_READ_AHEAD = 8


def digest_of(body: bytes) -> str:
    """The checksum of a file."""
    return f"{_SHA}{sha256(body).hexdigest()[: 2 * _BYTES]}"


def is_digest_of(body: bytes, noted: str) -> bool:
    """True if a checksum, of either kind, is that of a file."""
    return noted == (digest_of(body) if noted.startswith(_SHA) else _blake(body))


def added_digests(context: GraphContext, files: Iterable[str]) -> dict[str, str]:
    """The checksums of files just written, by path; none where the tables are not on local disk, or of very many."""
    if not context.table_files.is_near:
        return {}
    # Texts, not `Path`: every commit comes through here.
    root = context.table_files.uri
    found = [path for file in files for path in (_below(root, file) if file.endswith("/") else (file,))]
    if len(found) > limits.RECORDED_DIGESTS_MAX:
        return {}
    places = [f"{root}/{path}" for path in found]
    try:
        if sum(map(os.path.getsize, places)) <= limits.DIGESTS_IN_TURN_BYTES_MAX:
            digests = [_digest_of_file(place) for place in places]
        else:
            with ThreadPoolExecutor(limits.DIGEST_THREADS) as pool:
                digests = list(pool.map(_digest_of_file, places))
    except FileNotFoundError:
        return {}  # a sweep took it, behind a barrier that will refuse the entry
    except OSError as error:
        raise StoreRefused(f"cannot read back what was written: {error}", path=str(error.filename)) from error
    return dict(zip(found, digests, strict=True))


def _below(root: str, folder: str) -> Iterator[str]:
    for place, _, names in os.walk(f"{root}/{folder}"):
        yield from (f"{place[len(root) + 1 :].rstrip('/')}/{name}" for name in names)


# Files have random names and never change; a write that is moved onto a newer head names most of its files again.
@lru_cache(limits.DIGESTS_REMEMBERED_MAX)
def _digest_of_file(place: str) -> str:
    digest = sha256()
    handle = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while part := os.read(handle, limits.DIGEST_READ_BYTES):
            digest.update(part)
    finally:
        os.close(handle)
    return f"{_SHA}{digest.hexdigest()[: 2 * _BYTES]}"


def recorded_digests(entries: Iterable[Record]) -> dict[str, dict[str, str]]:
    """The checksums that entries name: for each table, by path."""
    found: dict[str, dict[str, str]] = {}
    for entry in entries:
        for path, digest in entry.digests.items():
            found.setdefault("/".join(path.split("/", 2)[:2]), {})[path] = digest
    return found


class NewestDigests:
    """The checksums that the newest entries of a branch name, read on demand."""

    def __init__(self, context: GraphContext, head: Record) -> None:
        first = max(head.pruned.floor, head.life or 1, head.number - limits.SEALED_FROM_ENTRIES_MAX)
        self._entries = context.log.backwards(head.branch, start=head.number, first=first, step=_READ_AHEAD)
        self._found: dict[str, str] = {}

    def of(self, files: AbstractSet[str]) -> dict[str, str]:
        """Those of some files, by path; without the files that no entry names."""
        try:
            while files - self._found.keys():
                self._found |= next(self._entries).digests
        except (StopIteration, GraphError):
            self._entries = iter(())  # all were read; or one cannot be, which a verification tells
        return {path: self._found[path] for path in files & self._found.keys()}


def read_digests(context: GraphContext, table: str) -> dict[str, str]:
    """The checksums that are known of a table's files, by path; none where they are missing or cannot be read."""
    try:
        found = json.loads(context.store.get(paths.digests(table)))
    except (StoreError, ValueError):
        return {}
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or found.get("sum", _sum(files)) != _sum(files):
        return {}
    return {path: digest for path, digest in files.items() if isinstance(digest, str)}


def has_digests(context: GraphContext, table: str) -> bool:
    """Whether checksums of a table's files were noted, readable or not."""
    try:
        context.store.get(paths.digests(table))
    except StoreError:
        return False
    return True


def record(context: GraphContext, table: str, files: Iterable[str], recorded: NewestDigests) -> int:
    """Note the checksums of files that have none yet, and forget those of files that are gone; returns how many.

    Files whose checksums records name are not read, for they may be damaged.
    """
    known = read_digests(context, table)
    there = {listed.path: listed for listed in context.table_files.list(f"{table}/")}
    wanted = expanded(files, there)
    fresh = recorded.of(wanted - known.keys())
    for path in sorted(wanted - known.keys() - fresh.keys()):
        try:
            fresh[path] = digest_of(context.table_files.get(path))
        except ObjectNotFound:
            continue  # a sweep was faster
    if fresh:
        kept = {path: digest for path, digest in known.items() if path in there} | fresh
        body = json.dumps({"format": 1, "files": kept, "sum": _sum(kept)}, separators=(",", ":")).encode()
        context.store.put(paths.digests(table), body)
    return len(fresh)


def _sum(files: Mapping[str, Any]) -> str:
    """The checksum of checksums: one that was changed must not tell that a file was."""
    return _blake(json.dumps(files, sort_keys=True).encode())


def _blake(body: bytes) -> str:
    return blake2b(body, digest_size=_BYTES).hexdigest()


def expanded(files: Iterable[str], there: Mapping[str, Listed]) -> set[str]:
    """The files that are meant where some are named by their folder."""
    found: set[str] = set()
    for file in files:
        if file.endswith("/"):
            found |= {path for path in there if path.startswith(file)}
        elif file in there:
            found.add(file)
    return found
