"""Healing: what becomes of writes that died between their intent and its end.

Runs at every read-write open and, at the price of one listing, at the entry of every write. It is safe beside living
writers, in this process and others: an undo first puts an entry that declares the intent dead, so that a slow writer's
own put collides with it; a finish carries the intent's id, so that writer finds its work done. Every ending is one log
entry with its audit inside: it cannot be lost, and the fence keeps it from being doubled.
"""

import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph import limits
from omnigraph.errors import ConflictError, FormatError, GraphError, PreconditionError, UnavailableError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import MAIN, RECOVERY_ACTOR, CommitKind, Pin, Record, Recovery, RecoveryKind, TableOutcome
from omnigraph.model.intent import Completed, Intent
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.tables.location import reopened
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction.conflicts import AlreadyDone, Facts, Finish, Leave, Undo, verdict
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import LeftBehind
from omnigraph.transaction.log import Done
from omnigraph.transaction.options import option_values, read_options
from omnigraph.transaction.publish import CarriedOutError, Draft, LostRaceError, entry_after, publish, rebased
from omnigraph.transaction.write_set.stage import StagedCommit, at_hand, nothing_staged

# Held by the thread of this process that ends interrupted writes of any graph: two would get in each other's way.
_healing = threading.Lock()


@dataclass(frozen=True, slots=True)
class Healed:
    """What a pass over the intents did."""

    ended: tuple[str, ...] = ()  # intents that were finished, undone or cleared
    warnings: tuple[str, ...] = ()  # intents left for later, and why
    starved: tuple[Intent, ...] = ()  # those of living writers that ask others to pause


def heal(context: GraphContext) -> Healed:
    """End every interrupted write that can be ended now. One that cannot be is left, and fails nothing else."""
    ended, warnings, starved, dead = [], [], list[Intent](), []
    for intent_id in context.intents.listed():
        try:
            living = context.intents.living(intent_id)
        except GraphError as fault:
            warnings.append(_put_aside(context, intent_id, fault))
            continue
        if living is None:
            dead.append(intent_id)
        else:
            warnings.append(_left(intent_id, "its writer may still be at work"))
            starved += [living] if living.pause_s else []
    if dead and _healing.acquire(blocking=False):
        try:
            context.log.confirm_root()
            # Tables of its own: what recovery reads of a version needs the handle alone.
            healer = replace(context, tables=reopened(context.tables))
            for intent_id in dead:
                warning = _try_to_end(healer, intent_id)
                ended += [intent_id] if warning is None else []
                warnings += [] if warning is None else [warning]
        except UnavailableError as fault:
            warnings += [_left(intent_id, str(fault)) for intent_id in dead]
        finally:
            _healing.release()
    return Healed(tuple(ended), tuple(warnings), tuple(starved))


def _try_to_end(context: GraphContext, intent_id: str) -> str | None:
    """End one whose writer is dead; returns a warning where it must wait. None of its faults reaches other writes."""
    try:
        left = _end(context, intent_id)
    except FormatError as fault:
        return _put_aside(context, intent_id, fault)
    except (LookupError, TypeError, ValueError, ArithmeticError) as fault:  # its documents do not fit together
        return _put_aside(context, intent_id, FormatError(f"it makes no sense: {type(fault).__name__}: {fault}"))
    except Exception as fault:  # noqa: BLE001  (whatever it is, others write on)
        return _left(intent_id, f"{type(fault).__name__}: {fault}")
    return None if left is None else _left(intent_id, left)


def _left(intent_id: str, reason: str) -> str:
    return f"the interrupted write {intent_id} is left for later: {reason}"


def _put_aside(context: GraphContext, intent_id: str, fault: GraphError) -> str:
    """Put an intent that is damaged aside, so that it stops nothing; returns what to report."""
    if not isinstance(fault, FormatError) or fault.code == "format_newer" or context.read_only:
        return _left(intent_id, str(fault))
    try:
        kept = context.intents.put_aside(intent_id)
    except GraphError as refused:
        return _left(intent_id, f"{fault}; and it cannot be put aside: {refused}")
    return f"the note of the interrupted write {intent_id} is damaged and was put aside as {kept}: {fault}"


def _end(context: GraphContext, intent_id: str) -> str | None:
    """End one whose writer is dead; returns why not when it must wait."""
    for _ in range(limits.REDO_ATTEMPTS_MAX):
        # Read anew in every round: the writer, or another healer, may have been faster.
        found = context.intents.read(intent_id)
        if found is None:
            return None
        try:
            ended = _ended(context, _facts(context, found))
            if ended is True:
                context.intents.clear(intent_id)
                return None
        except GraphError as fault:
            return str(fault)
        if ended is not False:
            return ended
    return "other writers keep moving the branch"


def _ended(context: GraphContext, facts: Facts) -> bool | str:
    """Whether it has come to its end; False when the branch moved and it must be judged again, or why it must wait."""
    decided = verdict(facts)
    reached(Failpoint.RECOVERY_JUDGED)
    match decided:
        case Leave(reason):
            return reason
        case AlreadyDone(by, audited):
            undone = facts.intent.id in by.aborted
            kind, ended_at = (
                (RecoveryKind.UNDONE, facts.intent.tables) if undone else (RecoveryKind.FINISHED, by.tables)
            )
            if not audited and not _audited(context, facts, kind, ended_at=ended_at, declared=undone):
                return False
            if undone:
                _delete_staged(context, facts)  # perhaps whoever undid it died before
        case Finish(completed):
            return _finished(context, completed, facts)
        case Undo():
            return _undone(context, facts)
    return True


def _facts(context: GraphContext, found: LeftBehind) -> Facts:
    intent, completed = found.intent, found.completed
    readable = None if completed is None else _readable(context, intent, completed)
    if completed is not None and readable:
        completed = replace(completed, footprint=at_hand(context, completed.footprint))
    base, newer = _since_its_base(context, intent)
    return Facts(
        intent=intent,
        completed=completed,
        base=base,
        newer=[replace(entry, footprint=at_hand(context, entry.footprint)) for entry in newer],
        staged_readable=readable,
    )


def _since_its_base(context: GraphContext, intent: Intent) -> tuple[Record | None, list[Record]]:
    """The entry it started from and those that came after and were not cut away, also where a prune has passed them.

    No sweep that sees the intent cuts them. If some are gone, they were before it was put, and none of them carries it.
    """
    base = context.log.read(intent.branch, intent.base_number)
    head = context.log.head(intent.branch)
    if head is None or head.number <= intent.base_number:
        return base, []
    first = max(intent.base_number + 1, context.log.floors.highest(intent.branch))
    return base, [*context.log.between(intent.branch, first, head.number_before), head]


def _readable(context: GraphContext, intent: Intent, completed: Completed) -> bool | None:
    """Whether every staged version and every file it has brought is there; None when the store does not say."""
    try:
        for key, pin in completed.tables.items():
            there = {listed.path for listed in context.table_files.list(f"{pin.table}/")}
            for file in context.tables.files(pin) - context.tables.files(intent.tables[key]):
                if not (any(path.startswith(file) for path in there) if file.endswith("/") else file in there):
                    return False
        for file in _beside(completed):
            context.store.get(file)
    except (FormatError, ObjectNotFound):
        return False
    except UnavailableError:
        return None
    return True


def _beside(completed: Completed) -> tuple[str, ...]:
    """The files of a write that are in no table."""
    return tuple(file for file in (completed.changes.file, completed.footprint.file) if file is not None)


def _finished(context: GraphContext, completed: Completed, facts: Facts) -> bool:
    """Publish what was staged, rebased if need be; False when the branch moved in a way that must be judged again."""
    assert facts.base is not None
    intent = facts.intent
    head = facts.newer[-1] if facts.newer else facts.base
    staged = StagedCommit(
        tables={
            key: StagedVersion(intent.tables[key], pin, (), (), (), ())
            for key, pin in completed.tables.items()
            if pin != intent.tables[key]
        },
        # A type removed and added again has another table.
        added={
            key: pin
            for key, pin in completed.tables.items()
            if key not in facts.base.tables or facts.base.tables[key].table != pin.table
        },
        removed=frozenset(completed.removed),
        schema=completed.schema,
        footprint=completed.footprint,
        changes=completed.changes,
        notes=completed.notes,
        restage={},
    )
    draft = Draft(
        branch=intent.branch,
        kind=CommitKind.RECOVER,
        intent=intent.id,
        merged_parent=completed.merged_parent,
        recovery=_audit(intent, RecoveryKind.FINISHED, staged.pins_on(replace(facts.base, tables=intent.tables))),
        **option_values(replace(read_options(completed.options), actor=RECOVERY_ACTOR)),
    )
    try:
        staged = rebased(context, staged, head)
    except LostRaceError:
        # Its rows lie elsewhere now (others compacted the table), and only its writer knew how to find them again.
        return _undone(context, facts)
    try:
        publish(context, staged, draft, head)
    except (LostRaceError, CarriedOutError, ConflictError, PreconditionError):
        return False
    reached(Failpoint.RECOVERY_ENTRY_PUT)
    return True


def _undone(context: GraphContext, facts: Facts) -> bool:
    """Declare the intent dead in the log, then delete what it staged; False when the branch moved: judge again."""
    if not _audited(context, facts, RecoveryKind.UNDONE, ended_at=facts.intent.tables):
        return False
    _delete_staged(context, facts)
    return True


def _delete_staged(context: GraphContext, facts: Facts) -> None:
    """Delete what a write declared dead has staged, as far as its second document names it."""
    if facts.completed is None:
        return
    for key, pin in facts.completed.tables.items():
        # What says which files there are goes last, so that whoever dies here can be followed by another.
        for path in sorted(
            _only_staged(context, facts.intent.tables[key], pin), key=lambda path: "/_versions/" in path
        ):
            if path.endswith("/"):
                context.table_files.delete_prefix(path)
            else:
                context.table_files.delete(path)
    for path in _beside(facts.completed):
        context.store.delete(path)
    reached(Failpoint.RECOVERY_FILES_DELETED)


def _audited(
    context: GraphContext, facts: Facts, kind: RecoveryKind, *, ended_at: Mapping[str, Pin], declared: bool = False
) -> bool:
    """Put an entry that changes nothing and says how the interrupted write ended; False when others were faster.

    It follows the very entry that was judged, so two healers cannot both write it. The audit of a write whose branch is
    gone goes to `main`.
    """
    intent = facts.intent
    head = facts.newer[-1] if facts.newer else facts.base
    if head is None or not head.is_live:
        head = context.log.live_head(MAIN)
        if _says_already(context, intent, head):
            return True
    draft = Draft(
        branch=head.branch,
        kind=CommitKind.RECOVER,
        actor=RECOVERY_ACTOR,
        recovery=_audit(intent, kind, ended_at),
        aborted=(intent.id,) if kind is RecoveryKind.UNDONE and not declared else (),
    )
    entry = entry_after(context, head, nothing_staged(head), draft)
    if not isinstance(context.log.put(entry, after=head), Done):
        return False
    reached(Failpoint.RECOVERY_ENTRY_PUT)
    return True


def _only_staged(context: GraphContext, base: Pin, staged: Pin) -> tuple[str, ...]:
    try:
        return context.tables.discard(base, staged)
    except FormatError:
        return ()  # half of it is gone already; a sweep finds the rest


def _says_already(context: GraphContext, intent: Intent, head: Record) -> bool:
    """Whether an entry since the intent was made tells how it ended; for intents whose own branch is gone."""
    first = context.log.floors.highest(head.branch)
    for entry in context.log.backwards(head.branch, start=head.number, first=first):
        if entry.recovery is not None and entry.recovery.intent == intent.id:
            return True
        if entry.created_at_us < intent.created_at_us - limits.CLOCKS_APART_MAX_S * 1_000_000:
            return False
    return False


def _audit(intent: Intent, kind: RecoveryKind, ended_at: Mapping[str, Pin]) -> Recovery:
    return Recovery(
        kind=kind,
        intent=intent.id,
        operation=intent.kind,
        for_actor=intent.actor,
        tables=tuple(
            TableOutcome(key, pin.version, ended_at[key].version if key in ended_at else 0)
            for key, pin in sorted(intent.tables.items())
        ),
    )
