"""Applying what a staged version does to a newer version, row by row, without writing its rows again.

Everything is derived from three versions: the base, what was staged on it, and the version to go onto. So a process
that knows nothing but their pins can do it, after the one that staged has died.

What is not checked here is whether both sides inserted the same id: that needs no table, only the footprints.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Deletion,
    at,
    by_fragment,
    delete_at,
    live_offsets,
    open_fragments,
)
from omnigraph.storage.tables.effect import Effect, effect_between, key_of, keyed, same_content
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import (
    deletion_files,
    fragment_files,
    in_table,
    manifest_file,
    steps_between,
    version_files,
)
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.stage import Staging, as_ids, flat, make_version, replace_content
from omnigraph.storage.tables.staged import StagedTable
from omnigraph.storage.tables.table import ID, Table


def read_staging(base: Pin, handle: Handle, staged: Handle) -> Staging:
    """What a staged version does, found by comparing it with its base.

    Args:
        base (Pin): the version it was staged on.
        handle (Handle): the same, open.
        staged (Handle): the staged version.

    Returns:
        Staging: as if this process had staged it.
    """
    with mapped(staged.table, staged.version):
        effect = effect_between(handle, staged)
        old = _ids_at(handle, effect.removed)
        new = _ids_in(staged, effect.added)
        is_old, is_kept = pc.is_in(new, value_set=old), pc.is_in(old, value_set=new)
        found = StagedTable(
            base=base,
            pin=staged.pin(),
            inserted_ids=as_ids(new.filter(pc.invert(is_old))),
            updated_ids=as_ids(new.filter(is_old)),
            deleted_ids=as_ids(old.filter(pc.invert(is_kept))),
            files=tuple(sorted(version_files(staged) - version_files(handle))),
        )
        return Staging(found, staged, effect, _replaced(handle, staged))


def rebase(staging: Staging, base: Handle, onto: Pin, handle: Handle) -> Staging | None:
    """The same effect on a newer version.

    Args:
        staging (Staging): what was staged, and on which base.
        base (Handle): that base.
        onto (Pin): the version to have the effect.
        handle (Handle): the same, open.

    Returns:
        Staging | None: a version on `onto`; None where the effect has no exact meaning there: a row to delete was
            deleted or moved by others, the columns differ, or the write replaced a content that is not the same now.
    """
    staged, effect = staging.handle, staging.effect
    if not (staged.dataset.schema.equals(base.dataset.schema) and handle.dataset.schema.equals(base.dataset.schema)):
        return None
    if effect.returned or (staging.replaces and not same_content(base, handle)):
        return None
    added = tuple(_unnumbered(fragment) for fragment in effect.added)
    shortened = any(fragment.deletion_file is not None for fragment in effect.added)
    with mapped(onto.table, onto.version):
        removed = _addresses_in(handle, base, effect.removed)
        if removed is None:
            return None
        deletion = Deletion() if staging.replaces else delete_at(handle.dataset, removed)
        if deletion is None:
            return None
        if staging.replaces:
            made = replace_content(handle, added, intermediate=shortened)
        else:
            made = make_version(handle, added, deletion, intermediate=shortened)
        if shortened:
            made, again = _delete_again(staged, effect, made)
            deletion = replace(deletion, updated=deletion.updated + again)
        effect = effect_between(handle, made) if shortened else replace(effect, removed=removed)
    files = {*fragment_files(added), *deletion_files(deletion.updated), manifest_file(made.version)}
    result = replace(staging.staged, base=onto, pin=made.pin(), files=in_table(made.table, files))
    return Staging(result, made, effect, staging.replaces)


def _unnumbered(fragment: FragmentMetadata) -> FragmentMetadata:
    """A fragment as it was when written: the next version gives it a free number.

    Its deletion vector, if a later step of the same write gave it one, is filed under the old number and has to be
    written again (`_delete_again`).
    """
    return replace(fragment, id=0, deletion_file=None)


def _addresses_in(onto: Handle, base: Handle, addresses: Addresses) -> Addresses | None:
    """Where rows of `base` lie in `onto`; None if a fragment they lie in is not there any more."""
    old = {fragment.id: key_of(fragment) for fragment in base.fragments()}
    new = keyed(onto.fragments())
    moved = []
    for fragment_id, offsets in by_fragment(addresses):
        fragment = new.get(old[fragment_id])
        if fragment is None:
            return None
        moved.append(at(fragment.id, offsets))
    return np.concatenate(moved) if moved else NO_ADDRESSES


def _delete_again(staged: Handle, effect: Effect, made: Handle) -> tuple[Handle, tuple[FragmentMetadata, ...]]:
    """Delete in `made` what the staged version deleted of its own new fragments, in one more version on top."""
    numbers = {key: fragment.id for key, fragment in keyed(made.fragments()).items()}
    dead = []
    for fragment in effect.added:
        if fragment.deletion_file is not None:
            everything = np.arange(fragment.physical_rows, dtype=np.uint64)
            lost = np.setdiff1d(everything, live_offsets(staged.dataset, fragment), assume_unique=True)
            dead.append(at(numbers[key_of(fragment)], lost))
    deletion = delete_at(made.dataset, np.concatenate(dead))
    if deletion is None:
        raise InternalError(f"table {made.table} at {made.version}: a row of a fragment just added is not there")
    return make_version(made, (), deletion), deletion.updated


def _replaced(base: Handle, staged: Handle) -> bool:
    """Whether one of the steps from `base` to `staged` was a replacement of everything."""
    return any(isinstance(step.operation, LanceOperation.Overwrite) for step in steps_between(base, staged))


def _ids_at(handle: Handle, addresses: Addresses) -> "pa.Array[Any]":
    if not len(addresses):
        return pa.array([], pa.string())
    return flat(Table(handle, handle.pin()).rows_at(addresses.tolist(), columns=[ID]).column(ID))


def _ids_in(handle: Handle, fragments: Sequence[FragmentMetadata]) -> "pa.Array[Any]":
    if not fragments:
        return pa.array([], pa.string())
    scanned = handle.dataset.scanner(columns=[ID], fragments=open_fragments(handle.dataset, fragments)).to_table()
    return flat(scanned.column(ID))
