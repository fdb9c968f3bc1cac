"""What to do about an intent whose writer is dead. Pure: one match over facts that were read before.

what the log says since its base          what is staged         verdict
an entry carries this intent              –                      done
an entry aborts this intent               –                      done (undone before)
nothing that conflicts                    all, all readable      finish
nothing that conflicts                    some missing           undo
a conflict, schema changed, branch gone   –                      undo
a prune or a cut has passed its base      –                      undo
a sweep has passed its new tables         –                      undo
its caller's precondition is broken       –                      undo
another entry has its idempotency key     –                      undo
could not be read for certain             –                      leave
"""

from collections.abc import Sequence
from dataclasses import dataclass

from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.intent import Completed, Intent
from omnigraph.transaction.conflicts import Clear, has_barrier, judge, mismatches
from omnigraph.transaction.options import read_options


@dataclass(frozen=True, slots=True)
class AlreadyDone:
    """Its work is in the log, or was undone; only the note is left over.

    Attributes:
        by: the entry that carries or aborts it.
        audited: whether the log says already how it ended.
    """

    by: Record
    audited: bool


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
    """What is known about an intent.

    Attributes:
        intent: the note.
        completed: its second document.
        base: the entry it started from; None when that is gone.
        newer: the entries of its branch after its base, oldest first.
        staged_readable: every staged version opens; None when that could not be found out.
    """

    intent: Intent
    completed: Completed | None
    base: Record | None
    newer: Sequence[Record]
    staged_readable: bool | None


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
