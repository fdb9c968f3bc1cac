"""The one write that publishes a merge: captured source, fresh target, all of it or nothing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph import limits
from omnigraph.branch import adoption
from omnigraph.branch.lineage import entries_to_commit
from omnigraph.branch.merge.ancestry import MERGE_NOTE, SOURCE_BRANCH, SOURCE_NUMBER
from omnigraph.branch.merge.base import base_missing
from omnigraph.branch.merge.changed import Differ
from omnigraph.branch.merge.choices import Choices
from omnigraph.branch.merge.plan import Outcome, Planned, plan_merge
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.errors import FormatError, InvalidRequestError, MergeConflictError, ReclaimedError
from omnigraph.language.schema.render import render
from omnigraph.model.commit import CommitKind, Record
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.schema import Schema
from omnigraph.model.schema_document import shape_digest
from omnigraph.storage import paths
from omnigraph.storage.tables.errors import VERSION_RECLAIMED
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.preconditions import check_head
from omnigraph.transaction.schema_files import read_text, store_schema
from omnigraph.transaction.write import IntentPolicy, Operation, Receipt, write
from omnigraph.transaction.write_set import WriteSet

_NAMED_AT_MOST = 3


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of a merge.

    Attributes:
        planned: what it was worked out to be, when it last ran.
        source: the entry brought in.
        head: the target's head: the merge itself, or where nothing was published the one it was worked out on.
        receipt: of the write; None where nothing was published.
    """

    planned: Planned
    source: Record
    head: Record
    receipt: Receipt | None = None


class _UpToDateError(Exception):
    """There is nothing to bring in. Never leaves this module."""

    def __init__(self, planned: Planned, head: Record) -> None:
        super().__init__(planned.outcome)
        self.planned = planned
        self.head = head


def preview(
    context: GraphContext, schema_of: SchemaOf, source: str, target: str, *, choices: Choices, differ: Differ
) -> Merged:
    """What a merge would come to now. Nothing is written.

    Raises:
        NotFoundError: there is no such branch.
        InvalidRequestError: both are the same branch, or a resolution does not fit.
    """

    def attempt() -> Merged:
        entry, head = _heads(context, source, target)
        planned = plan_merge(
            context, schema_of, WriteSet(context.snapshot(head)), entry, choices=choices, differ=differ
        )
        return Merged(planned, entry, head)

    return _retry_past_sweeps(attempt)


def merge(
    context: GraphContext,
    schema_of: SchemaOf,
    source: str,
    target: str,
    *,
    choices: Choices,
    differ: Differ,
    options: WriteOptions,
    if_source_commit: str | None = None,
) -> Merged:
    """Bring what the source did into the target, as one commit, or change nothing.

    The source is its head as it is now: what is committed there later is neither brought in nor a reason to fail. The
    target may move: then the merge is rebased or worked out again.

    Raises:
        MergeConflictError: the two branches did what cannot both stand; it lists everything.
        NotFoundError: there is no such branch.
        InvalidRequestError: both are the same branch, or a resolution does not fit.
        ConflictError: the target keeps moving, its schema changed meanwhile, or the base is gone.
        PreconditionError: the source's head is not the commit named, or the target's is not that of the options.
    """
    context.refuse_read_only()

    def attempt() -> Merged:
        entry, head = _heads(context, source, target)
        check_head(context, entry, if_source_commit)
        return _merge(context, schema_of, entry, head, choices=choices, differ=differ, options=options)

    return _retry_past_sweeps(attempt)


def _retry_past_sweeps(attempt: Callable[[], Merged]) -> Merged:
    """Begin again where the source or a version was pruned meanwhile: the branches have moved on, and their base."""
    for left in reversed(range(limits.HEAD_LOOKS_MAX)):
        try:
            return attempt()
        except ReclaimedError:
            if not left:
                raise
        except FormatError as fault:
            if fault.code != VERSION_RECLAIMED:
                raise
            if not left:
                raise base_missing(f"a version that the merge compares with was swept: {fault.message}") from fault
    raise AssertionError


def _merge(
    context: GraphContext,
    schema_of: SchemaOf,
    entry: Record,
    head: Record,
    *,
    choices: Choices,
    differ: Differ,
    options: WriteOptions,
) -> Merged:
    worked_out: list[Planned] = []

    def run(staging: WriteSet) -> None:
        planned = plan_merge(context, schema_of, staging, entry, choices=choices, differ=differ)
        worked_out.append(planned)
        if planned.conflicts:
            raise MergeConflictError(message_for(planned.conflicts), conflicts=planned.conflicts)
        if planned.outcome is Outcome.ALREADY_UP_TO_DATE:
            raise _UpToDateError(planned, staging.snapshot.record)
        if planned.schema is not None and planned.schema_is_new:
            merged = planned.schema.schema
            store_schema(context.store, _text(context, merged, (head, entry), schema_of), merged)
        # The entry of the commit itself: a mark that shows it may be cut before, along with its branch.
        staging.notes[MERGE_NOTE] = _note(planned, entries_to_commit(context, entry)[-1], choices)

    operation = Operation(
        kind=CommitKind.MERGE,
        type_keys=frozenset(entry.tables) | frozenset(head.tables),
        run=run,
        redoable=True,
        # That the source was merged is news by itself: without a commit it would be brought in again.
        always_commits=True,
        intent=IntentPolicy.ALWAYS,
        merged_parent=entry.head_commit,
        adopts=(entry.head_commit,),
        recheck_after_intent=adoption.kept_still(context, entry),
    )
    try:
        receipt = write(context, head.branch, operation, options)
    except _UpToDateError as nothing:
        return Merged(nothing.planned, entry, nothing.head)
    return Merged(worked_out[-1], entry, receipt.head, receipt)


def _text(context: GraphContext, schema: Schema, sides: tuple[Record, Record], schema_of: SchemaOf) -> str:
    """The text of a merged schema: that of a side that says the same, comments and all, else one without comments."""
    for side in sides:
        if shape_digest(schema_of(side.schema).schema) == shape_digest(schema):
            return read_text(context.store, side.schema)
    return render(schema)


def message_for(conflicts: tuple[MergeConflict, ...]) -> str:
    """Conflicts in a sentence: the first few, and how many more there are."""
    first = "; ".join(_named(conflict) for conflict in conflicts[:_NAMED_AT_MOST])
    more = len(conflicts) - _NAMED_AT_MOST
    return f"merge conflicts: {first}" + (f"; and {more} more" if more > 0 else "")


def _named(conflict: MergeConflict) -> str:
    """`node type 'T', entity id 'x' (divergent_update)`."""
    kind, _, name = conflict.type_key.partition(":")
    what = f"{kind} type '{name}'" if name else kind
    entity = "" if conflict.entity_id is None else f", entity id '{conflict.entity_id}'"
    return f"{what}{entity} ({conflict.kind})"


def _heads(context: GraphContext, source: str, target: str) -> tuple[Record, Record]:
    source, target = paths.branch_name(source), paths.branch_name(target)
    if source == target:
        raise InvalidRequestError("branch_merge requires distinct source and target branches")
    return context.log.live_head(source), context.log.live_head(target)


def _note(planned: Planned, source: Record, choices: Choices) -> dict[str, Any]:
    listed = planned.resolved[: limits.MERGE_RESOLUTIONS_LISTED_MAX]
    note: dict[str, Any] = {
        SOURCE_BRANCH: source.branch,
        SOURCE_NUMBER: source.number,
        "base": planned.base,
        "outcome": planned.outcome.value,
        "by": choices.by,
    }
    if planned.resolved:
        note["prefer"] = None if choices.prefer is None else choices.prefer.value
        note["resolved_count"] = len(planned.resolved)
        note["resolved"] = [
            {"type": resolved.type_key, "id": resolved.entity_id, "took": resolved.took} for resolved in listed
        ]
    return note
