"""Verify a graph: every record, every version a kept commit names, every file of it; at once or in rounds.

Nothing is written, and nothing waits: what others write meanwhile is looked at or not. With `deep`, checksums are
compared where there are any, every value is read, and the rows at the heads are held against the rules of their schema.

A round looks at a bounded number of records and versions and goes on where the last one stopped: branch after branch,
in the order of their names, each from its newest entry down.
"""

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType

from omnigraph import limits
from omnigraph.errors import FormatError, GraphError, InvalidRequestError, NotFoundError
from omnigraph.model.commit import Pin, Record
from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.tables.examine import Examiner
from omnigraph.transaction.constraint_rules.rules import rules_of
from omnigraph.transaction.constraints import breaches
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.optimize import SchemaOf
from omnigraph.transaction.pruning.checksums import recorded_digests
from omnigraph.transaction.write_set import WriteSet
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss, Verified
from omnigraph.verification.records import (
    CheckedLog,
    checkpoint_findings,
    clock_notes,
    entry_findings,
    hint_findings,
    intent_findings,
    intent_notes,
    lease_findings,
    log_findings,
    loss_notes,
    order_findings,
    read_entries,
    read_log,
    stamp_findings,
    unreadable_findings,
)
from omnigraph.verification.tables import TableCheck, named_by


def confirmed(
    context: GraphContext, found: Iterable[Finding], held: Mapping[str, Container[int]]
) -> tuple[Finding, ...]:
    """Drop findings about commits that are no longer kept, and about entries that exist by now."""
    heads: dict[str, Record | None] = {}

    def holds(kind: FindingKind, at: Affected) -> bool:
        if at.branch not in heads:
            try:
                heads[at.branch] = context.log.head(at.branch)
            except GraphError:
                heads[at.branch] = None  # that is damage enough
        head = heads[at.branch]
        if head is None:
            return True
        if kind is FindingKind.HINT:
            return at.number > head.number
        if head.is_live and head.pruned.is_kept(at.number):
            return True
        return at.number in held.get(at.branch, ()) and not _is_cut(context, at)

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


def _is_cut(context: GraphContext, at: Affected) -> bool:
    """Return whether a sweep has cut an entry away."""
    try:
        return context.log.floors.highest(at.branch) > at.number and context.log.read(at.branch, at.number) is None
    except GraphError:
        return False


def verify(
    context: GraphContext,
    schema_of: SchemaOf,
    *,
    deep: bool = False,
    branch: str | None = None,
    held: Mapping[str, AbstractSet[int]] = MappingProxyType({}),
) -> Verified:
    """Look at everything that commits refer to; `held` are entries that are kept whatever was pruned, by branch."""
    found = [*stamp_findings(context)]
    names = context.log.branch_names() if branch is None else [paths.branch_name(branch)]
    logs = [read_log(context, name, held.get(name, ())) for name in names]
    if branch is not None and not logs[0].entries and not logs[0].unreadable:
        raise NotFoundError(f"branch '{branch}' not found", code="branch_not_found", branch=branch)
    found += intent_findings(context)
    found += lease_findings(context)
    pins: dict[str, dict[Pin, list[Affected]]] = {}
    for log in logs:
        found += log_findings(context, log)
        found += entry_findings(context, log)
        named_by(log, pins)
    examiner = Examiner(context.tables)
    recorded = recorded_digests(entry for log in logs for entry in log.entries.values())
    checks = []
    for table, versions in sorted(pins.items()):
        check = TableCheck(context, examiner, table, deep, recorded.get(table, {}))
        checks.append(check)
        check.look(versions)
        found += check.findings
    if deep:
        damaged = {(at.branch, at.number, at.type_key) for one in found for at in one.affected}
        for log in logs:
            found += _row_findings(context, log, schema_of, damaged)
    return summed_up(context, confirmed(context, found, held), logs, checks)


def summed_up(
    context: GraphContext, findings: tuple[Finding, ...], logs: Iterable[CheckedLog], checks: Iterable[TableCheck]
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
        notes=(*intent_notes(context), *loss_notes(context), *clock_notes(context, logs)),
    )


def _row_findings(
    context: GraphContext, log: CheckedLog, schema_of: SchemaOf, damaged: set[tuple[str, int, str]]
) -> Iterator[Finding]:
    """Rows at the head of a branch that break a rule of its schema; rules are about several types, so all are read."""
    head = log.head
    if head is None or not head.is_live or not head.schema:
        return
    if any((head.branch, head.number, key) in damaged for key in head.tables):
        return
    try:
        rules = rules_of(schema_of(head.schema))
        staging = WriteSet(context.snapshot(head))
        for key in sorted(head.tables):
            # As if everything there is were written now: whatever a write may not leave, is told.
            staging.overwrite(key, context.snapshot(head).scan(key))
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


_STEP_ENTRIES = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on."""

    branch: str  # in this branch, or the next one there is
    number: int | None = None  # with this entry; None for its newest


def verify_round(
    context: GraphContext, *, held: Mapping[str, AbstractSet[int]], reads_max: int, begin: Place | None = None
) -> tuple[Verified, Place | None]:
    """Look at some of what commits refer to."""
    looking = _Looking(context, held, reads_max)
    stopped = looking.everything_from(begin)
    findings = [*looking.found, *(finding for check in looking.checks.values() for finding in check.findings)]
    return summed_up(context, confirmed(context, findings, held), looking.logs, looking.checks.values()), stopped


def read_place(context: GraphContext) -> Place | None:
    """Where the last round stopped, as it was noted; None where nothing is, or nothing that can be read."""
    try:
        found = json.loads(context.store.get(derived.VERIFIED))
        branch, number = found["branch"], found["number"]
    except (StoreError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(branch, str) or not (number is None or type(number) is int):
        return None
    return Place(branch, number)


def note_place(context: GraphContext, stopped: Place | None) -> None:
    """Store where a round stopped, for the next one; a failure to store it is ignored."""
    try:
        if stopped is None:
            context.store.delete(derived.VERIFIED)
        else:
            context.store.put(derived.VERIFIED, json.dumps(asdict(stopped)).encode())
    except StoreError:
        return


class _Looking:
    """One round."""

    def __init__(self, context: GraphContext, held: Mapping[str, AbstractSet[int]], reads_max: int) -> None:
        self._context = context
        self._held = held
        self._reads_max = reads_max
        self._examiner = Examiner(context.tables)
        self._seen: set[Pin] = set()
        self.found: list[Finding] = [*stamp_findings(context), *intent_findings(context), *lease_findings(context)]
        self.logs: list[CheckedLog] = []
        self.checks: dict[str, TableCheck] = {}

    @property
    def _reads(self) -> int:
        tables = sum(check.versions + check.listings + check.vectors for check in self.checks.values())
        return tables + sum(len(log.entries) + len(log.unreadable) for log in self.logs)

    def everything_from(self, begin: Place | None) -> Place | None:
        for branch in self._context.log.branch_names():
            if begin is not None and branch < begin.branch:
                continue
            if self._reads >= self._reads_max:
                return Place(branch)
            resumed = begin.number if begin is not None and branch == begin.branch else None
            stopped = self._branch(branch, resumed)
            if stopped is not None:
                return stopped
        return None

    def _branch(self, branch: str, resumed: int | None) -> Place | None:
        newest, head = self._newest(branch)
        lowest = self._lowest(branch, head)
        if resumed is None:
            self.found += hint_findings(self._context, branch, newest)
        last = newest if resumed is None else min(resumed, newest)
        above = None if last == newest else self._readable(branch, last + 1)
        while last >= lowest:
            if self._reads >= self._reads_max and self.logs:
                return Place(branch, last)
            first = max(lowest, last - min(_STEP_ENTRIES, max(1, self._reads_max - self._reads)) + 1)
            found = self._entries(branch, head, range(first, last + 1), floor=lowest)
            self.found += order_findings(self._context, found, above)
            above = found.entries.get(first)
            last = first - 1
        for number in sorted(
            (held for held in self._held.get(branch, ()) if held <= min(last, lowest - 1)), reverse=True
        ):
            if self._reads >= self._reads_max and self.logs:
                return Place(branch, number)
            self._entries(branch, head, [number], floor=0)
        return None

    def _newest(self, branch: str) -> tuple[int, Record | None]:
        """The number of the newest entry, and what it says if it can be read."""
        try:
            head = self._context.log.head(branch)
        except FormatError:
            listed = [paths.entry_number(file.path) for file in self._context.store.list(paths.log_folder(branch))]
            return max((number for number in listed if number is not None), default=0), None
        return (0, None) if head is None else (head.number, head)

    def _lowest(self, branch: str, head: Record | None) -> int:
        """The first entry that must be there."""
        if head is None:
            return self._context.log.floors.highest(branch)
        return max(head.pruned.floor, head.life or 1) if head.is_live else head.number

    def _readable(self, branch: str, number: int) -> Record | None:
        try:
            return self._context.log.read(branch, number)
        except GraphError:
            return None  # the round before has told it

    def _entries(self, branch: str, head: Record | None, numbers: Sequence[int], *, floor: int) -> CheckedLog:
        log = CheckedLog(branch, held=frozenset(self._held.get(branch, ())), newest=head)
        self.logs.append(log)
        read_entries(self._context, log, numbers, floor=floor)
        self.found += unreadable_findings(self._context, log)
        self.found += entry_findings(self._context, log)
        for number in numbers:
            if number % limits.CHECKPOINT_ENTRIES == 0:
                self.found += checkpoint_findings(self._context, branch, number)
        pins: dict[str, dict[Pin, list[Affected]]] = {}
        named_by(log, pins)
        for table, versions in sorted(pins.items()):
            check = self.checks.setdefault(table, TableCheck(self._context, self._examiner, table, deep=False))
            # One that was looked at already, and is whole, need not be looked at once more for every commit.
            new = {pin: at for pin, at in versions.items() if pin not in self._seen or check.findings}
            if new:
                check.look(new)
            self._seen |= new.keys()
        return log
