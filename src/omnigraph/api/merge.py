"""Merge one branch into another."""

from functools import partial

from omnigraph.api.diff import compare_on_spark
from omnigraph.api.engines import engine_of
from omnigraph.api.merge_options import MergeRequest
from omnigraph.api.results import ChangeCounts, MergeResult
from omnigraph.api.schemas import Schemas
from omnigraph.branch import branches
from omnigraph.branch.merge import run
from omnigraph.errors import GraphError
from omnigraph.storage import paths
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.options import WriteOptions


def merge(parts: GraphContext, schemas: Schemas, request: MergeRequest, options: WriteOptions) -> MergeResult:
    """Merge one branch into another; see `Graph.merge`."""
    differ = partial(compare_on_spark, parts, engine_of(request.engine))
    if request.preview:
        done = run.preview(parts, schemas.of, request.source, request.into, choices=request.choices, differ=differ)
    else:
        done = run.merge(
            parts,
            schemas.of,
            request.source,
            request.into,
            choices=request.choices,
            differ=differ,
            options=options,
            if_source_commit=request.if_source_commit,
        )
    entry = None if done.receipt is None else done.receipt.entry
    error = None
    to_delete = request.delete_branch and not request.preview
    if to_delete:
        error = _delete(parts, request.source, options.actor, merged=done.source.head_commit)
    return MergeResult(
        outcome=done.planned.outcome.value,
        source=done.source.branch,
        into=paths.branch_name(request.into),
        base=done.planned.base if done.planned.base is not None else done.source.head_commit,
        source_commit=done.source.head_commit,
        commit=None if entry is None else entry.commit,
        number=None if entry is None else entry.number,
        head=done.head.head_commit,
        conflicts=done.planned.conflicts,
        changes={key: ChangeCounts(*map(len, changed)) for key, changed in sorted(done.planned.changed.items())},
        resolved=len(done.planned.resolved),
        schema_steps=done.planned.schema_steps,
        is_preview=request.preview,
        branch_deleted=to_delete and error is None,
        branch_delete_error=error,
        attempts=1 if done.receipt is None else done.receipt.attempts,
        warnings=() if done.receipt is None else done.receipt.warnings,
    )


def _delete(parts: GraphContext, source: str, actor: str | None, *, merged: str) -> str | None:
    """Delete the source; return why it could not be deleted. The merge stands all the same."""
    try:
        # Commits made there since the merge are on no other branch.
        branches.delete(parts, source, actor=actor, if_commit=merged)
    except GraphError as refused:
        return refused.message
    return None
