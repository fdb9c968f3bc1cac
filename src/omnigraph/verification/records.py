"""Checking what lies beside the tables: logs, checkpoints, schemas, change files, footprints, intents."""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from omnigraph.errors import FormatError, GraphError, UnavailableError
from omnigraph.model.commit import Record
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, StoreError
from omnigraph.storage.records.change_file import read_change_file
from omnigraph.storage.records.read import read_footprint, read_stamp
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.leases import read_lease
from omnigraph.transaction.schema_files import (
    check_copy,
    is_readable,
    read_resolved,
    read_text,
    resolved_path,
    text_path,
)
from omnigraph.transaction.store_clock import AHEAD_US_MAX
from omnigraph.verification.findings import Affected, Finding, FindingKind, Loss

LOSSES = "losses.json"
"""In the folder of a quarantine: what it did without."""


@dataclass(slots=True)
class CheckedLog:
    """One branch's log, as far as it can be read."""

    branch: str
    entries: dict[int, Record] = field(default_factory=dict)  # those that can be read, by number
    # those that should be there and cannot, with what is wrong; ascending
    unreadable: dict[int, GraphError] = field(default_factory=dict)
    strays: set[int] = field(default_factory=set)  # places that hold what is no entry of this log
    held: frozenset[int] = frozenset()  # numbers of entries that somebody holds, whatever was pruned
    newest: Record | None = None  # the newest entry of the branch, where these are only some of its entries

    @property
    def head(self) -> Record | None:
        """The newest entry that can be read."""
        return self.newest or (self.entries[max(self.entries)] if self.entries else None)

    def kept(self) -> list[Record]:
        """The entries whose data is kept, oldest first."""
        head = self.head
        if head is None:
            return []
        return [
            self.entries[number]
            for number in sorted(self.entries)
            if number in self.held or (head.is_live and number >= self._birth and head.pruned.is_kept(number))
        ]

    @property
    def _birth(self) -> int:
        """Return the entry with which this life of the branch began; earlier lives are not kept."""
        lives = [self.entries[number].life for number in sorted(self.entries, reverse=True)]
        if self.newest is not None:
            lives = [self.newest.life]
        return next((life for life in lives if life is not None), 1)


def stamp_findings(context: GraphContext) -> Iterator[Finding]:
    """What is wrong with the file that says which format the graph has."""
    try:
        read_stamp(context.store.get(paths.STAMP), path=paths.absolute(context.store, paths.STAMP))
    except (ObjectNotFound, FormatError, UnavailableError) as fault:
        _refuse_newer(fault)
        problem = "the format stamp cannot be read, and no graph opens without it"
        yield Finding.of_fault(FindingKind.STAMP, paths.STAMP, problem, Loss.CONTENT, fault)


def _refuse_newer(fault: GraphError) -> None:
    """What a newer release wrote is no damage, however little this one can make of it."""
    if fault.code == "format_newer":
        raise fault


def read_log(context: GraphContext, branch: str, held: Iterable[int] = ()) -> CheckedLog:
    """Read every entry of a log by itself; checkpoints are not believed."""
    listed = (paths.entry_number(file.path) for file in context.store.list(paths.log_folder(branch)))
    numbers = sorted(number for number in listed if number is not None)
    log = CheckedLog(branch, held=frozenset(held))
    while numbers and _is_stray(context, branch, numbers[-1]):
        log.strays.add(numbers.pop())
    if not numbers:
        return log
    # A sweep cuts entries away and says so first; what is gone below is not missed.
    floor = context.log.floors.highest(branch)
    read_entries(context, log, range(min(floor, numbers[0]), numbers[-1] + 1), floor=floor)
    return log


def read_entries(context: GraphContext, log: CheckedLog, numbers: Iterable[int], *, floor: int) -> None:
    """Read some entries of a log; from the floor on none may be missing."""
    for number in numbers:
        try:
            found = context.log.read(log.branch, number)
        except (FormatError, UnavailableError) as fault:
            _refuse_newer(fault)
            log.unreadable[number] = fault
            continue
        if found is None and number < floor:
            continue
        if found is None and context.log.is_stray(log.branch, number):
            log.strays.add(number)
        elif found is None:
            log.unreadable[number] = FormatError("the entry is missing from its log", code="entry_missing")
        else:
            log.entries[number] = found
    for number, entry in sorted(log.entries.items(), reverse=True):
        if entry.previous is not None and number in log.entries:
            # What an entry stepped over when it was put is no entry.
            stepped_over = {place for place in log.entries if entry.previous.number < place < number}
            log.strays |= stepped_over
            for place in stepped_over:
                del log.entries[place]


def _is_stray(context: GraphContext, branch: str, number: int) -> bool:
    """Return True for a readable object outside its log; False if only the one entry before it may be lost."""
    try:
        if not context.log.is_stray(branch, number):
            return False
        entry, missing, below = (context.log.read(branch, place) for place in (number, number - 1, number - 2))
    except (FormatError, UnavailableError):
        return False
    if entry is None or entry.previous is None or missing is not None or (below is None and number > 2):
        return True
    # Ids rise along a log: one that was lost is younger than the entry before it.
    return below is not None and entry.previous.commit < below.commit


def log_findings(context: GraphContext, log: CheckedLog) -> Iterator[Finding]:
    """What is wrong with a log itself."""
    yield from unreadable_findings(context, log)
    yield from order_findings(context, log)
    yield from hint_findings(context, log.branch, max([*log.entries, *log.unreadable], default=0))
    for listed in context.store.list(paths.checkpoint_folder(log.branch)):
        last = paths.entry_number(listed.path)
        if last is not None:
            yield from checkpoint_findings(context, log.branch, last)


def unreadable_findings(context: GraphContext, log: CheckedLog) -> Iterator[Finding]:
    """Entries that should be there and cannot be read, and what is there and is no entry."""
    for number in sorted(log.strays):
        yield Finding(
            FindingKind.STRAY,
            context.log.location_of(log.branch, number),
            f"what lies in place {number} of branch '{log.branch}' is no entry of its log: it names another graph, or "
            "was built on an entry that is not there. Readers and writers step over it",
            Loss.NOTHING,
            (Affected(log.branch, number, ""),),
        )
    for number, fault in log.unreadable.items():
        # Whoever counts upward from an earlier entry takes a missing one for the end.
        is_hole = fault.code == "entry_missing" and number < max(log.entries, default=0)
        whole = context.log.folded_entry(log.branch, number)
        yield Finding(
            FindingKind.ENTRY,
            context.log.location_of(log.branch, number),
            f"entry {number} of branch '{log.branch}' cannot be read: {fault.message}"
            + ("; a checkpoint holds it" if whole is not None else "")
            + ("; until it is put back, some take the entry before it for the newest" if is_hole else ""),
            Loss.NOTHING if whole is not None else Loss.CONTENT,
            (Affected(log.branch, number, "" if whole is None else whole.commit),),
            certain=not isinstance(fault, UnavailableError),
        )


def order_findings(context: GraphContext, log: CheckedLog, above: Record | None = None) -> Iterator[Finding]:
    """Report entries that do not follow the one before them: one was written where an entry was missing."""
    known = log.entries if above is None else {**log.entries, above.number: above}
    for number in sorted(known):
        entry, before = known[number], known.get(number - 1)
        if before is None or entry.life == number or entry.parent == before.head_commit:
            continue
        if "quarantined" in before.notes:
            continue
        yield Finding(
            FindingKind.ENTRY,
            context.log.location_of(log.branch, number),
            f"entry {number} of branch '{log.branch}' follows commit {entry.parent}, and commit {before.head_commit} "
            "is before it: what that one wrote is in no later commit",
            Loss.HISTORY,
            (Affected(log.branch, before.number, before.commit),),
        )


def hint_findings(context: GraphContext, branch: str, head: int) -> Iterator[Finding]:
    """Entries that the hint has seen after the newest there is."""
    noted = context.log.hinted(branch)
    if noted is not None and noted > head:
        yield Finding(
            FindingKind.HINT,
            f"{paths.log_folder(branch)}{paths.HINT}",
            f"branch '{branch}' ends at entry {head}, and entry {noted} was there once: the newest are lost",
            Loss.CONTENT,
            tuple(Affected(branch, number, "") for number in range(head + 1, noted + 1)),
        )


def checkpoint_findings(context: GraphContext, branch: str, last: int) -> Iterator[Finding]:
    """What is wrong with the checkpoint that ends with an entry; nothing where there is none."""
    path = paths.checkpoint(branch, last)
    if context.log.folded(branch, last) is None and _is_there(context, path):
        yield Finding(
            FindingKind.CHECKPOINT,
            path,
            f"the checkpoint of branch '{branch}' up to entry {last} is damaged; its entries are the truth",
            Loss.NOTHING,
        )


def _is_there(context: GraphContext, path: str) -> bool:
    try:
        context.store.get(path)
    except ObjectNotFound:
        return False  # there never was one, or a sweep took it away
    except StoreError:
        pass
    return True


def entry_findings(context: GraphContext, log: CheckedLog) -> Iterator[Finding]:
    """What is wrong with objects that the entries of a log name, other than tables."""
    schemas: dict[str, list[Affected]] = {}
    for entry in log.kept():
        at = Affected(log.branch, entry.number, entry.commit)
        if entry.schema:
            schemas.setdefault(entry.schema, []).append(at)
        for kind, file in ((FindingKind.CHANGES, entry.changes.file), (FindingKind.FOOTPRINT, entry.footprint.file)):
            if file is None:
                continue
            try:
                body = context.store.get(file)
                if kind is FindingKind.CHANGES:
                    read_change_file(body, path=file)
                else:
                    read_footprint(body, path=file)
            except (ObjectNotFound, FormatError, UnavailableError) as fault:
                problem = f"the {kind} of entry {entry.number} of branch '{log.branch}' cannot be read"
                yield Finding.of_fault(kind, file, problem, Loss.HISTORY, fault, affected=[at])
    for digest, entries in schemas.items():
        yield from _text_findings(context, digest, entries)
        try:
            read_resolved(context.store, digest)
        except (FormatError, UnavailableError) as fault:
            problem = f"the schema {digest} cannot be read"
            loss = Loss.NOTHING if is_readable(context.store, digest) else Loss.CONTENT
            yield Finding.of_fault(FindingKind.SCHEMA, resolved_path(digest), problem, loss, fault, affected=entries)


def _text_findings(context: GraphContext, digest: str, entries: Sequence[Affected]) -> Iterator[Finding]:
    try:
        read_text(context.store, digest)
        check_copy(context.store, digest)
    except (FormatError, UnavailableError) as fault:
        problem = f"the text of the schema {digest} is damaged, or the copy of what it means"
        yield Finding.of_fault(FindingKind.SCHEMA, text_path(digest), problem, Loss.HISTORY, fault, affected=entries)


def intent_findings(context: GraphContext) -> Iterator[Finding]:
    """Intents that cannot be read; the next write puts them aside."""
    for intent_id in context.intents.listed():
        try:
            context.intents.read(intent_id)
        except (FormatError, StoreError) as fault:
            problem = "the note of an interrupted write cannot be read"
            yield Finding.of_fault(FindingKind.INTENT, paths.intent(intent_id), problem, Loss.NOTHING, fault)


def intent_notes(context: GraphContext) -> Iterator[str]:
    """Describe the writes that have not ended, which hold files, and those whose notes were put aside as damaged."""
    for intent_id in context.intents.listed():
        with suppress(GraphError):  # a finding tells of it
            found = context.intents.read(intent_id)
            if found is not None:
                yield f"a write that has not ended holds files: {found.intent.title}"
    for listed in context.store.list(paths.QUARANTINE):
        if f"/{paths.RECOVERY}" in listed.path:
            yield f"the damaged note of an interrupted write was put aside: {listed.path}"


def loss_notes(context: GraphContext) -> Iterator[str]:
    """Describe what earlier quarantines did without, for as long as their folders are there."""
    return (f"lost, see {folder}/: {note}" for folder, _, note in noted_losses(context))


def clock_notes(context: GraphContext, logs: Iterable[CheckedLog]) -> Iterator[str]:
    """Describe branches whose newest time is ahead of the clock, which no write goes on from."""
    latest_us = context.clock.now_us() + AHEAD_US_MAX
    for log in logs:
        if log.head is not None and log.head.is_live and log.head.created_at_us > latest_us:
            yield f"the newest commit of branch '{log.branch}' is ahead of the clock; run `omnigraph repair --clock`"


def noted_losses(context: GraphContext) -> Iterator[tuple[str, str, str]]:
    """Where earlier quarantines noted a loss, the path of what was damaged, and the description of it."""
    for listed in context.store.list(paths.QUARANTINE):
        folder, _, name = listed.path.rpartition("/")
        if name != LOSSES or folder.count("/") != 1:
            continue
        try:
            for path, note in json.loads(context.store.get(listed.path))["lost"].items():
                yield folder, path, str(note)
        except (StoreError, ValueError, KeyError, AttributeError, TypeError) as fault:
            yield folder, listed.path, f"what was lost cannot be read any more: {fault}"


def lease_findings(context: GraphContext) -> Iterator[Finding]:
    """Report unreadable leases: what they hold is unknown, so no sweep deletes anything."""
    for listed in context.store.list(paths.LEASES):
        try:
            read_lease(context, listed)
        except (FormatError, UnavailableError) as fault:
            _refuse_newer(fault)
            problem = "a lease cannot be read, and no sweep deletes anything while it is there"
            yield Finding.of_fault(FindingKind.LEASE, listed.path, problem, Loss.NOTHING, fault)
