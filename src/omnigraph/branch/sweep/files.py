"""What may lie under a graph's root, told by its path alone."""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import Listed
from omnigraph.transaction.graph_context import GraphContext


class FileKind(StrEnum):
    """What a file is for."""

    DATA = "data"
    DELETIONS = "deletions"
    INDEX = "index"
    MANIFEST = "manifest"
    TRANSACTION = "transaction"
    RECORD = "record"
    CHECKPOINT = "checkpoint"
    FLOOR = "floor"
    ANCESTRY = "ancestry"
    CHANGES = "changes"
    KEY = "key"
    INTENT = "intent"
    LEASE = "lease"
    ADJACENCY = "adjacency"
    WORDS = "words"
    DIGESTS = "digests"
    TEMPORARY = "temporary"
    SPILL = "spill"
    OTHER = "other"
    """Of no kind that a sweep may delete: schemas, tags, hints, marks of branches, and whatever somebody else put."""


_IN_TABLES = {
    "data": FileKind.DATA,
    "_deletions": FileKind.DELETIONS,
    "_indices": FileKind.INDEX,
    "_versions": FileKind.MANIFEST,
    "_transactions": FileKind.TRANSACTION,
}


_DIGESTS = paths.digests("").removesuffix(paths.ENTRY_SUFFIX)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One file, as it was listed.

    Attributes:
        path: where it is.
        size: how many bytes it has.
        modified_us: when it was written, by the store's clock.
        kind: what it is for.
        owner: what is kept or goes as one: the table's folder, the branch, the name without suffix.
    """

    path: str
    size: int
    modified_us: int
    kind: FileKind
    owner: str

    @property
    def is_staged(self) -> bool:
        """Whether writers make such files before a commit names them."""
        return self.kind in _STAGED


# Transactions are not among them: their version says the same, and nobody ever reads them.
_STAGED = frozenset({FileKind.DATA, FileKind.DELETIONS, FileKind.INDEX, FileKind.MANIFEST, FileKind.CHANGES})


def listed_files(parts: GraphContext) -> Iterator[Candidate]:
    """Every file in a folder under the root; of a graph in memory, also those of its tables, which lie elsewhere.

    Files that lie beside these folders are no kind of file that is swept.
    """
    yield from (candidate(listed) for listed in parts.store.list("") if "/" in listed.path)
    if parts.table_files is not parts.store:
        for folder in (paths.NODES, paths.EDGES):
            yield from map(candidate, parts.table_files.list(folder))


def candidate(listed: Listed) -> Candidate:
    """A file by its path."""
    kind, owner = _kind(listed.path)
    return Candidate(listed.path, listed.size, listed.modified_us, kind, owner)


def _kind(path: str) -> tuple[FileKind, str]:
    segments = path.split("/")
    if path.startswith((paths.NODES, paths.EDGES)) and len(segments) >= 4:
        return _IN_TABLES.get(segments[2], FileKind.OTHER), f"{segments[0]}/{segments[1]}"
    if path.startswith(paths.LOGS) and len(segments) == 4:
        return (FileKind.RECORD, segments[2]) if paths.entry_number(path) is not None else (FileKind.OTHER, "")
    for folder, kind in (
        (paths.CHECKPOINTS, FileKind.CHECKPOINT),
        (paths.FLOORS, FileKind.FLOOR),
        (paths.ANCESTRY, FileKind.ANCESTRY),
    ):
        if path.startswith(folder) and len(segments) == 4 and paths.entry_number(path) is not None:
            return kind, segments[2]
    if path.startswith(paths.KEYS) and len(segments) == 4:
        return FileKind.KEY, segments[2]
    for folder, kind in (
        (paths.CHANGES, FileKind.CHANGES),
        (paths.RECOVERY, FileKind.INTENT),
        (paths.LEASES, FileKind.LEASE),
        (paths.SPILL, FileKind.SPILL),
        (_DIGESTS, FileKind.DIGESTS),
    ):
        if path.startswith(folder):
            return kind, segments[-1].partition(".")[0]
    version = derived.version_of(path)
    if version is not None:
        kind = FileKind.WORDS if path.startswith(derived.WORDS) else FileKind.ADJACENCY
        return kind, f"{version[0]}@{version[1]}"
    return FileKind.OTHER, ""
