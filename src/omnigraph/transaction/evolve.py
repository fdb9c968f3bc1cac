"""From one schema to the next: a plan carried out as one commit.

No row is rewritten. A type keeps its table when it is renamed, a property its column; a new type gets a table of its
own, a new property a column in which everybody has nothing yet. Commits made before keep their own schema.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

import pyarrow as pa

from omnigraph.model.commit import CommitKind, Pin
from omnigraph.model.schema import EntityType, Schema
from omnigraph.model.schema_change import SchemaPlan
from omnigraph.model.schema_change_document import step_document
from omnigraph.storage.layout import table_schema
from omnigraph.transaction.accepted import Accepted, refuse_other_schema
from omnigraph.transaction.parts import Parts
from omnigraph.transaction.root import create_table
from omnigraph.transaction.staging import Staging
from omnigraph.transaction.write import Operation


@dataclass(frozen=True, slots=True)
class ColumnChange:
    """How the columns of one type's table change.

    Attributes:
        was: the type before.
        now: the type after.
        dropped: columns that go.
        renamed: columns under another name, old to new.
        relaxed: columns that shall allow nulls.
        added: columns that come.
    """

    was: EntityType
    now: EntityType
    dropped: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    relaxed: tuple[str, ...] = ()
    added: tuple["pa.Field[pa.DataType]", ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether the table stays as it is."""
        return not (self.dropped or self.renamed or self.relaxed or self.added)


def evolution(parts: Parts, before: Accepted, plan: SchemaPlan, digest: str) -> Operation:
    """The write that carries out a plan.

    Args:
        parts: of the graph.
        before: the schema the plan starts from.
        plan: a supported plan.
        digest: what commits call the schema afterwards; it is stored already.

    Returns:
        To be run by `write`. On a branch that has moved on to another schema it asks to be made anew.
    """
    was = {each.type_id: each for each in before.schema.entities}
    now = {each.type_id: each for each in plan.schema.entities}
    changes = list(_changes(before.schema, plan.schema))
    created: dict[str, Pin] = {}  # a second run uses the tables of the first

    def run(staging: Staging) -> None:
        refuse_other_schema(before, staging)
        staging.accept_schema(digest)
        staging.notes["steps"] = [step_document(step) for step in plan.steps]
        # All old names are given up before new ones are taken: names may be exchanged.
        moved = [change for change in changes if change.was.type_key != change.now.type_key]
        pins = {change.now.type_key: staging.base_pin(change.was.type_key) for change in moved}
        for gone in [each for number, each in was.items() if number not in now]:
            staging.remove_table(gone.type_key)
        for change in moved:
            staging.remove_table(change.was.type_key)
        for key, pin in pins.items():
            staging.add_table(key, pin)
        for fresh in [each for number, each in now.items() if number not in was]:
            if fresh.type_key not in created:
                created[fresh.type_key] = create_table(parts, fresh.type_key, table_schema(fresh))
            staging.add_table(fresh.type_key, created[fresh.type_key])
        for change in changes:
            if not change.is_empty:
                rework = partial(
                    parts.tables.stage_columns,
                    dropped=change.dropped,
                    renamed=dict(change.renamed),
                    relaxed=change.relaxed,
                    added=change.added,
                )
                staging.rework(change.now.type_key, rework, keeps_content=False)

    touched = {each.type_key for each in (*before.schema.entities, *plan.schema.entities)}
    return Operation(CommitKind.SCHEMA, frozenset(touched), run, redoable=True)


def _changes(before: Schema, after: Schema) -> Iterator[ColumnChange]:
    """The types that stay, with what happens to their columns."""
    was = {each.type_id: each for each in before.entities}
    for now in after.entities:
        known = was.get(now.type_id)
        if known is not None:
            yield _change(known, now)


def _change(was: EntityType, now: EntityType) -> ColumnChange:
    old = {each.property_id: each for each in was.properties}
    new = {each.property_id: each for each in now.properties}
    columns = table_schema(now)
    kept = [(each, new[number]) for number, each in old.items() if number in new]
    return ColumnChange(
        was,
        now,
        dropped=tuple(each.name for number, each in old.items() if number not in new),
        renamed=tuple((before.name, after.name) for before, after in kept if before.name != after.name),
        relaxed=tuple(before.name for before, after in kept if after.type.nullable and not before.type.nullable),
        added=tuple(columns.field(each.name) for number, each in new.items() if number not in old),
    )
