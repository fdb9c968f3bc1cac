"""Rows that two sides changed since their base: what to write over one side, and what clashes. Pure; whole columns.

Of two sides one is the ground: its rows stay as they are unless something is written over them. The other is the delta.

    changed on one side only             that side's row
    the same on both, or gone on both    as it is
    new on both, and different           clash: divergent insert
    gone on one, changed on the other    clash: delete against update
    changed on both, and different       clash: divergent update; cell by cell, only where both changed one cell
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True, slots=True)
class OpenCells:
    """Cells of which the base's value is not known, as after criss-cross merges: both sides count as changing them.

    Attributes:
        ids: of the rows that have some.
        cells: for every column, in which of these rows.
    """

    ids: "pa.Array[Any]" = field(default_factory=lambda: pa.array([], pa.string()))
    cells: Mapping[str, Mask] = field(default_factory=dict)

    def at(self, ids: "pa.Array[Any]") -> dict[str, Mask]:
        """The same for other rows, in their order."""
        if not len(self.ids):
            return {}
        places = _places(ids, self.ids)
        return {name: (places >= 0) & mask[places] for name, mask in self.cells.items()}


NO_OPEN_CELLS = OpenCells()


@dataclass(frozen=True, slots=True)
class Images:
    """What three states have for the same ids.

    Attributes:
        base: their common ancestor.
        delta: one side.
        ground: the other.
        open_cells: for every column, the cells of which the base's value is not known; none where it is left out.
    """

    base: Image
    delta: Image
    ground: Image
    open_cells: Mapping[str, Mask] = field(default_factory=dict)

    @property
    def both_there(self) -> Mask:
        """Which of them both sides have."""
        return self.delta.there & self.ground.there

    @property
    def columns(self) -> list[str]:
        """The columns that may differ."""
        return [name for name in self.ground.rows.column_names if name != ID]

    def only(self, wanted: Mask) -> "Images":
        """Those of some ids."""
        open_cells = {name: mask[wanted] for name, mask in self.open_cells.items()}
        return Images(self.base.only(wanted), self.delta.only(wanted), self.ground.only(wanted), open_cells)


@dataclass(frozen=True, slots=True)
class TwoSides:
    """What two sides did to the cells of the same rows, a mask for every column.

    Attributes:
        delta_only: cells that the delta changed, and the ground not, or likewise.
        disputed: cells that both changed, differently.
    """

    delta_only: dict[str, Mask]
    disputed: dict[str, Mask]


@dataclass(frozen=True, slots=True)
class Clashes:
    """Ids that both sides changed in ways that cannot both stand.

    Attributes:
        kinds: in which way, one for each.
        images: their rows.
    """

    ids: tuple[str, ...]
    kinds: tuple[MergeConflictKind, ...]
    images: Images


@dataclass(frozen=True, slots=True)
class Combined:
    """What to do to the ground.

    Attributes:
        upserts: rows to write; each differs from the ground's.
        deletes: ids to delete.
        agreed: ids that both sides changed and that need nothing, or were put together cell by cell.
        clashes: what cannot be decided here.
    """

    upserts: pa.Table
    deletes: "pa.Array[Any]"
    agreed: tuple[str, ...]
    clashes: Clashes


def three_way(
    delta: RowChanges, ground: RowChanges, *, by_property: bool, open_cells: OpenCells = NO_OPEN_CELLS
) -> Combined:
    """Put together what two sides did since their base.

    Args:
        delta: what one side did; images before and after in the columns of the result.
        ground: what the other did, likewise.
        by_property: whether two updates of one row are put together cell by cell.
        open_cells: cells of which the base's value is not known; both sides changed their rows.
    """
    after = _after(delta)
    is_met = _places(delta.ids, ground.ids) >= 0
    alone = np.flatnonzero(~is_met)
    met = delta.ids.filter(pa.array(is_met))
    images = images_of(delta, ground, met, open_cells)
    same = ~images.delta.there & ~images.ground.there
    same |= images.both_there & same_rows(images.delta.rows, images.ground.rows, images.columns)
    updated = ~same & images.both_there & images.base.there
    clashing = ~same
    upserts = [after.take(alone[alone < after.num_rows])]
    if by_property and updated.any():
        cells = compare_cells(images)
        apart = updated & ~any_of(cells.disputed, len(met))
        mixed = pick_cells(images, cells.delta_only)
        upserts.append(mixed.filter(pa.array(apart & ~same_rows(mixed, images.ground.rows, images.columns))))
        clashing &= ~apart
    ids = [str(entity) for entity in met.to_pylist()]
    return Combined(
        upserts=pa.concat_tables(upserts),
        deletes=delta.ids.take(alone[alone >= after.num_rows]),
        agreed=tuple(entity for entity, clash in zip(ids, clashing, strict=True) if not clash),
        clashes=clashes_of(ids, clashing, images),
    )


def images_of(
    delta: RowChanges, ground: RowChanges, ids: "pa.Array[Any]", open_cells: OpenCells = NO_OPEN_CELLS
) -> Images:
    """Look up what three states have for ids of which each was changed by a side, or by both."""
    base, one, other = images_since([delta, ground], ids)
    return Images(base, one, other, open_cells.at(ids))


def images_since(changes: Sequence[RowChanges], ids: "pa.Array[Any]") -> list[Image]:
    """Look up what a state has for some ids, and others that differ from it by changes; each id is in one of these."""
    before = pa.concat_tables(_before(change) for change in changes)
    was = _places(ids, before.column(ID).combine_chunks())
    found = [_image(before, was)]
    for change in changes:
        at, after = _places(ids, change.ids), _after(change)
        unchanged = np.where(was >= 0, was + after.num_rows, -1)
        places = np.where(at < 0, unchanged, np.where(at < after.num_rows, at, -1))
        found.append(_image(pa.concat_tables([after, before]), places))
    return found


def clashes_of(ids: Sequence[str], clashing: Mask, images: Images) -> Clashes:
    """The clashes among ids, by what became of them."""
    kinds = []
    both_there = images.both_there
    found = np.flatnonzero(clashing).tolist()
    for place in found:
        if not both_there[place]:
            kinds.append(MergeConflictKind.DELETE_VS_UPDATE)
        elif images.base.there[place]:
            kinds.append(MergeConflictKind.DIVERGENT_UPDATE)
        else:
            kinds.append(MergeConflictKind.DIVERGENT_INSERT)
    return Clashes(tuple(ids[place] for place in found), tuple(kinds), images.only(clashing))


def compare_cells(images: Images) -> TwoSides:
    """Tell of every cell whether the delta changed it, and whether both sides did, differently."""
    delta_only, disputed = {}, {}
    for name in images.columns:
        was, one, other = (image.rows.column(name) for image in (images.base, images.delta, images.ground))
        changed, is_open = ~same_values(was, one), images.open_cells.get(name, False)
        disputed[name] = ((changed & ~same_values(was, other)) | is_open) & ~same_values(one, other)
        delta_only[name] = changed & ~disputed[name]
    return TwoSides(delta_only, disputed)


def any_of(cells: Mapping[str, Mask], count: int) -> Mask:
    """Which rows have a cell in any of the masks."""
    found = np.zeros(count, np.bool_)
    for mask in cells.values():
        found |= mask
    return found


def names_of(cells: Mapping[str, Mask], count: int) -> list[tuple[str, ...]]:
    """For every row, the columns whose mask has it."""
    found: list[list[str]] = [[] for _ in range(count)]
    for name, mask in cells.items():
        for place in np.flatnonzero(mask).tolist():
            found[place].append(name)
    return [tuple(names) for names in found]


def pick_cells(images: Images, from_delta: Mapping[str, Mask]) -> pa.Table:
    """The ground's rows with some cells of the delta's."""
    mixed, count = images.ground.rows, images.ground.rows.num_rows
    for name, mask in from_delta.items():
        if mask.any():
            columns = [image.rows.column(name).combine_chunks() for image in (images.ground, images.delta)]
            column = pa.concat_arrays(columns).take(np.arange(count) + np.where(mask, count, 0))
            mixed = mixed.set_column(mixed.schema.get_field_index(name), mixed.schema.field(name), column)
    return mixed


def _places(ids: "pa.Array[Any]", among: "pa.Array[Any]") -> _Places:
    """Where ids are among others; -1 for those that are not."""
    found = pc.fill_null(pc.index_in(ids, value_set=among), -1)
    return np.array(found.to_numpy(zero_copy_only=False), np.int64)


def _after(changes: RowChanges) -> pa.Table:
    """The rows after, in the order of the ids, of which those that are gone come last."""
    return pa.concat_tables([changes.inserted, changes.after])


def _before(changes: RowChanges) -> pa.Table:
    """The rows before, in the order of the ids, of which those that are new come first."""
    return pa.concat_tables([changes.before, changes.deleted])


def _image(rows: pa.Table, places: _Places) -> Image:
    there = places >= 0
    return Image(rows.take(pa.array(places, pa.int64(), mask=~there)), there)
