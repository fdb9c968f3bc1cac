"""From one schema to the next: a plan carried out as one commit.

No row is rewritten, unless what is dropped shall leave the store. A type keeps its table when it is renamed, a property
its column; a new type gets a table of its own, a new property a column in which everybody has nothing yet, or its
default. A property of a wider type gets a column anew, beside the others. Commits made before keep their own schema.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.schema import ID, EntityType, Property, Schema
from omnigraph.model.schema_change import FillProperty, SchemaPlan
from omnigraph.model.schema_change_document import dump_step
from omnigraph.storage.layout import arrow_type, table_schema
from omnigraph.storage.tables.declared import declared_indexes
from omnigraph.storage.tables.tables import ComputedColumn, Tables
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.defaults import default_value, repeated
from omnigraph.transaction.evolve_checks import refuse_what_breaks
from omnigraph.transaction.graph_context import GraphContext
from omnigraph.transaction.pending import TableChange
from omnigraph.transaction.root import create_table
from omnigraph.transaction.write import Operation
from omnigraph.transaction.write_set import WriteSet

# What a column is called while the one in whose place it comes is still there.
_PASSING = "__becoming "


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """How the columns of one type's table change.

    Attributes:
        was: the type before.
        now: the type after.
        dropped: columns that go.
        renamed: columns under another name, old to new.
        relaxed: columns that shall allow nulls.
        tightened: columns that shall not.
        added: columns that come, with nothing in them.
        computed: columns that come with values, under the names that `renamed` gives up.
    """

    was: EntityType
    now: EntityType
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    relaxed: tuple[str, ...] = ()
    tightened: tuple[str, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    added: tuple["pa.Field[pa.DataType]", ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the table stays as it is."""
        return not (self.dropped or self.renamed or self.relaxed or self.tightened or self.added or self.computed)

    def rework(self, tables: Tables, *, erases: bool = False) -> TableChange:
        """What makes a version with the new columns; with `erases`, no file of it holds values of dropped ones."""
        return partial(
            tables.stage_columns,
            erases_but=declared_indexes(self.now) if erases and self.dropped else None,
            computed=self.computed,
            dropped=self.dropped,
            renamed=dict(self.renamed),
            relaxed=self.relaxed,
            tightened=self.tightened,
            added=self.added,
        )


def evolution(parts: GraphContext, before: Accepted, plan: SchemaPlan, digest: str) -> Operation:
    """The write that carries out a plan.

    Args:
        before: the schema the plan starts from.
        plan: a supported plan.
        digest: what commits call the schema afterwards; it is stored already.

    Returns:
        To be run by `write`. On a branch that has moved on to another schema it asks to be made anew.
    """
    was = {entity.type_id: entity for entity in before.schema.entities}
    now = {entity.type_id: entity for entity in plan.schema.entities}
    changes = list(_changes(before.schema, plan))
    created: dict[str, Pin] = {}  # a second run uses the tables of the first

    def run(write_set: WriteSet) -> None:
        refuse_other_schema(before, write_set)
        refuse_what_breaks(write_set, before.schema, plan)
        write_set.accept_schema(digest)
        write_set.notes["steps"] = [dump_step(step) for step in plan.steps]
        # Old names are given up before new ones are taken, so that the order of types does not matter.
        moved = [change for change in changes if change.was.type_key != change.now.type_key]
        pins = {change.now.type_key: write_set.base_pin(change.was.type_key) for change in moved}
        for gone in [entity for number, entity in was.items() if number not in now]:
            write_set.remove_table(gone.type_key)
        for change in moved:
            write_set.remove_table(change.was.type_key)
        for key, pin in pins.items():
            write_set.add_table(key, pin)
        for fresh in [entity for number, entity in now.items() if number not in was]:
            if fresh.type_key not in created:
                created[fresh.type_key] = create_table(parts, fresh.type_key, table_schema(fresh))
            write_set.add_table(fresh.type_key, created[fresh.type_key])
        for change in changes:
            if not change.is_empty:
                change_columns = change.rework(parts.tables, erases=plan.drops_hard)
                write_set.change_table(change.now.type_key, change_columns, keeps_content=False)

    touched = {entity.type_key for entity in (*before.schema.entities, *plan.schema.entities)}
    return Operation(CommitKind.SCHEMA, frozenset(touched), run, redoable=True)


def _changes(before: Schema, plan: SchemaPlan) -> Iterator[ColumnChange]:
    """The types that stay, with what happens to their columns."""
    was = {entity.type_id: entity for entity in before.entities}
    defaults = {
        (step.type_kind, step.type_name, step.property_name): step.value
        for step in plan.steps
        if isinstance(step, FillProperty)
    }
    for now in plan.schema.entities:
        known = was.get(now.type_id)
        if known is not None:
            filled = {
                name: value
                for (kind, type_name, name), value in defaults.items()
                if (kind, type_name) == (now.kind, now.name)
            }
            yield column_change(known, now, filled)


def column_change(was: EntityType, now: EntityType, defaults: Mapping[str, str]) -> ColumnChange:
    """How the columns of a type change.

    Args:
        was: the type before; numbers tell which property is which.
        now: the type after.
        defaults: of new properties that every row has a value of, the text that says it.
    """
    old = {prop.property_id: prop for prop in was.properties}
    new = {prop.property_id: prop for prop in now.properties}
    columns = table_schema(now)
    kept = [(prop, new[number]) for number, prop in old.items() if number in new]
    widened = [(before, after) for before, after in kept if arrow_type(before.type) != arrow_type(after.type)]
    same = [pair for pair in kept if pair not in widened]
    fresh = [prop for number, prop in new.items() if number not in old]
    computed = [_widened(before.name, columns.field(after.name)) for before, after in widened]
    computed += [
        _filled(prop, columns.field(prop.name), defaults[prop.name]) for prop in fresh if prop.name in defaults
    ]
    return ColumnChange(
        was,
        now,
        dropped=(
            *(prop.name for number, prop in old.items() if number not in new),
            *(before.name for before, _ in widened),
        ),
        renamed=(
            *((before.name, after.name) for before, after in same if before.name != after.name),
            *((column.field.name, column.field.name.removeprefix(_PASSING)) for column in computed),
        ),
        relaxed=tuple(before.name for before, after in same if after.type.nullable and not before.type.nullable),
        tightened=tuple(before.name for before, after in same if before.type.nullable and not after.type.nullable),
        computed=tuple(computed),
        added=tuple(columns.field(prop.name) for prop in fresh if prop.name not in defaults),
    )


def _widened(source: str, field: "pa.Field[pa.DataType]") -> ComputedColumn:
    def values(before: "pa.Array[Any]") -> "pa.Array[Any]":
        return before.cast(field.type)

    return ComputedColumn(field.with_name(_PASSING + field.name), source, values)


def _filled(each: Property, field: "pa.Field[pa.DataType]", default: str) -> ComputedColumn:
    value = default_value(each, default)

    def values(ids: "pa.Array[Any]") -> "pa.Array[Any]":
        return repeated(value, field.type, len(ids))

    return ComputedColumn(field.with_name(_PASSING + field.name), ID, values)
