"""Staging compaction: the small fragments that single writes leave become one.

Indexes know rows by address, so rewriting a fragment takes it out of every index. Hence only the small tail is
rewritten: the large fragments, and the indexes over them, stay as they are, and indexing the new fragment is cheap.
"""

from collections.abc import Sequence

from lance import LanceOperation
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph import limits
from omnigraph.storage.tables.addresses import open_fragments
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.files import fragment_files
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.indexes import (
    IndexSpec,
    can_learn,
    extension,
    segment_files,
    segments_of,
    with_segments,
)


def is_mostly_dead(fragment: FragmentMetadata) -> bool:
    """Whether most rows of a fragment are deleted."""
    return fragment.num_deletions > fragment.physical_rows * limits.FRAGMENT_DEAD_SHARE_MAX


def is_worth_rewriting(fragment: FragmentMetadata) -> bool:
    """Whether a fragment is small, or mostly deleted."""
    return fragment.num_rows < limits.SMALL_FRAGMENT_ROWS_MAX or is_mostly_dead(fragment)


def compact(handle: Handle, indexes: Sequence[IndexSpec]) -> tuple[Handle, set[str]]:
    """A version in which the small fragments are one, and the indexes there are cover it.

    Args:
        handle (Handle): the version to start from.
        indexes (Sequence[IndexSpec]): the indexes to bring up to date; those that were never built are left alone.

    Returns:
        tuple[Handle, set[str]]: the new version, and the new files it needs, under the table's folder; the given
            version where there is nothing to gain.
    """
    old = [fragment for fragment in handle.fragments() if is_worth_rewriting(fragment)]
    if len(old) < 2 and not any(is_mostly_dead(fragment) for fragment in old):
        return handle, set()
    with mapped(handle.table, handle.version):
        new = _rewritten(handle, old)
        rewritten = [fragment.id for fragment in old]
        extended = [spec for spec in indexes if segments_of(handle, spec.name) and can_learn(handle, spec, rewritten)]
        operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(old, new)], [])
        # A step on the way exactly when indexing is sure to add another one on top.
        made = commit_detached(handle.dataset, operation, intermediate=bool(extended and new))
        compacted = Handle(handle.table, made, handle.data_bytes + bytes_of(new) - bytes_of(old))
        changes = [extension(compacted, spec) for spec in extended] if new else []
        return with_segments(compacted, changes), fragment_files(new) | segment_files(changes)


def _rewritten(handle: Handle, old: Sequence[FragmentMetadata]) -> list[FragmentMetadata]:
    """The rows of fragments, in their order, in new files; a batch at a time is in memory."""
    if not any(fragment.num_rows for fragment in old):
        return []
    rows = handle.dataset.scanner(
        fragments=open_fragments(handle.dataset, old), scan_in_order=True, blob_handling="all_binary"
    ).to_reader()
    return list(write_fragments(rows, handle.dataset))
