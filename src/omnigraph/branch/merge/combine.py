"""One type that both sides changed, or about which the caller said something: what to write over the ground."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.choices import Choices, Resolution, Side
from omnigraph.branch.merge.resolve import given_row, names_ends
from omnigraph.branch.merge.sides import Lineage
from omnigraph.branch.merge.three_way import Clashes, three_way
from omnigraph.branch.row_changes import RowChanges, ids_of
from omnigraph.errors import InvalidRequestError
from omnigraph.ids import IdSource
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import DST, ID, SRC
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
        met: ids that both sides changed: what was decided rests on both.
        same: of those, the ones that both sides left alike.
        conflicts: what could not be decided.
        resolved: what was decided by the caller.
        undecided: rows that stand in for undecided entities while everything else is checked.
    """

    upserts: list[pa.Table] = field(default_factory=list)
    deletes: list[str] = field(default_factory=list)
    met: list[str] = field(default_factory=list)
    same: set[str] = field(default_factory=set)
    conflicts: list[MergeConflict] = field(default_factory=list)
    resolved: list[Resolved] = field(default_factory=list)
    undecided: list[pa.Table] = field(default_factory=list)

    @property
    def upserted_ids(self) -> list[str]:
        """The ids of the rows to write."""
        return [each for rows in self.upserts for each in ids_of(rows)]


@dataclass(frozen=True, slots=True)
class Combining:
    """How types are put together.

    Attributes:
        ground: which side the ground is.
        accepted: the schema of the result.
        choices: what the caller said.
        ids: where new ids come from.
        external_blobs: which places the blobs of a caller's rows may lie at.
    """

    ground: Side
    accepted: Accepted
    choices: Choices
    ids: IdSource
    external_blobs: ExternalBlobPolicy = NO_EXTERNAL_BLOBS

    def combine(
        self, lineage: Lineage, delta: RowChanges, ground: RowChanges, resolutions: Mapping[str, Resolution]
    ) -> Writes:
        """Put together what two sides did to one type.

        Args:
            lineage: the type.
            delta: what the other side did.
            ground: what the ground's side did.
            resolutions: by id, what the caller said.

        Returns:
            What to write over the ground.

        Raises:
            InvalidRequestError: a resolution names an entity that neither side changed, or a row that does not fit.
        """
        writes = Writes()
        for entity_id, resolution in resolutions.items():
            self._override(writes, lineage.key, entity_id, resolution, _States(delta, ground))
        decided = pa.array(list(resolutions), pa.string())
        combined = three_way(_without(delta, decided), ground, by_property=self.choices.by == "property")
        writes.upserts.append(combined.upserts)
        writes.deletes += [str(each) for each in combined.deletes.to_pylist()]
        writes.met += [*combined.agreed, *combined.clashes.ids]
        writes.same |= set(combined.agreed) - set(ids_of(combined.upserts))
        self._settle(writes, lineage.key, combined.clashes)
        return writes

    def _settle(self, writes: Writes, type_key: str, clashes: Clashes) -> None:
        prefer = self.choices.prefer
        if prefer is None:
            writes.conflicts += self._conflicts(type_key, clashes)
            survives = clashes.delta.there & ~clashes.ground.there
            writes.undecided.append(clashes.delta.rows.filter(pa.array(survives)))
            return
        writes.resolved += [Resolved(type_key, each, prefer.value) for each in clashes.ids]
        if prefer is self.ground:
            writes.same |= set(clashes.ids) if self.ground is Side.TARGET else set()
            return
        writes.upserts.append(clashes.delta.rows.filter(pa.array(clashes.delta.there)))
        writes.deletes += [each for each, there in zip(clashes.ids, clashes.delta.there, strict=True) if not there]

    def _override(
        self, writes: Writes, type_key: str, entity_id: str, resolution: Resolution, states: "_States"
    ) -> None:
        states.check_changed(type_key, entity_id)
        writes.met.append(entity_id)
        if isinstance(resolution, Side):
            writes.resolved.append(Resolved(type_key, entity_id, resolution.value))
            if resolution is self.ground:
                return
            row = states.of_delta(entity_id)
        elif resolution is None:
            writes.resolved.append(Resolved(type_key, entity_id, "deleted"))
            row = None
        else:
            writes.resolved.append(Resolved(type_key, entity_id, "row"))
            ends = states.ends(entity_id) if type_key.startswith("edge:") and not names_ends(resolution) else {}
            # What a side names elsewhere may be named again: it stays where it is.
            blobs = BlobIngress(self.external_blobs, keeps_references=True)
            row = given_row(self.accepted, type_key, entity_id, ends | dict(resolution), ids=self.ids, blobs=blobs)
        if row is None:
            writes.deletes.append(entity_id)
        else:
            writes.upserts.append(row)

    def _conflicts(self, type_key: str, clashes: Clashes) -> list[MergeConflict]:
        ground, delta, base = shown(clashes.ground.rows), shown(clashes.delta.rows), shown(clashes.base.rows)
        source, target = (delta, ground) if self.ground is Side.TARGET else (ground, delta)
        there = {Side.SOURCE: clashes.delta.there, Side.TARGET: clashes.ground.there}
        if self.ground is Side.SOURCE:
            there = {Side.SOURCE: clashes.ground.there, Side.TARGET: clashes.delta.there}
        found = []
        for at, (entity_id, kind) in enumerate(zip(clashes.ids, clashes.kinds, strict=True)):
            message = _MESSAGES[kind].format(entity_id)
            if clashes.properties[at] and self.choices.by == "property":
                message += f" in {', '.join(clashes.properties[at])}"
            found.append(
                MergeConflict(
                    kind,
                    type_key,
                    entity_id,
                    message,
                    base=base[at] if clashes.base.there[at] else None,
                    source=source[at] if there[Side.SOURCE][at] else None,
                    target=target[at] if there[Side.TARGET][at] else None,
                )
            )
        return found


@dataclass(frozen=True, slots=True)
class _States:
    """The states of single entities."""

    delta: RowChanges
    ground: RowChanges

    def check_changed(self, type_key: str, entity_id: str) -> None:
        if not any(entity_id in ids_of(rows) for rows in self._all()):
            raise InvalidRequestError(
                f"a resolution names {type_key} '{entity_id}', which neither branch has changed since they parted"
            )

    def of_delta(self, entity_id: str) -> pa.Table | None:
        """The entity as the other side has it; None where it does not."""
        for rows in (self.delta.inserted, self.delta.after):
            found = _with_id(rows, entity_id)
            if found is not None:
                return found
        if _with_id(self.delta.deleted, entity_id) is not None:
            return None
        # Not changed there: as it was at the base.
        for rows in (self.ground.before, self.ground.deleted):
            found = _with_id(rows, entity_id)
            if found is not None:
                return found
        return None

    def ends(self, entity_id: str) -> dict[str, object]:
        for rows in self._all():
            found = _with_id(rows, entity_id)
            if found is not None:
                return {name: found.column(name)[0].as_py() for name in (SRC, DST)}
        return {}

    def _all(self) -> list[pa.Table]:
        return [
            rows
            for side in (self.delta, self.ground)
            for rows in (side.inserted, side.after, side.before, side.deleted)
        ]


def relative_to(target: RowChanges, source: RowChanges, present: set[str], absent: set[str]) -> ChangedIds:
    """What became of entities, told from the target: some are there in the result, others are not.

    Args:
        target: what the target did since the base.
        source: what the source did.
        present: touched entities that the result has.
        absent: touched entities that it does not have.

    Returns:
        Against the target, what is new, replaced and gone.
    """
    at_target = set(ids_of(target.inserted)) | set(ids_of(target.after))
    at_base = set(ids_of(source.after)) | set(ids_of(source.deleted)) | at_target
    here = at_base - set(ids_of(target.deleted))
    return ChangedIds(sorted(present - here), sorted(present & here), sorted(absent & here))


def shown(rows: pa.Table) -> list[dict[str, object]]:
    """Rows as JSON shows them."""
    columns = [to_json(column) for column in rows.columns]
    return [dict(zip(rows.column_names, row, strict=True)) for row in zip(*columns, strict=True)]


def _with_id(rows: pa.Table, entity_id: str) -> pa.Table | None:
    found = rows.filter(pc.equal(rows.column(ID), entity_id))
    return found if found.num_rows else None


def _without(changes: RowChanges, decided: "pa.Array[Any]") -> RowChanges:
    if not len(decided):
        return changes

    def others(rows: pa.Table) -> pa.Table:
        return rows.filter(pc.invert(pc.is_in(rows.column(ID), value_set=decided)))

    replaced = pc.invert(pc.is_in(changes.after.column(ID), value_set=decided))
    return RowChanges(
        others(changes.inserted),
        changes.before.filter(replaced),
        changes.after.filter(replaced),
        others(changes.deleted),
    )
