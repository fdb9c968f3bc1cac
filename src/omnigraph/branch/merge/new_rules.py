"""Rules of a merged schema that the ground's rows were never judged by: the other side made them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
import pyarrow.compute

from omnigraph.branch.merge.sides import Lineage, Sides
from omnigraph.language.schema import plan_steps
from omnigraph.model.conflict import MergeConflict, MergeConflictKind
from omnigraph.model.schema import ID, EdgeType, EntityType, NodeType, Schema, Unique
from omnigraph.model.schema_change import AddConstraint, ChangeCardinality, ChangePropertyType, Step
from omnigraph.transaction.evolve_checks import Breach, breach_of
from omnigraph.transaction.write_set import WriteSet

# The stubs know what a kernel takes only where the Arrow type is known.
pc: Any = pyarrow.compute


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


def _message(step: Step, breach: Breach) -> str:
    few = ", ".join(f"'{entity_id}'" for entity_id in breach.ids)
    more = "" if breach.count <= len(breach.ids) else ", …"
    nouns = "entity breaks" if breach.count == 1 else "entities break"
    return f"one branch did {step}: {breach.count} {nouns} it on the other ({few}{more})"
