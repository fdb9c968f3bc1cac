"""Where files lie that can be made again from the graph, and which version of which table they belong to.

Nothing needs them for a right answer. They belong to a version, and go when it goes: a sweep may delete every path here
whose version no kept commit names, and any other too.
"""

import json
import zlib
from collections.abc import Mapping
from typing import Any

from omnigraph.storage import paths

DERIVED = "__derived/"
ADJACENCY = f"{DERIVED}adjacency/"
WORDS = f"{DERIVED}words/"
# Where the verification of maintenance stopped; belongs to no version, and to no table.
VERIFIED = f"{DERIVED}verified.json"
# Adjacency is made from edges, indexes over words from nodes.
_TABLES = {ADJACENCY: paths.EDGES, WORDS: paths.NODES}


def adjacency_of(table: str) -> str:
    """The folder of all adjacency of an edge table, whose own folder is `table`."""
    return f"{ADJACENCY}{table.removeprefix(paths.EDGES)}/"


def adjacency_folder(table: str, version: int) -> str:
    """The folder of the adjacency of one version of an edge table."""
    return f"{adjacency_of(table)}{version}/"


def words_of(table: str) -> str:
    """The folder of all indexes over words of a node table, whose own folder is `table`."""
    return f"{WORDS}{table.removeprefix(paths.NODES)}/"


def words_file(table: str, version: int, column: str) -> str:
    """The index over the words of a column of one version of a node table; how it is called, its makers know."""
    return f"{words_of(table)}{version}/{column}"


def version_of(path: str) -> tuple[str, int] | None:
    """The table and version that a path belongs to; None for other paths.

    Returns:
        The table's folder, as pins name it, and the version.
    """
    folder = next((known for known in _TABLES if path.startswith(known)), None)
    if folder is None:
        return None
    table, _, rest = path.removeprefix(folder).partition("/")
    version, _, file = rest.partition("/")
    if not table or not file or not (version.isascii() and version.isdigit()):
        return None
    return f"{_TABLES[folder]}{table}", int(version)


def sealed(document: Mapping[str, Any]) -> bytes:
    """A head of such files, with a digest of itself: one wrong digit in it would be a wrong answer."""
    return _dumped({**document, "digest": zlib.crc32(_dumped(document))})


def unsealed(body: bytes) -> dict[str, Any]:
    """The document that was sealed.

    Raises:
        ValueError: it is not what was written; also `KeyError`, `TypeError` or `AttributeError`.
    """
    document: dict[str, Any] = json.loads(body)
    if document.pop("digest") != zlib.crc32(_dumped(document)):
        raise ValueError("not what was written")
    return document


def is_of_another_release(head: bytes, known: int) -> bool:
    """Whether a head that cannot be used is none that this release writes: then nothing is wrong with it."""
    try:
        return bool(json.loads(head)["format"] != known)
    except (ValueError, LookupError, TypeError):
        return False


def _dumped(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()
