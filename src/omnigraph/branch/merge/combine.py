"""One type that both sides changed, or about which the caller decided something: what to write over the ground."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.choices import Cells, Choices, Resolution, Row, Side
from omnigraph.branch.merge.resolve import column_named, columns_kept, given_rows, given_values, with_columns_named
from omnigraph.branch.merge.three_way import (
    Clashes,
    Image,
    Images,
    OpenCells,
    TwoSides,
    any_of,
    clashes_of,
    compare_cells,
    images_of,
    names_of,
    pick_cells,
    three_way,
)
from omnigraph.branch.row_changes import RowChanges
from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import ID, EntityType
from omnigraph.storage.equal_values import Mask, same_rows
from omnigraph.storage.external_blobs import NO_EXTERNAL_BLOBS, BlobIngress, ExternalBlobPolicy
from omnigraph.storage.json_values import to_json
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.transaction.accepted import Accepted

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_MESSAGES = {
    MergeConflictKind.DIVERGENT_INSERT: "divergent insert for id '{}'",
    MergeConflictKind.DIVERGENT_UPDATE: "divergent update for id '{}'",
    MergeConflictKind.DELETE_VS_UPDATE: "delete/update conflict for id '{}'",
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """What was decided about an entity that the merge could not decide by itself."""

    type_key: str
    entity_id: str
    took: str


@dataclass(slots=True)
class Writes:
    """What a merge does to the ground's rows of one type.

    Attributes:
        upserts: rows to write, each id once.
        deletes: ids to delete.
        met: ids that both sides changed, or that were decided: the result rests on both.
        conflicts: what could not be decided.
        resolved: what was decided by the caller.
        undecided: rows that stand in for undecided entities while everything else is checked.
    """

    upserts: list[pa.Table] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    undecided: list[pa.Table] = field(default_factory=list)

    def replace(self, ids: Sequence[str], ground: Image, result: Image) -> None:
        """Have a result in the place of the ground's rows for some ids, where it differs."""
        columns = [name for name in result.rows.column_names if name != ID]
        same = ground.there & same_rows(result.rows, ground.rows, columns)
        self.upserts.append(result.rows.filter(pa.array(result.there & ~same)))
        self.deletes += [ids[place] for place in np.flatnonzero(ground.there & ~result.there).tolist()]


@dataclass(frozen=True, slots=True)
class Combining:
    """How types are put together.

    Attributes:
        ground: which side the ground is.
        accepted: the schema of the result.
        choices: given by the caller.
        ids: where new ids come from.
        external_blobs: which places the blobs of a caller's rows may lie at.
    """

    ground: Side
    accepted: Accepted
    choices: Choices
    ids: IdSource
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS

    def combine(
        self,
        type_key: str,
        delta: RowChanges,
        ground: RowChanges,
        resolutions: Mapping[str, Resolution],
        open_cells: OpenCells,
    ) -> Writes:
        """Put together what two sides did to one type.

        Raises:
            InvalidRequestError: a resolution names an entity that neither side changed, or does not fit it.
        """
        writes = Writes()
        decided = pa.array(list(resolutions), pa.string())
        if resolutions:
            _check_changed(type_key, decided, delta, ground)
            images = images_of(delta, ground, decided, open_cells)
            met = pc.and_(pc.is_in(decided, value_set=delta.ids), pc.is_in(decided, value_set=ground.ids))
            self._decide(writes, type_key, resolutions, images, np.array(met, np.bool_))
        combined = three_way(delta.without(decided), ground, by_property=self._by_property, open_cells=open_cells)
        writes.upserts.append(combined.upserts)
        writes.deletes += [str(entity_id) for entity_id in combined.deletes.to_pylist()]
        writes.met += [*combined.agreed, *combined.clashes.ids]
        self._settle(writes, type_key, combined.clashes)
        return writes

    @property
    def _by_property(self) -> bool:
        return self.choices.by == "property"

    @property
    def _blobs(self) -> BlobIngress:
        # What a side names elsewhere may be named again: it stays where it is.
        return BlobIngress(self.external_blobs, keeps_references=True)

    # -- what both sides changed --------------------------------------------------------------------------------------

    def _settle(self, writes: Writes, type_key: str, clashes: Clashes) -> None:
        prefer, images = self.choices.prefer, clashes.images
        if prefer is None:
            writes.conflicts += self._conflicts(type_key, clashes, compare_cells(images).disputed)
            survives = images.delta.there & ~images.ground.there
            writes.undecided.append(images.delta.rows.filter(pa.array(survives)))
            return
        writes.resolved += [Resolved(type_key, entity_id, prefer.value) for entity_id in clashes.ids]
        writes.replace(clashes.ids, images.ground, self._of_side(images, prefer, images.both_there))

    def _of_side(self, images: Images, side: Side, is_met: Mask) -> Image:
        """What a side has; property by property, of entities that both sides changed and have only what is disputed."""
        whole = images.ground if side is self.ground else images.delta
        mixed = is_met & images.both_there
        if not self._by_property or not mixed.any():
            return whole
        cells = compare_cells(images)
        picked = cells.delta_only
        if side is not self.ground:
            picked = {name: mask | cells.disputed[name] for name, mask in picked.items()}
        return _either(mixed, Image(pick_cells(images, picked), images.both_there), whole)

    def _conflicts(self, type_key: str, clashes: Clashes, open_cells: Mapping[str, Mask]) -> list[MergeConflict]:
        images = clashes.images
        delta, ground, base = (_shown(image) for image in (images.delta, images.ground, images.base))
        source, target = (delta, ground) if self.ground is Side.TARGET else (ground, delta)
        properties = names_of(open_cells, len(clashes.ids))
        found = []
        for at, (entity_id, kind) in enumerate(zip(clashes.ids, clashes.kinds, strict=True)):
            disputed = () if kind is MergeConflictKind.DELETE_VS_UPDATE else properties[at]
            message = _MESSAGES[kind].format(entity_id)
            if disputed and self._by_property:
                message += f" in {', '.join(disputed)}"
            found.append(MergeConflict(kind, type_key, entity_id, message, base[at], source[at], target[at], disputed))
        return found

    # -- what the caller decided --------------------------------------------------------------------------------------

    def _decide(
        self, writes: Writes, type_key: str, resolutions: Mapping[str, Resolution], images: Images, is_met: Mask
    ) -> None:
        ids = list(resolutions)
        writes.met += ids
        entity = self.accepted.schema.entity(type_key)
        kinds = np.array([_took(resolution) for resolution in resolutions.values()])
        writes.resolved += [
            Resolved(type_key, entity_id, took) for entity_id, took in zip(ids, kinds.tolist(), strict=True)
        ]
        for took in sorted(set(kinds.tolist())):
            chosen = kinds == took
            some, here = [ids[place] for place in np.flatnonzero(chosen).tolist()], images.only(chosen)
            if took in tuple(Side):
                result = self._of_side(here, Side(took), is_met[chosen])
            elif took == _DELETED:
                result = Image(here.ground.rows, np.zeros(len(some), np.bool_))
            elif entity is not None and took == _ROW:
                rows = {entity_id: row for entity_id in some if isinstance(row := resolutions[entity_id], Mapping)}
                result = self._given(entity, rows, here)
            elif entity is not None:
                cells = [cells for cells in map(resolutions.__getitem__, some) if isinstance(cells, Cells)]
                result = self._cells(writes, entity, some, cells, here)
            writes.replace(some, here.ground, result)

    def _given(self, entity: EntityType, rows: Mapping[str, Row], images: Images) -> Image:
        """Rows that the caller gave; key and ends are kept where they leave them out."""
        ids, named = list(rows), [with_columns_named(entity, row) for row in rows.values()]
        cells = compare_cells(images)
        kept = self._kept(images, cells)
        for column in columns_kept(entity):
            left_out = [place for place, row in enumerate(named) if column not in row]
            values = kept.column(column).to_pylist() if left_out else []
            for place in left_out:
                if self.choices.prefer is None and images.both_there[place] and cells.disputed[column][place]:
                    raise InvalidRequestError(
                        f"both branches changed '{column}' of {entity.type_key} '{ids[place]}'; "
                        "a row given for it must name it"
                    )
                named[place][column] = values[place]
        given = dict(zip(ids, named, strict=True))
        found = given_rows(self.accepted, entity.type_key, given, ids=self.ids, blobs=self._blobs)
        return Image(_like(found, images.ground.rows), np.ones(len(rows), np.bool_))

    def _kept(self, images: Images, cells: TwoSides) -> pa.Table:
        """Rows cell by cell, of both sides that have them, or of one; of neither as they were."""
        mixed = Image(pick_cells(images, self._preferred(cells)), images.both_there)
        only = _either(images.delta.there, images.delta, _either(images.ground.there, images.ground, images.base))
        return _either(images.both_there, mixed, only).rows

    def _preferred(self, cells: TwoSides) -> dict[str, Mask]:
        """The cells to take from the delta: what only it changed, and what is disputed if its side is preferred."""
        if self.choices.prefer is not self.ground.other:
            return cells.delta_only
        return {name: mask | cells.disputed[name] for name, mask in cells.delta_only.items()}

    def _cells(self, writes: Writes, entity: EntityType, ids: list[str], decided: list[Cells], images: Images) -> Image:
        """Entities of which single properties were decided; what is still disputed is a conflict."""
        lost = np.flatnonzero(~images.both_there).tolist()
        if lost:
            raise InvalidRequestError(
                f"a branch does not have {entity.type_key} '{ids[lost[0]]}'; "
                "decide about it as a whole, not by property"
            )
        cells = compare_cells(images)
        picked = {name: mask.copy() for name, mask in self._preferred(cells).items()}
        open_cells = {name: mask.copy() for name, mask in cells.disputed.items()}
        values: dict[str, dict[int, object]] = {}
        names = {name for resolution in decided for name in (*resolution.sides, *resolution.values)}
        columns = {name: column_named(entity, name) for name in sorted(names)}
        for place, resolution in enumerate(decided):
            for name, side in resolution.sides.items():
                column = columns[name]
                picked[column][place], open_cells[column][place] = side is not self.ground, False
            for name, value in resolution.values.items():
                column = columns[name]
                values.setdefault(column, {})[place] = value
                open_cells[column][place] = False
        rows = pick_cells(images, picked)
        for column, by_place in values.items():
            given = given_values(entity, column, list(by_place.values()), self._blobs)
            rows = _with_values(rows, column, list(by_place), given)
        still = any_of(open_cells, len(ids))
        if self.choices.prefer is None and still.any():
            clashes = clashes_of(ids, still, images)
            undecided = {name: mask[still] for name, mask in open_cells.items()}
            writes.conflicts += self._conflicts(entity.type_key, clashes, undecided)
        return Image(rows, images.both_there)


_DELETED, _ROW, _PROPERTIES = "deleted", "row", "properties"


def _took(resolution: Resolution) -> str:
    """What the commit's note says was taken."""
    if isinstance(resolution, Side):
        return resolution.value
    if resolution is None:
        return _DELETED
    return _PROPERTIES if isinstance(resolution, Cells) else _ROW


def overlaid(ids: "pa.Array[Any]", ground: Image, upserts: pa.Table, deletes: Sequence[str]) -> Image:
    """The ground's rows of some ids once others are written over them."""
    written = pc.index_in(ids, value_set=upserts.column(ID).combine_chunks())
    is_written = np.array(pc.is_valid(written), np.bool_)
    gone = np.array(pc.is_in(ids, value_set=pa.array(deletes, pa.string())), np.bool_)
    return _either(is_written, Image(upserts.take(written), is_written), Image(ground.rows, ground.there & ~gone))


def against_target(ids: "pa.Array[Any]", target: Image, result: Image) -> ChangedIds:
    """Which entities are new, replaced and gone, compared with the target."""
    names = [str(entity_id) for entity_id in ids.to_pylist()]
    columns = [name for name in result.rows.column_names if name != ID]
    same = same_rows(result.rows, target.rows, columns)
    masks = (
        result.there & ~target.there,
        result.there & target.there & ~same,
        ~result.there & target.there,
    )
    return ChangedIds(*(sorted(names[place] for place in np.flatnonzero(mask).tolist()) for mask in masks))


def shown(rows: pa.Table) -> list[dict[str, object]]:
    """Rows as JSON shows them."""
    columns = [to_json(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _shown(image: Image) -> list[dict[str, object] | None]:
    return [row if there else None for row, there in zip(shown(image.rows), image.there.tolist(), strict=True)]


def _either(which: Mask, one: Image, other: Image) -> Image:
    """Pick rows from one image where the mask is set, else from the other."""
    places = np.arange(len(which)) + np.where(which, 0, len(which))
    rows = pa.concat_tables([one.rows, other.rows]).take(places)
    return Image(rows, np.where(which, one.there, other.there))


def _with_values(rows: pa.Table, column: str, places: list[int], values: "pa.Array[Any]") -> pa.Table:
    """Rows with other values in a column at some places."""
    at = np.arange(rows.num_rows)
    at[places] = rows.num_rows + np.arange(len(places))
    field_of = rows.schema.field(column)
    changed = pa.concat_arrays([rows.column(column).combine_chunks(), values.cast(field_of.type)]).take(at)
    return rows.set_column(rows.schema.get_field_index(column), field_of, changed)


def _like(rows: pa.Table, layout: pa.Table) -> pa.Table:
    """Rows in the columns of others, which may all be null."""
    return pa.Table.from_arrays([rows.column(name) for name in layout.column_names], schema=layout.schema)


def _check_changed(type_key: str, decided: "pa.Array[Any]", delta: RowChanges, ground: RowChanges) -> None:
    changed = pc.or_(*(pc.is_in(decided, value_set=side.ids) for side in (delta, ground)))
    if not pc.all(changed).as_py():
        unknown = decided.filter(pc.invert(changed))[0].as_py()
        raise InvalidRequestError(
            f"a resolution names {type_key} '{unknown}', which neither branch has changed since they parted"
        )
