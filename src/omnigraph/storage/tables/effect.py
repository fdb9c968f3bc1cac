"""What lies between two versions of a table, told by fragments: equal files are never read.

A fragment is recognised by its data files, which are written once under random names; its number means nothing between
versions of different lines.
"""

from dataclasses import dataclass, field

import numpy as np
from lance.fragment import DataFile, FragmentMetadata

from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, at, deleted_offsets, live_offsets
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


def effect_between(older: Handle, newer: Handle) -> Effect:
    """What `newer` has against `older`.

    Args:
        older (Handle): usually the base of the other.
        newer (Handle): the version looked at.

    Returns:
        Effect: reads deletion vectors that differ, and nothing else.
    """
    old, new = keyed(older.fragments()), keyed(newer.fragments())
    removed, returned = [NO_ADDRESSES], [NO_ADDRESSES]
    for key, before in old.items():
        after = new.get(key)
        if after is not None and same_rows(before, after):
            continue
        if after is None:
            removed.append(at(before.id, live_offsets(older.dataset, before)))
            continue
        # Deleted rows are few as a rule, where those alive are many.
        dead, dead_now = deleted_offsets(older.dataset, before), deleted_offsets(newer.dataset, after)
        removed.append(at(before.id, np.setdiff1d(dead_now, dead, assume_unique=True)))
        returned.append(at(after.id, np.setdiff1d(dead, dead_now, assume_unique=True)))
    return Effect(
        added=tuple(fragment for key, fragment in new.items() if key not in old),
        removed=np.concatenate(removed),
        returned=np.concatenate(returned),
    )


def same_content(one: Handle, other: Handle) -> bool:
    """Whether two versions consist of the same fragments with the same rows alive, as far as manifests tell."""
    ones, others = keyed(one.fragments()), keyed(other.fragments())
    return ones.keys() == others.keys() and all(same_rows(ones[key], others[key]) for key in ones)
