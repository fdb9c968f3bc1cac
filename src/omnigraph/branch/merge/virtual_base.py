"""What several best common ancestors come to: the base of a criss-cross merge. Pure; whole columns.

An ancestor is out of date in a value if it has the value that it and another had in common before, and the other has
not. The value of those that are not out of date is the base's. Where these disagree it is open: both sides count as
having changed it unless they agree, so that it is a conflict and never a silent choice.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.branch.merge.three_way import Image, OpenCells, any_of
from omnigraph.branch.row_changes import RowChanges
from omnigraph.model.schema import ID
from omnigraph.storage.equal_values import Mask, same_rows, same_values

_Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ancestors:
    """Best common ancestors of two commits, by their places among all states that a merge looks at.

    Attributes:
        places: of the best common ancestors.
        between: by the places of two of them, in order, their own best common ancestors; missing where not known.
    """

    places: tuple[int, ...]
    between: Mapping[tuple[int, int], "Ancestors"] = field(default_factory=dict)

    def up_to_date(self, same: Callable[[int, int], Mask], was: Callable[[int, tuple[int, int]], Mask]) -> _Masks:
        """Which of the best are not out of date.

        Args:
            same: tells where the values at two places are the same.
            was: tells where the value at a place is what two places had in common.
        """
        found = []
        for one in self.places:
            stays = np.ones_like(same(one, one))
            for pair in self.between:
                if one in pair:
                    stays = stays & ~(was(one, pair) & ~same(*pair))
            found.append(stays)
        return np.stack(found)

    def latest(self, values: Sequence[Hashable]) -> tuple[int, ...]:
        """The places of those that are not out of date, one for each of their values."""
        older = {pair: ancestors.latest(values) for pair, ancestors in self.between.items()}
        stays = self.up_to_date(
            lambda one, other: np.array([values[one] == values[other]]),
            lambda one, pair: np.array([{values[place] for place in older[pair]} == {values[one]}]),
        )
        found: dict[Hashable, int] = {}
        for place in (place for place, is_newest in zip(self.places, stays[:, 0], strict=True) if is_newest):
            found.setdefault(values[place], place)
        return tuple(found.values())

    def without(self, unknown: Set[int]) -> "Ancestors":
        """The same where nothing is known of some that are between two."""
        known = {
            pair: older.without(unknown) for pair, older in self.between.items() if unknown.isdisjoint(older.places)
        }
        return Ancestors(self.places, known)


ONE_ANCESTOR = Ancestors((0,))


@dataclass(frozen=True, slots=True)
class VirtualRows:
    """The rows of the base for some ids, in their order.

    Attributes:
        image: the rows, and which of them it has; the open ones among these.
        is_open: of which rows it is open whether it has them.
        open_cells: for every column, which cells are open.
    """

    image: Image
    is_open: Mask
    open_cells: Mapping[str, Mask]


def virtual_rows(ids: "pa.Array[Any]", ancestors: Ancestors, images: Sequence[Image]) -> VirtualRows:
    """Put together what ancestors have for some ids, cell by cell; whole rows where only some have them.

    Args:
        ids: of the rows.
        ancestors: the places of the ancestors.
        images: what there is at every place.
    """
    best, count = [images[place] for place in ancestors.places], len(ids)
    columns = [name for name in best[0].rows.column_names if name != ID]
    if len(best) == 1:
        nowhere = np.zeros(count, np.bool_)
        return VirtualRows(best[0], nowhere, dict.fromkeys(columns, nowhere))
    older = {pair: virtual_rows(ids, below, images) for pair, below in ancestors.between.items()}
    there = np.stack([image.there for image in best])
    is_mixed = there.any(axis=0) & ~there.all(axis=0)
    stays = ancestors.up_to_date(
        lambda one, other: _same_row(images[one], images[other], columns),
        lambda one, pair: (
            _same_row(images[one], older[pair].image, columns)
            & ~older[pair].is_open
            & ~any_of(older[pair].open_cells, count)
        ),
    )
    has, lacks = (stays & there).any(axis=0), (stays & ~there).any(axis=0)
    is_open = is_mixed & (has == lacks)
    exists = there.all(axis=0) | (is_mixed & (has | is_open))
    rows, open_cells = best[0].rows, {}
    for name in columns:

        def same_cell(one: int, other: int, name: str = name) -> Mask:
            return _same_cell(images[one], images[other], name)

        def was_cell(one: int, pair: tuple[int, int], name: str = name) -> Mask:
            return _same_cell(images[one], older[pair].image, name) & ~older[pair].open_cells[name]

        wanted = np.where(is_mixed, stays & there, ancestors.up_to_date(same_cell, was_cell))
        is_cycle = ~wanted.any(axis=0)
        chosen = np.where(is_cycle, there.argmax(axis=0), wanted.argmax(axis=0))
        cells = [image.rows.column(name).combine_chunks() for image in best]
        values = pa.concat_arrays(cells).take(chosen * count + np.arange(count))
        others = [wants & ~same_values(cell, values) for wants, cell in zip(wanted, cells, strict=True)]
        open_cells[name] = exists & (is_open | is_cycle | np.logical_or.reduce(others))
        rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
    rows = rows.set_column(rows.schema.get_field_index(ID), rows.schema.field(ID), ids)
    return VirtualRows(Image(rows, exists), is_open, open_cells)


def _same_row(one: Image, other: Image, columns: Sequence[str]) -> Mask:
    """Where two states have the same row, or neither has one."""
    return np.where(one.there & other.there, same_rows(one.rows, other.rows, columns), one.there == other.there)


def _same_cell(one: Image, other: Image, name: str) -> Mask:
    """Where two states both have a row, with the same value in a column."""
    found: Mask = one.there & other.there & same_values(one.rows.column(name), other.rows.column(name))
    return found


def changes_since(base: VirtualRows, sides: Sequence[Image]) -> tuple[list[RowChanges], OpenCells]:
    """What two sides did since such a base, and which cells stay open: those on which they do not agree."""
    one, other = sides
    both = one.there & other.there
    exists = np.where(base.is_open & (one.there == other.there), one.there, base.image.there)
    rows, count = base.image.rows, base.image.rows.num_rows
    columns = [name for name in rows.column_names if name != ID]
    left_open = {}
    for name in columns:
        was, cell = (image.rows.column(name).combine_chunks() for image in (base.image, one))
        agreed = base.open_cells[name] & both & same_values(cell, other.rows.column(name))
        if agreed.any():
            values = pa.concat_arrays([was, cell]).take(np.arange(count) + np.where(agreed, count, 0))
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), values)
        left_open[name] = base.open_cells[name] & exists & ~agreed
    is_open = any_of(left_open, count)
    changes = []
    for side in sides:
        is_other = exists & side.there & (is_open | ~same_rows(side.rows, rows, columns))
        masks = (side.there & ~exists, is_other, is_other, exists & ~side.there)
        tables = (side.rows, rows, side.rows, rows)
        changes.append(RowChanges(*(some.filter(pa.array(mask)) for some, mask in zip(tables, masks, strict=True))))
    ids = rows.column(ID).combine_chunks().filter(pa.array(is_open))
    return changes, OpenCells(ids, {name: mask[is_open] for name, mask in left_open.items()})
