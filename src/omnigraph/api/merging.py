"""Merging branches, as callers see it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from os import PathLike
from pathlib import Path
from typing import get_args

from omnigraph.api.diffing import told_on_spark
from omnigraph.api.engines import engine_of
from omnigraph.api.schemas import Schemas
from omnigraph.branch import branches
from omnigraph.branch.merge import run
from omnigraph.branch.merge.resolve import By, Choices, Resolution, read_resolutions
from omnigraph.branch.merge.sides import Side
from omnigraph.errors import GraphError, InvalidRequestError
from omnigraph.model.conflict import MergeConflict
from omnigraph.storage import paths
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.write import WriteOptions

Resolutions = Mapping[str, Mapping[str, object]] | str | PathLike[str]


@dataclass(frozen=True, slots=True)
class ChangeCounts:
    """How many entities of a type a merge inserts, updates and deletes on its target."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True, slots=True)
class MergeResult:
    """What came of a merge, or would come of it.

    Attributes:
        outcome: `already_up_to_date`: the target has everything, and there is no new commit; `fast_forward`: only the
            source had moved; `merged`.
        source: the branch brought in.
        into: the branch changed.
        base: the commit both were compared with; None where both heads were the same.
        source_commit: the source's head that was brought in.
        commit: the commit made; None where none was.
        number: its place in the branch's log.
        head: the target's head commit afterwards.
        conflicts: of a preview, what stands in the way; otherwise empty, for conflicts are raised.
        changes: by type key, how much changes on the target; types without change are absent.
        resolved: how many entities were decided by `prefer` or a resolution.
        is_preview: nothing was written.
        branch_deleted: the source was deleted afterwards, as asked.
        branch_delete_error: why it was not.
        attempts: how often the merge was worked out; more than once where the target moved meanwhile.
        warnings: what did not go well and needs nobody.
    """

    outcome: str
    source: str
    into: str
    base: str | None
    source_commit: str
    commit: str | None
    number: int | None
    head: str
    conflicts: tuple[MergeConflict, ...] = ()
    changes: Mapping[str, ChangeCounts] = field(default_factory=dict)
    resolved: int = 0
    is_preview: bool = False
    branch_deleted: bool = False
    branch_delete_error: str | None = None
    attempts: int = 1
    warnings: tuple[str, ...] = ()


def choices_of(by: str, prefer: str | None, resolutions: Resolutions | None) -> Choices:
    """What a caller said about how to decide.

    Raises:
        InvalidRequestError: a word that means nothing here, or resolutions that cannot be read.
    """
    known: tuple[By, ...] = get_args(By)
    chosen = next((each for each in known if each == by), None)
    if chosen is None:
        raise InvalidRequestError(f"cannot merge by '{by}'; one of {', '.join(known)}")
    if prefer is not None and prefer not in tuple(Side):
        raise InvalidRequestError(f"cannot prefer '{prefer}'; one of {', '.join(Side)}")
    said: dict[str, dict[str, Resolution]] = {}
    if resolutions is not None:
        said = read_resolutions(resolutions if isinstance(resolutions, Mapping) else _read(resolutions))
    return Choices(chosen, None if prefer is None else Side(prefer), said)


def merge(
    parts: Parts,
    schemas: Schemas,
    source: str,
    into: str,
    *,
    choices: Choices,
    preview: bool,
    delete_branch: bool,
    engine: str,
    options: WriteOptions,
    if_source_commit: str | None = None,
) -> MergeResult:
    """Bring one branch into another; see `Graph.merge`."""
    differ = partial(told_on_spark, parts, engine_of(engine))
    if preview:
        done = run.preview(parts, schemas.of, source, into, choices=choices, differ=differ)
    else:
        done = run.merge(
            parts,
            schemas.of,
            source,
            into,
            choices=choices,
            differ=differ,
            options=options,
            if_source_commit=if_source_commit,
        )
    entry = None if done.receipt is None else done.receipt.entry
    error = None
    if delete_branch and not preview:
        error = _delete(parts, source, options.actor, merged=done.source.head_commit)
    return MergeResult(
        outcome=done.planned.outcome.value,
        source=done.source.branch,
        into=paths.branch_name(into),
        base=done.planned.base if done.planned.base is not None else done.source.head_commit,
        source_commit=done.source.head_commit,
        commit=None if entry is None else entry.commit,
        number=None if entry is None else entry.number,
        head=done.head.head_commit,
        conflicts=done.planned.conflicts,
        changes={key: ChangeCounts(*map(len, changed)) for key, changed in sorted(done.planned.changed.items())},
        resolved=len(done.planned.resolved),
        is_preview=preview,
        branch_deleted=delete_branch and not preview and error is None,
        branch_delete_error=error,
        attempts=1 if done.receipt is None else done.receipt.attempts,
        warnings=() if done.receipt is None else done.receipt.warnings,
    )


def _delete(parts: Parts, source: str, actor: str | None, *, merged: str) -> str | None:
    """Delete the source; why not, where it cannot be: the merge stands whatever comes of this."""
    try:
        # What somebody wrote there since is in nobody's branch yet.
        branches.delete(parts, source, actor=actor, if_commit=merged)
    except GraphError as refused:
        return refused.message
    return None


def _read(file: str | PathLike[str]) -> object:
    try:
        return json.loads(Path(file).read_bytes())
    except TypeError:
        raise InvalidRequestError("resolutions are an object of types, or the path of a file that holds one") from None
    except (OSError, ValueError) as fault:
        reason = fault.strerror if isinstance(fault, OSError) else f"no JSON: {fault}"
        raise InvalidRequestError(f"the resolutions in {file} cannot be read: {reason}") from fault
