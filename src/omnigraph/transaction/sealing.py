"""Checksums of table files: the table library keeps none, so a flipped bit inside a value would pass as another value.

They are made when upkeep has a table at hand, of the files that have none yet, and lie beside the log in one object per
table. Nobody needs them to read or write; without them a verification has less to compare.
"""

import json
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any

from omnigraph.storage import paths
from omnigraph.storage.object_store import Listed, ObjectNotFound, StoreError
from omnigraph.transaction.parts import Parts

_BYTES = 16


def digest_of(body: bytes) -> str:
    """The checksum of a file."""
    return blake2b(body, digest_size=_BYTES).hexdigest()


def read_digests(parts: Parts, table: str) -> dict[str, str]:
    """The checksums that are known of a table's files, by path; none where they are missing or cannot be read."""
    try:
        found = json.loads(parts.store.get(paths.digests(table)))
    except (StoreError, ValueError):
        return {}
    files = found.get("files") if isinstance(found, dict) else None
    if not isinstance(files, dict) or found.get("sum", _sum(files)) != _sum(files):
        return {}
    return {path: digest for path, digest in files.items() if isinstance(digest, str)}


def has_digests(parts: Parts, table: str) -> bool:
    """Whether checksums of a table's files were noted, readable or not."""
    try:
        parts.store.get(paths.digests(table))
    except StoreError:
        return False
    return True


def seal(parts: Parts, table: str, files: Iterable[str]) -> int:
    """Note the checksums of files that have none yet, and forget those of files that are gone.

    Args:
        parts (Parts): of the graph.
        table (str): the table's folder.
        files (Iterable[str]): what a version of it consists of; folders end with `/`.

    Returns:
        int: how many files were read for it.
    """
    known = read_digests(parts, table)
    there = {listed.path: listed for listed in parts.table_files.list(f"{table}/")}
    wanted = expanded(files, there)
    fresh: dict[str, str] = {}
    for path in sorted(wanted - known.keys()):
        try:
            fresh[path] = digest_of(parts.table_files.get(path))
        except ObjectNotFound:
            continue  # a sweep was faster
    if fresh:
        kept = {path: digest for path, digest in known.items() if path in there} | fresh
        body = json.dumps({"format": 1, "files": kept, "sum": _sum(kept)}, separators=(",", ":")).encode()
        parts.store.put(paths.digests(table), body)
    return len(fresh)


def _sum(files: Mapping[str, Any]) -> str:
    """The checksum of checksums: one that was changed must not tell that a file was."""
    return digest_of(json.dumps(files, sort_keys=True).encode())


def expanded(files: Iterable[str], there: Mapping[str, Listed]) -> set[str]:
    """The files that are meant where some are named by their folder."""
    found: set[str] = set()
    for file in files:
        if file.endswith("/"):
            found |= {path for path in there if path.startswith(file)}
        elif file in there:
            found.add(file)
    return found
