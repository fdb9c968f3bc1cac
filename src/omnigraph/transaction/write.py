"""One write, from the first look at the head to the acknowledgement.

    heal      end interrupted writes found on the way (one listing); pause for starved writers
    run       the operation over a snapshot of the head; validate
    note      A: put the intent, unless the write is small enough to redo
    stage     B: one detached version per touched table, made durable
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
from omnigraph.transaction.pruning.retention import check_made
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
from omnigraph.transaction.starvation import StarvationGuard, pause_for
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.stage import StagedCommit, stage

# What reading says where a sweep has deleted a table's file, or cut an entry away.
_CODES_OF_WHAT_IS_GONE = frozenset({"version_reclaimed", "entry_missing"})


class IntentPolicy(Enum):
    """When a write leaves an intent, by which others can finish it or find its files."""

    ALWAYS = "always"
    NEVER = "never"  # it is soon done again
    BY_SIZE = "by size"  # when it has many rows, or can only be staged again by running again


@dataclass(frozen=True, slots=True)
class Operation:
    """What is to be done, in a form that can be run again."""

    kind: CommitKind
    type_keys: frozenset[str]  # the types whose tables it may change, known before it runs
    # does it, on a write_set; may run several times, each on a fresh one; raises to refuse
    run: Callable[[WriteSet], None]
    # running it again on a newer head means the same thing (inserts, keyed upserts, appends, merges of rows, index and
    # compaction work); otherwise a lost race is the caller's to decide
    redoable: bool
    always_commits: bool = False  # make a commit even when nothing changed (a load always makes one)
    intent: IntentPolicy = IntentPolicy.BY_SIZE  # whether the write leaves an intent
    # wait for writers of the same tables in this process; what may rather lose a race and be planned anew makes nobody
    # wait, and waits for nobody
    queued: bool = True
    merged_parent: str | None = None  # the other side of a merge
    adopts: tuple[str, ...] = ()  # commits of other lines whose versions it names
    # called once the intent is on the store; raises unless those commits, and files staged before the intent, are still
    # kept
    recheck_after_intent: Callable[[], None] | None = None
    since_us: int = 0  # since when it has staged files, by the store's clock; 0 where it begins with the intent


@dataclass(frozen=True, slots=True)
class Receipt:
    """What came of a write."""

    entry: Record | None  # the commit; None when nothing had to change
    head: Record  # the commit the write was made on when `entry` is None
    replayed: bool = False  # the commit is that of an earlier call with the same idempotency key
    attempts: int = 1  # how often the operation ran
    warnings: tuple[str, ...] = ()  # what did not go well and needs nobody


def write(context: GraphContext, branch: str, operation: Operation, options: WriteOptions | None = None) -> Receipt:
    """Carry out one operation as one commit, or leave no visible trace.

    Raises:
        ConflictError: somebody else's commit stands in the way; it says which.
        PreconditionError: the head is not the commit the caller named.
        OutcomeUnknownError: the store never said; look in the log before trying again.
        GraphError: whatever the operation refuses with.
    """
    options = options or WriteOptions()
    context.refuse_read_only()
    name = paths.branch_name(branch)
    _check_key(options.idempotency_key)
    healed = heal(context)
    reached(Failpoint.WRITE_HEALED)
    if healed.starved and operation.queued:
        pause_for(context, name, operation.type_keys, healed.starved)
    draft = Draft(branch=name, kind=operation.kind, merged_parent=operation.merged_parent, **option_values(options))
    types = operation.type_keys if operation.queued else frozenset[str]()
    with queues.held(context.store.uri, name, types) as held, StarvationGuard(context, draft) as starvation:
        receipt = _Write(context, operation, draft, held, starvation).retry()
    # The next in line need not wait for this: it is best effort, and two writes to the disk.
    if draft.idempotency_key is not None and receipt.entry is not None and not receipt.replayed:
        idempotency.note_use(context, name, draft.idempotency_key, receipt.entry)
    return replace(receipt, warnings=healed.warnings + receipt.warnings)


@dataclass(slots=True)
class _Write:
    """A write in its place in the queues: attempts of run, note, stage, publish and clear until one is through."""

    context: GraphContext
    operation: Operation
    draft: Draft
    held: queues.Held
    starvation: StarvationGuard

    def retry(self) -> Receipt:
        """Attempt after attempt, until one is published or none can be."""
        for attempt in range(1, limits.REDO_ATTEMPTS_MAX + 1):
            begun = self.context.clock.monotonic()
            try:
                receipt = self._attempt()
            except LostRaceError as lost:
                if not self.operation.redoable and not isinstance(lost, StageAgainError):
                    raise refused(lost.conflicts) from None
                last = lost
                if lost.withdrawn is not None:
                    self.draft = replace(self.draft, withdrawn=(*self.draft.withdrawn, lost.withdrawn))
                if self.operation.queued:
                    self.starvation.lost_race(self.context.clock.monotonic() - begun, lost.rested_on)
                self.context.clock.sleep(backoff_s(attempt))
            else:
                if self.context.published is not None and receipt.entry is not None and not receipt.replayed:
                    self.context.published(receipt.entry)
                return replace(receipt, attempts=attempt)
        raise ConflictError(
            f"branch '{self.draft.branch}' is too busy: the write ran {limits.REDO_ATTEMPTS_MAX} times and each time "
            f"lost the race ({message_for(last.conflicts[0])})",
            conflicts=last.conflicts,
            code="too_busy",
        )

    def _attempt(self) -> Receipt:
        base = self.context.log.live_head(self.draft.branch, tentative=True)
        check_made(self.context, base)
        try:
            draft = check_withdrawn(self.context, self.draft, base)
        except CarriedOutError as finished:
            return Receipt(finished.entry, finished.entry)
        with _swept_meanwhile(self.context, base):
            receipt = self._attempt_from(base, draft)
        if receipt.entry is None and not self.context.log.is_there(base):
            raise base_gone(self.context, base)
        return receipt

    def _attempt_from(self, base: Record, draft: Draft) -> Receipt:
        if draft.idempotency_key is not None:
            earlier = idempotency.earlier_use(self.context, draft.branch, draft.idempotency_key, base)
            if earlier is not None:
                return Receipt(earlier, base, replayed=True)
        check_preconditions(self.context, base, draft.if_commit, draft.expected_table_versions)
        write_set = WriteSet(self.context.snapshot(base), self.context.finder)
        try:
            self._run(write_set)
            if self._needs_intent(write_set):
                return self._publish_under_intent(base, draft, write_set)
            return self._publish(base, draft, self._stage(write_set))
        except LostRaceError as lost:
            lost.rested_on = write_set.noted_types | write_set.touched
            raise

    def _run(self, write_set: WriteSet) -> None:
        self.operation.run(write_set)
        if self.operation.queued:
            self.held.covers(write_set.touched)
        reached(Failpoint.WRITE_PREPARED)

    def _needs_intent(self, write_set: WriteSet) -> bool:
        if self.operation.intent is not IntentPolicy.BY_SIZE:
            return self.operation.intent is IntentPolicy.ALWAYS
        rows, size = write_set.size
        settings = self.context.settings
        is_large = rows >= settings.intent_rows_min or size >= settings.intent_bytes_min
        return is_large or bool(write_set.table_changes)

    def _publish_under_intent(self, base: Record, draft: Draft, write_set: WriteSet) -> Receipt:
        context, operation = self.context, self.operation
        intent = Intent(
            id=context.ids.new(),
            kind=operation.kind,
            branch=draft.branch,
            base_number=base.number,
            base_commit=base.commit,
            actor=draft.actor,
            writer=this_writer(),
            tables={key: write_set.base_pin(key) for key in sorted(write_set.touched)},
            created_at_us=context.clock.now_us(),
            adopts=operation.adopts,
            since_us=operation.since_us,
        )
        draft = replace(draft, intent=intent.id)
        with context.intents.noted(intent) as noted, _withdrawn_on_failure(noted, intent):
            reached(Failpoint.WRITE_INTENT_PUT)
            if operation.recheck_after_intent is not None:
                operation.recheck_after_intent()
            staged = self._stage(write_set)
            # Otherwise others must not finish it. Nor where versions of another line are taken over: whether they are
            # kept still is this writer's to know, and running again costs little.
            if self._has_to_be_published(base, staged) and not staged.adopted:
                noted.complete(_completed(intent, draft, staged))
                reached(Failpoint.WRITE_INTENT_COMPLETED)
            try:
                with _swept_meanwhile(context, base):
                    receipt = self._publish(base, draft, staged)
            except LostRaceError as lost:
                if not lost.is_due_to_others_writes:
                    lost.withdrawn = withdraw(context, intent.id, base)
                raise
            try:
                noted.clear()
            except StoreError as fault:
                left = f"the intent {intent.id} could not be deleted and will be by the next write: {fault}"
                return replace(receipt, warnings=(*receipt.warnings, left))
            reached(Failpoint.PUBLISH_INTENT_CLEARED)
            return receipt

    def _stage(self, write_set: WriteSet) -> StagedCommit:
        staged = stage(self.context, write_set)
        reached(Failpoint.WRITE_TABLES_STAGED)
        self.context.store.make_durable(staged.files)
        reached(Failpoint.WRITE_MADE_DURABLE)
        return staged

    def _has_to_be_published(self, base: Record, staged: StagedCommit) -> bool:
        changed = staged.tables or staged.added or staged.removed or staged.schema != base.schema
        return bool(changed) or self.operation.always_commits

    def _publish(self, base: Record, draft: Draft, staged: StagedCommit) -> Receipt:
        if not self._has_to_be_published(base, staged):
            return Receipt(None, base)
        on_starvation = self.starvation.request_pause if self.operation.queued else None
        try:
            entry = publish(self.context, staged, draft, base, on_starvation=on_starvation)
        except CarriedOutError as twin:
            return Receipt(twin.entry, twin.entry, replayed=True)
        return Receipt(entry, entry)


def _completed(intent: Intent, draft: Draft, staged: StagedCommit) -> Completed:
    """The second document of an intent, by which another process can finish the write."""
    return Completed(
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


def refused(conflicts: tuple[Conflict, ...]) -> ConflictError:
    """The error of a write whose read set changed and that may not simply be run again."""
    return ConflictError(message_for(conflicts[0]), conflicts=conflicts, code="read_set_conflict")


@contextmanager
def _swept_meanwhile(context: GraphContext, base: Record) -> Iterator[None]:
    """Judge no write by files that were swept while it ran, or by a base that was out of date before."""
    try:
        yield
    except GraphError as fault:
        if isinstance(fault, ObjectNotFound) or fault.code in _CODES_OF_WHAT_IS_GONE:
            newer = context.log.since(base.branch, base.number)
            if newer:
                check_above_the_floor(base, newer[-1])
            if has_barrier(newer):
                raise StageAgainError from fault
        if not isinstance(fault, UnavailableError | OutcomeUnknownError) and not context.log.is_there(base):
            raise base_gone(context, base) from fault
        raise


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


def _check_key(key: str | None) -> None:
    if key is None:
        return
    size = len(key.encode("utf-8", "surrogatepass"))
    if not 0 < size <= limits.IDEMPOTENCY_KEY_BYTES_MAX:
        raise InvalidRequestError(
            f"an idempotency key has 1 to {limits.IDEMPOTENCY_KEY_BYTES_MAX} bytes; this one has {size}"
        )
