"""The rows in which two versions of a table differ, at the cost of what differs."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import open_fragments
from omnigraph.storage.tables.effect import effect_between
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.handles import Handle
from omnigraph.storage.tables.table import Table


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
    removed = _table(older).rows_at(effect.removed.tolist(), columns=columns)
    returned = _table(newer).rows_at(effect.returned.tolist(), columns=columns)
    return Difference(removed, pa.concat_tables([fresh, returned]))


def _table(handle: Handle) -> Table:
    return Table(handle, Pin(handle.table, handle.version))
