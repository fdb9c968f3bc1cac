"""What a verification finds."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from omnigraph.errors import GraphError, UnavailableError


class FindingKind(StrEnum):
    """What an object is."""

    STAMP = "format stamp"
    ENTRY = "log entry"
    STRAY = "stray log entry"
    HINT = "hint"
    CHECKPOINT = "checkpoint"
    TAG = "tag"
    SCHEMA = "schema"
    CHANGES = "change file"
    FOOTPRINT = "footprint"
    INTENT = "intent"
    LEASE = "lease"
    VERSION = "table version"
    DATA = "data file"
    DELETIONS = "deletion vector"
    INDEX = "index"
    CHECKSUMS = "checksums"
    DERIVED = "derived file"
    ROWS = "rows"


class Loss(StrEnum):
    """What a finding means for readers."""

    CONTENT = "content"
    """Rows of the commits named cannot be read."""
    HISTORY = "history"
    """Every row can be read; what the commits named did, or that they were, is not told any more."""
    NOTHING = "nothing"
    """It can be made again from what is there."""


@dataclass(frozen=True, slots=True, order=True)
class Affected:
    """A commit, and what of it is affected."""

    branch: str
    number: int  # its place there
    commit: str  # its id; empty where its entry cannot be read
    type_key: str = ""  # the type; empty where it is about all of them


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be."""

    kind: FindingKind
    path: str
    problem: str  # what is wrong with it, for people
    loss: Loss
    affected: tuple[Affected, ...] = ()
    rows: int = -1  # how many rows it held, where that is known; else -1
    certain: bool = True  # False where the store did not answer: nothing can be said of it now

    @staticmethod
    def of_fault(
        kind: FindingKind, path: str, problem: str, loss: Loss, fault: GraphError, *, affected: Sequence[Affected] = ()
    ) -> "Finding":
        """The finding that reading an object failed."""
        certain = not isinstance(fault, UnavailableError)
        return Finding(kind, path, f"{problem}: {fault.message}", loss, tuple(affected), certain=certain)


@dataclass(frozen=True, slots=True)
class Verified:
    """Everything a verification found."""

    findings: tuple[Finding, ...]  # in the order of their paths
    heads: dict[str, int]  # of every branch looked at, the number of its newest entry that can be read
    # of every branch looked at, the numbers of the entries whose data is kept, ascending
    kept: dict[str, tuple[int, ...]]
    commits: int  # how many entries were looked at
    versions: int  # how many table versions
    files: int  # how many files they consist of
    bytes: int  # how large those are
    digests: int  # how many were compared with a checksum
    quarantined: tuple[str, ...] = ()  # what quarantine did about the findings
    # what is no damage and should be known: writes that have not ended, notes of such that were put aside, and what
    # earlier quarantines lost
    notes: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether nothing was found but strays, which do no harm."""
        return all(finding.kind is FindingKind.STRAY for finding in self.findings)

    @property
    def readable(self) -> dict[str, tuple[int, ...]]:
        """By branch, the numbers of the entries that were looked at and can be read whole, ascending."""
        lost = self.lost
        return {
            branch: tuple(at for at in numbers if (branch, at) not in lost) for branch, numbers in self.kept.items()
        }

    @property
    def lost(self) -> dict[tuple[str, int], frozenset[str]]:
        """The commits of which something cannot be read, by branch and number, with the types; empty for all types."""
        found: dict[tuple[str, int], set[str]] = {}
        for finding in self.findings:
            if finding.loss is Loss.CONTENT:
                for at in finding.affected:
                    found.setdefault((at.branch, at.number), set()).add(at.type_key)
        return {key: frozenset() if "" in types else frozenset(types) for key, types in sorted(found.items())}
