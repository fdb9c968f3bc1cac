"""Rewritten fragments, and how their rewriting is brought onto a version in which others have deleted some of the rows.

Rewriting keeps the order of rows. So where a row of the old fragments lies in the new ones is known by counting, and
what others deleted in the old ones meanwhile is deleted in the new ones, without writing them again.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph.errors import InternalError
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, Offsets, at, live_offsets
from omnigraph.storage.tables.effect import key_of, keyed, same_rows
from omnigraph.storage.tables.files import Step
from omnigraph.storage.tables.handles import Handle

# In the making of a version: it deletes rows of fragments just rewritten that others have deleted meanwhile.
CATCHES_UP = "rows that others have deleted"


@dataclass(frozen=True, slots=True)
class Rewriting:
    """Fragments written again with the same rows.

    Attributes:
        old: the fragments, as they were.
        new: what holds their rows, in the same order, with the numbers they were given and no row deleted.
        dead: which rows of the new ones, counted through, are deleted all the same: they were, in the old ones.
    """

    old: tuple[FragmentMetadata, ...]
    new: tuple[FragmentMetadata, ...]
    dead: Offsets = field(default_factory=lambda: NO_ADDRESSES)

    @property
    def dead_addresses(self) -> Addresses:
        """Where those rows lie."""
        found = [NO_ADDRESSES]
        start = 0
        for fragment in self.new:
            end = start + fragment.physical_rows
            first, last = np.searchsorted(self.dead, [start, end])
            found.append(at(fragment.id, self.dead[first:last] - np.uint64(start)))
            start = end
        return np.concatenate(found)

    @property
    def is_numbered(self) -> bool:
        """Whether the new fragments have numbers."""
        return all(fragment.id for fragment in self.new)


def rewriting_of(steps: Iterable[Step], staged: Handle) -> Rewriting | None:
    """What steps rewrote; None where that was nothing, or more than once, or not all they did to rows.

    Args:
        steps (Iterable[Step]): from a version to a later one.
        staged (Handle): the later one.

    Returns:
        Rewriting | None: of the one step that rewrote.
    """
    operations = [step.operation for step in steps if not _keeps_rows(step.operation)]
    if len(operations) != 1 or not isinstance(operations[0], LanceOperation.Rewrite):
        return None
    groups = list(operations[0].groups)
    if len(groups) != 1:
        return None
    group = groups[0]
    there = keyed(staged.fragments())
    dead = [NO_ADDRESSES]
    start = 0
    for fragment in group.new_fragments:
        now = there.get(key_of(fragment))
        everything = np.arange(fragment.physical_rows, dtype=np.uint64)
        lives = everything[:0] if now is None else live_offsets(staged.dataset, now)
        dead.append(np.setdiff1d(everything, lives, assume_unique=True) + np.uint64(start))
        start += fragment.physical_rows
    return Rewriting(tuple(group.old_fragments), tuple(group.new_fragments), np.concatenate(dead))


def moved(rewriting: Rewriting, base: Handle, onto: Handle) -> Rewriting | None:
    """A rewriting of fragments of one version, as it is to be done on another.

    Args:
        rewriting (Rewriting): done on `base`.
        base (Handle): where it was done.
        onto (Handle): where it is to be done.

    Returns:
        Rewriting | None: None where none of the fragments is there, or one has rows that it had not. New fragments
            whose numbers are taken there are numbered 0.
    """
    there = keyed(onto.fragments())
    total = sum(fragment.physical_rows for fragment in rewriting.new)
    places = np.setdiff1d(np.arange(total, dtype=np.uint64), rewriting.dead, assume_unique=True)
    dead, old, before = [rewriting.dead], [], 0
    for was in rewriting.old:
        now = there.get(key_of(was))
        if now is None:
            # Whatever became of its rows, they are not in this fragment any more.
            dead.append(places[before : before + was.num_rows])
        else:
            old.append(now)
            if not same_rows(was, now):
                lived, lives = live_offsets(base.dataset, was), live_offsets(onto.dataset, now)
                if len(np.setdiff1d(lives, lived, assume_unique=True)):
                    return None
                gone = np.setdiff1d(lived, lives, assume_unique=True)
                dead.append(places[before + np.searchsorted(lived, gone)])
        before += was.num_rows
    if not old:
        return None
    if before != len(places):
        raise InternalError(f"table {base.table}: {before} rows were rewritten as {len(places)}")
    found = Rewriting(tuple(old), rewriting.new, np.sort(np.concatenate(dead)))
    if min((fragment.id for fragment in found.new), default=1) > max(numbers_taken(onto), default=0):
        return found
    # Where rows will lie cannot be said before the fragments have numbers.
    new = tuple(replace(fragment, id=0) for fragment in found.new)
    return None if len(found.dead) else replace(found, new=new)


def numbers_taken(handle: Handle) -> set[int]:
    """The numbers of fragments that a version has, or that its indexes still mention."""
    taken = {fragment.id for fragment in handle.fragments()}
    for index in handle.dataset.describe_indices():
        taken = taken.union(*(segment.fragment_ids for segment in index.segments))
    return taken


def _keeps_rows(operation: LanceOperation.BaseOperation) -> bool:
    catches_up = isinstance(operation, LanceOperation.Delete) and operation.predicate == CATCHES_UP
    return catches_up or isinstance(operation, LanceOperation.CreateIndex)
