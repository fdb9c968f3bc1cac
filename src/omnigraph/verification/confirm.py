"""Findings that still hold: what others pruned, swept or wrote while a verification looked is no damage."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from omnigraph.errors import GraphError
from omnigraph.model.commit import Record
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.verification.findings import Affected, Finding, FindingKind


def confirmed(parts: GraphContext, found: Iterable[Finding], held: Mapping[str, Container[int]]) -> tuple[Finding, ...]:
    """Drop findings about commits that are no longer kept, and about entries that exist by now.

    Args:
        found: by a verification just now.
        held: by branch, numbers of entries that are kept whatever was pruned.

    Returns:
        tuple[Finding, ...]: those that hold, by path.
    """
    heads: dict[str, Record | None] = {}

    def holds(kind: FindingKind, at: Affected) -> bool:
        if at.branch not in heads:
            try:
                heads[at.branch] = parts.log.head(at.branch)
            except GraphError:
                heads[at.branch] = None  # that is damage enough
        head = heads[at.branch]
        if head is None:
            return True
        if kind is FindingKind.HINT:
            return at.number > head.number
        if head.is_live and head.pruned.is_kept(at.number):
            return True
        return at.number in held.get(at.branch, ()) and not _is_cut(parts, at)

    left: dict[tuple[FindingKind, str, str], Finding] = {}
    for finding in found:
        affected = tuple(at for at in finding.affected if holds(finding.kind, at))
        if affected or not finding.affected:
            # Several branches may need one object, a schema say: it is damaged once.
            known = left.get((finding.kind, finding.path, finding.problem))
            more = affected if known is None else (*known.affected, *affected)
            left[finding.kind, finding.path, finding.problem] = replace(
                known or finding, affected=tuple(sorted(set(more)))
            )
    return tuple(sorted(left.values(), key=lambda each: each.path))


def _is_cut(parts: GraphContext, at: Affected) -> bool:
    """Return whether a sweep has cut an entry away."""
    try:
        return parts.log.floors.highest(at.branch) > at.number and parts.log.read(at.branch, at.number) is None
    except GraphError:
        return False
