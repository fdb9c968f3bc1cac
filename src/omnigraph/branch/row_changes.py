"""What happened to the rows of one type between two states, by id, with the row before and the row after."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.entity_change import ChangeFilter, Image, Op
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.equal_values import same_rows
from omnigraph.storage.json_values import to_json
from omnigraph.storage.layout import PROPERTY_ID
from omnigraph.storage.records.change_file import ChangedIds

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


@dataclass(frozen=True, slots=True)
class RowChanges:
    """The changes of one type; each id occurs once. Images before are in the older columns, images after in the newer.

    Attributes:
        inserted: rows that were not there.
        before: rows that were replaced.
        after: what replaced them, row for row.
        deleted: rows that are no more.
        ids: of all of them: inserted, updated, deleted.
    """

    inserted: pa.Table
    before: pa.Table
    after: pa.Table
    deleted: pa.Table
    ids: "pa.Array[Any]" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        columns = [rows.column(ID) for rows in (self.inserted, self.after, self.deleted)]
        chunks = [chunk for column in columns for chunk in column.chunks]
        object.__setattr__(self, "ids", pa.chunked_array(chunks, pa.string()).combine_chunks())

    @property
    def count(self) -> int:
        """How many entities changed."""
        return len(self.ids)

    def without(self, ids: "pa.Array[Any]") -> "RowChanges":
        """The changes of other entities than some."""
        if not len(ids):
            return self

        def others(rows: pa.Table) -> pa.Table:
            return rows.filter(pc.invert(pc.is_in(rows.column(ID), value_set=ids)))

        replaced = pc.invert(pc.is_in(self.after.column(ID), value_set=ids))
        return RowChanges(
            others(self.inserted), self.before.filter(replaced), self.after.filter(replaced), others(self.deleted)
        )

    def and_also(self, other: "RowChanges") -> "RowChanges":
        """These changes and those of other entities."""
        names = ("inserted", "before", "after", "deleted")
        return RowChanges(*(pa.concat_tables([getattr(self, name), getattr(other, name)]) for name in names))

    @property
    def changed_ids(self) -> ChangedIds:
        """The ids by what happened."""
        return ChangedIds(ids_of(self.inserted), ids_of(self.after), ids_of(self.deleted))


def row_changes(removed: pa.Table, added: pa.Table) -> RowChanges:
    """What happened, from the rows that only one of two states has.

    Args:
        removed: rows of the older state; those that only moved may be among them.
        added: rows of the newer state.

    Returns:
        The changes. A row that came back as it was is none. A column that the older state does not have is null there;
        one that the newer does not have any more does not count.
    """
    old, new = _ids(removed), _ids(added)
    place = pc.index_in(new, value_set=old)
    is_new = pc.is_null(place)
    after = added.filter(pc.invert(is_new))
    before = removed.take(pc.drop_null(place))
    differs = pa.array(differing(before, after))
    return RowChanges(
        inserted=added.filter(is_new),
        before=before.filter(differs),
        after=after.filter(differs),
        deleted=removed.filter(pc.invert(pc.is_in(old, value_set=new))),
    )


def differing(before: pa.Table, after: pa.Table) -> "npt.NDArray[np.bool_]":
    """Which rows are not as they were, place by place.

    Args:
        before: rows of the older state.
        after: as many of the newer; only what is a column here is compared.
    """
    return np.logical_not(same_rows(*_comparable(before, after), after.column_names))


def ids_of(rows: pa.Table) -> list[str]:
    """The ids of rows."""
    return [str(entity_id) for entity_id in rows.column(ID).to_pylist()]


def _comparable(older: pa.Table, newer: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Both in the newer's columns and the wider of their types; null where the older had no such property."""
    pairs = [_pair(older, newer, field) for field in newer.schema]
    old, new = ([pair[side] for pair in pairs] for side in (0, 1))
    return pa.table(old, names=newer.column_names), pa.table(new, names=newer.column_names)


def _pair(older: pa.Table, newer: pa.Table, field: "pa.Field[Any]") -> tuple[Any, Any]:
    now: Any = newer.column(field.name)
    if field.name in older.column_names and _is_same_property(older.schema.field(field.name), field):
        was: Any = older.column(field.name)
        if was.type == now.type:
            return was, now
        # A type may have grown from the older state to the newer one, or the other way: states come in any order.
        for type_ in (now.type, was.type):
            if _is_as_wide(type_, was.type) and _is_as_wide(type_, now.type):
                return was.cast(type_), now.cast(type_)
    # No such property, or two lines gave one number to properties of two types.
    return pa.nulls(older.num_rows, field.type), now


def _is_as_wide(one: "pa.DataType", other: "pa.DataType") -> bool:
    """Whether every value of a type is one of another, too."""
    if one == other:
        return True
    schemas = [pa.schema([("value", type_)]) for type_ in (one, other)]
    try:
        common: object = pa.unify_schemas(schemas, promote_options="permissive").field("value").type
    except (pa.ArrowInvalid, pa.ArrowTypeError):  # they have none in common
        return False
    return common == one


def _is_same_property(older: "pa.Field[Any]", newer: "pa.Field[Any]") -> bool:
    """Whether two columns of one name hold one property; one that was dropped and came again has another number."""
    was, now = ((field.metadata or {}).get(PROPERTY_ID) for field in (older, newer))
    return was is None or now is None or was == now


def _ids(rows: pa.Table) -> "pa.Array[Any]":
    found: pa.Array[Any] = rows.column(ID).combine_chunks()
    return found


_SYSTEM = frozenset({ID, SRC, DST})
_IMAGES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ChangedEntity:
    """What happened to one entity of a type."""

    id: str
    op: Op
    before: Image | None
    after: Image | None


def changes_in_order(rows: RowChanges, wanted: ChangeFilter, offset: int = 0) -> Iterator[ChangedEntity]:
    """Changes in the order of their ids, without the first few."""
    sides: dict[Op, tuple[pa.Table | None, pa.Table | None]] = {
        Op.INSERT: (None, rows.inserted),
        Op.UPDATE: (rows.before, rows.after),
        Op.DELETE: (rows.deleted, None),
    }
    found: list[tuple[str, Op, int]] = []
    for op, present in ((Op.INSERT, rows.inserted), (Op.UPDATE, rows.after), (Op.DELETE, rows.deleted)):
        if wanted.takes_op(op):
            found += [(entity_id, op, place) for place, entity_id in enumerate(ids_of(present))]
    found.sort(key=lambda item: item[0])
    # A few at a time: a page seldom takes all, and images are large.
    for first in range(offset, len(found), _IMAGES_AT_ONCE):
        some = found[first : first + _IMAGES_AT_ONCE]
        images = {
            op: [_images(side, [place for _, of, place in some if of is op]) for side in both]
            for op, both in sides.items()
        }
        for entity_id, op, _ in some:
            before, after = (next(side) for side in images[op])
            yield ChangedEntity(entity_id, op, before, after)


def images_of(rows: pa.Table) -> list[Image]:
    """Rows as images."""
    names = [name for name in rows.column_names if name not in _SYSTEM]
    columns = [to_json(rows.column(name)) for name in names]
    ends = [rows.column(name).to_pylist() if name in rows.column_names else [None] * len(rows) for name in (SRC, DST)]
    values = zip(*columns, strict=True) if columns else (() for _ in range(len(rows)))
    return [
        Image(dict(zip(names, row, strict=True)), source, target)
        for row, source, target in zip(values, *ends, strict=True)
    ]


def _images(rows: pa.Table | None, places: list[int]) -> Iterator[Image | None]:
    if rows is None:
        return iter([None] * len(places))
    return iter(images_of(rows.take(pa.array(places, pa.int64()))))
