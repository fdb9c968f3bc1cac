"""Undoing commits, as callers see it."""

from omnigraph.api.receipts import RevertResult
from omnigraph.api.schemas import Schemas
from omnigraph.branch.revert import revert_operation, to_revert
from omnigraph.storage import paths
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.options import WriteOptions
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.write import Receipt, write


def revert(
    parts: Parts, schemas: Schemas, first: str, last: str | None, *, branch: str, options: WriteOptions
) -> RevertResult:
    """Undo a commit or a range of them; see `Graph.revert`."""
    parts.refuse_read_only()
    name = paths.branch_name(branch)
    head = parts.log.live_head(name)
    reverted = to_revert(parts, first, last, branch=name)

    def under(accepted: Accepted) -> Receipt:
        return write(
            parts, name, revert_operation(parts, accepted, schemas.of(reverted.last.schema), reverted, head), options
        )

    receipt = schemas.under_the_branch_schema(name, under)
    entry = receipt.entry
    return RevertResult(
        branch=name,
        first=reverted.first.commit,
        last=reverted.last.commit,
        commit=None if entry is None else entry.commit,
        number=None if entry is None else entry.number,
        head=receipt.head.head_commit,
        changes={} if entry is None else dict(entry.changes.types),
        replayed=receipt.replayed,
        attempts=receipt.attempts,
        warnings=receipt.warnings,
    )
