"""One write, from the first look at the head to the acknowledgement.

    heal      interrupted writes found on the way (one listing, empty as a rule); make way for those who ask for it
    resolve   the head; its entry is the snapshot
    prepare   run the operation over the snapshot; validate
    note      A: put the intent, unless the write is small enough to redo
    stage     B: one detached version per touched table
    publish   C: put entry head + 1
    clear     D: delete the intent

An operation that lost a race is run again on a fresh snapshot where that means the same thing, and refused where not.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum

from omnigraph import limits
from omnigraph.clock import backoff_s
from omnigraph.errors import ConflictError, GraphError, InvalidRequestError, OutcomeUnknownError, UnavailableError
from omnigraph.failpoints import Failpoint, reached
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.conflict import Conflict
from omnigraph.model.intent import Completed, Intent
from omnigraph.storage import paths
from omnigraph.storage.object_store import ObjectNotFound, StoreError
from omnigraph.transaction import idempotency, queues
from omnigraph.transaction.conflicts import has_barrier, message_for
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.intent import NotedWrite
from omnigraph.transaction.liveness import this_writer
from omnigraph.transaction.options import WriteOptions, option_values, options_document
from omnigraph.transaction.preconditions import check_preconditions
from omnigraph.transaction.publish import (
    CarriedOutError,
    Draft,
    LostRaceError,
    StageAgainError,
    base_gone,
    check_above_the_floor,
    check_withdrawn,
    publish,
    withdraw,
)
from omnigraph.transaction.recovery import heal
from omnigraph.transaction.retention import check_made
from omnigraph.transaction.stage_versions import StagedCommit, stage
from omnigraph.transaction.starvation import StarvationGuard, pause_for
from omnigraph.transaction.write_set import WriteSet

# What reading says where a sweep has deleted a table's file, or cut an entry away.
_CODES_OF_WHAT_IS_GONE = frozenset({"version_reclaimed", "entry_missing"})


class IntentPolicy(Enum):
    """When a write leaves an intent, by which others can finish it or find its files."""

    ALWAYS = "always"
    NEVER = "never"  # it is soon done again
    BY_SIZE = "by size"  # when it has many rows, or can only be staged again by running again


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to be done, in a form that can be run again.

    Attributes:
        kind: the kind of commit it makes.
        type_keys: the types whose tables it may change, known before it runs.
        run: does it, on a write_set; may run several times, each on a fresh one; raises to refuse.
        redoable: running it again on a newer head means the same thing (inserts, keyed upserts, appends, merges of
            rows, index and compaction work); otherwise a lost race is the caller's to decide.
        always_commits: make a commit even when nothing changed (a load always makes one).
        intent: whether the write leaves an intent.
        queued: wait for writers of the same tables in this process; what may rather lose a race and be planned anew
            makes nobody wait, and waits for nobody.
        merged_parent: the other side of a merge.
        adopts: commits of other lines whose versions it names.
        recheck_after_intent: called once the intent is on the store; raises unless those commits, and files staged
            before the intent, are still kept.
        since_us: since when it has staged files, by the store's clock; 0 where it begins with the intent.
    """

    kind: CommitKind
    type_keys: frozenset[str]
    run: Callable[[WriteSet], None]
    redoable: bool
    always_commits: bool = False
    intent: IntentPolicy = IntentPolicy.BY_SIZE
    queued: bool = True
    merged_parent: str | None = None
    adopts: tuple[str, ...] = ()
    recheck_after_intent: Callable[[], None] | None = None
    since_us: int = 0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of a write.

    Attributes:
        entry: the commit; None when nothing had to change.
        head: the commit the write was made on when `entry` is None.
        replayed: the commit is that of an earlier call with the same idempotency key.
        attempts: how often the operation ran.
        warnings: what did not go well and needs nobody.
    """

    entry: Record | None
    head: Record
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()


def write(parts: GraphContext, branch: str, operation: Operation, options: WriteOptions | None = None) -> Receipt:
    """Carry out one operation as one commit, or leave no visible trace.

    Raises:
        ConflictError: somebody else's commit stands in the way; it says which.
        PreconditionError: the head is not the commit the caller named.
        OutcomeUnknownError: the store never said; look in the log before trying again.
        GraphError: whatever the operation refuses with.
    """
    options = options or WriteOptions()
    parts.refuse_read_only()
    name = paths.branch_name(branch)
    _check_key(options.idempotency_key)
    healed = heal(parts)
    reached(Failpoint.WRITE_HEALED)
    if healed.starved and operation.queued:
        pause_for(parts, name, operation.type_keys, healed.starved)
    draft = Draft(
        branch=name,
        kind=operation.kind,
        merged_parent=operation.merged_parent,
        **option_values(options),
    )
    types = operation.type_keys if operation.queued else frozenset[str]()
    with queues.held(parts.store.uri, name, types) as held, StarvationGuard(parts, draft) as starvation:
        receipt = _retry(parts, operation, draft, _Turn(held, starvation))
    # Whoever is next in line need not wait for this: it is best effort, and two writes to the disk.
    if draft.idempotency_key is not None and receipt.entry is not None and not receipt.replayed:
        idempotency.note_use(parts, name, draft.idempotency_key, receipt.entry)
    return replace(receipt, warnings=healed.warnings + receipt.warnings)


@dataclass(frozen=True, slots=True)
class _Turn:
    """What a write has while it runs: its queues in this process, and what it asks of other processes."""

    held: queues.Held
    starvation: StarvationGuard


def _retry(parts: GraphContext, operation: Operation, draft: Draft, turn: _Turn) -> Receipt:
    """Attempt after attempt, until one is published or none can be."""
    for attempt in range(1, limits.REDO_ATTEMPTS_MAX + 1):
        begun = parts.clock.monotonic()
        try:
            receipt = _attempt(parts, operation, draft, turn)
        except LostRaceError as lost:
            if not operation.redoable and not isinstance(lost, StageAgainError):
                raise refused(lost.conflicts) from None
            last = lost
            if lost.withdrawn is not None:
                draft = replace(draft, withdrawn=(*draft.withdrawn, lost.withdrawn))
            if operation.queued:
                turn.starvation.lost_race(parts.clock.monotonic() - begun, lost.rested_on)
            parts.clock.sleep(backoff_s(attempt))
        else:
            if parts.published is not None and receipt.entry is not None and not receipt.replayed:
                parts.published(receipt.entry)
            return replace(receipt, attempts=attempt)
    raise ConflictError(
        f"branch '{draft.branch}' is too busy: the write ran {limits.REDO_ATTEMPTS_MAX} times and each time lost the "
        f"race ({message_for(last.conflicts[0])})",
        conflicts=last.conflicts,
        code="too_busy",
    )


def refused(conflicts: tuple[Conflict, ...]) -> ConflictError:
    """The error of a write whose read set changed and that may not simply be run again."""
    return ConflictError(message_for(conflicts[0]), conflicts=conflicts, code="read_set_conflict")


def _attempt(parts: GraphContext, operation: Operation, draft: Draft, turn: _Turn) -> Receipt:
    base = parts.log.live_head(draft.branch, tentative=True)
    check_made(parts, base)
    try:
        draft = check_withdrawn(parts, draft, base)
    except CarriedOutError as finished:
        return Receipt(finished.entry, finished.entry)
    with _swept_meanwhile(parts, base):
        receipt = _attempt_from(parts, operation, draft, turn, base)
    if receipt.entry is None and not parts.log.is_there(base):
        raise base_gone(parts, base)
    return receipt


@contextmanager
def _swept_meanwhile(parts: GraphContext, base: Record) -> Iterator[None]:
    """Judge no write by files that were swept while it ran, or by a base that was out of date before.

    Raises:
        LostRaceError: a prune has passed the base, or a sweep put a barrier; run the operation again on a fresh one.
    """
    try:
        yield
    except GraphError as fault:
        if isinstance(fault, ObjectNotFound) or fault.code in _CODES_OF_WHAT_IS_GONE:
            newer = parts.log.since(base.branch, base.number)
            if newer:
                check_above_the_floor(base, newer[-1])
            if has_barrier(newer):
                raise StageAgainError from fault
        if not isinstance(fault, UnavailableError | OutcomeUnknownError) and not parts.log.is_there(base):
            raise base_gone(parts, base) from fault
        raise


def _attempt_from(parts: GraphContext, operation: Operation, draft: Draft, turn: _Turn, base: Record) -> Receipt:
    key = draft.idempotency_key
    if key is not None:
        earlier = idempotency.earlier_use(parts, draft.branch, key, base)
        if earlier is not None:
            return Receipt(earlier, base, replayed=True)
    check_preconditions(parts, base, draft.if_commit, draft.expected_table_versions)
    write_set = WriteSet(parts.snapshot(base), parts.finder)
    try:
        return _run_and_publish(parts, operation, draft, base, write_set, turn=turn)
    except LostRaceError as lost:
        lost.rested_on = write_set.noted_types | write_set.touched
        raise


def _run_and_publish(
    parts: GraphContext, operation: Operation, draft: Draft, base: Record, write_set: WriteSet, *, turn: _Turn
) -> Receipt:
    operation.run(write_set)
    if operation.queued:
        turn.held.covers(write_set.touched)
    reached(Failpoint.WRITE_PREPARED)
    if _needs_intent(parts, operation, write_set):
        return _staged_under_an_intent(parts, operation, draft, base, write_set, turn=turn)
    return _published(parts, operation, draft, base, _staged(parts, write_set), turn=turn)


def _needs_intent(parts: GraphContext, operation: Operation, write_set: WriteSet) -> bool:
    if operation.intent is not IntentPolicy.BY_SIZE:
        return operation.intent is IntentPolicy.ALWAYS
    rows, size = write_set.size
    is_large = rows >= parts.settings.intent_rows_min or size >= parts.settings.intent_bytes_min
    return is_large or bool(write_set.table_changes)


def _staged_under_an_intent(
    parts: GraphContext, operation: Operation, draft: Draft, base: Record, write_set: WriteSet, *, turn: _Turn
) -> Receipt:
    intent = Intent(
        id=parts.ids.new(),
        kind=operation.kind,
        branch=draft.branch,
        base_number=base.number,
        base_commit=base.commit,
        actor=draft.actor,
        writer=this_writer(),
        tables={key: write_set.base_pin(key) for key in sorted(write_set.touched)},
        created_at_us=parts.clock.now_us(),
        adopts=operation.adopts,
        since_us=operation.since_us,
    )
    draft = replace(draft, intent=intent.id)
    with parts.intents.noted(intent) as noted, _withdrawn_on_failure(noted, intent):
        reached(Failpoint.WRITE_INTENT_PUT)
        if operation.recheck_after_intent is not None:
            operation.recheck_after_intent()
        staged = _staged(parts, write_set)
        # Otherwise nobody shall do it for us. Nor where versions of another line are taken over: whether they are kept
        # still is this writer's to know, and running again costs little.
        if _has_to_be_published(operation, base, staged) and not staged.adopted:
            noted.complete(
                Completed(
                    intent=intent.id,
                    schema=staged.schema,
                    tables=dict(staged.added) | {key: table.pin for key, table in staged.tables.items()},
                    removed=tuple(sorted(staged.removed)),
                    footprint=staged.footprint,
                    changes=staged.changes,
                    merged_parent=draft.merged_parent,
                    notes=staged.notes,
                    options=options_document(draft),
                )
            )
            reached(Failpoint.WRITE_INTENT_COMPLETED)
        try:
            with _swept_meanwhile(parts, base):
                receipt = _published(parts, operation, draft, base, staged, turn=turn)
        except LostRaceError as lost:
            if not lost.is_due_to_others_writes:
                lost.withdrawn = withdraw(parts, intent.id, base)
            raise
        try:
            noted.clear()
        except StoreError as fault:
            left = f"the intent {intent.id} could not be deleted and will be by the next write: {fault}"
            receipt = replace(receipt, warnings=(*receipt.warnings, left))
        else:
            reached(Failpoint.PUBLISH_INTENT_CLEARED)
        return receipt


@contextmanager
def _withdrawn_on_failure(noted: NotedWrite, intent: Intent) -> Iterator[None]:
    """Withdraw the intent when the write fails, so that recovery does not finish what its caller saw fail.

    When even that fails, the note stays: whoever finds it undoes or finishes it, and the log tells which.
    """
    try:
        yield
    except (Exception, KeyboardInterrupt) as fault:
        try:
            noted.clear()
        except StoreError:
            fault.add_note(f"its intent {intent.id} is still on the store: look in the log before trying again")
        raise


def _staged(parts: GraphContext, write_set: WriteSet) -> StagedCommit:
    staged = stage(parts, write_set)
    reached(Failpoint.WRITE_TABLES_STAGED)
    parts.store.make_durable(staged.files)
    reached(Failpoint.WRITE_MADE_DURABLE)
    return staged


def _has_to_be_published(operation: Operation, base: Record, staged: StagedCommit) -> bool:
    changed = staged.tables or staged.added or staged.removed or staged.schema != base.schema
    return bool(changed) or operation.always_commits


def _published(
    parts: GraphContext, operation: Operation, draft: Draft, base: Record, staged: StagedCommit, *, turn: _Turn
) -> Receipt:
    if not _has_to_be_published(operation, base, staged):
        return Receipt(None, base)
    try:
        entry = publish(
            parts, staged, draft, base, on_starvation=turn.starvation.request_pause if operation.queued else None
        )
    except CarriedOutError as twin:
        return Receipt(twin.entry, twin.entry, replayed=True)
    return Receipt(entry, entry)


def _check_key(key: str | None) -> None:
    if key is None:
        return
    size = len(key.encode("utf-8", "surrogatepass"))
    if not 0 < size <= limits.IDEMPOTENCY_KEY_BYTES_MAX:
        raise InvalidRequestError(
            f"an idempotency key has 1 to {limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes; this one has {size}"
        )
