"""Findings that still hold: what others pruned, swept or wrote while a verification looked is no damage."""

from collections.abc import Container, Iterable, Mapping
from dataclasses import replace

from omnigraph.errors import GraphError
from omnigraph.model.commit import Record
from omnigraph.transaction.parts import Parts
from omnigraph.verification.findings import Affected, Finding, FindingKind


def confirmed(parts: Parts, found: Iterable[Finding], held: Mapping[str, Container[int]]) -> tuple[Finding, ...]:
    """Leave out what is about commits that nobody keeps any more, and entries that are there by now.

    Args:
        parts (Parts): of the graph.
        found (Iterable[Finding]): by a verification just now.
        held (Mapping[str, Container[int]]): by branch, numbers of entries that are kept whatever was pruned.

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
    for each in found:
        affected = tuple(at for at in each.affected if holds(each.kind, at))
        if affected or not each.affected:
            # Several branches may need one object, a schema say: it is damaged once.
            known = left.get((each.kind, each.path, each.problem))
            more = affected if known is None else (*known.affected, *affected)
            left[each.kind, each.path, each.problem] = replace(known or each, affected=tuple(sorted(set(more))))
    return tuple(sorted(left.values(), key=lambda each: each.path))


def _is_cut(parts: Parts, at: Affected) -> bool:
    """Whether a sweep has cut an entry away: then it is held no more."""
    try:
        return parts.log.floors.highest(at.branch) > at.number and parts.log.read(at.branch, at.number) is None
    except GraphError:
        return False
