"""Find and read the rows in which two versions of a table differ, at the cost of what differs.

Fragments are matched by their data files, which are written once under random names: files that both versions have are
not read. A fragment's number means nothing between versions of different lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from lance import LanceDataset
from lance.fragment import FragmentMetadata

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import (
    NO_ADDRESSES,
    Addresses,
    Offsets,
    as_addresses,
    at,
    by_fragment,
    deleted_offsets,
    key_of,
    keyed,
    live_offsets,
    open_fragments,
    same_rows,
)
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.table import ADDRESS, ID, Table, quoted


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


Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that only one of two versions has.

    A row that was replaced is in both, with its old and its new values. So is one that was only moved, by a
    compaction: whoever wants changes compares the values.

    Attributes:
        removed: rows of the older version, in its columns.
        added: rows of the newer version, in its columns.
        removed_at: where the removed rows lie in the older version, one address for each.
    """

    removed: pa.Table
    added: pa.Table
    removed_at: Addresses = field(default_factory=lambda: NO_ADDRESSES)


@dataclass(frozen=True, slots=True)
class VersionDelta:
    """Where two versions differ. No row was read yet.

    Attributes:
        older: one version.
        newer: the other.
        effect: what the newer has against the older.
    """

    older: Handle
    newer: Handle
    effect: FragmentDelta

    @property
    def removed_at(self) -> Addresses:
        """Where rows lie that only the older version has."""
        return self.effect.removed

    @property
    def added_rows(self) -> int:
        """How many rows only the newer version has."""
        return sum(fragment.num_rows for fragment in self.effect.added) + len(self.effect.returned)

    def added(self, columns: Sequence[str] | None = None) -> pa.Table:
        """Those rows, in some columns or all."""
        with mapped(self.newer.table, self.newer.version):
            fresh = self.newer.dataset.scanner(
                columns=None if columns is None else list(columns),
                fragments=open_fragments(self.newer.dataset, self.effect.added),
                filter=None if self.effect.added else "false",
                blob_handling="all_binary",
            ).to_table()
        returned, _ = rows_lying_at(self.newer, self.effect.returned, columns)
        return pa.concat_tables([fresh, returned])

    def added_with(self, ids: Sequence[str]) -> pa.Table:
        """Of the rows that only the newer version has, those with these ids; nothing else of it is searched."""
        returned = (number for number, _ in by_fragment(self.effect.returned))
        return _with_ids(self.newer, [*(fragment.id for fragment in self.effect.added), *returned], ids)

    def removed_with(self, ids: Sequence[str]) -> pa.Table:
        """Of the rows that only the older version has, those with these ids; only where some are gone is searched."""
        return _with_ids(self.older, [number for number, _ in by_fragment(self.effect.removed)], ids)

    def taken(self, addresses: Addresses, columns: Sequence[str]) -> pa.Table:
        """Some rows of the older version, in the order of their addresses."""
        return _table(self.older).rows_at(addresses.tolist(), columns=columns)


def version_delta(older: Handle, newer: Handle) -> VersionDelta:
    """Where two versions differ; deletion vectors that differ are read, and no rows."""
    with mapped(newer.table, newer.version):
        return VersionDelta(older, newer, fragment_delta(older, newer))


def difference(older: Handle, newer: Handle, columns: Sequence[str] | None) -> Difference:
    """The rows in which two versions differ; fragments that both have are not read."""
    found = version_delta(older, newer)
    removed, removed_at = rows_lying_at(older, found.removed_at, columns)
    return Difference(removed, found.added(columns), removed_at)


def find_addresses(newer: Handle, older: Handle, addresses: Addresses) -> tuple[Addresses, Mask]:
    """Where rows of one version lie in another.

    Returns:
        Their addresses, and of which they are known: fragments that were laid out anew are not there any more. Whether
            a row was deleted is not looked at.
    """
    numbers = {key: fragment.id for key, fragment in keyed(newer.fragments()).items()}
    found, known = addresses.copy(), np.zeros(len(addresses), np.bool_)
    fragments = addresses >> np.uint64(32)
    offsets = addresses & np.uint64(0xFFFF_FFFF)
    for fragment in older.fragments():
        number = numbers.get(key_of(fragment))
        if number is not None:
            here = fragments == np.uint64(fragment.id)
            found[here] = at(number, offsets[here])
            known |= here
    return found, known


def rows_lying_at(handle: Handle, addresses: Addresses, columns: Sequence[str] | None) -> tuple[pa.Table, Addresses]:
    """Rows where they lie. Of a fragment that loses many, as all do in a compaction, all are read and some are kept."""
    if not len(addresses):
        nothing = _table(handle).schema.empty_table()
        return nothing if columns is None else nothing.select(list(columns)), NO_ADDRESSES
    fragments = {fragment.id: fragment for fragment in handle.fragments()}
    few, many = [NO_ADDRESSES], []
    for fragment_id, offsets in by_fragment(addresses):
        if len(offsets) > fragments[fragment_id].num_rows * limits.TAKEN_ROWS_SHARE_MAX:
            many.append(fragment_id)
        else:
            few.append(at(fragment_id, offsets))
    taken = np.concatenate(few)
    found, places = [_table(handle).rows_at(taken.tolist(), columns=columns)], [taken]
    if many:
        with mapped(handle.table, handle.version):
            scanned = handle.dataset.scanner(
                columns=None if columns is None else list(columns),
                fragments=open_fragments(handle.dataset, [fragments[number] for number in many]),
                with_row_address=True,
                blob_handling="all_binary",
            ).to_table()
        lie_at = as_addresses(scanned.column(ADDRESS))
        wanted = np.isin(lie_at, addresses)
        found.append(scanned.select(found[0].column_names).filter(pa.array(wanted)))
        places.append(lie_at[wanted])
    return pa.concat_tables(found), np.concatenate(places)


def _with_ids(handle: Handle, fragments: Sequence[int], ids: Sequence[str]) -> pa.Table:
    """The rows of some fragments with these ids."""
    found = [_table(handle).schema.empty_table()]
    opened = [fragment for fragment in map(handle.dataset.get_fragment, fragments) if fragment is not None]
    if not opened:
        return found[0]
    with mapped(handle.table, handle.version):
        for first in range(0, len(ids), limits.ID_FILTER_IDS_MAX):
            listed = ",".join(map(quoted, ids[first : first + limits.ID_FILTER_IDS_MAX]))
            scanner = handle.dataset.scanner(fragments=opened, filter=f"{ID} IN ({listed})", blob_handling="all_binary")
            found.append(scanner.to_table())
    return pa.concat_tables(found)


def _table(handle: Handle) -> Table:
    return Table(handle, Pin(handle.table, handle.version))
