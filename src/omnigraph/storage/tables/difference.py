"""The rows in which two versions of a table differ, at the cost of what differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from omnigraph import limits
from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import NO_ADDRESSES, Addresses, as_addresses, at, by_fragment, open_fragments
from omnigraph.storage.tables.effect import effect_between
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.table import ADDRESS, Table


@dataclass(frozen=True, slots=True)
class Difference:
    """Rows that only one of two versions has.

    A row that was replaced is in both, with its old and its new values. So is one that was only moved, by a
    compaction: whoever wants changes compares the values.

    Attributes:
        removed: rows of the older version, in its columns.
        added: rows of the newer version, in its columns.
    """

    removed: pa.Table
    added: pa.Table


def difference(older: Handle, newer: Handle, columns: Sequence[str] | None) -> Difference:
    """The rows in which two versions differ; fragments that both have are not read.

    Args:
        older (Handle): one version.
        newer (Handle): another, of the same line or not.
        columns (Sequence[str] | None): which columns; all by default.

    Returns:
        Difference: of both.
    """
    with mapped(newer.table, newer.version):
        effect = effect_between(older, newer)
        fresh = newer.dataset.scanner(
            columns=None if columns is None else list(columns),
            fragments=open_fragments(newer.dataset, effect.added),
            filter=None if effect.added else "false",
        ).to_table()
    returned = _rows_at(newer, effect.returned, columns)
    return Difference(_rows_at(older, effect.removed, columns), pa.concat_tables([fresh, returned]))


def _rows_at(handle: Handle, addresses: Addresses, columns: Sequence[str] | None) -> pa.Table:
    """Rows where they lie. Of a fragment that loses many, as all do in a compaction, all are read and some are kept."""
    fragments = {fragment.id: fragment for fragment in handle.fragments()}
    few, many = [NO_ADDRESSES], []
    for fragment_id, offsets in by_fragment(addresses):
        if len(offsets) > fragments[fragment_id].num_rows * limits.TAKEN_ROWS_SHARE_MAX:
            many.append(fragment_id)
        else:
            few.append(at(fragment_id, offsets))
    found = [_table(handle).rows_at(np.concatenate(few).tolist(), columns=columns)]
    if many:
        with mapped(handle.table, handle.version):
            scanned = handle.dataset.scanner(
                columns=None if columns is None else list(columns),
                fragments=open_fragments(handle.dataset, [fragments[each] for each in many]),
                with_row_address=True,
            ).to_table()
        wanted = np.isin(as_addresses(scanned.column(ADDRESS)), addresses)
        found.append(scanned.drop_columns([ADDRESS]).filter(pa.array(wanted)))
    return pa.concat_tables(found)


def _table(handle: Handle) -> Table:
    return Table(handle, Pin(handle.table, handle.version))
