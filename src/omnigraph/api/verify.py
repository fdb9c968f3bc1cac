"""Verify a graph, and report what is damaged and which commits lost data."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.api.schemas import Schemas
from omnigraph.branch.tag_checks import check_tags, put_damaged_tags_aside
from omnigraph.errors import GraphError
from omnigraph.execution.adjacency_files import AdjacencyFiles
from omnigraph.execution.search.index_files import TextIndexFiles
from omnigraph.model.commit import MAIN
from omnigraph.model.schema import Schema
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.validation import require_flag
from omnigraph.verification.deletion_vectors import rebuild_deletion_vectors
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss, Verified
from omnigraph.verification.quarantine import quarantine as put_aside
from omnigraph.verification.rounds import Place, note_place, read_place, verify_round
from omnigraph.verification.verify import verify

__all__ = ["Affected", "Finding", "FindingKind", "Loss", "Place", "VerifyReport", "verify_graph", "verify_part"]


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a verification found.

    Attributes:
        uri: of the graph.
        deep: whether checksums were compared, every value read, and rows held against the rules.
        found: everything.
        tables: of the branch asked for, or `main`, the version of each type at its head.
        head: the number of that head; None where no entry of it can be read.
    """

    uri: str
    deep: bool
    found: Verified
    tables: dict[str, int]
    head: int | None

    @property
    def is_whole(self) -> bool:
        """Whether nothing is wrong."""
        return self.found.is_whole

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong, by path."""
        return self.found.findings

    @property
    def lost(self) -> dict[tuple[str, int], frozenset[str]]:
        """The commits of which something cannot be read, by branch and number, with the types; empty for all types."""
        return self.found.lost

    @property
    def readable(self) -> dict[str, tuple[int, ...]]:
        """By branch, the numbers of the kept entries that were looked at and can be read whole, ascending."""
        return self.found.readable

    @property
    def quarantined(self) -> tuple[str, ...]:
        """What quarantine did."""
        return self.found.quarantined

    def to_dict(self) -> dict[str, Any]:
        """The report as the document that scripts read.

        Returns:
            dict[str, Any]: plain JSON values. No table moves on by itself, so a whole one has no drift; one with
                damaged files is suspicious, one the store did not answer for unverifiable.
        """
        return {
            "uri": self.uri,
            "confirm": bool(self.quarantined),
            "force": False,
            "graph_manifest_version": self.head,
            "datasets": [self._dataset(key, version) for key, version in sorted(self.tables.items())],
            "findings": [
                {
                    "kind": each.kind.value,
                    "path": each.path,
                    "problem": each.problem,
                    "loss": each.loss.value,
                    "rows": each.rows,
                    "certain": each.certain,
                    "commits": [
                        {
                            "branch": at.branch,
                            "number": at.number,
                            "commit": at.commit or None,
                            "type_key": at.type_key or None,
                        }
                        for at in each.affected
                    ],
                }
                for each in self.findings
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
        about = [each for each in self.findings if any(at.type_key == type_key for at in each.affected)]
        classification = "no_drift"
        if about:
            classification = "suspicious" if any(each.certain for each in about) else "unverifiable"
        action = "no_op"
        if about:
            action = "healed" if self.quarantined else "preview"
        return {
            "type_key": type_key,
            "published_dataset_version": version,
            "lance_head_version": version,
            "classification": classification,
            "action": action,
            "operations": [],
            "error": about[0].problem if about else None,
        }


def _runs(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers as runs without gaps: the first and the last of each."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return runs


def verify_part(parts: Parts, *, reads_max: int) -> tuple[VerifyReport, Place | None]:
    """Verify part of a graph, continuing where the last call stopped, in this process or another.

    Args:
        parts: of a graph opened for writing: the position is recorded beside the graph.
        reads_max: stop after so many log entries and table versions.

    Returns:
        What was found, and where the next call continues; None if it starts from the beginning.
    """
    tags = check_tags(parts)
    begun = read_place(parts)
    found, stopped = verify_round(parts, held=tags.held, reads_max=reads_max, begin=begun)
    if stopped is not None or begun is not None:
        note_place(parts, stopped)
    return _report(parts, _with(found, tags.findings), deep=False, branch=MAIN), stopped


def verify_graph(parts: Parts, schemas: Schemas, *, deep: bool, branch: str | None, quarantine: bool) -> VerifyReport:
    """Verify a graph or one branch, and quarantine what is damaged if asked to; see `Graph.verify`.

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

    found = verify(parts, schema_of, deep=deep, branch=branch, held=tags.held)
    found = _with(found, tags.findings)
    if branch is None:
        found = _with(found, _derived_findings(parts, deep=deep))
    done: tuple[str, ...] = ()
    if quarantine and not found.is_whole:
        rebuilt = rebuild_deletion_vectors(parts, found.findings)
        left = found if not rebuilt else verify(parts, schema_of, deep=deep, branch=branch, held=tags.held)
        left = replace(left, findings=tuple(finding for finding in left.findings if finding.path not in rebuilt))
        notes = tuple(f"{path} was made again from the changes of commits" for path in sorted(rebuilt))
        done = (*notes, *put_aside(parts, left), *put_damaged_tags_aside(parts, tags.findings))
    return _report(parts, replace(found, quarantined=done), deep=deep, branch=branch if branch is not None else MAIN)


def _derived_findings(parts: Parts, *, deep: bool) -> Iterator[Finding]:
    """Files beside the graph that are not what was written. Nobody believes those, so nothing is lost."""
    found = list(AdjacencyFiles(parts.store, read_only=True).find_damaged(deep=deep))
    found += TextIndexFiles(parts.store, read_only=True).find_damaged() if deep else ()
    for path in dict.fromkeys(found):
        problem = "it is not what was written; what it holds is made again from the graph when it is needed"
        yield Finding(FindingKind.DERIVED, path, problem, Loss.NOTHING)


def _with(found: Verified, more: Iterable[Finding]) -> Verified:
    return replace(found, findings=tuple(sorted((*found.findings, *more), key=lambda each: each.path)))


def _report(parts: Parts, found: Verified, *, deep: bool, branch: str) -> VerifyReport:
    try:
        head = parts.log.head(branch)
    except GraphError:
        head = None  # that it cannot be read is among the findings
    tables = {} if head is None else {key: pin.version for key, pin in head.tables.items()}
    return VerifyReport(parts.store.uri, deep, found, tables, None if head is None else head.number)
