"""What a sweep found and did: a verdict and a reason for every file, then bytes by kind."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.branch.sweep.files import Candidate, FileKind


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
