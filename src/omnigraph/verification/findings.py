"""What a verification finds."""

from dataclasses import dataclass
from enum import StrEnum


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
    """A commit, and what of it is affected.

    Attributes:
        branch: in whose log it is.
        number: its place there.
        commit: its id; empty where its entry cannot be read.
        type_key: the type; empty where it is about all of them.
    """

    branch: str
    number: int
    commit: str
    type_key: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it should be.

    Attributes:
        kind: what it is.
        path: where it is, under the root.
        problem: what is wrong with it, for people.
        loss: what that means.
        affected: on which commits.
        rows: how many rows it held, where that is known; else -1.
        certain: False where the store did not answer: nothing can be said of it now.
    """

    kind: FindingKind
    path: str
    problem: str
    loss: Loss
    affected: tuple[Affected, ...] = ()
    rows: int = -1
    certain: bool = True


@dataclass(frozen=True, slots=True)
class Verified:
    """Everything a verification found.

    Attributes:
        findings: in the order of their paths.
        heads: of every branch looked at, the number of its newest entry that can be read.
        kept: of every branch looked at, the numbers of the entries whose data is kept, ascending.
        commits: how many entries were looked at.
        versions: how many table versions.
        files: how many files they consist of.
        bytes: how large those are.
        digests: how many were compared with a checksum.
        quarantined: what quarantine did about the findings.
        notes: what is no damage and should be known: writes that have not ended, notes of such that were put
            aside, and what earlier quarantines lost.
    """

    findings: tuple[Finding, ...]
    heads: dict[str, int]
    kept: dict[str, tuple[int, ...]]
    commits: int
    versions: int
    files: int
    bytes: int
    digests: int
    quarantined: tuple[str, ...] = ()
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
