"""Classify files under a graph's root by path, and the verdicts of a sweep about them."""

from collections import Counter
from collections.abc import Iterator, Mapping
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


def listed_files(context: GraphContext) -> Iterator[Candidate]:
    """Every file in a folder under the root; of a graph in memory, also those of its tables, which lie elsewhere.

    Files that lie beside these folders are no kind of file that is swept.
    """
    yield from (candidate(listed) for listed in context.store.list("") if "/" in listed.path)
    if context.table_files is not context.store:
        for folder in (paths.NODES, paths.EDGES):
            yield from map(candidate, context.table_files.list(folder))


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


class Verdict(StrEnum):
    """What is to become of a file."""

    LEGITIMATE = "legitimate"
    """Something reaches it."""
    SPARED = "spared"
    """Nothing reaches it, but it is too young to be certain of that; a later sweep will be."""
    ORPHAN = "orphan"
    """Nothing reaches it: delete it."""
    INDETERMINATE = "indeterminate"
    """Something could not be read: touch nothing, say so."""


@dataclass(frozen=True, slots=True)
class Item:
    """One file of the worklist."""

    file: Candidate
    verdict: Verdict
    reason: str


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep found, and what it deleted.

    Attributes:
        items: every file that nothing certainly needs: orphans, spared and indeterminate ones.
        kept_files: how many files are needed.
        kept_bytes: how large they are.
        deleted: the files that were deleted; empty after a dry run.
        errors: by table folder, or by path, what went wrong with deleting.
        barriers: how many branches were given a barrier.
        held_by: writes not yet ended that may need some of the files that were spared.
    """

    items: tuple[Item, ...]
    kept_files: int
    kept_bytes: int
    deleted: tuple[Candidate, ...] = ()
    errors: Mapping[str, str] | None = None
    barriers: int = 0
    held_by: tuple[str, ...] = ()

    def of(self, verdict: Verdict) -> list[Item]:
        """The items with one verdict."""
        return [item for item in self.items if item.verdict is verdict]

    @property
    def bytes_by_kind(self) -> Mapping[FileKind, int]:
        """How many bytes of each kind were deleted."""
        counted: Counter[FileKind] = Counter()
        for file in self.deleted:
            counted[file.kind] += file.size
        return dict(counted)

    @property
    def files_by_kind(self) -> Mapping[FileKind, int]:
        """How many files of each kind were deleted."""
        return dict(Counter(file.kind for file in self.deleted))
