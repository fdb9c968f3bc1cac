"""Whether data changed on one side of a merge that the schema of the other side has dropped."""

from collections.abc import Mapping
from dataclasses import dataclass

from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.branch.row_changes import row_changes
from omnigraph.model.commit import Record
from omnigraph.model.schema import ID
from omnigraph.model.schema_match import counterparts
from omnigraph.storage.tables.tables import Tables


@dataclass(frozen=True, slots=True)
class DroppedData:
    """Compares what a side has with the base, only where something was dropped.

    Attributes:
        tables: of the graph.
        schema_of: the accepted schema of a digest.
        base: a record of the base's state.
        records: the record of each side.
    """

    tables: Tables
    schema_of: SchemaOf
    base: Record
    records: Mapping[Side, Record]

    def is_changed(self, side: Side, type_key: str, name: str | None) -> bool:
        """Whether a side changed rows of a type, or values of one of its properties; by their names at the base.

        A row that a side deleted has no value to lose; a table that was only laid out in another way has not changed.
        """
        record = self.records[side]
        before, after = self.schema_of(self.base.schema).schema, self.schema_of(record.schema).schema
        entity = before.entity(type_key)
        found = None if entity is None else counterparts(before, after).entity(entity)
        if entity is None or found is None:
            return False
        older, newer = self.base.tables[type_key], record.tables[found.type_key]
        if (older.table, older.version) == (newer.table, newer.version):
            return False
        if name is None:
            difference = self.tables.difference(older, newer)
            return row_changes(difference.removed, difference.added).count > 0
        difference = self.tables.difference(older, newer, columns=[ID, name])
        changes = row_changes(difference.removed, difference.added)
        given = changes.inserted.num_rows - changes.inserted.column(name).null_count
        return bool(given) or bool(changes.after.num_rows)
