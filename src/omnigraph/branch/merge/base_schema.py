"""The schema that the schemas of two branches are compared with."""

from omnigraph.branch.merge.base import Base
from omnigraph.branch.merge.choices import Side
from omnigraph.branch.merge.dropped_data import DroppedData
from omnigraph.branch.merge.schema_merge import merge_schemas
from omnigraph.branch.merge.sides import SchemaOf
from omnigraph.errors import FormatError
from omnigraph.model.schema_document import digest
from omnigraph.storage.tables.errors import VERSION_RECLAIMED
from omnigraph.storage.tables.tables import Tables
from omnigraph.transaction.accepted import Accepted, accepted_schema


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
