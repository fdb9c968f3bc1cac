"""Undoing commits, as callers see it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.api.schemas import Schemas
from omnigraph.branch.revert import revert_operation, to_revert
from omnigraph.errors import InvalidRequestError
from omnigraph.model.change import TypeChange
from omnigraph.storage import paths
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.write import Receipt, WriteOptions, write


@dataclass(frozen=True, slots=True)
class RevertResult:
    """What came of undoing commits.

    Attributes:
        branch: where.
        first: the first commit undone.
        last: the last commit undone; may be the same.
        commit: the id of the commit made; None where everything was as before already.
        number: its place in the branch's log.
        head: the branch's head commit afterwards.
        changes: by type key, how many entities came back, changed and went.
        replayed: an earlier call with the same idempotency key had made the commit.
        attempts: how often it was worked out; more than once where the branch moved meanwhile.
        warnings: what did not go well and needs nobody.
    """

    branch: str
    first: str
    last: str
    commit: str | None
    number: int | None
    head: str
    changes: Mapping[str, TypeChange] = field(default_factory=dict)
    replayed: bool = False
    attempts: int = 1
    warnings: tuple[str, ...] = ()


def revert(
    parts: Parts, schemas: Schemas, commit: str | tuple[str, str], branch: str, options: WriteOptions
) -> RevertResult:
    """Undo a commit or a range of them; see `Graph.revert`."""
    parts.refuse_read_only()
    name = paths.branch_name(branch)
    if not isinstance(commit, str) and not (isinstance(commit, tuple) and len(commit) == 2):
        raise InvalidRequestError(f"name a commit, or the first and the last of a range, not {commit!r}")
    first, last = (commit, None) if isinstance(commit, str) else commit
    head = parts.log.live_head(name)
    reverted = to_revert(parts, first, last, branch=name)

    def under(accepted: Accepted) -> Receipt:
        return write(parts, name, revert_operation(parts, accepted, reverted, head), options)

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
