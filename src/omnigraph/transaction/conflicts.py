"""Judging a lost race: what others wrote since our base, against what we read and wrote.

Pure: it looks at records, never at tables.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.conflict import (
    BasePruned,
    Conflict,
    DeclaredDead,
    ExpectedVersionMismatch,
    KeyConflict,
    ReadSetChanged,
)
from omnigraph.model.footprint import Footprint, has_conflict
from omnigraph.model.intent import Completed, Intent
from omnigraph.transaction.options import read_options


@dataclass(frozen=True, slots=True)
class Clear:
    """Nothing they wrote touches what we read or wrote: rebase."""


@dataclass(frozen=True, slots=True)
class Clashing:
    """They touched it: run the operation again where that means the same thing, refuse where it does not."""

    conflicts: tuple[Conflict, ...]


@dataclass(frozen=True, slots=True)
class Broken:
    """No second run can help: the schema changed, the branch is gone, or recovery took us for dead."""

    conflicts: tuple[Conflict, ...]


Judgement = Clear | Clashing | Broken


def judge(ours: Footprint, base: Record, newer: Sequence[Record], *, intent: str | None = None) -> Judgement:
    """What to do about entries `newer`, which others put after our `base`."""
    for entry in newer:
        if intent is not None and intent in entry.aborted:
            return Broken((DeclaredDead(intent, entry.commit),))
        if entry.kind in (CommitKind.DELETE, CommitKind.FORK):
            return Broken((ReadSetChanged("branch", base.commit, entry.commit),))
        if entry.schema != base.schema:
            return Broken((ReadSetChanged("schema", base.schema, entry.schema),))
    found: list[Conflict] = []
    head = newer[-1] if newer else base
    for type_key, part in sorted(ours.types.items()):
        for entry in newer:
            theirs = entry.footprint.of(type_key)
            # A layout follows writes of rows; on another layout, or another content, it has to be planned anew.
            layouts_meet = part.changes_layout_only and (theirs.changes_layout_only or theirs.writes_whole)
            if layouts_meet or has_conflict(part, theirs):
                found.append(ReadSetChanged(type_key, _version(base, type_key), _version(head, type_key)))
                break
    return Clashing(tuple(found)) if found else Clear()


def has_barrier(newer: Sequence[Record]) -> bool:
    """True if a sweep may have deleted what was staged before these entries, unless an intent protects it."""
    return any(entry.kind is CommitKind.BARRIER for entry in newer)


def mismatches(expected: Mapping[str, int], head: Record) -> tuple[ExpectedVersionMismatch, ...]:
    """The caller's expected table versions that do not hold at `head`; an unknown table is at version 0."""
    wrong = []
    for type_key, version in sorted(expected.items()):
        pin = head.tables.get(type_key)
        actual = pin.version if pin is not None else 0
        if actual != version:
            wrong.append(ExpectedVersionMismatch(type_key, version, actual))
    return tuple(wrong)


def message_for(conflict: Conflict) -> str:
    """A conflict in a sentence: what was expected, what is there, what to do."""
    match conflict:
        case ExpectedVersionMismatch(table_key, expected, actual):
            return f"{table_key} is at version {actual}, not at {expected} as the write expects; read again and retry"
        case ReadSetChanged("branch", _, actual):
            return (
                f"the branch was deleted or made anew while the write ran (entry {actual}); start again from its head"
            )
        case ReadSetChanged("schema", expected, actual):
            return f"the schema changed from {expected} to {actual} while the write ran; prepare the write anew"
        case ReadSetChanged(member, expected, actual):
            return (
                f"{member} moved from version {expected} to {actual} under what the write had read; read again, retry"
            )
        case KeyConflict():
            return str(conflict)
        case DeclaredDead(intent, by_commit):
            by = f", commit {by_commit}" if by_commit else ""
            return f"recovery took this write for dead and undid it (intent {intent}{by}); run it again"
        case BasePruned(branch, base_number, floor):
            return (
                f"entry {base_number} of branch '{branch}', from which the write started, was pruned while it ran "
                f"(the oldest that is kept is {floor}); run it again"
            )


def _version(record: Record, type_key: str) -> str:
    pin = record.tables.get(type_key)
    return str(pin.version if pin is not None else 0)


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """Its work is in the log, or was undone; only the note is left over."""

    by: Record  # the entry that carries or aborts it
    audited: bool  # whether the log says already how it ended


@dataclass(frozen=True, slots=True)
class Finish:
    """Everything is staged and nothing stands against it: publish it."""

    completed: Completed


@dataclass(frozen=True, slots=True)
class Undo:
    """It cannot be published any more: say so in the log, then delete what it staged."""

    reason: str


@dataclass(frozen=True, slots=True)
class Leave:
    """The facts are not certain yet: touch nothing, try later."""

    reason: str


Verdict = AlreadyDone | Finish | Undo | Leave


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known about an intent."""

    intent: Intent
    completed: Completed | None
    base: Record | None  # the entry it started from; None when that is gone
    newer: Sequence[Record]  # the entries of its branch after its base, oldest first
    staged_readable: bool | None  # every staged version opens; None when that could not be found out


def verdict(facts: Facts) -> Verdict:
    """The one answer for these facts."""
    intent = facts.intent
    audited = any(entry.recovery is not None and entry.recovery.intent == intent.id for entry in facts.newer)
    for entry in facts.newer:
        if entry.intent == intent.id or intent.id in entry.aborted:
            return AlreadyDone(entry, audited)
    if facts.base is None or facts.base.commit != intent.base_commit:
        return Undo("the commit it started from is gone")
    if facts.newer and facts.newer[0].number > intent.base_number + 1:
        return Undo("the log was cut behind the commit it started from")
    if facts.newer and not facts.newer[-1].pruned.is_kept(intent.base_number):
        return Undo("a prune has passed the commit it started from")
    if facts.completed is None:
        return Undo("not every table was staged")
    if has_barrier(facts.newer) and _has_new_tables(facts.completed, facts.base):
        return Undo("a sweep may have deleted its new tables, which were made before its intent")
    if any(entry.kind is CommitKind.DELETE for entry in facts.newer):
        return Undo("its branch was deleted")
    broken = _broken_condition(facts.completed, facts.base, facts.newer)
    if broken is not None:
        return Undo(broken)
    if not isinstance(judge(facts.completed.footprint, facts.base, facts.newer, intent=intent.id), Clear):
        return Undo("a later commit touches what it read or wrote")
    match facts.staged_readable:
        case True:
            return Finish(facts.completed)
        case False:
            return Undo("a staged version is not readable")
        case None:
            return Leave("the staged versions could not be looked at")


def _has_new_tables(completed: Completed, base: Record) -> bool:
    known = {pin.table for pin in base.tables.values()}
    return any(pin.table not in known for pin in completed.tables.values())


def _broken_condition(completed: Completed, base: Record, newer: Sequence[Record]) -> str | None:
    """Which condition of the caller's no longer holds: of two requests one was to win, and the other has."""
    head = newer[-1] if newer else base
    options = read_options(completed.options)
    if options.if_commit is not None and not head.has_content_of(options.if_commit):
        return "the head is not the commit its caller named"
    if mismatches(options.expected_table_versions or {}, head):
        return "a table is not at the version its caller expected"
    key = options.idempotency_key
    if key is not None and any(entry.idempotency_key == key for entry in newer):
        return "the same request was carried out meanwhile"
    return None
