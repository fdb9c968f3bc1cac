"""Find the fragments and rows in which two versions of a table differ; files that both have are not read."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Offsets,
    at,
    deleted_offsets,
    keyed,
    live_offsets,
    same_rows,
)
from omnigraph.storage.tables.handles import Handle


@dataclass(frozen=True, slots=True)
class FragmentDelta:
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


def fragment_delta(older: Handle, newer: Handle) -> FragmentDelta:
    """What `newer` has against `older`."""
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
    return FragmentDelta(added=tuple(added), removed=np.concatenate(removed), returned=np.concatenate(returned))


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
