"""What a merge will do, worked out on a staging: versions taken over, rows written, and every conflict there is.

A type that one side changed is taken over as it is: nobody reads a row of it, unless what the other side did to types
it is joined with could break a rule. A type that both changed is put together row by row. Then the result, not the
inputs, is checked against every rule that what was written can break.
"""

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.ancestry import Ancestry
from omnigraph.branch.merge.base import Base, merge_base
from omnigraph.branch.merge.changed import NOTHING, Changed, Differ
from omnigraph.branch.merge.choices import Choices, Resolution, Side
from omnigraph.branch.merge.combine import Combining, Resolved, Writes, against_target, overlaid
from omnigraph.branch.merge.resolve import by_type_key
from omnigraph.branch.merge.rules import RuleCheck, broken_new_rules, lacking
from omnigraph.branch.merge.schema_costs import DroppedData, base_schema, costed_steps
from omnigraph.branch.merge.schema_items import SCHEMA
from omnigraph.branch.merge.schema_merge import RowsChanged
from omnigraph.branch.merge.sides import Lineage, SchemaOf, Sides, sides_of
from omnigraph.branch.merge.three_way import images_of
from omnigraph.branch.row_changes import RowChanges, ids_of
from omnigraph.model.commit import Pin, Record
from omnigraph.model.conflict import MergeConflict
from omnigraph.model.footprint import TokenKind
from omnigraph.model.schema import ID
from omnigraph.model.schema_cost import CostedStep
from omnigraph.storage.records.change_file import ChangedIds
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


class Outcome(StrEnum):
    """How a merge ends."""

    ALREADY_UP_TO_DATE = "already_up_to_date"  # the target has everything; no commit
    FAST_FORWARD = "fast_forward"  # only the source has moved
    MERGED = "merged"


@dataclass(frozen=True, slots=True)
class Planned:
    """What a merge comes to.

    Attributes:
        outcome: how it ends, if there are no conflicts.
        base: the common ancestor; None where the heads are the same.
        conflicts: everything that cannot both stand.
        changed: by type key, the entities that change on the target.
        resolved: what the caller decided.
        schema_steps: what becomes of the target's schema, and the rows and values it loses by that.
        schema: the one that holds afterwards; None where the schemas themselves are in conflict, or nothing happens.
        schema_is_new: whether no commit has it yet.
    """

    outcome: Outcome
    base: str | None
    conflicts: tuple[MergeConflict, ...] = ()
    changed: Mapping[str, ChangedIds] = field(default_factory=dict)
    resolved: tuple[Resolved, ...] = ()
    schema_steps: tuple[CostedStep, ...] = ()
    schema: Accepted | None = None
    schema_is_new: bool = False


def plan_merge(
    context: GraphContext, schema_of: SchemaOf, staging: WriteSet, source: Record, *, choices: Choices, differ: Differ
) -> Planned:
    """Work out a merge on a staging of the target's head.

    Args:
        schema_of: the accepted schema of a digest.
        staging: a fresh one; afterwards it holds the merge, unless there are conflicts.
        source: the entry brought in.
        choices: how to decide.
        differ: tells differences that are too large to be read here.

    Raises:
        ConflictError: the two have nothing in common (`no_common_history`), or it is gone (`merge_base_missing`).
        NotFoundError: the base that the caller names is not there.
        InvalidRequestError: a resolution does not fit.
    """
    target = staging.snapshot.record
    if source.head_commit == target.head_commit:
        return Planned(Outcome.ALREADY_UP_TO_DATE, None)
    ancestry = Ancestry(context)
    base = merge_base(ancestry, source, target, named=choices.base)
    if base.commit == source.head_commit:
        return Planned(Outcome.ALREADY_UP_TO_DATE, base.commit)
    outcome = Outcome.FAST_FORWARD if base.commit == target.head_commit else Outcome.MERGED
    records = {Side.SOURCE: source, Side.TARGET: target}
    was = base_schema(context.tables, schema_of, base)
    sides = sides_of(
        base,
        was,
        source,
        target,
        schema_of=schema_of,
        choices=choices,
        rows_changed=_rows_changed(context, schema_of, was, base, records),
    )
    if sides.conflicts:
        return Planned(outcome, base.commit, sides.conflicts)
    changed = Changed(
        context,
        base,
        records,
        lambda side: ancestry.chain(records[side].head_commit, base.commit),
        sides,
        differ,
    )
    work = _Work(context, staging, sides, changed, sides.accepted, choices)
    conflicts = work.carry_out()
    steps: tuple[CostedStep, ...] = ()
    if sides.accepted.digest != target.schema:
        before = schema_of(target.schema).schema
        steps = costed_steps(context.tables, before, target, sides.accepted.schema, replaced=sides.replaced)
    return Planned(
        outcome,
        base.commit,
        tuple(conflicts),
        work.against_target,
        tuple(work.resolved),
        steps,
        sides.accepted,
        sides.is_new,
    )


@dataclass(slots=True)
class _Work:
    """One merge while it is worked out."""

    context: GraphContext
    staging: WriteSet
    sides: Sides
    changed: Changed
    accepted: Accepted
    choices: Choices
    against_target: dict[str, ChangedIds] = field(default_factory=dict)
    resolved: list[Resolved] = field(default_factory=list)
    lacking: list[MergeConflict] = field(default_factory=list)

    def carry_out(self) -> list[MergeConflict]:
        given = {name: decisions for name, decisions in self.choices.resolutions.items() if name != SCHEMA}
        resolutions = by_type_key(given, self.accepted.schema)
        self.resolved += [Resolved(SCHEMA, item, side.value) for item, side in self.sides.resolved]
        self._carry_schema()
        taken: list[Lineage] = []
        both: list[Lineage] = []
        own: list[Lineage] = []
        for lineage in self.sides.types:
            by_delta = lineage.differs(lineage.side.other) and not lineage.is_same
            if lineage.key in resolutions or (by_delta and lineage.differs(lineage.side)):
                both.append(lineage)
            elif by_delta and any(self.changed.ids(lineage, lineage.side.other)):
                taken.append(lineage)
            else:
                self._use(lineage, lineage.side)
                if self._judges_ground(lineage):
                    own.append(lineage)
        with_rows = [lineage for lineage in taken if self._needs_rows(lineage, resolutions.keys())]
        for lineage in taken:
            if lineage not in with_rows:
                self._use(lineage, lineage.side.other)
                self._note_joined(lineage)
        conflicts = [
            conflict for lineage in both for conflict in self._combine(lineage, resolutions.get(lineage.key, {}))
        ]
        for lineage in with_rows:
            self._use(lineage, lineage.side)
            self._lay_over(lineage)
        for lineage in own:
            self._lay(lineage.key, self.changed.rows(lineage, lineage.side))
        conflicts += self.lacking
        is_decided = bool(resolutions) or self.choices.prefer is not None
        conflicts += RuleCheck(self.context, self.staging, self.sides, self.changed, self.accepted).broken_rules(
            conflicts, is_decided=is_decided
        )
        if {self.accepted.digest} != {state.schema for state in self.changed.base.best}:
            conflicts += broken_new_rules(self.staging, self.sides)
        for lineage in with_rows:
            if self.sides.columns_change(lineage, lineage.side.other).is_empty:
                # They were laid over the ground only to be looked at: the version that has them is there.
                self.staging.withdraw(lineage.key)
                self._use(lineage, lineage.side.other)
        for lineage in own:
            self.staging.withdraw(lineage.key)
            self._use(lineage, lineage.side)
        return conflicts

    def _judges_ground(self, lineage: Lineage) -> bool:
        """Whether what the source did to a type is in the ground, while for others the ground is the target.

        Then its changes are laid over the ground once more, so that rules are judged on all that the source brings.
        """
        return self.sides.is_mixed and lineage.side is Side.SOURCE and lineage.differs(Side.SOURCE)

    # -- whole versions -----------------------------------------------------------------------------------------------

    def _carry_schema(self) -> None:
        if self.accepted.digest == self.staging.schema:
            return
        self.staging.accept_schema(self.accepted.digest)
        for type_key in self.staging.snapshot.type_keys:
            # Written under the old schema, whatever comes meanwhile does not fit the new one.
            self.staging.read_whole(type_key)
        for type_key in self.sides.dropped:
            self.staging.remove_table(type_key)

    def _use(self, lineage: Lineage, side: Side) -> None:
        """Let the result have a side's version."""
        pin = lineage.pins[side]
        if not _is_at(self.staging.snapshot.record, lineage.key, pin):
            self._adopt(lineage.key, pin, self._brought(lineage) if side is Side.SOURCE else NOTHING)
        self._conform(lineage, side)

    def _brought(self, lineage: Lineage) -> ChangedIds:
        """The entities in which the source's version of a type differs from the target's."""
        if Side.TARGET in lineage.pins:
            return self.changed.ids(lineage, Side.SOURCE)
        return ChangedIds(ids_of(self.context.tables.open(lineage.pins[Side.SOURCE]).scan(columns=[ID])), (), ())

    def _conform(self, lineage: Lineage, side: Side) -> None:
        """Give a side's version the columns of the result."""
        change = self.sides.columns_change(lineage, side)
        if not change.is_empty:
            rework = change.rework(self.context.tables)
            reshape = self.sides.reshape(lineage, side)
            self.staging.change_table(lineage.key, rework, keeps_content=False, reshape=reshape)

    def _adopt(self, type_key: str, pin: Pin, changed: ChangedIds) -> None:
        self.staging.adopt(type_key, pin, changed)
        if any(changed):
            self.against_target[type_key] = changed

    def _needs_rows(self, lineage: Lineage, decided: Set[str]) -> bool:
        """Whether what the ground did, or the caller decided, could break a rule together with what this type brings.

        A decision may leave out what this type's rows need, or keep what they miss, without writing a single row.
        """
        if any(joined.key in decided for joined in (*self._ends(lineage), *self._arrivals(lineage))):
            return True
        states = (*self.changed.base.best, *self.changed.records.values())
        if len({state.schema for state in states}) > 1:
            return True
        if any(self.changed.ids(node, lineage.side).deleted for node in self._ends(lineage)):
            return True
        gone = self.changed.ids(lineage, lineage.side.other).deleted
        return bool(gone) and any(edge.differs(lineage.side) for edge in self._arrivals(lineage))

    def _note_joined(self, lineage: Lineage) -> None:
        """Record reads of the joined types as a whole: the verdict rests on all of their rows."""
        for joined in (*self._ends(lineage), *self._arrivals(lineage)):
            if joined.key in self.staging.snapshot.record.tables:
                self.staging.read_whole(joined.key)

    def _ends(self, lineage: Lineage) -> Iterator[Lineage]:
        """Of an edge type, the node types it joins."""
        keys = {end.node_key for end in self.accepted.rules.types[lineage.key].ends}
        return (lineage for lineage in self.sides.types if lineage.key in keys)

    def _arrivals(self, lineage: Lineage) -> Iterator[Lineage]:
        """Of a node type, the edge types that join it."""
        keys = {end.type_key for end in self.accepted.rules.arrivals.get(lineage.key, ())}
        return (lineage for lineage in self.sides.types if lineage.key in keys)

    # -- rows ---------------------------------------------------------------------------------------------------------

    def _lay_over(self, lineage: Lineage) -> None:
        rows = self.changed.rows(lineage, lineage.side.other)
        if lineage.side is Side.TARGET and rows.count:
            self.against_target[lineage.key] = rows.changed_ids
        self._lay(lineage.key, rows)

    def _lay(self, type_key: str, rows: RowChanges) -> None:
        for some in (rows.inserted, rows.after):
            self._put(type_key, some)
        if rows.deleted.num_rows:
            self.staging.delete(type_key, ids_of(rows.deleted))

    def _put(self, type_key: str, rows: pa.Table) -> None:
        """Lay rows over the ground, but for those that lack what the schema requires by now: these are conflicts."""
        entity = self.accepted.schema.entity(type_key)
        for prop in () if entity is None else entity.properties:
            if prop.type.nullable or not rows.column(prop.name).null_count:
                continue
            without = pc.is_null(rows.column(prop.name))
            self.lacking += [lacking(type_key, entity_id, prop.name) for entity_id in ids_of(rows.filter(without))]
            rows = rows.filter(pc.invert(without))
        if rows.num_rows:
            self.staging.upsert(type_key, rows)

    def _combine(self, lineage: Lineage, resolutions: Mapping[str, Resolution]) -> list[MergeConflict]:
        delta, ground = (self.changed.rows(lineage, side) for side in (lineage.side.other, lineage.side))
        combining = Combining(
            lineage.side, self.accepted, self.choices, self.context.ids, self.context.settings.external_blobs
        )
        writes = combining.combine(lineage.key, delta, ground, resolutions, self.changed.open_cells(lineage))
        changed = self._against_target(lineage, delta, ground, writes)
        if not _is_at(self.staging.snapshot.record, lineage.key, lineage.ground):
            self._adopt(lineage.key, lineage.ground, changed)
        self._conform(lineage, lineage.side)
        if self._judges_ground(lineage):
            self._lay(lineage.key, ground)
        absent = set(ids_of(delta.inserted)).difference(str(entity_id) for entity_id in ground.ids.to_pylist())
        self.staging.remember_addresses(lineage.key, self.changed.places_on_ground(lineage), absent)
        for rows in (*writes.upserts, *writes.undecided):
            self._put(lineage.key, rows)
        if writes.deletes:
            self.staging.delete(lineage.key, writes.deletes)
        if lineage.key in self.staging.snapshot.record.tables:
            self.staging.read_tokens(lineage.key, TokenKind.ID, writes.met)
        if any(changed):
            self.against_target[lineage.key] = changed
        self.resolved += writes.resolved
        return writes.conflicts

    def _against_target(self, lineage: Lineage, delta: RowChanges, ground: RowChanges, writes: Writes) -> ChangedIds:
        """What changes on the target: the rows written over it, or where the source is the ground all that differs."""
        upserts = pa.concat_tables(writes.upserts)
        touched = [upserts.column(ID), pa.chunked_array([writes.deletes], pa.string())]
        if lineage.side is Side.SOURCE:
            touched += [pa.chunked_array([side.ids]) for side in (delta, ground)]
        ids = pc.unique(pa.chunked_array([chunk for column in touched for chunk in column.chunks], pa.string()))
        images = images_of(delta, ground, ids)
        target = images.ground if lineage.side is Side.TARGET else images.delta
        return against_target(ids, target, overlaid(ids, images.ground, upserts, writes.deletes))


def _rows_changed(
    context: GraphContext, schema_of: SchemaOf, schema: Accepted | None, base: Base, records: Mapping[Side, Record]
) -> RowsChanged:
    """Tell whether data changed that the other side's schema has dropped."""
    if schema is None:
        return lambda _side, _type, _name: True
    return DroppedData(context.tables, schema_of, schema.schema, base.best, records).is_changed


def _is_at(record: Record, type_key: str, pin: Pin) -> bool:
    known = record.tables.get(type_key)
    return known is not None and (known.table, known.version) == (pin.table, pin.version)
