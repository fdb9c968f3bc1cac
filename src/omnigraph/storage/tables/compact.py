"""Staging upkeep: the small fragments that single writes leave become one, and indexes reach every row.

Indexes know rows by address, so rewriting a fragment takes it out of every index. Hence only the small tail is
rewritten: the large fragments, and the indexes over them, stay as they are, and indexing the new fragment is cheap.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from lance import LanceOperation
from lance.fragment import FragmentMetadata

from omnigraph import limits
from omnigraph.errors import InternalError
from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Offsets,
    at,
    key_of,
    keyed,
    live_offsets,
    open_fragments,
    same_rows,
)
from omnigraph.storage.tables.blobs import write_rows
from omnigraph.storage.tables.detached import commit_detached
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fields import read_columns
from omnigraph.storage.tables.files import Step, fragment_files
from omnigraph.storage.tables.handles import Handle, bytes_of
from omnigraph.storage.tables.indexes import (
    IndexSpec,
    adds_a_segment,
    as_built,
    dropping,
    refreshing,
    segment_files,
    segments_of,
    undeclared,
    with_segments,
)

Groups = Sequence[tuple[int, ...]]
"""Numbers of fragments of a version, in order; each group can be rewritten by itself."""
Elsewhere = Callable[[Groups, int], Sequence[str] | None]
"""Rewrites groups of fragments, of so many bytes, in other processes: tells the new ones, as JSON, in the order of the
groups; or None, where this one is to do it."""


def is_mostly_dead(fragment: FragmentMetadata) -> bool:
    """Whether most rows of a fragment are deleted."""
    return fragment.num_deletions > fragment.physical_rows * limits.FRAGMENT_DEAD_SHARE_MAX


def is_worth_rewriting(fragment: FragmentMetadata) -> bool:
    """Whether a fragment is small, or mostly deleted."""
    return fragment.num_rows < limits.SMALL_FRAGMENT_ROWS_MAX or is_mostly_dead(fragment)


def to_rewrite(handle: Handle, *, purge: bool = False) -> list[FragmentMetadata]:
    """The fragments to be made into new ones: all that are small, mostly deleted, or hold columns that were dropped.

    With `purge` also every one that holds a deleted row.
    """
    fragments = handle.fragments()
    dropped = _holding_dropped(handle, fragments)
    if purge:
        dropped |= {fragment.id for fragment in fragments if fragment.num_deletions}
    chosen = [fragment for fragment in fragments if is_worth_rewriting(fragment) or fragment.id in dropped]
    return chosen if dropped or _gains(chosen) else []


def tail_to_rewrite(fragments: Sequence[FragmentMetadata]) -> list[FragmentMetadata]:
    """The smallest fragments, and larger ones only as far as the smaller ones together are not much less.

    So a row is rewritten a number of times that grows with the logarithm of how many come after it, and what is left
    are few fragments, each several times the size of all smaller ones together.
    """
    chosen: list[FragmentMetadata] = []
    rows = 0
    for fragment in sorted(filter(is_worth_rewriting, fragments), key=lambda one: (one.num_rows, one.id)):
        if rows and fragment.num_rows > rows * limits.TAIL_GROWTH_MAX and not is_mostly_dead(fragment):
            break
        chosen.append(fragment)
        rows += fragment.num_rows
    return sorted(chosen, key=lambda one: one.id) if _gains(chosen) else []


def keep_up(
    handle: Handle,
    indexes: Sequence[IndexSpec],
    old: Sequence[FragmentMetadata],
    elsewhere: Elsewhere = lambda _groups, _size: None,
    *,
    drops_others: bool = False,
    purge: bool = False,
) -> tuple[Handle, set[str]]:
    """A version in which some fragments are one, and indexes cover every row they can.

    Args:
        indexes: the indexes to build, to bring up to date and to fold.
        old: its fragments to rewrite; none leaves all as they are.
        drops_others: leave out the indexes it has that are none of these.
        purge: build indexes again that hold values of fragments that are gone.

    Returns:
        The new version, and the new files it needs, under the table's folder; the given version where there is nothing
            to do.
    """
    with mapped(handle.table, handle.version):
        specs = [as_built(handle, spec) for spec in indexes]
        made, new = handle, list[FragmentMetadata]()
        if old:
            new = _rewritten(handle, old, elsewhere)
            operation = LanceOperation.Rewrite([LanceOperation.RewriteGroup(list(old), new)], [])
            # A step on the way exactly when indexing is sure to add another one on top.
            indexed = bool(new) and any(adds_a_segment(handle, spec, {one.id for one in old}) for spec in specs)
            compacted = commit_detached(handle.dataset, operation, intermediate=indexed)
            made = Handle(handle.table, compacted, handle.data_bytes + bytes_of(new) - bytes_of(old))
        changes = [refreshing(made, spec, purge=purge) for spec in specs]
        if drops_others:
            changes += [dropping(made, name) for name in undeclared(handle, specs)]
        return with_segments(made, changes), fragment_files(new) | segment_files(changes)


def compact(handle: Handle, indexes: Sequence[IndexSpec], *, drops_others: bool = False) -> tuple[Handle, set[str]]:
    """Like `keep_up` of all that is worth rewriting, where something is; indexes that were never built are left alone.

    Args:
        drops_others: leave out the indexes it has that are none of these.

    Returns:
        The new version, and its new files; the given version where there is nothing to gain.
    """
    old = to_rewrite(handle)
    if not old and not drops_others:
        return handle, set()
    with mapped(handle.table, handle.version):
        known = [spec for spec in indexes if segments_of(handle, as_built(handle, spec).name)]
    return keep_up(handle, known, old, drops_others=drops_others)


def free_number(handle: Handle) -> int:
    """A number for a new fragment that this version and those soon made from it do not use, and no index mentions.

    With a gap to the numbers there are: while the fragment is made, others may publish versions with new fragments of
    their own, and what was built over ours, by address, has to hold on top of theirs.
    """
    free = max(numbers_taken(handle), default=0) + limits.FRAGMENT_NUMBERS_LEFT_FREE
    return free if free < limits.FRAGMENT_NUMBER_MAX else 0  # zero: the next one that is free there


def _holding_dropped(handle: Handle, fragments: Sequence[FragmentMetadata]) -> set[int]:
    """The fragments whose files still hold values of dropped columns."""
    there = {field.id for column in read_columns(handle.dataset.lance_schema).columns for field in column}
    return {
        fragment.id
        for fragment in fragments
        # A negative number stands for a column whose values in that file have been replaced elsewhere.
        if any(number >= 0 and number not in there for file in fragment.files for number in file.fields)
    }


def _gains(chosen: Sequence[FragmentMetadata]) -> bool:
    return len(chosen) >= 2 or any(is_mostly_dead(fragment) for fragment in chosen)


def rewritten_rows(handle: Handle, old: Sequence[FragmentMetadata]) -> list[FragmentMetadata]:
    """The rows of fragments, in their order, in new files without a number; a batch at a time is in memory."""
    rows = handle.dataset.scanner(
        fragments=open_fragments(handle.dataset, old), scan_in_order=True, blob_handling="all_binary"
    ).to_reader()
    return write_rows(rows, handle.dataset, handle.schema)


def _rewritten(handle: Handle, old: Sequence[FragmentMetadata], elsewhere: Elsewhere) -> list[FragmentMetadata]:
    if not any(fragment.num_rows for fragment in old):
        return []
    number = free_number(handle)
    descriptions = elsewhere(_groups(old), bytes_of(old))
    written = (
        rewritten_rows(handle, old)
        if descriptions is None
        else [FragmentMetadata.from_json(description) for description in descriptions]
    )
    return [replace(fragment, id=number and number + place) for place, fragment in enumerate(written)]


def _groups(old: Sequence[FragmentMetadata]) -> list[tuple[int, ...]]:
    """Fragments in groups whose rows make one fragment each, as nearly as that goes without taking one apart."""
    groups: list[tuple[int, ...]] = []
    rows = 0
    for fragment in old:
        if not groups or rows + fragment.num_rows > limits.COMPACT_TASK_ROWS:
            groups.append(())
            rows = 0
        groups[-1] += (fragment.id,)
        rows += fragment.num_rows
    return groups


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
    """What steps rewrote; None where that was nothing, or more than once, or not all they did to rows."""
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

    Returns:
        None where none of the fragments is there, or one has rows that it had not. New fragments whose numbers are
            taken there are numbered 0.
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
