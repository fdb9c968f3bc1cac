"""Whether data changed on one side of a merge that the schema of the other side has dropped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.branch.row_changes import row_changes
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID, EntityType, Schema
from omnigraph.model.schema_match import match_schemas
from omnigraph.storage.tables.tables import Tables


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
