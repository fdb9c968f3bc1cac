"""Rows as clients see them: entities with properties and ends, before and after a change."""

from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.branch.entity_change import ChangeFilter, Image, Op
from omnigraph.branch.row_changes import RowChanges, ids_of
from omnigraph.model.schema import DST, ID, SRC
from omnigraph.storage.json_values import to_json

_SYSTEM = frozenset({ID, SRC, DST})
_IMAGES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Told:
    """What happened to one entity of a type."""

    id: str
    op: Op
    before: Image | None
    after: Image | None


def told_changes(rows: RowChanges, wanted: ChangeFilter, offset: int = 0) -> Iterator[Told]:
    """Changes in the order of their ids, without the first few."""
    sides: dict[Op, tuple[pa.Table | None, pa.Table | None]] = {
        Op.INSERT: (None, rows.inserted),
        Op.UPDATE: (rows.before, rows.after),
        Op.DELETE: (rows.deleted, None),
    }
    found: list[tuple[str, Op, int]] = []
    for op, present in ((Op.INSERT, rows.inserted), (Op.UPDATE, rows.after), (Op.DELETE, rows.deleted)):
        if wanted.takes_op(op):
            found += [(each, op, place) for place, each in enumerate(ids_of(present))]
    found.sort(key=lambda each: each[0])
    # A few at a time: a page seldom takes all, and images are large.
    for first in range(offset, len(found), _IMAGES_AT_ONCE):
        some = found[first : first + _IMAGES_AT_ONCE]
        images = {
            op: [_images(side, [place for _, of, place in some if of is op]) for side in both]
            for op, both in sides.items()
        }
        for each, op, _ in some:
            before, after = (next(side) for side in images[op])
            yield Told(each, op, before, after)


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
