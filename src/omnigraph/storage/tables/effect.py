"""What lies between two versions of a table, told by fragments: equal files are never read.

A fragment is recognised by its data files, which are written once under random names; its number means nothing between
versions of different lines.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from lance import LanceDataset
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, Offsets, at, deleted_offsets, live_offsets
from omnigraph.storage.tables.handles import Handle

FragmentKey = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Effect:
    """What one version has against another.

    Attributes:
        added: fragments that only the newer version has.
        removed: addresses, in the older version, of rows that the newer one has no more.
        returned: addresses, in the newer version, of rows that are deleted in the older one: no write does that, but
            two versions of different lines may differ so.
    """

    added: tuple[FragmentMetadata, ...] = ()
    removed: Addresses = field(default_factory=lambda: NO_ADDRESSES)
    returned: Addresses = field(default_factory=lambda: NO_ADDRESSES)

    @property
    def changes_rows(self) -> bool:
        """Whether any row was added, removed or moved."""
        return bool(self.added) or bool(len(self.removed))


def name_of(file: DataFile) -> str:
    """The name of a data file; Lance's own property makes a new class for every answer."""
    return str(file._path)


def key_of(fragment: FragmentMetadata) -> FragmentKey:
    """What makes a fragment the same one in every version: its data files."""
    return tuple(map(name_of, fragment.files))


def keyed(fragments: list[FragmentMetadata]) -> dict[FragmentKey, FragmentMetadata]:
    """Fragments by what makes them the same."""
    return {key_of(fragment): fragment for fragment in fragments}


def same_rows(one: FragmentMetadata, other: FragmentMetadata) -> bool:
    """Whether two states of a fragment have the same deletion vector, as far as can be seen without reading it."""
    if one.deletion_file is None or other.deletion_file is None:
        return one.num_deletions == other.num_deletions
    return one.deletion_file.path(one.id) == other.deletion_file.path(other.id)


def changed_fragments(
    older: list[FragmentMetadata], newer: list[FragmentMetadata]
) -> Iterator[tuple[FragmentMetadata | None, FragmentMetadata | None]]:
    """The fragments in which two versions differ, as each has them: None where it has no such fragment."""
    old, new = keyed(older), keyed(newer)
    for key, before in old.items():
        after = new.get(key)
        if after is None or not same_rows(before, after):
            yield before, after
    for key, after in new.items():
        if key not in old:
            yield None, after


def effect_between(older: Handle, newer: Handle) -> Effect:
    """What `newer` has against `older`.

    Args:
        older (Handle): usually the base of the other.
        newer (Handle): the version looked at.

    Returns:
        Effect: reads deletion vectors that differ, and nothing else.
    """
    added, removed, returned = [], [NO_ADDRESSES], [NO_ADDRESSES]
    for before, after in changed_fragments(older.fragments(), newer.fragments()):
        if before is not None and after is not None:
            lost, back = moved_offsets(older.dataset, before, newer.dataset, after)
            removed.append(at(before.id, lost))
            returned.append(at(after.id, back))
        elif before is not None:
            removed.append(at(before.id, live_offsets(older.dataset, before)))
        elif after is not None:
            added.append(after)
    return Effect(added=tuple(added), removed=np.concatenate(removed), returned=np.concatenate(returned))


def moved_offsets(
    older: LanceDataset, before: FragmentMetadata, newer: LanceDataset, after: FragmentMetadata
) -> tuple[Offsets, Offsets]:
    """Of a fragment that two versions have: the rows that only the older has, and those that only the newer has."""
    # Deleted rows are few as a rule, where those alive are many.
    dead, dead_now = deleted_offsets(older, before), deleted_offsets(newer, after)
    return np.setdiff1d(dead_now, dead, assume_unique=True), np.setdiff1d(dead, dead_now, assume_unique=True)


def same_content(one: Handle, other: Handle) -> bool:
    """Whether two versions consist of the same fragments with the same rows alive, as far as manifests tell."""
    ones, others = keyed(one.fragments()), keyed(other.fragments())
    return ones.keys() == others.keys() and all(same_rows(ones[key], others[key]) for key in ones)
