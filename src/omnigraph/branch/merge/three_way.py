"""Rows that two sides changed since their base: what to write over one side, and what clashes. Pure; whole columns.

Of two sides one is the ground: its rows stay as they are unless something is written over them. The other is the delta.

    changed on one side only             that side's row
    the same on both, or gone on both    as it is
    new on both, and different           clash: divergent insert
    gone on one, changed on the other    clash: delete against update
    changed on both, and different       clash: divergent update; cell by cell, only where both changed one cell
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.row_changes import RowChanges
from omnigraph.model.conflict import MergeConflictKind
from omnigraph.model.schema import ID
from omnigraph.storage.equal_values import Mask, same_rows, same_values

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Image:
    """The rows that one state has for some ids, in their order; an id that it does not have has a row of nulls.

    Attributes:
        rows: as many as there are ids.
        there: which of them it has.
    """

    rows: pa.Table
    there: Mask

    def only(self, wanted: Mask) -> "Image":
        """Some of them."""
        return Image(self.rows.filter(pa.array(wanted)), self.there[wanted])


class _Images(NamedTuple):
    """What three states have for the ids that both sides changed."""

    base: Image
    ours: Image
    theirs: Image


@dataclass(frozen=True, slots=True)
class Clashes:
    """Ids that both sides changed in ways that cannot both stand.

    Attributes:
        ids: which.
        kinds: in which way, one for each.
        properties: of divergent updates, what both sides changed, differently; one tuple for each id.
        base: their rows before.
        delta: their rows on the one side.
        ground: their rows on the other.
    """

    ids: tuple[str, ...]
    kinds: tuple[MergeConflictKind, ...]
    properties: tuple[tuple[str, ...], ...]
    base: Image
    delta: Image
    ground: Image


@dataclass(frozen=True, slots=True)
class Combined:
    """What to do to the ground.

    Attributes:
        upserts: rows to write.
        deletes: ids to delete.
        agreed: ids that both sides changed and that need nothing, or were put together cell by cell.
        clashes: what cannot be decided here.
    """

    upserts: pa.Table
    deletes: "pa.Array[Any]"
    agreed: tuple[str, ...]
    clashes: Clashes


def three_way(delta: RowChanges, ground: RowChanges, *, by_property: bool) -> Combined:
    """Put together what two sides did since their base.

    Args:
        delta: what one side did; images before and after in the columns of the result.
        ground: what the other did, likewise.
        by_property: whether two updates of one row are put together cell by cell.

    Returns:
        What to write over the ground, and what clashes.
    """
    after, before = _after(delta), _before(delta)
    met = pc.index_in(delta.ids, value_set=ground.ids)
    is_met = np.array(pc.is_valid(met).to_numpy(zero_copy_only=False), np.bool_)
    alone = np.flatnonzero(~is_met)
    kept = alone[alone < after.num_rows]
    places = np.flatnonzero(is_met)
    others = np.array(pc.drop_null(met).to_numpy(zero_copy_only=False), np.int64)
    columns = [name for name in after.column_names if name != ID]
    images = _Images(
        base=_image(before, places - delta.inserted.num_rows),
        ours=_image(after, places),
        theirs=_image(_after(ground), others),
    )
    base, ours, theirs = images
    both_there = ours.there & theirs.there
    same = ~ours.there & ~theirs.there | both_there & same_rows(ours.rows, theirs.rows, columns)
    updated = ~same & both_there & base.there
    clashing, cells = ~same, _no_cells(len(places))
    upserts = [after.take(kept)]
    if updated.any():
        mixed, cells = _cell_by_cell(images, columns)
        if by_property:
            apart = updated & np.array([not each for each in cells], np.bool_)
            upserts.append(mixed.filter(pa.array(apart)))
            clashing &= ~apart
    ids = delta.ids.take(places).to_pylist()
    agreed = tuple(str(each) for each, clash in zip(ids, clashing, strict=True) if not clash)
    return Combined(
        upserts=pa.concat_tables(upserts),
        deletes=delta.ids.take(alone[alone >= after.num_rows]),
        agreed=agreed,
        clashes=_clashes(ids, clashing, cells, images),
    )


def _after(changes: RowChanges) -> pa.Table:
    """The rows after, in the order of the ids, of which those that are gone come last."""
    return pa.concat_tables([changes.inserted, changes.after])


def _before(changes: RowChanges) -> pa.Table:
    """The rows before, in the order of the ids, of which those that are new come first."""
    return pa.concat_tables([changes.before, changes.deleted])


def _image(rows: pa.Table, places: _Places) -> Image:
    there = (places >= 0) & (places < rows.num_rows)
    return Image(rows.take(pa.array(places, pa.int64(), mask=~there)), there)


def _no_cells(count: int) -> list[tuple[str, ...]]:
    return [()] * count


def _cell_by_cell(images: _Images, columns: list[str]) -> tuple[pa.Table, list[tuple[str, ...]]]:
    """Each cell from the side that changed it; and for each row, the columns that both changed, differently."""
    base, ours, theirs = images
    count = ours.rows.num_rows
    mixed = theirs.rows
    both: list[list[str]] = [[] for _ in range(count)]
    for name in columns:
        was, one, other = (image.rows.column(name).combine_chunks() for image in (base, ours, theirs))
        changed = ~same_values(was, one)
        for place in np.flatnonzero(changed & ~same_values(was, other) & ~same_values(one, other)).tolist():
            both[place].append(name)
        chosen = np.arange(count) + np.where(changed, count, 0)
        column = pa.concat_arrays([other, one]).take(chosen)
        mixed = mixed.set_column(mixed.schema.get_field_index(name), mixed.schema.field(name), column)
    return mixed, [tuple(each) for each in both]


def _clashes(ids: list[Any], clashing: Mask, cells: list[tuple[str, ...]], images: _Images) -> Clashes:
    base, ours, theirs = images
    found = np.flatnonzero(clashing).tolist()
    kinds = []
    for place in found:
        if ours.there[place] != theirs.there[place]:
            kinds.append(MergeConflictKind.DELETE_VS_UPDATE)
        elif base.there[place]:
            kinds.append(MergeConflictKind.DIVERGENT_UPDATE)
        else:
            kinds.append(MergeConflictKind.DIVERGENT_INSERT)
    return Clashes(
        tuple(str(ids[place]) for place in found),
        tuple(kinds),
        tuple(
            cells[place] if kind is MergeConflictKind.DIVERGENT_UPDATE else ()
            for place, kind in zip(found, kinds, strict=True)
        ),
        base.only(clashing),
        ours.only(clashing),
        theirs.only(clashing),
    )
