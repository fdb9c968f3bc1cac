"""The rules that the result of a merge breaks, as conflicts: judged on what is staged, whatever led to it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.changed import Changed
from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.combine import shown
from omnigraph.branch.merge.sides import Lineage, Sides
from omnigraph.branch.row_changes import ids_of
from omnigraph.language.schema import plan_steps
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import ID, SRC, EdgeType, EntityType, NodeType, Schema, Unique
from omnigraph.model.schema_change import AddConstraint, ChangeCardinality, ChangePropertyType, Step
from omnigraph.transaction import constraints
from omnigraph.transaction.accepted import Accepted
from omnigraph.transaction.constraint_rules.rules import Degree
from omnigraph.transaction.constraints import Breach, RuleKind
from omnigraph.transaction.evolve import Breach as BrokenRule
from omnigraph.transaction.evolve import breach_of
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.write_set import WriteSet
from omnigraph.transaction.write_set.committed import rows_with

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute

_BROKEN = {
    RuleKind.VALUE: MergeConflictKind.VALUE_CONSTRAINT_VIOLATION,
    RuleKind.UNIQUE: MergeConflictKind.UNIQUE_VIOLATION,
    RuleKind.END: MergeConflictKind.ORPHAN_EDGE,
    RuleKind.DEGREE: MergeConflictKind.CARDINALITY_VIOLATION,
}

_Images = tuple[dict[tuple[str, str | None], dict[str, object]], ...]


@dataclass(frozen=True, slots=True)
class RuleCheck:
    """What checking a staged merge needs.

    Attributes:
        staging: what the result differs in from the ground, pending.
        sides: how the sides go together.
        changed: what both sides did since the base.
        accepted: the schema of the result.
    """

    context: GraphContext
    staging: WriteSet
    sides: Sides
    changed: Changed
    accepted: Accepted

    def broken_rules(self, found: Sequence[MergeConflict], *, is_decided: bool) -> list[MergeConflict]:
        """List every rule that the result breaks, beside the conflicts found before.

        Args:
            found: conflicts that are known; an entity is not listed twice for one kind.
            is_decided: whether the caller decided anything.
        """
        known = {(conflict.kind, conflict.type_key, conflict.entity_id) for conflict in found}
        sources = self._nodes_to_count() if is_decided else {}
        broken: dict[tuple[MergeConflictKind, str, str | None, str], None] = {}
        for breach in self._owing(list(constraints.breaches(self.staging, self.accepted.rules, sources=sources))):
            kind = _BROKEN[breach.kind]
            entity = _entity(breach.kind, breach.error.details)
            if entity is not None and (kind, breach.type_key, entity) in known:
                continue  # an edge that lost both its nodes is one orphan
            known.add((kind, breach.type_key, entity))
            broken[kind, breach.type_key, entity, breach.error.message] = None
        at_base, source, target = self._images({(key, entity) for _, key, entity, _ in broken if entity is not None})
        return [
            MergeConflict(
                kind,
                key,
                entity,
                message,
                at_base.get((key, entity)),
                source.get((key, entity)),
                target.get((key, entity)),
            )
            for kind, key, entity, message in broken
        ]

    # -- how many edges leave a node ----------------------------------------------------------------------------------

    def _nodes_to_count(self) -> dict[str, list[str]]:
        """By edge type, the nodes that either side gave or took an edge, where they must have some.

        A node that one side deleted with its edges may have been kept without them: then none of them is pending.
        """
        found = {}
        for lineage, _ in self._counted():
            sides = [self.changed.rows(lineage, side) for side in Side if self.changed.differs(lineage, side)]
            changed = [rows for side in sides for rows in (side.inserted, side.before, side.after, side.deleted)]
            chunks = [chunk for rows in changed for chunk in rows.column(SRC).chunks]
            nodes = pc.unique(pa.chunked_array(chunks, pa.string()))
            found[lineage.key] = sorted(str(node) for node in nodes.to_pylist())
        return found

    def _counted(self) -> Iterator[tuple[Lineage, Degree]]:
        """The edge types of which a node must have some, if any."""
        for lineage in self.sides.types:
            degree = self.accepted.rules.types[lineage.key].degree
            if degree is not None and degree.least:
                yield lineage, degree

    def _owing(self, found: list[Breach]) -> Iterator[Breach]:
        """Pass over nodes without an edge that have none on a side that has them: they never owed any."""
        bare = {
            (breach.type_key, str(breach.error.details["id"]))
            for breach in found
            if breach.kind is RuleKind.DEGREE and breach.error.details["count"] == 0
        }
        if bare:
            for lineage, degree in self._counted():
                nodes = sorted(node for type_key, node in bare if type_key == lineage.key)
                kept = {node for side in Side for node in self._without_edges(lineage, degree, side, nodes)}
                bare -= {(lineage.key, node) for node in nodes if node not in kept}
        for breach in found:
            if breach.kind is not RuleKind.DEGREE or (breach.type_key, breach.error.details["id"]) not in bare:
                yield breach

    def _without_edges(self, lineage: Lineage, degree: Degree, side: Side, nodes: list[str]) -> set[str]:
        """Which of these nodes a side has, without an edge of the type that leaves them."""
        places = {lineage.key: self.changed.pin(lineage, side) for lineage in self.sides.types}
        pin, edges = places.get(degree.node_key), places.get(lineage.key)
        if pin is None or not nodes:
            return set()
        there = set(ids_of(self.context.tables.open(pin).rows_with_ids(nodes, columns=[ID])))
        if edges is None:
            return there
        leaving = rows_with(self.context.tables.open(edges), SRC, pa.array(nodes, pa.string()), columns=[SRC])
        return there.difference(str(node) for node in leaving.column(SRC).to_pylist())

    # -- what conflicts show ------------------------------------------------------------------------------------------

    def _images(self, wanted: set[tuple[str, str]]) -> _Images:
        """Entities at the base, on the source and on the target."""
        found: _Images = ({}, {}, {})
        for lineage in self.sides.types:
            ids = sorted(entity for type_key, entity in wanted if type_key == lineage.key)
            if not ids:
                continue
            for image, state in zip(found, (None, *Side), strict=True):
                if state in lineage.pins:
                    rows = shown(self.changed.rows_of(lineage, state, ids))
                    image.update({(lineage.key, str(row[ID])): row for row in rows})
        return found


def _entity(kind: RuleKind, details: Mapping[str, object]) -> str | None:
    """The one entity a breach is about; None where it is about a value or a number of edges."""
    match kind:
        case RuleKind.UNIQUE:
            ids = details.get("ids")
            return str(ids[1]) if isinstance(ids, tuple) else None
        case RuleKind.END:
            return str(details["entity"])
        case RuleKind.VALUE | RuleKind.DEGREE:
            return None


@dataclass(frozen=True, slots=True)
class _Result:
    """The rows of a type in the result of a merge; without those that are judged as pending rows."""

    staging: WriteSet
    type_key: str
    now: EntityType
    is_whole: bool = False

    def rows(self, names: Sequence[str]) -> Iterator[pa.Table]:
        found = self.staging.scan(self.type_key, columns=list(dict.fromkeys([ID, *names])))
        pending = self.staging.pending.get(self.type_key)
        if pending is not None and not self.is_whole:
            judged = pending.rows.column(ID).combine_chunks()
            found = found.filter(pc.invert(pc.is_in(found.column(ID), value_set=judged)))
        yield found

    def sources(self) -> "pa.ChunkedArray[Any]":
        assert isinstance(self.now, EdgeType)
        return self.staging.scan(f"node:{self.now.from_type.type_name}", columns=[ID]).column(ID)


def broken_new_rules(staging: WriteSet, sides: Sides) -> Iterator[MergeConflict]:
    """Judge the ground's rows by the rules that its own schema does not have."""
    for lineage in sides.types:
        was, now = sides.entity_on(lineage, lineage.side), sides.entity(lineage)
        if was == now:
            continue
        yield from _without_values(staging, sides, lineage)
        for step in _steps(was, now):
            is_whole = isinstance(step, ChangeCardinality)
            breach = breach_of(step, now, _Result(staging, lineage.key, now, is_whole))
            if breach.count:
                yield MergeConflict(_kind(step), lineage.key, None, _message(step, breach))


def _steps(was: EntityType, now: EntityType) -> tuple[Step, ...]:
    steps = plan_steps(_alone(was), _alone(now), validated=True)
    # Rows without a value are told one by one.
    return tuple(
        replace(step, from_type=step.from_type.as_required()) if isinstance(step, ChangePropertyType) else step
        for step in steps
    )


def _alone(entity: EntityType) -> Schema:
    if isinstance(entity, NodeType):
        return Schema("", 0, nodes=(entity,))
    return Schema("", 0, edges=(entity,))


def _without_values(staging: WriteSet, sides: Sides, lineage: Lineage) -> Iterator[MergeConflict]:
    """Rows without a value for a property that the result requires and the ground does not, or does not have."""
    shape, was = sides.reshape(lineage, lineage.side), sides.entity_on(lineage, lineage.side)
    required = {part.name for part in was.properties if not part.type.nullable}
    for part in sides.entity(lineage).properties:
        if part.type.nullable or shape.columns.get(part.name) in required or part.name in shape.values:
            continue
        for rows in _Result(staging, lineage.key, sides.entity(lineage)).rows([part.name]):
            for entity_id in rows.filter(pc.is_null(rows.column(part.name))).column(ID).to_pylist():
                yield lacking(lineage.key, str(entity_id), part.name)


def lacking(type_key: str, entity_id: str, name: str) -> MergeConflict:
    """The conflict of an entity without a value that the result's schema requires."""
    message = f"{type_key} '{entity_id}' has no value for '{name}', which the schema requires"
    return MergeConflict(MergeConflictKind.VALUE_CONSTRAINT_VIOLATION, type_key, None, message)


def _kind(step: Step) -> MergeConflictKind:
    match step:
        case AddConstraint(constraint=Unique()):
            return MergeConflictKind.UNIQUE_VIOLATION
        case ChangeCardinality():
            return MergeConflictKind.CARDINALITY_VIOLATION
        case _:
            return MergeConflictKind.VALUE_CONSTRAINT_VIOLATION


def _message(step: Step, breach: BrokenRule) -> str:
    few = ", ".join(f"'{entity_id}'" for entity_id in breach.ids)
    more = "" if breach.count <= len(breach.ids) else ", …"
    nouns = "entity breaks" if breach.count == 1 else "entities break"
    return f"one branch did {step}: {breach.count} {nouns} it on the other ({few}{more})"
