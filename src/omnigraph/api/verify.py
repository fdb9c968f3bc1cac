"""Verify a graph, and report what is damaged and which commits lost data."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.schemas import Schemas
from omnigraph.branch.sweep.shared_files import held_numbers
from omnigraph.branch.tag_checks import CheckedTags, check_tags, put_damaged_tags_aside
from omnigraph.errors import GraphError
from omnigraph.execution.adjacency_files import AdjacencyFiles
from omnigraph.execution.search.index_files import TextIndexFiles
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.validation import require_flag
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss, Verified
from omnigraph.verification.quarantine import quarantine as put_aside
from omnigraph.verification.tables import rebuild_deletion_vectors
from omnigraph.verification.verify import Place, confirmed, note_place, read_place, verify, verify_round

__all__ = ["Affected", "Finding", "FindingKind", "Loss", "Place", "VerifyReport", "verify_graph", "verify_part"]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        uri: the address of the graph.
        deep: whether checksums were compared, every value read, and rows validated against the schema.
        found: the findings and counts.
        tables: the table version of each type at the head of the verified branch, or of `main`.
        head: the number of that head; None if it cannot be read.
    """

    uri: str
    deep: bool
    found: Verified
    tables: dict[str, int]
    head: int | None

    @property
    def is_whole(self) -> bool:
        """True if there are no findings."""
        return self.found.is_whole

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The damage that was found, sorted by path."""
        return self.found.findings

    @property
    def lost(self) -> dict[tuple[str, int], frozenset[str]]:
        """The types with unreadable data, by branch and number of the commit; an empty set means all types."""
        return self.found.lost

    @property
    def readable(self) -> dict[str, tuple[int, ...]]:
        """The numbers of the checked commits that are fully readable, ascending, by branch."""
        return self.found.readable

    @property
    def quarantined(self) -> tuple[str, ...]:
        """The actions of the quarantine."""
        return self.found.quarantined

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON document.

        Returns:
            `classification` of a table is `no_drift` without findings, `suspicious` if files are damaged, and
                `unverifiable` if the store did not answer.
        """
        return {
            "uri": self.uri,
            "confirm": bool(self.quarantined),
            "force": False,
            "graph_manifest_version": self.head,
            "datasets": [self._dataset(key, version) for key, version in sorted(self.tables.items())],
            "findings": [
                {
                    "kind": finding.kind.value,
                    "path": finding.path,
                    "problem": finding.problem,
                    "loss": finding.loss.value,
                    "rows": finding.rows,
                    "certain": finding.certain,
                    "commits": [
                        {
                            "branch": at.branch,
                            "number": at.number,
                            "commit": at.commit or None,
                            "type_key": at.type_key or None,
                        }
                        for at in finding.affected
                    ],
                }
                for finding in self.findings
            ],
            "readable": [
                {"branch": branch, "numbers": _runs(numbers)} for branch, numbers in sorted(self.readable.items())
            ],
            "checked": {
                "commits": self.found.commits,
                "versions": self.found.versions,
                "files": self.found.files,
                "bytes": self.found.bytes,
                "checksums": self.found.digests,
            },
            "quarantined": list(self.quarantined),
            "notes": list(self.found.notes),
        }

    def _dataset(self, type_key: str, version: int) -> dict[str, Any]:
        findings = [finding for finding in self.findings if any(at.type_key == type_key for at in finding.affected)]
        classification = "no_drift"
        if findings:
            classification = "suspicious" if any(finding.certain for finding in findings) else "unverifiable"
        action = "no_op"
        if findings:
            action = "healed" if self.quarantined else "preview"
        return {
            "type_key": type_key,
            "published_dataset_version": version,
            "lance_head_version": version,
            "classification": classification,
            "action": action,
            "operations": [],
            "error": findings[0].problem if findings else None,
        }


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Return the first and last number of each run of consecutive numbers."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def verify_part(parts: GraphContext, *, reads_max: int) -> tuple[VerifyReport, Place | None]:
    """Verify part of a graph, continuing where the last call stopped, in this process or another.

    Args:
        parts: of a graph opened for writing: the position is recorded beside the graph.
        reads_max: stop after so many log entries and table versions.

    Returns:
        What was found, and where the next call continues; None if it starts from the beginning.
    """
    tags = check_tags(parts)
    begun = read_place(parts)
    held = _held(parts, tags)
    found, stopped = verify_round(parts, held=held, reads_max=reads_max, begin=begun)
    found = _still_held(parts, found, tags)
    if stopped is not None or begun is not None:
        note_place(parts, stopped)
    return _report(parts, _with(found, tags.findings), deep=False, branch=MAIN), stopped


def verify_graph(
    parts: GraphContext, schemas: Schemas, *, deep: bool, branch: str | None, quarantine: bool
) -> VerifyReport:
    """Verify a graph or one branch, and optionally quarantine what is damaged; see `Graph.verify`.

    Returns:
        What was found before the quarantine.
    """
    require_flag(deep, "deep")
    require_flag(quarantine, "quarantine")
    if quarantine:
        parts.refuse_read_only()
    branch = None if branch is None else paths.branch_name(branch)
    tags = check_tags(parts, branch=branch)

    def schema_of(digest: str) -> Schema:
        return schemas.of(digest).schema

    held = _held(parts, tags)
    found = _still_held(parts, verify(parts, schema_of, deep=deep, branch=branch, held=held), tags)
    found = _with(found, tags.findings)
    if branch is None:
        found = _with(found, _derived_findings(parts, deep=deep))
    done: tuple[str, ...] = ()
    if quarantine and not found.is_whole:
        rebuilt = rebuild_deletion_vectors(parts, found.findings)
        left = found if not rebuilt else verify(parts, schema_of, deep=deep, branch=branch, held=held)
        left = replace(left, findings=tuple(finding for finding in left.findings if finding.path not in rebuilt))
        notes = tuple(f"{path} was rebuilt from the changes of commits" for path in sorted(rebuilt))
        done = (*notes, *put_aside(parts, left), *put_damaged_tags_aside(parts, tags.findings))
    return _report(parts, replace(found, quarantined=done), deep=deep, branch=branch if branch is not None else MAIN)


def _held(parts: GraphContext, tags: CheckedTags) -> dict[str, set[int]]:
    """Return, by branch, the pruned entries whose data is kept: for tags, and for forks and merges of live branches."""
    found = {branch: set(numbers) for branch, numbers in tags.held.items()}
    looking = replace(parts, read_only=True)  # a listing of branches that may write would tidy their marks
    with suppress(GraphError):  # of a damaged log, which verification reports
        for branch, numbers in held_numbers(looking).items():
            found.setdefault(branch, set()).update(numbers)
    return found


def _still_held(parts: GraphContext, found: Verified, tags: CheckedTags) -> Verified:
    """Drop findings about pruned entries that no branch needs any more."""
    return found if found.is_whole else replace(found, findings=confirmed(parts, found.findings, _held(parts, tags)))


def _derived_findings(parts: GraphContext, *, deep: bool) -> Iterator[Finding]:
    """Yield damaged cache files; they are rebuilt on demand, so nothing is lost."""
    found = list(AdjacencyFiles(parts.store, read_only=True).find_damaged(deep=deep))
    found += TextIndexFiles(parts.store, read_only=True).find_damaged() if deep else ()
    for path in dict.fromkeys(found):
        problem = "it is damaged, and is rebuilt from the graph on demand"
        yield Finding(FindingKind.DERIVED, path, problem, Loss.NOTHING)


def _with(found: Verified, more: Iterable[Finding]) -> Verified:
    return replace(found, findings=tuple(sorted((*found.findings, *more), key=lambda finding: finding.path)))


def _report(parts: GraphContext, found: Verified, *, deep: bool, branch: str) -> VerifyReport:
    try:
        head = parts.log.head(branch)
    except GraphError:
        head = None  # the findings include the unreadable head
    tables = {} if head is None else {key: pin.version for key, pin in head.tables.items()}
    return VerifyReport(parts.store.uri, deep, found, tables, None if head is None else head.number)
