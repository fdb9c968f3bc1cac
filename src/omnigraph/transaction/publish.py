"""Publishing: one conditional put makes a whole write visible, or nothing of it.

put entry head + 1 if absent
  done      visible and durable
  refused   read the entries since, judge them: rebase and try the next number, or raise
  unknown   the log reads back before it answers (log.put)
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from omnigraph import ids, limits
from omnigraph.clock import backoff_s
from omnigraph.errors import ConflictError, OutcomeUnknownError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Pin, Record, Recovery
from omnigraph.model.conflict import BasePruned, Conflict, DeclaredDead, ReadSetChanged
from omnigraph.model.footprint import Footprint, TypeFootprint
from omnigraph.storage.object_store import ObjectNotFound
from omnigraph.storage.tables.tables import StagedVersion
from omnigraph.transaction import queues
from omnigraph.transaction.conflicts import Broken, Clashing, Clear, has_barrier, judge, message_for
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.log import Baseless, Done, Refused
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.preconditions import check_preconditions
from omnigraph.transaction.pruning.checksums import added_digests
from omnigraph.transaction.pruning.floor import superseding
from omnigraph.transaction.write_set.stage import StagedCommit, at_hand, restaged


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """An attempt of a write that was given up although another process may finish it."""

    intent: str  # under which it ran
    first: int  # the number of the first entry that may carry it


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft(WriteOptions):
    """Everything in a log entry besides its tables: the options of the write, and what the transaction adds."""

    branch: str  # whose log the entry is put into
    kind: CommitKind
    intent: str | None = None  # the intent it completes
    merged_parent: str | None = None  # the other side of a merge
    recovery: Recovery | None = None  # the audit, on recover entries
    aborted: tuple[str, ...] = ()  # intents it declares dead
    # earlier attempts of the same write; the entry declares them dead, so that they are not published too
    withdrawn: tuple[Withdrawn, ...] = ()


class LostRaceError(Exception):
    """Others touched what this write read or wrote. Never leaves the transaction package: it is redone or refused.

    Attributes:
        conflicts: what stood in the way.
        rested_on: the type keys that the write had read or changed, as far as whoever ran it has noted them.
        withdrawn: the attempt that lost, where another process may have finished it, or still may.
    """

    def __init__(self, conflicts: tuple[Conflict, ...]) -> None:
        super().__init__(conflicts)
        self.conflicts = conflicts
        self.rested_on: frozenset[str] = frozenset()
        self.withdrawn: Withdrawn | None = None

    @property
    def is_due_to_others_writes(self) -> bool:
        """True if commits clash with the write, which keeps every other process from finishing it, too."""
        return not isinstance(self, StageAgainError) and not any(isinstance(c, BasePruned) for c in self.conflicts)


class StageAgainError(LostRaceError):
    """A sweep may delete what was staged; no other write is in the way, so running again means the same thing."""

    def __init__(self) -> None:
        super().__init__((ReadSetChanged("files", "staged", "to be staged again"),))


class CarriedOutError(Exception):
    """The same write was published meanwhile, by its key or by recovery. Never leaves the package either."""

    def __init__(self, entry: Record) -> None:
        super().__init__(entry.commit)
        self.entry = entry


def publish(
    context: GraphContext,
    staged: StagedCommit,
    draft: Draft,
    base: Record,
    *,
    on_starvation: Callable[[frozenset[str]], None] | None = None,
) -> Record:
    """Make staged table versions visible as one commit, or leave nothing visible.

    After several lost races `on_starvation` is called with the types of the write. Returns the entry that carries this
    write: ours, or the one by which another process finished it for us.

    Raises:
        LostRaceError: commits since `base` clash; run the operation again on a fresh base.
        CarriedOutError: the same request is in the log already, under the same key.
        ConflictError: no second run can help, or the table versions the caller expected are gone.
        PreconditionError: the head is not the commit the caller named.
        OutcomeUnknownError: the store never said; the log will tell.
    """
    head = base
    with ExitStack() as line:
        for attempt in range(1, limits.PUBLISH_ATTEMPTS_MAX + 1):
            entry = entry_after(context, head, staged, draft)
            match context.log.put(entry, after=head):
                case Done(entry):
                    reached(Failpoint.PUBLISH_ENTRY_PUT)
                    return entry
                case Baseless():
                    return _find_finished(context, draft, head)
                case Refused():
                    reached(Failpoint.PUBLISH_REFUSED)
            # To wait comes before looking at what is newer: a place taken before a wait would be lost again behind it.
            if attempt == limits.PUBLISH_ATTEMPTS_EAGER:
                # Whoever did not queue, like upkeep, would lose for as long as writers here never pause. Everybody else
                # is in line already, and asks again for what is held.
                line.enter_context(queues.held(context.store.uri, draft.branch, frozenset(staged.tables)))
                if on_starvation is not None:
                    on_starvation(frozenset(staged.tables))
            elif attempt > limits.PUBLISH_ATTEMPTS_EAGER + 1:
                context.clock.sleep(backoff_s(attempt - limits.PUBLISH_ATTEMPTS_EAGER - 1))
            newer = context.log.since(draft.branch, head.number)
            finished = _finished_by_another(newer, draft)
            if finished is not None:
                return finished
            draft = without_aborted(draft, newer)
            if not newer or not newer[0].follows(head) or not newer[-1].pruned.is_kept(head.number):
                return _find_finished(context, draft, head)
            twin = _same_request(newer, draft)
            if twin is not None:
                raise CarriedOutError(twin)
            check_preconditions(context, newer[-1], draft.if_commit, draft.expected_table_versions)
            match judge(
                staged.footprint, head, _with_footprints(context, newer, staged.footprint), intent=draft.intent
            ):
                case Clear():
                    reached(Failpoint.PUBLISH_JUDGED)
                    staged = _on_top_of(context, staged, draft, newer)
                case Clashing(conflicts):
                    raise LostRaceError(conflicts)
                case Broken(conflicts):
                    raise ConflictError(message_for(conflicts[0]), conflicts=conflicts)
            head = newer[-1]
    raise ConflictError(
        f"branch '{draft.branch}' is too busy: {limits.PUBLISH_ATTEMPTS_MAX} tries to publish lost the race; try again",
        code="too_busy",
    )


def entry_after(context: GraphContext, head: Record, staged: StagedCommit, draft: Draft) -> Record:
    """The entry that follows `head` and names what was staged."""
    tables = staged.pins_on(head)
    return Record(
        # Ids rise along every line of descent, so that an ancestor never has the greater one.
        commit=ids.after(max(head.commit, draft.merged_parent or ""), context.ids.new()),
        branch=draft.branch,
        number=head.number + 1,
        kind=draft.kind,
        parent=head.head_commit,
        merged_parent=draft.merged_parent,
        actor=draft.actor,
        message=draft.message,
        # Times rise along a log whatever the writers' clocks say, so that a time names one place in it.
        created_at_us=max(context.clock.now_us(), head.created_at_us),
        intent=draft.intent,
        idempotency_key=draft.idempotency_key,
        schema=staged.schema,
        tables=tables,
        changes=staged.changes,
        footprint=staged.footprint,
        aborted=(*draft.aborted, *(attempt.intent for attempt in draft.withdrawn)),
        recovery=None if draft.recovery is None else _outcome(draft.recovery, staged, tables),
        notes=staged.notes,
        born=head.life,
        pruned=superseding(context, head, erases=_drops_hard(staged.notes), intent=draft.intent)
        if draft.prune_previous
        else head.pruned,
        digests=added_digests(context, (path for table in staged.tables.values() for path in table.files)),
    )


def _drops_hard(notes: Mapping[str, object]) -> bool:
    """Return True for a schema change that erases what it drops."""
    steps = notes.get("steps", ())
    return isinstance(steps, Sequence) and any(step.get("mode") == "hard" for step in steps)


def _outcome(audit: Recovery, staged: StagedCommit, tables: Mapping[str, Pin]) -> Recovery:
    """The audit with the versions that are published: rebasing gives them other numbers than were staged."""
    ended = tuple(
        replace(outcome, to_version=tables[outcome.type_key].version)
        if outcome.type_key in staged.tables and outcome.type_key in tables
        else outcome
        for outcome in audit.tables
    )
    return replace(audit, tables=ended)


def rebased(context: GraphContext, staged: StagedCommit, head: Record) -> StagedCommit:
    """What was staged, on top of `head`: tables only we touched as they are, the others moved row by row."""
    moved: dict[str, StagedVersion] = {}
    for key, table in staged.tables.items():
        onto = head.tables.get(key, staged.added.get(key))
        if onto is None or onto == table.base or key in staged.added or key in staged.adopted:
            continue
        found = context.tables.rebase(table.base, table.pin, onto)
        if found is None:
            again = staged.restage.get(key)
            if again is None:
                raise LostRaceError((_moved(key, table, onto.version),))
            found = again(onto)
        # Which ids were inserted, updated and deleted stays as it was: nobody touched them meanwhile.
        moved[key] = replace(
            found, inserted_ids=table.inserted_ids, updated_ids=table.updated_ids, deleted_ids=table.deleted_ids
        )
    if not moved:
        return staged
    context.store.make_durable([path for table in moved.values() for path in table.files])
    return replace(staged, tables={**staged.tables, **moved})


def _on_top_of(context: GraphContext, staged: StagedCommit, draft: Draft, newer: Sequence[Record]) -> StagedCommit:
    """Move what was staged on top of newer entries; behind a barrier stage it again, before anything reads its files.

    An intent that still stands has stood since before the first file, so every sweep has seen it and spared them. Not
    those of a new table: that is made before its write leaves an intent.
    """
    if has_barrier(newer) and (staged.added or draft.intent is None or not context.intents.stands(draft.intent)):
        return _restage(context, staged, newer[-1])
    return rebased(context, staged, newer[-1])


def base_gone(context: GraphContext, base: Record) -> LostRaceError:
    """The error of a write whose base is not in the log any more."""
    return LostRaceError((BasePruned(base.branch, base.number, context.log.floors.highest(base.branch)),))


def check_above_the_floor(base: Record, head: Record) -> None:
    """Refuse to build on a commit whose data may be gone."""
    if not head.pruned.is_kept(base.number):
        raise LostRaceError((BasePruned(head.branch, base.number, head.pruned.floor),))


def _restage(context: GraphContext, staged: StagedCommit, head: Record) -> StagedCommit:
    fresh = None if staged.added else restaged(context, staged, head)
    if fresh is None:
        raise StageAgainError
    context.store.make_durable(fresh.files)
    return fresh


def _finished_by_another(newer: Sequence[Record], draft: Draft) -> Record | None:
    """The entry by which recovery has finished this very write, or an attempt of it that was withdrawn."""
    intents = {draft.intent, *(attempt.intent for attempt in draft.withdrawn)} - {None}
    return next((entry for entry in newer if entry.intent in intents), None)


def without_aborted(draft: Draft, newer: Sequence[Record]) -> Draft:
    """The draft without the withdrawn attempts that recovery has declared dead: an entry does that once."""
    aborted = {intent for entry in newer for intent in entry.aborted}
    return replace(draft, withdrawn=tuple(attempt for attempt in draft.withdrawn if attempt.intent not in aborted))


def withdraw(context: GraphContext, intent: str, base: Record) -> Withdrawn:
    """Return an attempt to give up, before its intent is cleared.

    While an intent stands, no sweep cuts the log behind its base: what is cut already was before it was put.
    """
    first, floor = base.number + 1, context.log.floors.highest(base.branch)
    return Withdrawn(intent, max(first, floor) if context.intents.stands(intent) else first)


def check_withdrawn(context: GraphContext, draft: Draft, base: Record) -> Draft:
    """The draft with the withdrawn attempts that its entry must declare dead; raises if one was finished, or may be."""
    if not draft.withdrawn:
        return draft
    first = min(attempt.first for attempt in draft.withdrawn)
    floor = context.log.floors.highest(draft.branch)
    newer = [*context.log.between(draft.branch, max(first, floor), base.number_before), base]
    finished = _finished_by_another(newer, draft)
    if finished is not None:
        raise CarriedOutError(finished)
    draft = without_aborted(draft, newer)
    if floor > first and draft.withdrawn:
        raise _outcome_unknown(draft, draft.withdrawn[0].intent)
    return draft


def _find_finished(context: GraphContext, draft: Draft, head: Record) -> Record:
    """Find the entry by which recovery has finished a write whose base was pruned or is gone.

    While an intent stands, no sweep cuts the log behind its base. So where it stands, what is not found was not put.

    Raises:
        LostRaceError: nobody has ended the write; run the operation again on a fresh base.
        ConflictError: it was declared dead.
        OutcomeUnknownError: its intent was taken away, and the entry that says how it ended may have been cut.
    """
    if draft.intent is None:
        raise base_gone(context, head)
    stands = context.intents.stands(draft.intent)
    newest = context.log.head(draft.branch)
    first = max(context.log.floors.highest(draft.branch), head.number + 1)
    for entry in () if newest is None else context.log.backwards(draft.branch, start=newest.number, first=first):
        if entry.intent == draft.intent:
            return entry
        if draft.intent in entry.aborted:
            conflict = DeclaredDead(draft.intent, entry.commit)
            raise ConflictError(message_for(conflict), conflicts=(conflict,))
    if stands:
        raise base_gone(context, head)
    raise _outcome_unknown(draft, draft.intent)


def _outcome_unknown(draft: Draft, intent: str) -> OutcomeUnknownError:
    return OutcomeUnknownError(
        f"another process took the write {intent} for dead, and the log of branch '{draft.branch}' was cut "
        "since; look whether what it did is there before trying again",
        branch=draft.branch,
    )


def _same_request(newer: Sequence[Record], draft: Draft) -> Record | None:
    """The entry of the same request, which was sent twice under one key."""
    key = draft.idempotency_key
    return next((entry for entry in newer if key is not None and entry.idempotency_key == key), None)


def _with_footprints(context: GraphContext, newer: Sequence[Record], ours: Footprint) -> list[Record]:
    """The entries with their footprints at hand, fetching those that lie in files of their own."""
    if not ours.types:
        return list(newer)
    return [replace(entry, footprint=_footprint(context, entry)) if entry.footprint.file else entry for entry in newer]


def _footprint(context: GraphContext, entry: Record) -> Footprint:
    try:
        return at_hand(context, entry.footprint)
    except ObjectNotFound:  # swept with a commit that was pruned by name: it may have touched anything
        return Footprint({key: TypeFootprint(writes_whole=True) for key in entry.tables})


def _moved(type_key: str, table: StagedVersion, actual: int) -> ReadSetChanged:
    return ReadSetChanged(type_key, str(table.base.version), str(actual))
