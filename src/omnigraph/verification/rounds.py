"""Verification in rounds: a bounded number of records and versions at a time, going on where the last round stopped.

Branch after branch, in the order of their names, each from its newest entry down. Every round begins with what stops
everybody: the stamp, the notes of interrupted writes, leases.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass

from omnigraph import limits
from omnigraph.errors import FormatError, GraphError
from omnigraph.model.commit import Pin, Record
from omnigraph.storage import derived, paths
from omnigraph.storage.object_store import StoreError
from omnigraph.storage.tables.examine import Examiner
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.verification.confirm import confirmed
from omnigraph.verification.findings import Affected, Finding, Verified
from omnigraph.verification.records import (
    CheckedLog,
    checkpoint_findings,
    entry_findings,
    hint_findings,
    intent_findings,
    lease_findings,
    order_findings,
    read_entries,
    stamp_findings,
    unreadable_findings,
)
from omnigraph.verification.tables import TableCheck, named_by
from omnigraph.verification.verify import summed_up

_STEP_ENTRIES = 64


@dataclass(frozen=True, slots=True)
class Place:
    """Where to go on.

    Attributes:
        branch: in this branch, or the next one there is.
        number: with this entry; None for its newest.
    """

    branch: str
    number: int | None = None


def verify_round(
    parts: GraphContext,
    *,
    held: Mapping[str, AbstractSet[int]],
    reads_max: int,
    begin: Place | None = None,
) -> tuple[Verified, Place | None]:
    """Look at some of what commits refer to.

    Args:
        held: by branch, numbers of entries that are kept whatever was pruned.
        reads_max: look at no more when so many entries and versions were read.
        begin: where the last round stopped; None to begin anew.

    Returns:
        tuple[Verified, Place | None]: what is wrong with what was looked at, and where to go on; None when everything
            from `begin` on was looked at.

    Raises:
        FormatError: the graph is newer than this release, which cannot judge it.
        UnavailableError: the store cannot be listed.
    """
    looking = _Looking(parts, held, reads_max)
    stopped = looking.everything_from(begin)
    findings = [*looking.found, *(finding for check in looking.checks.values() for finding in check.findings)]
    return summed_up(parts, confirmed(parts, findings, held), looking.logs, looking.checks.values()), stopped


def read_place(parts: GraphContext) -> Place | None:
    """Where the last round stopped, as it was noted; None where nothing is, or nothing that can be read."""
    try:
        found = json.loads(parts.store.get(derived.VERIFIED))
        branch, number = found["branch"], found["number"]
    except (StoreError, ValueError, KeyError, TypeError):
        return None
    if not isinstance(branch, str) or not (number is None or type(number) is int):
        return None
    return Place(branch, number)


def note_place(parts: GraphContext, stopped: Place | None) -> None:
    """Store where a round stopped, for the next one; a failure to store it is ignored."""
    try:
        if stopped is None:
            parts.store.delete(derived.VERIFIED)
        else:
            parts.store.put(derived.VERIFIED, json.dumps(asdict(stopped)).encode())
    except StoreError:
        return


class _Looking:
    """One round."""

    def __init__(self, parts: GraphContext, held: Mapping[str, AbstractSet[int]], reads_max: int) -> None:
        self._parts = parts
        self._held = held
        self._reads_max = reads_max
        self._examiner = Examiner(parts.tables)
        self._seen: set[Pin] = set()
        self.found: list[Finding] = [*stamp_findings(parts), *intent_findings(parts), *lease_findings(parts)]
        self.logs: list[CheckedLog] = []
        self.checks: dict[str, TableCheck] = {}

    @property
    def _reads(self) -> int:
        tables = sum(check.versions + check.listings + check.vectors for check in self.checks.values())
        return tables + sum(len(log.entries) + len(log.unreadable) for log in self.logs)

    def everything_from(self, begin: Place | None) -> Place | None:
        for branch in self._parts.log.branch_names():
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
            self.found += hint_findings(self._parts, branch, newest)
        last = newest if resumed is None else min(resumed, newest)
        above = None if last == newest else self._readable(branch, last + 1)
        while last >= lowest:
            if self._reads >= self._reads_max and self.logs:
                return Place(branch, last)
            first = max(lowest, last - min(_STEP_ENTRIES, max(1, self._reads_max - self._reads)) + 1)
            found = self._entries(branch, head, range(first, last + 1), floor=lowest)
            self.found += order_findings(self._parts, found, above)
            above = found.entries.get(first)
            last = first - 1
        below = sorted(number for number in self._held.get(branch, ()) if number < lowest)
        if below:
            self._entries(branch, head, below, floor=0)
        return None

    def _newest(self, branch: str) -> tuple[int, Record | None]:
        """The number of the newest entry, and what it says if it can be read."""
        try:
            head = self._parts.log.head(branch)
        except FormatError:
            listed = [paths.entry_number(file.path) for file in self._parts.store.list(paths.log_folder(branch))]
            return max((number for number in listed if number is not None), default=0), None
        return (0, None) if head is None else (head.number, head)

    def _lowest(self, branch: str, head: Record | None) -> int:
        """The first entry that must be there."""
        if head is None:
            return self._parts.log.floors.highest(branch)
        return max(head.pruned.floor, head.life or 1) if head.is_live else head.number

    def _readable(self, branch: str, number: int) -> Record | None:
        try:
            return self._parts.log.read(branch, number)
        except GraphError:
            return None  # the round before has told it

    def _entries(self, branch: str, head: Record | None, numbers: Sequence[int], *, floor: int) -> CheckedLog:
        log = CheckedLog(branch, held=frozenset(self._held.get(branch, ())), newest=head)
        self.logs.append(log)
        read_entries(self._parts, log, numbers, floor=floor)
        self.found += unreadable_findings(self._parts, log)
        self.found += entry_findings(self._parts, log)
        for number in numbers:
            if number % limits.CHECKPOINT_ENTRIES == 0:
                self.found += checkpoint_findings(self._parts, branch, number)
        pins: dict[str, dict[Pin, list[Affected]]] = {}
        named_by(log, pins)
        for table, versions in sorted(pins.items()):
            check = self.checks.setdefault(table, TableCheck(self._parts, self._examiner, table, deep=False))
            # One that was looked at already, and is whole, need not be looked at once more for every commit.
            new = {pin: at for pin, at in versions.items() if pin not in self._seen or check.findings}
            if new:
                check.look(new)
            self._seen |= new.keys()
        return log
