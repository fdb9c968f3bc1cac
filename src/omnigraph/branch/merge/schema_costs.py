"""The steps from one schema to another, with the data they lose: what a preview of a merge shows about the schema."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from omnigraph.branch.merge.base import Base
from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.schema_merge import merge_schemas
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.branch.row_changes import row_changes
from omnigraph.errors import FormatError
from omnigraph.language.schema import plan_steps
from omnigraph.model.commit import UNKNOWN, Record
from omnigraph.model.schema import ID, EdgeType, EntityType, NodeType, Schema, TypeKind
from omnigraph.model.schema_change import DropProperty, DropType, RenameType, Step
from omnigraph.model.schema_cost import CostedStep
from omnigraph.model.schema_document import digest
from omnigraph.model.schema_match import match_schemas, renumbered
from omnigraph.storage.tables.errors import VERSION_RECLAIMED
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.accepted import Accepted, accepted_schema

# A type key and the name of a property; None for the type as a whole.
Replaced = tuple[str, str | None]
_Entity = TypeVar("_Entity", NodeType, EdgeType)


def costed_steps(
    tables: Tables, before: Schema, state: Record, after: Schema, *, replaced: Collection[Replaced] = ()
) -> tuple[CostedStep, ...]:
    """List the steps from the schema of a state to another one, with the rows and values they lose there.

    Args:
        tables: of the graph.
        before: the schema of the state.
        state: the entry whose rows are counted, for a merge the target's head.
        after: the schema that is to hold; for a merge, that of its result.
        replaced: what of the state gives way to another thing of the same name.

    Returns:
        The steps in order. Only tables with a dropped property are read, and of these one column.
    """
    steps = plan_steps(_set_apart(renumbered(before, after), replaced), after, validated=True)
    was_called = {(step.type_kind, step.to_name): step.from_name for step in steps if isinstance(step, RenameType)}
    return tuple(_costed(tables, state, steps, was_called))


def _set_apart(schema: Schema, replaced: Collection[Replaced]) -> Schema:
    """A schema in which what is replaced has numbers of its own: it is dropped, and the other is added."""
    if not replaced:
        return schema

    def apart(of: _Entity) -> _Entity:
        parts = tuple(
            replace(part, property_id=-place) if (of.type_key, part.name) in replaced else part
            for place, part in enumerate(of.properties, 1)
        )
        type_id = -of.type_id if (of.type_key, None) in replaced else of.type_id
        return replace(of, type_id=type_id, properties=parts)

    return replace(schema, nodes=tuple(map(apart, schema.nodes)), edges=tuple(map(apart, schema.edges)))


def _costed(
    tables: Tables, state: Record, steps: tuple[Step, ...], was_called: dict[tuple[TypeKind, str], str]
) -> Iterator[CostedStep]:
    for step in steps:
        match step:
            case DropType(kind, name):
                pin = state.tables[f"{kind}:{name}"]
                rows = tables.open(pin).count() if pin.rows == UNKNOWN else pin.rows
                yield CostedStep(step, rows_lost=rows)
            case DropProperty(kind, type_name, name):
                old_name = was_called.get((kind, type_name), type_name)
                table = state.tables.get(f"{kind}:{old_name}")
                # A property of an interface has no column; the types that implement it have steps of their own.
                values = 0 if table is None else tables.open(table).count(f"`{name}` IS NOT NULL")
                yield CostedStep(step, values_lost=values)
            case _:
                yield CostedStep(step)


@dataclass(frozen=True, slots=True)
class DroppedData:
    """Compares what a side has with the base, only where something was dropped.

    Attributes:
        tables: of the graph.
        schema_of: the accepted schema of a digest.
        schema: of the base.
        bases: records of the base's state; of several, one from which a side differs is enough.
        records: the record of each side.
    """

    tables: Tables
    schema_of: SchemaOf
    schema: Schema
    bases: Sequence[Record]
    records: Mapping[Side, Record]

    def is_changed(self, side: Side, type_key: str, name: str | None) -> bool:
        """Whether a side changed rows of a type, or values of one of its properties; by their names at the base.

        A row that a side deleted has no value to lose; a table that was only laid out in another way has not changed.
        """
        entity = self.schema.entity(type_key)
        return entity is not None and any(self._differs(base, self.records[side], entity, name) for base in self.bases)

    def _differs(self, base: Record, record: Record, entity: EntityType, name: str | None) -> bool:
        before, after = self.schema_of(base.schema).schema, self.schema_of(record.schema).schema
        at_base = match_schemas(self.schema, before)
        was = at_base.entity(entity)
        found = None if was is None else match_schemas(before, after).entity(was)
        if was is None or found is None:
            return False
        older, newer = base.tables[was.type_key], record.tables[found.type_key]
        if (older.table, older.version) == (newer.table, newer.version):
            return False
        if name is None:
            difference = self.tables.difference(older, newer)
            return row_changes(difference.removed, difference.added).count > 0
        column = next((there for there, here in at_base.columns(entity).items() if here == name), None)
        if column is None:
            return False
        difference = self.tables.difference(older, newer, columns=[ID, column])
        changes = row_changes(difference.removed, difference.added)
        given = changes.inserted.num_rows - changes.inserted.column(column).null_count
        return bool(given) or bool(changes.after.num_rows)


def base_schema(tables: Tables, schema_of: SchemaOf, base: Base) -> Accepted | None:
    """The schema of the base; of several common ancestors what theirs come to, None where they do not agree."""
    digests = [state.schema for state in base.states]
    latest = base.ancestors.latest(digests)
    if len(latest) == 1:
        return schema_of(digests[latest[0]])
    if len(latest) != 2:
        return None
    between, pair = base.ancestors.between, (latest[0], latest[1])
    apart = [older for (one, other), older in between.items() if digests[one] != digests[other]]
    common = {digests[place] for older in apart for place in older.latest(digests)}
    if pair not in between or len(common) != 1 or not all(older.latest(digests) for older in apart):
        return None
    was = schema_of(common.pop()).schema
    records = dict(zip(Side, (base.states[place] for place in latest), strict=True))
    older = [base.states[place] for place in between[pair].places]
    source, target = (schema_of(record.schema).schema for record in records.values())
    changed = DroppedData(tables, schema_of, was, older, records).is_changed
    try:
        merged = merge_schemas(was, source, target, rows_changed=changed)
    except FormatError as fault:
        if fault.code != VERSION_RECLAIMED:
            raise
        return None  # what the ancestors have in common was swept
    return None if merged.conflicts else accepted_schema(digest(merged.schema), merged.schema)
