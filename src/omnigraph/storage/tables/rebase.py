"""Applying what a staged version does to a newer version, row by row, without writing its rows again.

Everything is derived from three versions: the base, what was staged on it, and the version to go onto. So a process
that knows nothing but their pins can do it, after the one that staged has died.

What is not checked here is whether both sides inserted the same id: that needs no table, only the footprints.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation
from lance.dataset import Index
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Deletion,
    FragmentKey,
    at,
    by_fragment,
    delete_at,
    key_of,
    keyed,
    live_offsets,
    open_fragments,
)
from omnigraph.storage.tables.compact import CATCHES_UP, Rewriting, rewriting_of
from omnigraph.storage.tables.compact import moved as relocated
from omnigraph.storage.tables.delta import FragmentDelta, fragment_delta, same_content
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import read_columns
from omnigraph.storage.tables.files import Step, deletion_files, fragment_files, plan_steps, version_files
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.indexes import SegmentChange, segment_files, with_segments
from omnigraph.storage.tables.stage_rows import as_ids, flat, make_version, replace_content
from omnigraph.storage.tables.staged_version import OpenStagedVersion, StagedVersion, as_staged
from omnigraph.storage.tables.table import ID, Table

# Operations that move rows or describe them, and change none.
_LAYS_OUT = (LanceOperation.Rewrite, LanceOperation.CreateIndex)


@dataclass(frozen=True, slots=True)
class _Moved:
    """Rows brought onto a newer version: the version made, its effect there, and the files it needs."""

    handle: Handle
    effect: FragmentDelta
    files: set[str]


def read_staging(base: Pin, handle: Handle, staged: Handle) -> OpenStagedVersion:
    """What a staged version does, found by comparing it with its base.

    Raises:
        InternalError: `staged` was not made from `base`.
    """
    with mapped(staged.table, staged.version):
        steps = [*plan_steps(handle, staged)][::-1]
        found = StagedVersion(base, staged.pin(), files=tuple(sorted(version_files(staged) - version_files(handle))))
        rewriting = rewriting_of(steps, staged)
        if rewriting is not None:
            return OpenStagedVersion(found, staged, segments=segment_changes(steps), rewriting=rewriting)
        effect = fragment_delta(handle, staged)
        if not all(isinstance(step.operation, _LAYS_OUT) for step in steps):
            old, new = _ids_at(handle, effect.removed), _ids_in(staged, effect.added)
            is_old, is_kept = pc.is_in(new, value_set=old), pc.is_in(old, value_set=new)
            found = replace(
                found,
                inserted_ids=as_ids(new.filter(pc.invert(is_old))),
                updated_ids=as_ids(new.filter(is_old)),
                deleted_ids=as_ids(old.filter(pc.invert(is_kept))),
            )
        replaces = any(isinstance(step.operation, LanceOperation.Overwrite) for step in steps)
        return OpenStagedVersion(found, staged, effect, replaces, segment_changes(steps))


def rebase(staging: OpenStagedVersion, base: Handle, onto: Pin, handle: Handle) -> OpenStagedVersion | None:
    """The same effect on a newer version.

    Returns:
        A version on `onto`; None where the effect has no exact meaning there: a row to delete was deleted or moved by
            others, the rows to add are there already, the columns differ, an index was changed by others too, or the
            write replaced a content that is not the same now. Index segments over rows that the write itself has added
            do not come along; those over rows it has moved do where their fragments keep their numbers.
    """
    if not (_same_columns(base, staging.handle) and _same_columns(base, handle)):
        return None
    if staging.rewriting is not None:
        return _relaid(staging, staging.rewriting, base, onto, handle)
    with mapped(onto.table, onto.version):
        carried = _carried(staging, base.fragments(), handle.fragments(), handle) if staging.segments else []
        moved: _Moved | None = _Moved(handle, FragmentDelta(), set())
        if staging.replaces or staging.effect.changes_rows:
            moved = _moved_rows(staging, base, handle, intermediate=bool(carried))
        elif len(carried) < len(staging.segments):
            return None
        if moved is None:
            return None
        made = with_segments(moved.handle, carried)
    staged = as_staged(
        onto,
        made,
        moved.files | segment_files(carried),
        inserted_ids=staging.staged.inserted_ids,
        updated_ids=staging.staged.updated_ids,
        deleted_ids=staging.staged.deleted_ids,
    )
    segments = {change.name: change for change in carried}
    return OpenStagedVersion(staged, made, moved.effect, staging.replaces, segments)


def _relaid(
    staging: OpenStagedVersion, rewriting: Rewriting, base: Handle, onto: Pin, handle: Handle
) -> OpenStagedVersion | None:
    """Fragments rewritten on a newer version as they were on the base, with the indexes that go with them."""
    with mapped(onto.table, onto.version):
        there = relocated(rewriting, base, handle)
        if there is None:
            return None
        gone = {key_of(fragment) for fragment in there.old}
        left = [fragment for fragment in handle.fragments() if key_of(fragment) not in gone]
        numbered = [*left, *(there.new if there.is_numbered else ())]
        carried = _carried(staging, staging.handle.fragments(), numbered, handle)
        dead = there.dead_addresses
        operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(list(there.old), list(there.new))], [])
        version = commit_detached(handle.dataset, operation, intermediate=bool(len(dead) or carried))
        made = Handle(handle.table, version, handle.data_bytes + bytes_of(there.new) - bytes_of(there.old))
        files = fragment_files(there.new) | segment_files(carried)
        if len(dead):
            deletion = _deleted(made, dead)
            caught_up = LanceOperation.Delete(list(deletion.updated), list(deletion.gone_ids), CATCHES_UP)
            version = commit_detached(made.dataset, caught_up, intermediate=bool(carried))
            made = Handle(made.table, version, made.data_bytes - bytes_of(deletion.gone))
            files |= deletion_files(deletion.updated)
        made = with_segments(made, carried)
    segments = {change.name: change for change in carried}
    # A rewriting whose fragments were numbered only now is read anew by whoever moves it once more.
    known = there if there.is_numbered else None
    return OpenStagedVersion(as_staged(onto, made, files), made, segments=segments, rewriting=known)


def _deleted(handle: Handle, addresses: Addresses) -> Deletion:
    """The deletion of rows of fragments that were just added."""
    deletion = delete_at(handle.dataset, addresses)
    if deletion is None:
        raise InternalError(f"table {handle.table} at {handle.version}: a row of a fragment just added is not there")
    return deletion


def _carried(
    staging: OpenStagedVersion, built_on: Sequence[FragmentMetadata], there: Sequence[FragmentMetadata], onto: Handle
) -> list[SegmentChange]:
    """The changes to indexes that hold in a version with certain fragments and the indexes of `onto`."""
    here, now = ({fragment.id: key_of(fragment) for fragment in some} for some in (built_on, there))
    return [change for change in staging.segments.values() if holds_in(change, here, now, onto)]


def _moved_rows(staging: OpenStagedVersion, base: Handle, onto: Handle, *, intermediate: bool) -> _Moved | None:
    effect = staging.effect
    there = keyed(onto.fragments())
    if len(effect.returned) or any(key_of(fragment) in there for fragment in effect.added):
        return None
    removed = _addresses_in(onto, base, effect.removed)
    if removed is None or (staging.replaces and not same_content(base, onto)):
        return None
    # A fragment as it was when written: the next version gives it a free number. Its deletion vector, if a later step
    # of the same write gave it one, is filed under the old number and has to be written again.
    added = tuple(replace(fragment, id=0, deletion_file=None) for fragment in effect.added)
    shortened = tuple(fragment for fragment in effect.added if fragment.deletion_file is not None)
    on_the_way = intermediate or bool(shortened)
    deletion = Deletion() if staging.replaces else delete_at(onto.dataset, removed)
    if deletion is None:
        return None
    if staging.replaces:
        made = replace_content(onto, added, intermediate=on_the_way)
    else:
        made = make_version(onto, added, deletion, intermediate=on_the_way)
    files = fragment_files(added) | deletion_files(deletion.updated)
    if not shortened:
        return _Moved(made, replace(effect, removed=removed), files)
    again = _deleted_again(staging.handle, shortened, made)
    made = make_version(made, (), again, intermediate=intermediate)
    return _Moved(made, fragment_delta(onto, made), files | deletion_files(again.updated))


def _same_columns(one: Handle, other: Handle) -> bool:
    """Whether columns have the same names, types and numbers: a column dropped and added again is another one."""
    return read_columns(one.dataset.lance_schema) == read_columns(other.dataset.lance_schema)


def _addresses_in(onto: Handle, base: Handle, addresses: Addresses) -> Addresses | None:
    """Where rows of `base` lie in `onto`; None if a fragment they lie in is not there any more."""
    if not len(addresses):
        return NO_ADDRESSES
    old = {fragment.id: key_of(fragment) for fragment in base.fragments()}
    new = keyed(onto.fragments())
    moved = []
    for fragment_id, offsets in by_fragment(addresses):
        fragment = new.get(old[fragment_id])
        if fragment is None:
            return None
        moved.append(at(fragment.id, offsets))
    return np.concatenate(moved)


def _deleted_again(staged: Handle, shortened: Sequence[FragmentMetadata], made: Handle) -> Deletion:
    """The deletion vectors that the write's own fragments have in `staged`, written again for `made`."""
    numbers = {key: fragment.id for key, fragment in keyed(made.fragments()).items()}
    dead = []
    for fragment in shortened:
        everything = np.arange(fragment.physical_rows, dtype=np.uint64)
        lost = np.setdiff1d(everything, live_offsets(staged.dataset, fragment), assume_unique=True)
        dead.append(at(numbers[key_of(fragment)], lost))
    return _deleted(made, np.concatenate(dead))


def _ids_at(handle: Handle, addresses: Addresses) -> "pa.Array[Any]":
    if not len(addresses):
        return pa.array([], pa.string())
    return flat(Table(handle, handle.pin()).rows_at(addresses.tolist(), columns=[ID]).column(ID))


def _ids_in(handle: Handle, fragments: Sequence[FragmentMetadata]) -> "pa.Array[Any]":
    if not fragments:
        return pa.array([], pa.string())
    scanned = handle.dataset.scanner(columns=[ID], fragments=open_fragments(handle.dataset, fragments)).to_table()
    return flat(scanned.column(ID))


def segment_changes(steps: Iterable[Step]) -> dict[str, SegmentChange]:
    """What steps did to indexes, all together."""
    added: dict[str, Index] = {}
    removed: dict[str, Index] = {}
    for step in steps:
        if isinstance(step.operation, LanceOperation.CreateIndex):
            for segment in step.operation.removed_indices:
                if added.pop(segment.uuid, None) is None:
                    removed[segment.uuid] = segment
            added |= {segment.uuid: segment for segment in step.operation.new_indices}
    return {
        name: SegmentChange(
            tuple(segment for segment in added.values() if segment.name == name),
            tuple(segment for segment in removed.values() if segment.name == name),
        )
        for name in sorted({segment.name for segment in (*added.values(), *removed.values())})
    }


def holds_in(
    change: SegmentChange, built_on: Mapping[int, FragmentKey], there: Mapping[int, FragmentKey], onto: Handle
) -> bool:
    """Whether a change to an index means the same in another version.

    Args:
        built_on: the fragments of the version it was built on, by number.
        there: the fragments that the other version has, or will have.
        onto: a version with the indexes of the other one.

    Returns:
        Whether what it removes is there, what it adds covers fragments that are there, and nobody else covers them.
    """
    names = {segment.name for segment in (*change.added, *change.removed)}
    present = {
        segment.uuid: set(segment.fragment_ids)
        for index in onto.dataset.describe_indices()
        if index.name in names
        for segment in index.segments
    }
    gone = {segment.uuid for segment in change.removed}
    if not gone <= present.keys():
        return False
    covered = _fragments_of(change.added)
    others = set().union(*(fragments for uuid, fragments in present.items() if uuid not in gone))
    # A segment may also mention fragments that were gone when it was built: none may have their numbers now.
    return covered.isdisjoint(others) and all(built_on.get(number) == there.get(number) for number in covered)


def _fragments_of(segments: Sequence[Index]) -> set[int]:
    return {number for segment in segments for number in segment.fragment_ids}
