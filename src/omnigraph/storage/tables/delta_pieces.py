"""Split the rows in which two versions differ into pieces that any process can read by itself.

`delta_rows.py` reads them all at once, which is right for what fits into memory.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
from lance.fragment import FragmentMetadata

from omnigraph.model.commit import Pin
from omnigraph.storage.tables.addresses import Offsets, at
from omnigraph.storage.tables.delta import changed_fragments, moved_offsets, rows_lying_at
from omnigraph.storage.tables.errors import mapped
from omnigraph.storage.tables.fragments import rows_of_fragments
from omnigraph.storage.tables.handles import bytes_of
from omnigraph.storage.tables.tables import Tables


@dataclass(frozen=True, slots=True)
class DeltaPiece:
    """Rows of one fragment that only one of two versions has, or that moved between them; in plain values.

    Attributes:
        pin: the version they are read from.
        is_newer: whether that is the newer of both.
        fragment: the fragment's number there.
        offsets: which of its rows; None for all that live.
        rows: how many.
        bytes: about how large they are on disk.
    """

    pin: Pin
    is_newer: bool
    fragment: int
    offsets: Offsets | None
    rows: int
    bytes: int


def delta_bytes(tables: Tables, older: Pin | None, newer: Pin | None) -> int:
    """About how much must be read to tell two versions apart; from their manifests alone."""
    total = 0
    for before, after in changed_fragments(_fragments(tables, older), _fragments(tables, newer)):
        if before is not None and after is not None:
            total += _part(after, abs(after.num_deletions - before.num_deletions) or 1)
        else:
            total += sum(_part(fragment, fragment.num_rows) for fragment in (before, after) if fragment is not None)
    return total


def delta_pieces(tables: Tables, older: Pin | None, newer: Pin | None) -> tuple[DeltaPiece, ...]:
    """The rows in which two versions differ. Deletion vectors that differ are read, and no data.

    Returns:
        Those of the older and those of the newer version.
    """
    found: list[DeltaPiece] = []

    def add(pin: Pin | None, fragment: FragmentMetadata, offsets: Offsets | None = None) -> None:
        assert pin is not None, "a fragment is of a version"
        rows = fragment.num_rows if offsets is None else len(offsets)
        if rows:
            found.append(DeltaPiece(pin, pin is newer, fragment.id, offsets, rows, _part(fragment, rows)))

    for before, after in changed_fragments(_fragments(tables, older), _fragments(tables, newer)):
        if before is not None and after is not None:
            assert older is not None, "a fragment is of a version"
            assert newer is not None, "a fragment is of a version"
            with mapped(newer.table, newer.version):
                lost, back = moved_offsets(
                    tables._handles.open(older).dataset, before, tables._handles.open(newer).dataset, after
                )
            add(older, before, lost)
            add(newer, after, back)
        elif before is not None:
            add(older, before)
        elif after is not None:
            add(newer, after)
    return tuple(found)


def read_delta_piece(tables: Tables, piece: DeltaPiece, *, block_rows: int) -> Iterator[pa.Table]:
    """The rows of a piece."""
    table = tables.open(piece.pin)
    if piece.offsets is not None:
        rows, _ = rows_lying_at(tables._handles.open(piece.pin), at(piece.fragment, piece.offsets), None)
        yield from (rows.slice(first, block_rows) for first in range(0, rows.num_rows, block_rows))
        return
    held: list[pa.RecordBatch] = []
    for batch in rows_of_fragments(table, [piece.fragment], columns=table.schema.names):
        held.append(batch)
        if sum(batch.num_rows for batch in held) >= block_rows:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def _fragments(tables: Tables, pin: Pin | None) -> list[FragmentMetadata]:
    return [] if pin is None else tables._handles.open(pin).fragments()


def _part(fragment: FragmentMetadata, rows: int) -> int:
    """About how large some rows of a fragment are."""
    return bytes_of([fragment]) * rows // max(fragment.physical_rows, 1)
