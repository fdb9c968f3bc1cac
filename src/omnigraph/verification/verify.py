"""Verifying a graph: every record, every version a kept commit names, every file of it.

Nothing is written, and nothing waits: what others write meanwhile is looked at or not. With `deep`, checksums are
compared where there are any, every value is read, and the rows at the heads are held against the rules of their schema.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from types import MappingProxyType

from omnigraph.errors import GraphError, InvalidRequestError, NotFoundError
from omnigraph.model.commit import Pin, Record
from omnigraph.storage import paths
from omnigraph.storage.tables.examine import Examiner
from omnigraph.transaction.checksums import recorded_digests
from omnigraph.transaction.constraint_rules.rules import rules_of
from omnigraph.transaction.constraints import breaches
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.optimize import SchemaOf
from omnigraph.transaction.write_set import WriteSet
from omnigraph.verification.confirm import confirmed
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss, Verified
from omnigraph.verification.records import (
    CheckedLog,
    clock_notes,
    entry_findings,
    intent_findings,
    intent_notes,
    lease_findings,
    log_findings,
    loss_notes,
    read_log,
    stamp_findings,
)
from omnigraph.verification.tables import TableCheck, named_by


def verify(
    parts: GraphContext,
    schema_of: SchemaOf,
    *,
    deep: bool = False,
    branch: str | None = None,
    held: Mapping[str, AbstractSet[int]] = MappingProxyType({}),
) -> Verified:
    """Look at everything that commits refer to.

    Args:
        schema_of: finds the schema of an entry.
        deep: compare checksums, read every value, and check rows against the rules.
        branch: only this branch.
        held: by branch, numbers of entries that are kept whatever was pruned.

    Returns:
        Verified: what is wrong, and on which commits.

    Raises:
        NotFoundError: there is no such branch.
        FormatError: the graph is newer than this release, which cannot judge it.
        UnavailableError: the store cannot be listed.
    """
    found = [*stamp_findings(parts)]
    names = parts.log.branch_names() if branch is None else [paths.branch_name(branch)]
    logs = [read_log(parts, name, held.get(name, ())) for name in names]
    if branch is not None and not logs[0].entries and not logs[0].unreadable:
        raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
    found += intent_findings(parts)
    found += lease_findings(parts)
    pins: dict[str, dict[Pin, list[Affected]]] = {}
    for log in logs:
        found += log_findings(parts, log)
        found += entry_findings(parts, log)
        named_by(log, pins)
    examiner = Examiner(parts.tables)
    recorded = recorded_digests(entry for log in logs for entry in log.entries.values())
    checks = []
    for table, versions in sorted(pins.items()):
        check = TableCheck(parts, examiner, table, deep, recorded.get(table, {}))
        checks.append(check)
        check.look(versions)
        found += check.findings
    if deep:
        damaged = {(at.branch, at.number, at.type_key) for one in found for at in one.affected}
        for log in logs:
            found += _row_findings(parts, log, schema_of, damaged)
    return summed_up(parts, confirmed(parts, found, held), logs, checks)


def summed_up(
    parts: GraphContext, findings: tuple[Finding, ...], logs: Iterable[CheckedLog], checks: Iterable[TableCheck]
) -> Verified:
    """What was looked at, and what was found."""
    logs, checks = list(logs), list(checks)
    kept: dict[str, set[int]] = {}
    for log in logs:
        kept.setdefault(log.branch, set()).update(entry.number for entry in log.kept())
    return Verified(
        findings=findings,
        heads={log.branch: log.head.number for log in logs if log.head is not None and log.head.is_live},
        kept={branch: tuple(sorted(numbers)) for branch, numbers in kept.items() if numbers},
        commits=sum(len(log.entries) for log in logs),
        versions=sum(check.versions for check in checks),
        files=sum(len(check.files) for check in checks),
        bytes=sum(sum(check.files.values()) for check in checks),
        digests=sum(check.compared for check in checks),
        notes=(*intent_notes(parts), *loss_notes(parts), *clock_notes(parts, logs)),
    )


def _row_findings(
    parts: GraphContext, log: CheckedLog, schema_of: SchemaOf, damaged: set[tuple[str, int, str]]
) -> Iterator[Finding]:
    """Rows at the head of a branch that break a rule of its schema; rules are about several types, so all are read."""
    head = log.head
    if head is None or not head.is_live or not head.schema:
        return
    if any((head.branch, head.number, key) in damaged for key in head.tables):
        return
    try:
        rules = rules_of(schema_of(head.schema))
        staging = WriteSet(parts.snapshot(head))
        for key in sorted(head.tables):
            # As if everything there is were written now: whatever a write may not leave, is told.
            staging.overwrite(key, parts.snapshot(head).scan(key))
        for breach in breaches(staging, rules):
            yield _broken(head, breach.type_key, breach.error.message)
    except InvalidRequestError as fault:  # an id twice, a rule that cannot be applied
        yield _broken(head, "", fault.message)
    except GraphError as fault:
        yield _broken(head, "", f"the rows could not be checked: {fault.message}", certain=False)


def _broken(head: Record, type_key: str, problem: str, *, certain: bool = True) -> Finding:
    path = head.tables[type_key].table if type_key in head.tables else paths.NODES
    affected = (Affected(head.branch, head.number, head.commit, type_key),)
    return Finding(FindingKind.ROWS, path, problem, Loss.NOTHING, affected, certain=certain)
